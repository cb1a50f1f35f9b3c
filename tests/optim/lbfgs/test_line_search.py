"""The line search: where it ends the strong Wolfe conditions hold, on curves with a known shape."""

from __future__ import annotations

import math

import pytest

from lucid.optim.lbfgs.line_search import Point, strong_wolfe

CURVES = {
    "parabola": (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3)),
    "a minimum far away": (lambda t: (t / 50 - 3) ** 2, lambda t: (t / 50 - 3) / 25),
    "a minimum near the start": (lambda t: (100 * t - 1) ** 2, lambda t: 200 * (100 * t - 1)),
    "waves": (lambda t: 0.1 * t * t - math.sin(3 * t), lambda t: 0.2 * t - 3 * math.cos(3 * t)),
    "a wall": (lambda t: -t + math.exp(8 * (t - 1)), lambda t: -1 + 8 * math.exp(8 * (t - 1))),
    "a narrow valley": (lambda t: math.log1p(100 * (t - 1) ** 2), lambda t: 200 * (t - 1) / (1 + 100 * (t - 1) ** 2)),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("first", [0.01, 1.0, 3.0, 40.0])
def test_the_conditions_hold(name, first):
    """Loss and slope at the point found have come down enough, in few evaluations, all of which are counted."""
    loss, slope = CURVES[name]
    asked = []

    def evaluate(at):
        asked.append(at)
        return Point(at, loss(at), None, slope(at))

    start = Point(0.0, loss(0.0), None, slope(0.0))
    found, count = strong_wolfe(evaluate, first, start, length=1.0, tolerance=1e-9, most=25)
    assert count == len(asked) <= 12
    assert asked[0] == first
    assert found.at in asked
    assert found.loss <= start.loss + 1e-4 * found.at * start.slope
    assert abs(found.slope) <= 0.9 * abs(start.slope)


def test_the_best_point_is_left_where_evaluations_end():
    """After as many points as are allowed the lowest is returned, which may be the start."""
    loss, slope = CURVES["a minimum near the start"]
    start = Point(0.0, loss(0.0), None, slope(0.0))
    for most in (0, 1):
        found, count = strong_wolfe(
            lambda at: Point(at, loss(at), None, slope(at)), 40.0, start, length=1.0, tolerance=1e-9, most=most
        )
        assert count == most + 1
        assert found.loss <= start.loss
        assert (found.at == 0.0) == (most == 0)


@pytest.mark.parametrize("first", [1.3, 3.0, 8.0, 40.0])
def test_an_end_that_the_search_stays_near_is_left_behind(first):
    """Of a minimum beside one end, where each guess falls next to that end again, the far side soon is cut off."""

    def curve(at):
        side = 1 if at < 0.1 else 9
        return Point(
            at, abs(at - 0.1) ** 1.02 * side, None, math.copysign(1.02 * abs(at - 0.1) ** 0.02 * side, at - 0.1)
        )

    found, count = strong_wolfe(curve, first, curve(0.0), length=1.0, tolerance=1e-9, most=60)
    assert count <= 25
    assert abs(found.slope) <= 0.9 * abs(curve(0.0).slope)


def hinge(t, at, right):
    """Return the slope of two lines that bend a little, and meet at a minimum."""
    return math.copysign(1.02 * abs(t - at) ** 0.02 * (1 if t < at else right), t - at)


