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
