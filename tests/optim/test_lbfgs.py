"""L-BFGS: minima of known functions, what ends its steps, its state, what it refuses, and the line search."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.errors import SettingError
from lucid.optim.lbfgs import Point, strong_wolfe


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def closure_of(optimizer, params, loss_of, calls=None):
    """Return a closure that counts its calls in a list."""

    def closure():
        optimizer.zero_grad()
        loss = loss_of(*params)
        loss.backward()
        if calls is not None:
            calls.append(loss.item())
        return loss

    return closure


@pytest.mark.parametrize("settings", [{"line_search_fn": "strong_wolfe"}, {"lr": 0.1, "max_iter": 400}], ids=str)
def test_the_minimum_of_a_curved_valley(settings):
    """Rosenbrock's function is minimal at (1, 1), which is found from its usual start."""
    x = lucid.tensor([-1.2, 1.0], dtype=lucid.float64, requires_grad=True)
    optimizer = optim.LBFGS([x], max_eval=1000, **settings)
    calls = []
    closure = closure_of(optimizer, [x], rosenbrock, calls)
    first = [optimizer.step(closure).item() for _ in range(5)]
    np.testing.assert_allclose(x.tolist(), [1.0, 1.0], rtol=1e-4)
    assert first[0] == pytest.approx(24.2)
    state = optimizer.state[x]
    assert state["func_evals"] == len(calls)
    # what is tried is undone, so that the loss where it ends is the last one's
    assert rosenbrock(x).item() <= min(calls) + 1e-12


def test_a_quadratic_is_solved(rng):
    """Its minimum solves a linear system; parameters are any shapes, complex ones too."""
    factor = rng.standard_normal((7, 7))
    matrix, vector = lucid.tensor(factor @ factor.T + np.eye(7)), lucid.tensor(rng.standard_normal(7))
    x, y = lucid.zeros(3, 1, dtype=lucid.float64), lucid.zeros(2, dtype=lucid.complex128)
    params = [x.requires_grad_(), y.requires_grad_()]
    optimizer = optim.LBFGS(
        params, line_search_fn="strong_wolfe", max_iter=25, tolerance_grad=1e-9, tolerance_change=0.0
    )

    def loss(x, y):
        v = lucid.cat([x.reshape(-1), y.real, y.imag])
        return v.dot(matrix @ v) / 2 - vector.dot(v)

    optimizer.step(closure_of(optimizer, params, loss))
    solved = np.linalg.solve(matrix.numpy(force=True), vector.numpy(force=True))
    found = [*x.reshape(-1).tolist(), *y.real.tolist(), *y.imag.tolist()]
    np.testing.assert_allclose(found, solved, rtol=1e-5, atol=1e-7)


def test_what_ends_the_steps():
    """Iterations, evaluations, a flat gradient and a small change each end a call of `step`."""
    for settings, steps, evaluations in [
        ({"max_iter": 3, "max_eval": 9}, 3, 3),
        ({"max_iter": 30, "max_eval": 4}, 3, 4),
        ({"max_iter": 3}, 2, 3),
        ({"max_iter": 30, "tolerance_grad": 1e9}, 0, 1),
        ({"max_iter": 30, "tolerance_change": 1e9}, 1, 1),
        ({"max_iter": 30, "tolerance_change": 0.5}, 1, 2),
    ]:
        x = lucid.tensor([0.5, 2.0, -1.0], dtype=lucid.float64, requires_grad=True)
        optimizer, calls = optim.LBFGS([x], lr=0.1, **settings), []
        optimizer.step(closure_of(optimizer, [x], lambda x: ((x - 3) ** 4).sum(), calls))
        assert (optimizer.state[x]["n_iter"], len(calls)) == (steps, evaluations), settings
        assert optimizer.state[x]["func_evals"] == evaluations
    assert optim.LBFGS([x], max_iter=8).param_groups[0]["max_eval"] == 10


