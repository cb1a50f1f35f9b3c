"""L-BFGS: minima of known functions, what ends its steps, its state, and what it refuses."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.errors import SettingError


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
