"""Steps against the formulas of the docstrings, written out in plain NumPy, for every setting."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import optim

STEPS = 6


def sgd(p, grads, *, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    """Return the parameter after the steps."""
    b = None
    for grad in grads:
        d = (-grad if maximize else grad) + weight_decay * p
        if momentum:
            b = d if b is None else momentum * b + (1 - dampening) * d
            d = d + momentum * b if nesterov else b
        p = p - lr * d
    return p


def adam(p, grads, *, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False, apart=False):
    """Return the parameter after the steps; with `apart`, weight decay is not part of the gradient."""
    m = v = largest = np.zeros_like(p)
    for t, grad in enumerate(grads, 1):
        g = -grad if maximize else grad
        p, g = (p - lr * weight_decay * p, g) if apart else (p, g + weight_decay * p)
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        largest = np.where(v > largest, v, largest)
        root = np.sqrt((largest if amsgrad else v) / (1 - betas[1] ** t))
        p = p - lr * (m / (1 - betas[0] ** t)) / (root + eps)
    return p


SGD = [
    {},
    {"momentum": 0.9},
    {"momentum": 0.9, "dampening": 0.4},
    {"momentum": 0.9, "nesterov": True},
    {"weight_decay": 0.3},
    {"maximize": True},
    {"maximize": True, "weight_decay": 0.3},
    {"momentum": 0.7, "dampening": 0.2, "weight_decay": 0.1, "maximize": True},
]
ADAM = [
    {},
    {"betas": (0.5, 0.7)},
    {"eps": 0.5},
    {"eps": 0.0},
    {"weight_decay": 0.3},
    {"amsgrad": True, "betas": (0.5, 0.3)},
    {"maximize": True},
    {"maximize": True, "weight_decay": 0.3},
    {"betas": (0.5, 0.7), "eps": 0.5, "weight_decay": 0.3, "amsgrad": True, "maximize": True},
]


def follow(make, rng):
    """Return what an optimizer of one parameter makes of it, the parameter as it was, and the gradients."""
    p = rng.standard_normal(5)
    # the largest first, so that what was largest so far is not what is
    grads = rng.standard_normal((STEPS, 5)) * np.geomspace(4.0, 0.1, STEPS)[:, None]
    param = lucid.tensor(p, requires_grad=True)
    optimizer = make([param])
    for grad in grads:
        param.grad = lucid.tensor(grad)
        optimizer.step()
    return param.detach().cpu().numpy(), p, grads


@pytest.mark.parametrize("settings", SGD, ids=str)
def test_sgd(settings, rng):
    """Momentum, what it leaves out, Nesterov's, weight decay and going uphill."""
    got, p, grads = follow(lambda params: optim.SGD(params, lr=0.1, **settings), rng)
    np.testing.assert_allclose(got, sgd(p, grads, lr=0.1, **settings), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("settings", ADAM, ids=str)
@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adam, decoupled"])
def test_adam(name, settings, rng):
    """Both means with their corrections, eps beside the root, the largest mean so far, and both weight decays."""
    kind = optim.AdamW if name == "AdamW" else optim.Adam
    extra = {"decoupled_weight_decay": True} if name == "Adam, decoupled" else {}
    given = {"weight_decay": 0.0, **settings}
    got, p, grads = follow(lambda params: kind(params, lr=0.1, **given, **extra), rng)
    np.testing.assert_allclose(got, adam(p, grads, lr=0.1, apart=name != "Adam", **given), rtol=1e-10, atol=1e-12)


def test_amsgrad_remembers_a_nan():
    """A NaN is larger than anything: it stays the largest mean so far, and other elements do not hear of it."""
    param = lucid.tensor([1.0, 1.0], requires_grad=True)
    optimizer = optim.Adam([param], lr=0.1, betas=(0.0, 0.0), amsgrad=True)
    for grad in ([3.0, 3.0], [np.nan, 2.0], [1.0, 1.0]):
        param.grad = lucid.tensor(grad)
        optimizer.step()
    np.testing.assert_array_equal(optimizer.state[param]["max_exp_avg_sq"].cpu().numpy(), [np.nan, 9.0])
    assert np.isnan(param.detach().cpu().numpy()).tolist() == [True, False]
