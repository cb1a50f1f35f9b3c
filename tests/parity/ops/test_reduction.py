"""Reductions against PyTorch where rows cannot reach: dtypes, ties, NaN, empty tensors, mistakes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import lucid
from tests.parity import pieces

DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"]
OPS = ["sum", "mean", "prod", "var", "std", "amax", "amin", "max", "min", "argmax", "argmin", "any", "all", "median"]
ALONG = [*OPS, "cumsum", "cumprod", "logsumexp", "count_nonzero", "norm"]


def first(result):
    """Return the tensor, or the values of a pair."""
    return result[0] if isinstance(result, tuple) else result


def outcome(call):
    """Return what a call returns, or that it raised."""
    try:
        return first(call())
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
        return "raises"


def agree(ours, theirs):
    """Fail unless both raised, or shapes, dtypes and values agree, NaN included."""
    raised = isinstance(theirs, str)
    assert isinstance(ours, str) == raised
    if raised:
        return
    assert str(ours.dtype).removeprefix("lucid.") == str(theirs.dtype).removeprefix("torch.")
    assert tuple(ours.shape) == tuple(theirs.shape)
    got, expected = ours.to(lucid.float64).numpy(force=True), theirs.to(torch.float64).numpy()
    np.testing.assert_allclose(got, expected, rtol=2e-2 if ours.dtype.itemsize == 2 else 1e-6, equal_nan=True)


def calls(name, ours, theirs):
    """Yield each form of a reduction with PyTorch's."""
    if name not in {"cumsum", "cumprod", "logsumexp", "norm"}:
        yield lambda: getattr(lucid, name)(ours), lambda: getattr(torch, name)(theirs)
    for dim in (0, 1, -1):
        if name == "norm":
            yield lambda d=dim: lucid.norm(ours, 2, d), lambda d=dim: torch.norm(theirs, 2, d)
        else:
            yield lambda d=dim: getattr(lucid, name)(ours, d), lambda d=dim: getattr(torch, name)(theirs, d)


# PyTorch has no kernels for these, lucid has; what they mean is not in doubt
MORE = {("bool", "argmax"), ("bool", "argmin"), ("bool", "median")}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ALONG)
def test_dtypes(name, dtype, rng):
    """Each dtype gives the dtype and the values that it gives in PyTorch, or is refused by both."""
    array = rng.permutation(12).reshape(3, 4) - (0 if dtype in {"uint8", "bool"} else 3)
    if "prod" in name:
        # products that fit float16: beyond it, where infinity meets zero depends on the order of the factors
        array = np.sign(array) * (np.abs(array) % 3)
    ours = lucid.tensor(array).to(getattr(lucid, dtype))
    theirs = torch.tensor(array).to(getattr(torch, dtype))
    for call, reference in calls(name, ours, theirs):
        expected = outcome(reference)
        if isinstance(expected, str) and (dtype, name) in MORE:
            continue
        agree(outcome(call), expected)


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), ()])
def test_empty(name, shape):
    """Tensors without elements, and without dimensions, give the same neutral elements, NaN and mistakes."""
    ours, theirs = lucid.full(shape, 2.0), torch.full(shape, 2.0)
    for call, reference in calls(name, ours, theirs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # PyTorch warns of variances of too few elements
            expected = outcome(reference)
        agree(outcome(call), expected)


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min", "argmax", "argmin", "sum", "nansum", "cumsum", "prod"])
def test_nan(name):
    """NaN goes the same way."""
    array = np.array([[1.0, np.nan, 3.0], [np.inf, -np.inf, 0.0], [2.0, 5.0, np.nan]])
    ours, theirs = lucid.tensor(array), torch.tensor(array)
    for dim in (0, 1):
        agree(first(getattr(lucid, name)(ours, dim)), first(getattr(torch, name)(theirs, dim)))


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min"])
def test_ties(name, rng):
    """Equal extremes of all elements share the gradient as they do in PyTorch."""
    array, upstream = rng.integers(0, 3, (4, 5)).astype(float), rng.standard_normal(())
    pieces.agree(lambda lib: pieces.differentiated(lib, getattr(lib, name), [array], upstream), 1e-14)


@pytest.mark.parametrize("zeros", [1, 2, 3])
@pytest.mark.parametrize("name", ["prod", "cumprod"])
def test_products_with_zeros(name, zeros, rng):
    """First and second gradients of products with zeros among the factors are PyTorch's."""
    array = rng.uniform(0.5, 2, (3, 6))
    array[1, rng.permutation(6)[:zeros]] = 0

    def program(lib):
        x = lib.tensor(array, requires_grad=True)
        (grad,) = lib.autograd.grad((getattr(lib, name)(x, 1) ** 2).sum(), x, create_graph=True)
        return grad, *lib.autograd.grad((grad**3).sum(), x)

    pieces.agree(program, 1e-10, 1e-12)


def test_variance_in_all_spellings(rng):
    """`unbiased` by place or by name, and `correction`, mean what they mean in PyTorch."""
    array = rng.standard_normal((3, 4))
    ours, theirs = lucid.tensor(array), torch.tensor(array)
    for name in ("var", "std"):
        for args, settings in (
            ((), {}),
            ((False,), {}),
            ((1, False), {}),
            ((1, True, True), {}),
            ((), {"unbiased": False}),
            ((0,), {"correction": 2}),
            (((0, 1),), {"correction": 0, "keepdim": True}),
        ):
            agree(getattr(lucid, name)(ours, *args, **settings), getattr(torch, name)(theirs, *args, **settings))