# of PyTorch's line search: the first point, and those that it tries after that, to seven digits
MORE_CURVES = {
    "steps": (
        lambda t: -t / 10 - math.tanh(40 * (t - 0.3)) + 3 * math.tanh(90 * (t - 0.9)),
        lambda t: -0.1 - 40 / math.cosh(40 * (t - 0.3)) ** 2 + 270 / math.cosh(min(90 * (t - 0.9), 99)) ** 2,
    ),
    "a hinge": (lambda t: abs(t - 0.95) ** 1.02 * (1 if t < 0.95 else 9), lambda t: hinge(t, 0.95, 9)),
    "a hinge near the start": (lambda t: abs(t - 0.1) ** 1.02 * (1 if t < 0.1 else 9), lambda t: hinge(t, 0.1, 9)),
    "a straight line": (lambda t: -t, lambda t: -1.0),
}
TRIED = [
    ("a wall", 40, 26.58281, 17.63775, 11.67397, 7.697488, 5.045528, 3.276008, 2.093787, 1.301251, 0.7744893),
    ("a narrow valley", 0.01, 0.05505, 0.3030002, 1.667741, 1.014239, 0.9587092, 1.000635),
    ("a narrow valley", 40, 11.38697, 2.790855, 0.8280124, 1.281412, 0.9730329, 1.007893),
    ("steps", 0.01, 0.05505, 0.3030002, 0.3054798, 0.3262426, 0.3385167, 1.861903, 0.5781835, 0.5827776, 0.7106901),
    ("a hinge", 1, 0.6858064, 0.8733069, 0.9001947, 0.9105583, 0.9175342, 0.9257808, 0.9295874, 0.9366287, 0.9390176),
    ("a hinge near the start", 1, 0.02969255, 0.1267233, 0.07224897, 0.07824746, 0.08216147, 0.08661765, 0.08872194),
    ("waves", 40, 5.298807, 2.200545, 0.485302),
    ("a straight line", 0.01, 0.1, 1, 10, 100, 1000, 10000, 100000, 1000000, 1e7),
]


@pytest.mark.parametrize("row", TRIED, ids=lambda row: f"{row[0]} from {row[1]}")
def test_the_points_that_are_tried(row):
    """They are those of PyTorch's line search, one after the other."""
    name, *expected = row
    loss, slope = {**CURVES, **MORE_CURVES}[name]
    tried = []

    def evaluate(at):
        tried.append(at)
        return Point(at, loss(at), None, slope(at))

    strong_wolfe(evaluate, expected[0], Point(0.0, loss(0.0), None, slope(0.0)), length=1.0, tolerance=1e-9, most=25)
    assert tried[: len(expected)] == pytest.approx(expected, rel=1e-5)


# Losses and slopes that a search finds one after the other, from a loss of 0 and a slope of -1; the points at which
# PyTorch's line search finds them, and the one that it returns.
FOUND = [
    ([(-1.5, 1.8), (-1.4, 0.1), (0.3, 0.2), (-1.7, 3.5)], [1, 0.8567697, 0.9736021, 0.9998855], 0.9998855),
    (
        [(0.0, 1.0), (-1.1, 2.1), (-0.6, 0.1), (0.6, -1.8), (-1.3, 1.1), (1.3, 1.4), (-1.6, 0.2)],
        [1, 0.5, 0.4404599, 0.4978019, 0.4997802, 0.4997798, 0.4997802],
        0.4997802,
    ),
    ([(-0.4, -1.1), (-1.5, -1.4), (-1.0, 0.1), (-0.9, 1.1)], [1, 5.505, 5.55005, 5.505893], 5.505),
    (
        [(0.1, 0.4), (1.0, 0.1), (-0.2, -1.1), (-1.1, -2.4), (-0.9, -1.7)],
        [1, 0.3333333, 0.01602175, 0.04775291, 0.06115897],
        0.04775291,
    ),
    ([(-2.4, -1.1), (-1.7, -1.5), (-1.1, 0.5), (-0.5, -1.8)], [1, 1.122345, 1.123568, 1.122345], 1.122345),
    ([(-0.6, -3.5), (-0.2, -1.7), (0.1, -1.9)], [1, 1.01, 1.0101], 0),
    (
        [(-2.2, -1.4), (-1.3, 1.5), (-0.2, -0.1), (0.3, -0.6), (-1.6, 1.9)],
        [1, 1.204981, 1.010389, 1.001039, 1],
        1,
    ),
]


@pytest.mark.parametrize(("found", "places", "best"), FOUND)
def test_the_points_of_a_search_that_finds_anything(found, places, best):
    """Whatever losses and slopes there are, of no one curve, PyTorch's points are tried and its best is returned."""
    tried = []

    def evaluate(at):
        tried.append(at)
        loss, slope = found[len(tried) - 1]
        return Point(at, loss, None, slope)

    start = Point(0.0, 0.0, None, -1.0)
    point, count = strong_wolfe(evaluate, 1.0, start, length=1.0, tolerance=1e-9, most=len(found) - 1)
    assert tried == pytest.approx(places, rel=1e-6)
    assert (point.at, count) == (pytest.approx(best, rel=1e-6), len(found))