def test_history_is_bounded_and_goes_on_after_a_load(rng):
    """As many steps are kept as `history_size` says; a loaded optimizer goes on as the saved one, deep copies too."""
    results, start = [], rng.standard_normal(4)

    def loss(x):
        return ((x - 1) ** 4).sum() + (x[0] * x[1] + x[2] * x[3]) ** 2

    for kind in ("whole", "loaded", "copied"):
        x = lucid.tensor(start, requires_grad=True)
        optimizer = optim.LBFGS([x], max_iter=5, history_size=2, line_search_fn="strong_wolfe")
        optimizer.step(closure_of(optimizer, [x], loss))
        if kind == "loaded":
            saved = optimizer.state_dict()
            optimizer = optim.LBFGS([x])
            optimizer.load_state_dict(saved)
        if kind == "copied":
            x, optimizer = copy.deepcopy((x, optimizer))
        optimizer.step(closure_of(optimizer, [x], loss))
        results.append(x.tolist())
        state = optimizer.state[x]
        assert [len(state[name]) for name in ("old_dirs", "old_stps", "ro")] == [2, 2, 2]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 40])
def test_the_last_steps_are_kept(size, rng):
    """After any number of steps the history holds the last `history_size` of them, or all if these are fewer."""
    x = lucid.tensor(rng.uniform(0.5, 1.5, 6), requires_grad=True)
    optimizer = optim.LBFGS([x], max_iter=1, history_size=size, lr=0.02, tolerance_grad=0, tolerance_change=0)
    state, steps = optimizer.state[x], []
    for _ in range(30):
        before = x.detach().clone()
        optimizer.step(closure_of(optimizer, [x], lambda x: (x**4).sum() + x.cos().sum()))
        steps.append((x.detach() - before).numpy(force=True))
        kept = [each.numpy(force=True) for each in state["old_stps"]]
        expected = steps[:-1][-size:]  # the change of the gradient over the last one is not known yet
        assert [len(state[name]) for name in ("old_dirs", "old_stps", "ro")] == [len(expected)] * 3
        for got, wanted in zip(kept, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-12)


def test_a_loaded_history_of_complex_parameters_is_real(rng):
    """A loaded state goes on as the one that it was saved from: what is real beside complex numbers stays so."""
    start, results = rng.standard_normal(2) + 1j * rng.standard_normal(2), []
    for loads in (False, True):
        x = lucid.tensor(start, requires_grad=True)
        optimizer = optim.LBFGS([x], lr=0.5, max_iter=3)
        optimizer.step(closure_of(optimizer, [x], lambda x: (abs(x - 3 + 1j) ** 2 * lucid.tensor([1.0, 4.0])).sum()))
        if loads:
            saved, optimizer = optimizer.state_dict(), optim.LBFGS([x], lr=0.5, max_iter=3)
            optimizer.load_state_dict(saved)
        optimizer.step(closure_of(optimizer, [x], lambda x: (abs(x - 3 + 1j) ** 2 * lucid.tensor([1.0, 4.0])).sum()))
        results.append(x.tolist())
        assert optimizer.state[x]["d"].dtype is lucid.float64
    assert results[0] == results[1]


def test_gradients_that_are_filled_in_place_are_no_part_of_the_state():
    """A closure may clear gradients in place: what is kept of the last one stays."""
    results = []
    for set_to_none in (True, False):
        x = lucid.tensor([-1.2, 1.0], dtype=lucid.float64, requires_grad=True)
        optimizer = optim.LBFGS([x], lr=0.1)

        def closure(x=x, optimizer=optimizer, set_to_none=set_to_none):
            optimizer.zero_grad(set_to_none=set_to_none)
            loss = rosenbrock(x)
            loss.backward()
            return loss

        optimizer.step(closure)
        results.append(x.tolist())
    assert results[0] == results[1]


