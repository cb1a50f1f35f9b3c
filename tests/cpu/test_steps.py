"""Compiled steps of optimizers give the bits of the chains of ufuncs that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.backends import cpu
from tests.optimizers import NAMES

SETTINGS = {
    "plain": {},
    "decay": {"weight_decay": 0.1},
    "maximize": {"maximize": True},
    "momentum": {"momentum": 0.9},
    "nesterov": {"momentum": 0.9, "nesterov": True},
    "amsgrad": {"amsgrad": True},
    "centred": {"centered": True, "momentum": 0.5},
    "long steps": {"betas": (0.3, 0.99)},
}
SIZES = 0, 1, 15, 16, 17, 1000
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, -1e-310, 3e38])


def choices():
    """Yield each optimizer with each of the settings that it has."""
    for name in NAMES:
        taken = getattr(optim, name)([lucid.ones(1, device="cpu", requires_grad=True)]).defaults
        yield from (
            pytest.param(name, each, id=f"{name}-{key}")
            for key, each in SETTINGS.items()
            if taken.keys() >= each.keys()
        )


def gradient(shape, dtype, rng):
    """Return numbers of all sizes with special ones among them."""
    with np.errstate(over="ignore", under="ignore"):
        values = (rng.standard_normal(shape) * 10.0 ** rng.integers(-44, 39, shape)).astype(dtype)
        if values.size > 8:
            values.reshape(-1)[:8] = rng.permutation(SPECIAL).astype(dtype)
    return values


def trained(name, settings, dtype):
    """Return parameters and state after some steps."""
    rng = np.random.default_rng(3)
    values = [rng.standard_normal(size).astype(dtype) for size in (*SIZES, (3, 5))]
    values.append(rng.standard_normal((6, 4)).astype(dtype).T)
    values.append(rng.standard_normal(40).astype(dtype)[::2])
    params = [lucid.from_numpy(value).requires_grad_() for value in values]
    optimizer = getattr(optim, name)(params, **settings)
    for step in range(4):
        for param in params:
            param.grad = lucid.from_numpy(gradient(tuple(param.shape), dtype, rng))
        if step == 2:
            # rows that no loop takes stand between those of one
            params[3].grad = lucid.from_numpy(gradient((16, 2), dtype, rng)[:, 0])
        optimizer.step()
    state = [entry for param in params for entry in optimizer.state[param].values()]
    return [np.array(tensor.detach().numpy()) for tensor in (*params, *state)]


def assert_same_bits(ours, theirs):
    """Fail unless arrays have the same numbers, zeros of the same signs, and NaN in the same places."""
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
        numbers = ~np.isnan(one)
        np.testing.assert_array_equal(np.signbit(one)[numbers], np.signbit(other)[numbers])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(("name", "settings"), list(choices()))
def test_the_bits_of_the_chain(compiled, monkeypatch, name, settings, dtype):
    """Of all sizes, with special values, and with rows of other layouts in between, which NumPy does."""
    ours = trained(name, settings, dtype)
    assert compiled
    monkeypatch.setattr(cpu, "compiled", False)
    theirs = trained(name, settings, dtype)
    views = [[array[..., None].view(array.real.dtype) for array in arrays] for arrays in (ours, theirs)]
    assert_same_bits(*views)


def settled(params):
    """Return an optimizer behind its first steps."""
    for param in params:
        param.grad = lucid.ones_like(param)
    optimizer = optim.Adam(params)
    optimizer.step()
    optimizer.step()
    return optimizer


def test_one_call_for_all_rows(compiled):
    """A step of many small parameters is one call."""
    optimizer = settled([lucid.ones(3, 2, device="cpu", requires_grad=True) for _ in range(100)])
    compiled.clear()
    optimizer.step()
    assert compiled == ["adam"]


def test_rows_that_numpy_does(compiled):
    """Half types, arrays that overlap, numbers of NumPy's, which are rounded otherwise, and what is not contiguous."""
    half = lucid.ones(4, device="cpu", dtype=lucid.float16, requires_grad=True)
    strided = lucid.from_numpy(np.ones((4, 2))[:, 0]).requires_grad_()
    settled([half, strided])
    own = lucid.ones(4, device="cpu", requires_grad=True)
    own.grad = own.detach()
    optim.SGD([own], lr=0.5).step()
    assert own.tolist() == [0.5] * 4
    scalar = lucid.ones(4, device="cpu", requires_grad=True)
    scalar.grad = lucid.ones_like(scalar)
    optim.SGD([scalar], weight_decay=np.float64(0.1)).step()
    assert not compiled


@pytest.mark.parametrize("shift", [-1, -3, 1, 3])
def test_a_gradient_in_part_of_the_parameter(compiled, shift):
    """Each element is changed by the gradient as it was before the step."""
    memory = np.arange(1.0, 44.0)
    values, grads = memory[3:40], memory[3 + shift : 40 + shift]
    expected = values - 0.5 * grads
    param = lucid.from_numpy(values).requires_grad_()
    param.grad = lucid.from_numpy(grads)
    optim.SGD([param], lr=0.5).step()
    np.testing.assert_array_equal(param.detach().numpy(), expected)
    assert not compiled


def test_arrays_that_are_read_only_stay_as_they_are(compiled):
    """NumPy's refusal is not passed by."""
    values = np.ones(4)
    param = lucid.from_numpy(values).requires_grad_()
    param.grad = lucid.ones_like(param)
    param.array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        optim.SGD([param]).step()
    assert values.tolist() == [1.0] * 4
    assert not compiled


def test_a_formula_that_is_written_again(compiled):
    """A class of the same name and kernel has a loop of its own."""

    def declared(factor):
        class Own(optim.SGD):
            kernel = "own_of_tests"

            @staticmethod
            def formula(m, grad, param, momentum_buffer, *, lr, weight_decay, momentum, fresh, nesterov, maximize):
                return param - grad * lr * factor, momentum_buffer

        return Own

    for factor in (1.0, 2.0):
        param = lucid.ones(4, device="cpu", requires_grad=True)
        param.grad = lucid.ones_like(param)
        declared(factor)([param], lr=0.25).step()
        assert param.tolist() == [1 - 0.25 * factor] * 4
    assert compiled == ["own_of_tests"] * 2


def test_an_operation_that_rounds_otherwise(compiled):
    """A formula with an exponential is left to NumPy."""

    class Own(optim.SGD):
        kernel = "exp_of_tests"

        @staticmethod
        def formula(m, grad, param, momentum_buffer, *, lr, weight_decay, momentum, fresh, nesterov, maximize):
            return param - m.exp(grad) * lr, momentum_buffer

    param = lucid.ones(4, device="cpu", requires_grad=True)
    param.grad = lucid.zeros_like(param)
    Own([param], lr=0.25).step()
    assert param.tolist() == [0.75] * 4
    assert not compiled
