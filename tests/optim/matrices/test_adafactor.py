"""Adafactor: its formula in NumPy, its state, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import optim


def adafactor(p, grads, *, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, maximize=False):
    """Return the parameter after the steps."""
    floor = np.finfo(p.dtype).eps if eps[0] is None else eps[0]
    r = c = v = 0.0
    for t, grad in enumerate(grads, 1):
        g, share = -grad if maximize else grad, t**beta2_decay
        size = max(eps[1], np.sqrt(np.mean(p**2))) * min(lr, 1 / np.sqrt(t))
        p = p * (1 - lr * weight_decay)
        if p.ndim > 1:
            r = (1 - share) * r + share * np.mean(g**2, axis=-1, keepdims=True)
            c = (1 - share) * c + share * np.mean(g**2, axis=-2, keepdims=True)
            mean = r * c / np.maximum(np.mean(r, axis=-2, keepdims=True), floor)
        else:
            mean = v = (1 - share) * v + share * g**2
        u = g / np.sqrt(np.maximum(mean, floor**2))
        p = p - size * u / max(1.0, np.sqrt(np.mean(u**2)) / d)
    return p


SETTINGS = {
    "usual": {},
    "all": {"lr": 0.2, "beta2_decay": -0.4, "eps": (0.25, 0.5), "d": 1.25, "weight_decay": 0.1, "maximize": True},
    "large steps": {"lr": 2.0, "d": 1.0, "eps": (1e-3, 2.0)},
}
SHAPES = ((), (5,), (3, 4), (2, 3, 4))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_formula(settings, rng):
    """Steps are those of the docstring; of more than two dimensions the last two are the matrix."""
    starts = [rng.standard_normal(shape) for shape in SHAPES]
    grads = [rng.standard_normal((6, *shape)) for shape in SHAPES]
    params = [lucid.tensor(start, requires_grad=True) for start in starts]
    optimizer = optim.Adafactor(params, **settings)
    for step in range(6):
        for param, grad in zip(params, grads, strict=True):
            param.grad = lucid.tensor(grad[step])
        optimizer.step()
    for param, start, grad in zip(params, starts, grads, strict=True):
        np.testing.assert_allclose(param.numpy(force=True), adafactor(start, grad, **settings), rtol=1e-10)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_types(kind, rng):
    """Squares of half types are taken in float32, where those of small gradients are no zeros."""
    start, grad = rng.standard_normal((2, 3, 4)) * np.array([[[1.0]], [[1e-5]]])
    x = lucid.tensor(start, dtype=getattr(lucid, kind), requires_grad=True)
    x.grad = lucid.tensor(grad, dtype=x.dtype)
    begun = x.detach().double().numpy(force=True)
    expected = adafactor(begun, [x.grad.double().numpy(force=True)], lr=0.5, eps=(1e-12, 1e-3))
    optim.Adafactor([x], lr=0.5, eps=(1e-12, 1e-3)).step()
    np.testing.assert_allclose(x.double().numpy(force=True), expected, rtol=1e-2, atol=1e-2)
    assert x.dtype is getattr(lucid, kind)
    assert abs(x.double().numpy(force=True) - begun).max() > 0.1


def test_state_is_a_row_and_a_column_and_goes_on_after_a_load(rng):
    """Of a matrix the state has a row and a column; a loaded one takes the steps that its own would have taken."""
    starts = [rng.standard_normal(shape) for shape in SHAPES]
    grads = [[lucid.tensor(rng.standard_normal(shape)) for shape in SHAPES] for _ in range(4)]
    results = []
    for reload in (False, True):
        params = [lucid.tensor(start, requires_grad=True) for start in starts]
        optimizer = optim.Adafactor(params, lr=0.1)
        for step, given in enumerate(grads):
            if reload and step == 2:
                saved = optimizer.state_dict()
                optimizer = optim.Adafactor(params, lr=1.0)
                optimizer.load_state_dict(saved)
            for param, grad in zip(params, given, strict=True):
                param.grad = grad
            optimizer.step()
        results.append([param.tolist() for param in params])
    assert results[0] == results[1]
    state = optimizer.state_dict()["state"]
    shapes = {name: tuple(value.shape) for name, value in state[3].items()}
    assert shapes == {"step": (), "row_var": (2, 3, 1), "col_var": (2, 1, 4)}
    assert state[0]["step"].item() == 4.0
    assert {name: tuple(value.shape) for name, value in state[1].items()} == {"step": (), "variance": (5,)}


def test_empty_parameters_and_those_without_a_gradient_stay():
    """They make no step, and an empty one no error."""
    empty, still, moved = (lucid.ones(shape, requires_grad=True) for shape in ((0, 3), (2,), (2,)))
    empty.grad, moved.grad = lucid.ones(0, 3), lucid.ones(2)
    optimizer = optim.Adafactor([empty, still, moved], lr=0.5)
    optimizer.step()
    assert still.tolist() == [1.0, 1.0]
    assert still not in optimizer.state
    np.testing.assert_allclose(moved.tolist(), [0.5, 0.5], rtol=1e-6)


def test_a_tensor_as_learning_rate_and_a_closure():
    """A rate in a tensor is read at each step, and the closure's loss is returned."""
    x, rate = lucid.ones(2, 2, requires_grad=True), lucid.tensor(0.5)
    optimizer = optim.Adafactor([x], lr=rate)

    def closure():
        loss = x.sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4.0
    np.testing.assert_allclose(x.tolist(), np.full((2, 2), 0.5), rtol=1e-6)
    rate.fill_(0.0)
    before = x.tolist()
    optimizer.step()
    assert x.tolist() == before


BAD = {
    "lr": (-1.0, "learning rate"),
    "beta2_decay": (0.5, "beta2_decay should be <= 0"),
    "eps": ((-1.0, 1.0), r"eps\[0\]"),
    "eps ": ((None, -1.0), r"eps\[1\]"),
    "d": (0.5, "threshold d should be >= 1"),
    "weight_decay": (-0.1, "weight_decay"),
}


@pytest.mark.parametrize("setting", BAD)
def test_bad_settings(setting):
    """A number out of its range is refused by constructor and group, and so is a complex parameter."""
    value, text = BAD[setting]
    x = lucid.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=text):
        optim.Adafactor([x], **{setting.strip(): value})
    with pytest.raises(ValueError, match=text):
        optim.Adafactor([{"params": [x], setting.strip(): value}])
    with pytest.raises(RuntimeError, match="complex"):
        optim.Adafactor([lucid.ones(2, dtype=lucid.complex64, requires_grad=True)])