def test_an_error_while_a_length_is_looked_for_leaves_parameters_where_the_search_began():
    """What a closure raises comes out, and no parameter stays at a point that was only tried."""
    x, still = (lucid.tensor([-1.2, 1.0], requires_grad=True) for _ in range(2))
    optimizer = optim.LBFGS([x, still], line_search_fn="strong_wolfe")
    calls = []

    def closure():
        if calls:
            raise ArithmeticError("enough")
        calls.append(1)
        loss = rosenbrock(x)
        loss.backward()
        return loss

    before = x.tolist()
    with pytest.raises(ArithmeticError, match="enough"):
        optimizer.step(closure)
    assert x.tolist() == still.tolist() == before


def test_hooks_fire_once_around_a_step():
    """A step of many evaluations is one step to its hooks."""
    x = lucid.tensor([-1.2, 1.0], requires_grad=True)
    optimizer, fired = optim.LBFGS([x]), []
    optimizer.register_step_pre_hook(lambda *_: fired.append("before"))
    optimizer.register_step_post_hook(lambda *_: fired.append("after"))
    optimizer.step(closure_of(optimizer, [x], rosenbrock))
    assert fired == ["before", "after"]


BAD = {
    "lr": (-1.0, "learning rate"),
    "max_iter": (0, "max_iter"),
    "max_eval": (0, "max_eval"),
    "tolerance_grad": (-1.0, "tolerance_grad"),
    "tolerance_change": (-1.0, "tolerance_change"),
    "history_size": (0, "history_size"),
    "line_search_fn": ("weak", "'strong_wolfe'"),
}


@pytest.mark.parametrize("setting", BAD)
def test_bad_settings(setting):
    """What is out of its range is refused, and so are a second group, and a step without a closure."""
    value, text = BAD[setting]
    x, y = (lucid.ones(2, requires_grad=True) for _ in range(2))
    with pytest.raises(ValueError, match=text):
        optim.LBFGS([x], **{setting: value})
    with pytest.raises(ValueError, match="parameter groups"):
        optim.LBFGS([{"params": [x]}, {"params": [y]}])
    for wrong in (None, 3):
        with pytest.raises(TypeError, match="closure"):
            optim.LBFGS([x]).step(wrong)


def test_a_group_without_parameters_is_refused():
    """Where it is made, and the optimizer has no group then."""
    with pytest.raises(SettingError, match="LBFGS: expected a group with parameters, got an empty one"):
        optim.LBFGS([{"params": []}])


@pytest.mark.parametrize("lr", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("most", [3, 4, 5, 7])
def test_line_searches_share_the_evaluations(lr, most):
    """Each has what those before it have left of `max_eval`, and where the last one begins it takes one more."""
    x = lucid.tensor([0.5, 2.0, -1.0], dtype=lucid.float64, requires_grad=True)
    optimizer = optim.LBFGS([x], lr=lr, max_iter=30, max_eval=most, line_search_fn="strong_wolfe")
    calls = []
    optimizer.step(closure_of(optimizer, [x], lambda x: ((x - 3) ** 4).sum(), calls))
    assert len(calls) <= most + 1


def test_complex_parameters_go_on_from_their_history(rng):
    """A second step finds the history of both parts of each number, and ends at the numbers themselves."""
    c, r = rng.standard_normal(3) + 1j * rng.standard_normal(3), rng.standard_normal(2)
    z = lucid.tensor(np.zeros(3, complex), requires_grad=True)
    x = lucid.tensor(np.zeros(2), requires_grad=True)
    optimizer = optim.LBFGS([z, x], lr=0.5, max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = (z - lucid.tensor(c)).abs().square().sum()
        loss = loss + (x - lucid.tensor(r)).square().sum()
        loss.backward()
        return loss

    for _ in range(20):
        optimizer.step(closure)
    np.testing.assert_allclose(z.detach().cpu().numpy(), c, atol=1e-4)
    np.testing.assert_allclose(x.detach().cpu().numpy(), r, atol=1e-4)


# ---- the line search ----

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
