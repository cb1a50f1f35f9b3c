"""Steps against the formulas of the docstrings, written out in plain NumPy, for every setting."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import lucid
from lucid import optim
from tests.optimizers import SETTINGS

STEPS = 9


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


def adam(
    p,
    grads,
    *,
    lr,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.0,
    amsgrad=False,
    maximize=False,
    decoupled_weight_decay=False,
):
    """Return the parameter after the steps."""
    m = v = largest = np.zeros_like(p)
    for t, grad in enumerate(grads, 1):
        g = -grad if maximize else grad
        p, g = (p - lr * weight_decay * p, g) if decoupled_weight_decay else (p, g + weight_decay * p)
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        largest = np.where(v > largest, v, largest)
        root = np.sqrt((largest if amsgrad else v) / (1 - betas[1] ** t))
        p = p - lr * (m / (1 - betas[0] ** t)) / (root + eps)
    return p


def rmsprop(p, grads, *, lr, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, maximize=False):
    """Return the parameter after the steps."""
    v = mean = b = np.zeros_like(p)
    for grad in grads:
        g = (-grad if maximize else grad) + weight_decay * p
        v = alpha * v + (1 - alpha) * g**2
        mean = alpha * mean + (1 - alpha) * g
        b = momentum * b + g / (np.sqrt(v - centered * mean**2) + eps)
        p = p - lr * b
    return p


def adagrad(p, grads, *, lr, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, maximize=False):
    """Return the parameter after the steps."""
    total = initial_accumulator_value
    for t, grad in enumerate(grads):
        g = (-grad if maximize else grad) + weight_decay * p
        total = total + g**2
        p = p - lr / (1 + t * lr_decay) * g / (np.sqrt(total) + eps)
    return p


def nadam(
    p,
    grads,
    *,
    lr,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.0,
    momentum_decay=4e-3,
    decoupled_weight_decay=False,
    maximize=False,
):
    """Return the parameter after the steps; the product of momenta is kept in float32."""
    m = v = np.zeros_like(p)
    product = np.float32(1)
    for t, grad in enumerate(grads, 1):
        g = -grad if maximize else grad
        p, g = (p - lr * weight_decay * p, g) if decoupled_weight_decay else (p, g + weight_decay * p)
        mu, following = (betas[0] * (1 - 0.96 ** (each * momentum_decay) / 2) for each in (t, t + 1))
        product *= np.float32(mu)
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        ahead = following * m / (1 - float(product) * following) + (1 - mu) * g / (1 - float(product))
        p = p - lr * ahead / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return p


def radam(
    p,
    grads,
    *,
    lr,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.0,
    decoupled_weight_decay=False,
    maximize=False,
):
    """Return the parameter after the steps."""
    m = v = np.zeros_like(p)
    longest = 2 / (1 - betas[1]) - 1
    for t, grad in enumerate(grads, 1):
        g = -grad if maximize else grad
        p, g = (p - lr * weight_decay * p, g) if decoupled_weight_decay else (p, g + weight_decay * p)
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        step = m / (1 - betas[0] ** t)
        rho = longest - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
        if rho > 5:
            r = np.sqrt((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho))
            step = step * r * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)
        p = p - lr * step
    return p


def adamax(p, grads, *, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, maximize=False):
    """Return the parameter after the steps."""
    m = u = np.zeros_like(p)
    for t, grad in enumerate(grads, 1):
        g = (-grad if maximize else grad) + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        u = np.maximum(betas[1] * u, abs(g) + eps)
        p = p - lr / (1 - betas[0] ** t) * m / u
    return p


def adadelta(p, grads, *, lr, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=False):
    """Return the parameter after the steps."""
    v = u = np.zeros_like(p)
    for grad in grads:
        g = (-grad if maximize else grad) + weight_decay * p
        v = rho * v + (1 - rho) * g**2
        d = np.sqrt(u + eps) / np.sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d**2
        p = p - lr * d
    return p


def rprop(p, grads, *, lr, etas=(0.5, 1.2), step_sizes=(1e-6, 50), maximize=False):
    """Return the parameter after the steps."""
    before, sizes = np.zeros_like(p), np.full_like(p, lr)
    for grad in grads:
        g = -grad if maximize else grad
        sizes = sizes * np.select([g * before > 0, g * before < 0], etas[::-1], 1)
        sizes = np.clip(sizes, *step_sizes)
        before = np.where(g * before < 0, 0, g)
        p = p - sizes * np.sign(before)
    return p


def asgd_with_mean(p, grads, *, lr, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0, maximize=False):
    """Return the parameter after the steps, and its mean; sizes and shares are kept in float32."""
    mean, eta, mu = np.zeros_like(p), float(np.float32(lr)), 1.0
    for t, grad in enumerate(grads, 1):
        g = (-grad if maximize else grad) + weight_decay * p
        p = p - eta * lambd * p - eta * g
        mean = mean + mu * (p - mean)
        eta = float(np.float32(lr / (1 + lambd * lr * t) ** alpha))
        mu = float(np.float32(1 / max(1, t - t0)))
    return p, mean


def asgd(p, grads, **settings):
    """Return the parameter after the steps."""
    return asgd_with_mean(p, grads, **settings)[0]


def lion(p, grads, *, lr, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
    """Return the parameter after the steps."""
    m = np.zeros_like(p)
    for grad in grads:
        g = -grad if maximize else grad
        p = p - lr * (np.sign(betas[0] * m + (1 - betas[0]) * g) + weight_decay * p)
        m = betas[1] * m + (1 - betas[1]) * g
    return p


FORMULAS = {
    "SGD": sgd,
    "Adam": adam,
    "AdamW": partial(adam, weight_decay=0.01, decoupled_weight_decay=True),
    "RMSprop": rmsprop,
    "Adagrad": adagrad,
    "NAdam": nadam,
    "RAdam": radam,
    "Adamax": adamax,
    "Adadelta": adadelta,
    "Rprop": rprop,
    "ASGD": asgd,
    "Lion": lion,
}


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


@pytest.mark.parametrize(("name", "settings"), SETTINGS.values(), ids=SETTINGS)
def test_formula(name, settings, rng):
    """After some steps the parameter is what the formula makes of it."""
    got, p, grads = follow(lambda params: getattr(optim, name)(params, lr=0.1, **settings), rng)
    expected = FORMULAS[name](p, grads, lr=0.1, **settings)
    np.testing.assert_allclose(got, expected, rtol=1e-12 if name == "SGD" else 1e-10, atol=1e-13)


@pytest.mark.parametrize(("name", "settings"), SETTINGS.values(), ids=SETTINGS)
def test_parameters_of_one_group_have_made_different_numbers_of_steps(name, settings, rng):
    """Each goes by its own count: one that had no gradient in a step has not made it."""
    values, grads = rng.standard_normal((3, 4)), rng.standard_normal((STEPS, 3, 4))
    params = [lucid.tensor(p, requires_grad=True) for p in values]
    optimizer = getattr(optim, name)(params, lr=0.1, **settings)
    for step in range(STEPS):
        for first, param in enumerate(params):
            param.grad = lucid.tensor(grads[step, first]) if step >= first else None
        optimizer.step()
    for first, param in enumerate(params):
        expected = FORMULAS[name](values[first], grads[first:, first], lr=0.1, **settings)
        np.testing.assert_allclose(param.detach().cpu().numpy(), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("row", [row for row, (name, _) in SETTINGS.items() if name == "ASGD"])
def test_the_mean_of_averaged_descent(row, rng):
    """Beside the parameter the state keeps its mean."""
    settings, kept = {**SETTINGS[row][1], "lr": 0.1}, []

    def make(params):
        kept.append((params[0], optim.ASGD(params, **settings)))
        return kept[0][1]

    _, p, grads = follow(make, rng)
    ((param, optimizer),) = kept
    expected = asgd_with_mean(p, grads, **settings)[1]
    np.testing.assert_allclose(optimizer.state[param]["ax"].cpu().numpy(), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    ("kind", "settings", "name", "largest"),
    [
        (optim.Adamax, {"betas": (0.0, 0.5), "eps": 0.0}, "exp_inf", 2.0),
        (optim.Adam, {"betas": (0.0, 0.0), "amsgrad": True}, "max_exp_avg_sq", 16.0),
    ],
    ids=["Adamax", "amsgrad"],
)
def test_what_is_largest_so_far_remembers_a_nan(kind, settings, name, largest):
    """A NaN is larger than anything: it stays the largest, and other elements do not hear of it."""
    param = lucid.tensor([1.0, 1.0], requires_grad=True)
    optimizer = kind([param], lr=0.1, **settings)
    for grad in ([3.0, 3.0], [np.nan, 4.0], [1.0, 1.0]):
        param.grad = lucid.tensor(grad)
        optimizer.step()
    np.testing.assert_array_equal(optimizer.state[param][name].cpu().numpy(), [np.nan, largest])
    assert np.isnan(param.detach().cpu().numpy()).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("row", SETTINGS)
def test_a_half_step_is_a_single_one_that_is_rounded(row, dtype, rng):
    """Parameters and state of half types are read in float32, and what comes of the formula there is rounded."""
    name, settings = SETTINGS[row]
    half, single = (
        lucid.zeros(5, 7, dtype=kind, requires_grad=True) for kind in (getattr(lucid, dtype), lucid.float32)
    )
    half.data.copy_(lucid.tensor(rng.standard_normal((5, 7))))
    # a rate that both hold, as Rprop keeps it as its first state
    ours, theirs = (getattr(optim, name)([param], lr=2**-6, **settings) for param in (half, single))
    for _ in range(3):
        single.data.copy_(half.data)
        for key, value in ours.state.get(half, {}).items():
            theirs.state[single][key].copy_(value)
        half.grad = lucid.tensor(rng.standard_normal((5, 7)), dtype=half.dtype)
        single.grad = half.grad.float()
        ours.step()
        theirs.step()
        assert half.tolist() == single.detach().to(half.dtype).tolist()
        for key, value in ours.state.get(half, {}).items():
            assert value.tolist() == theirs.state[single][key].to(value.dtype).tolist(), key
