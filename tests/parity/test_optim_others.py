"""Optimizers whose step is no formula on elements, against PyTorch's: a hundred steps, and state dicts both ways."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

import lucid
from lucid.optim.lbfgs import Point, strong_wolfe
from tests.parity.pieces import close

pytorchs_search = vars(sys.modules[torch.optim.LBFGS.__module__])["_strong_wolfe"]
HUNDRED = {
    "adafactor": ("Adafactor", {}, 1e-11),
    "adafactor, all": (
        "Adafactor",
        {
            "lr": 0.05, "weight_decay": 0.1, "maximize": True, "d": 1.5, "beta2_decay": -0.5, "eps": (1e-3, 0.5),
        },
        1e-11,
    ),
    "muon": ("Muon", {}, 5e-4),
    "muon, plain momentum": ("Muon", {"nesterov": False, "lr": 1e-3, "momentum": 0.5}, 5e-4),
    "muon, as AdamW": ("Muon", {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 3, "eps": 0.1}, 5e-4),
}  # fmt: skip
SHAPES = {"Adafactor": [(), (7,), (3, 5), (2, 3, 4)], "Muon": [(3, 5), (7, 2)]}


@pytest.mark.parametrize(("name", "settings", "tolerance"), HUNDRED.values(), ids=HUNDRED)
def test_a_hundred_steps(name, settings, tolerance, rng):
    """Parameters are PyTorch's after steps on random gradients, the second half of them from PyTorch's state dict."""
    starts = [rng.standard_normal(shape) for shape in SHAPES[name]]
    pair = []
    for library in (lucid, torch):
        params = [library.tensor(start, requires_grad=True) for start in starts]
        pair.append((params, getattr(library.optim, name)(params, **settings)))
    (ours, our), (theirs, their) = pair
    for step in range(100):
        if step == 50:
            our.load_state_dict(their.state_dict())
        for x, y in zip(ours, theirs, strict=True):
            grad = rng.standard_normal(tuple(y.shape))
            x.grad, y.grad = lucid.tensor(grad), torch.tensor(grad)
        our.step()
        their.step()
    close(ours, theirs, tolerance, tolerance)


SEARCHES = {
    "a given length": {"lr": 0.3, "max_iter": 3, "history_size": 2},
    "strong Wolfe": {"line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 3},
    "a long history": {"line_search_fn": "strong_wolfe", "max_iter": 6, "history_size": 9},
    "one step": {"line_search_fn": "strong_wolfe", "max_iter": 1},
    "too long at first": {"line_search_fn": "strong_wolfe", "max_iter": 7, "lr": 20.0},
    "few evaluations": {"line_search_fn": "strong_wolfe", "max_iter": 7, "lr": 20.0, "max_eval": 3},
}


def fitted(library, data, optimizer_of):
    """Return a function that takes a step of a curve's fit and returns the loss; parameters; optimizer."""
    inputs, wanted, start = (library.tensor(each) for each in data)
    params = [start.clone().requires_grad_(), library.zeros((), dtype=library.float64).requires_grad_()]
    optimizer = optimizer_of(params)

    def closure():
        optimizer.zero_grad()
        w, b = params
        values = library.tanh(inputs @ w).reshape(-1) * 2 + b
        loss = ((values - wanted) ** 2).mean() + (w[0] - 1).square().sum() * (w[1] + w[2] ** 2).square().sum()
        loss.backward()
        return loss

    return lambda: optimizer.step(closure).item(), params, optimizer


@pytest.mark.parametrize("settings", SEARCHES.values(), ids=SEARCHES)
def test_lbfgs_takes_pytorchs_way(settings, rng):
    """Losses, parameters and counts of evaluations are PyTorch's in each of many steps, also on PyTorch's state."""
    data = rng.standard_normal((40, 6)), rng.standard_normal(40), rng.standard_normal((6, 1)) * 0.1
    ours, our_params, our = fitted(lucid, data, lambda params: lucid.optim.LBFGS(params, **settings))
    theirs, their_params, their = fitted(torch, data, lambda params: torch.optim.LBFGS(params, **settings))
    for step in range(12):
        assert ours() == pytest.approx(theirs(), rel=1e-9)
        if step == 3:
            our.load_state_dict(their.state_dict())
    close(our_params, their_params, 1e-6, 1e-8)
    (state,), (other,) = our.state_dict()["state"].values(), their.state_dict()["state"].values()
    # PyTorch keeps memory for intermediates there, too
    assert state.keys() >= other.keys() - {"al"}
    assert (state["func_evals"], state["n_iter"]) == (other["func_evals"], other["n_iter"])


@pytest.mark.parametrize("most", [0, 1, 2, 5, 25])
def test_the_line_search_tries_pytorchs_points(most, rng):
    """Whatever losses and slopes it finds, it looks at PyTorch's points, and returns the one that PyTorch does."""
    for _ in range(300):
        losses, slopes = rng.standard_normal(30) - 1, rng.standard_normal(30)
        start, first, tried, expected = -abs(slopes[-1]), float(rng.uniform(0.1, 2)), [], []

        def evaluate(at, losses=losses, slopes=slopes, tried=tried):
            tried.append(at)
            return Point(at, losses[len(tried)], None, slopes[len(tried)])

        def evaluated(_x, at, _direction, losses=losses, slopes=slopes, tried=expected):
            tried.append(float(at))
            return losses[len(tried)], torch.tensor([slopes[len(tried)]])

        found, count = strong_wolfe(
            evaluate, first, Point(0.0, 0.0, None, start), length=1.0, tolerance=1e-9, most=most
        )
        one = torch.ones(1, dtype=torch.float64)
        _, _, at, calls = pytorchs_search(evaluated, None, first, one, 0.0, one * start, one[0] * start, max_ls=most)
        np.testing.assert_allclose(tried, expected, rtol=1e-6)
        assert (found.at, count) == (pytest.approx(float(at), rel=1e-6), calls)


def test_what_lucid_has_not():
    """Of sparse gradients the error says that there are none."""
    with pytest.raises(AttributeError, match="no sparse tensors: use Adam"):
        _ = lucid.optim.SparseAdam
