"""Softmax far out, on large arrays, and its mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, IndexOutOfRangeError
from lucid.ops.activation.softmax import log_softmax, softmax, softmin
from lucid.ops.base.rows import ROWS_BLOCK
from tests.gradients import numbers

BOTH = [softmax, log_softmax]


@pytest.mark.parametrize("op", BOTH)
def test_large_numbers_do_not_overflow(op):
    """Only differences count, so thousands give what ones give; minus infinity has no share."""
    x = lucid.tensor([[1.0, 2.0, 3.0], [-1.0, 0.0, -float("inf")]])
    np.testing.assert_allclose(numbers(op(x + 4096.0, 1)), numbers(op(x, 1)), rtol=1e-6)
    shares = numbers(softmax(x, 1))
    assert shares[1, 2] == 0
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-6)


@pytest.mark.parametrize(
    "levels", [(-300,), (-90,), (-2,), (0,), (59,), (61,), (87,), (89,), (0, -120), (30, 200), (-9, 9)]
)
def test_rows_at_any_level(levels, rng):
    """What all numbers of a row have in common makes no difference, nor do the other rows.

    A subnormal share may be 0, as in kernels, which are compiled with -ftz=true.
    """
    level = np.resize(levels, 40)[:, None]
    apart = rng.standard_normal((40, 300)) * 3 - np.where(rng.random((40, 300)) < 0.05, 70, 0)
    x = (level + apart).astype(np.float32)
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    smallest = float(np.finfo(np.float32).tiny)
    np.testing.assert_allclose(numbers(softmax(lucid.tensor(x), 1)), exact, rtol=1e-5, atol=smallest)


def test_exponentials_that_fit_one_by_one():
    """Where float32 holds each exponential but not their sum, equal numbers still have equal shares."""
    np.testing.assert_allclose(numbers(softmax(lucid.full((3, 300), 84.0), 1)), 1 / 300, rtol=1e-6)


@pytest.mark.parametrize("op", BOTH)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("columns", [7, 1000, ROWS_BLOCK + 3])
@pytest.mark.cpu("blocks are of NumPy arrays")
def test_many_blocks(op, dtype, columns, rng):
    """Rows in several blocks, longer than one too, are as near to float64 as few are; so is the gradient."""
    rows = max(3, 2 * ROWS_BLOCK // columns + 5)
    x = lucid.tensor(rng.standard_normal((rows, columns)), dtype=getattr(lucid, dtype), requires_grad=True)
    exact = x.detach().to(lucid.float64).requires_grad_()
    upstream = lucid.tensor(rng.standard_normal((rows, columns)), dtype=x.dtype)
    got, expected = op(x, 1), op(exact, 0 - 1)
    got.backward(upstream)
    expected.backward(upstream.to(lucid.float64))
    allowed = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6}[dtype]
    for one, other in ((got, expected), (x.grad, exact.grad)):
        assert one.dtype == x.dtype
        reference = numbers(other)
        np.testing.assert_allclose(
            numbers(one).astype(np.float64), reference, rtol=0, atol=allowed * np.abs(reference).max()
        )


@pytest.mark.parametrize("op", [softmax, log_softmax, softmin])
def test_mistakes(op):
    """Integers, complex numbers and dimensions that do not exist are refused."""
    with pytest.raises(DtypeError, match=r"expected a real floating-point dtype, got lucid\.int64"):
        op(lucid.tensor([1, 2]), 0)
    with pytest.raises(DtypeError, match="complex"):
        op(lucid.tensor([1j]), 0)
    with pytest.raises(IndexOutOfRangeError, match="but got 1"):
        op(lucid.tensor([1.0]), 1)


@pytest.mark.parametrize("op", [softmax, log_softmax, softmin])
def test_the_dimension_that_is_not_named(op, rng):
    """It is the first of none, one and three dimensions, and else the second, with a warning."""
    for ndim in range(6):
        x = lucid.tensor(rng.standard_normal((2, 3, 2, 2, 2)[:ndim]))
        with pytest.warns(UserWarning, match=f"implicit dimension choice for {op.__name__}"):
            found = op(x)
        assert found.tolist() == op(x, 0 if ndim in {0, 1, 3} else 1).tolist()


def test_dtype_is_cast_before():
    """With dtype= integers are allowed, and the sum is exact in the wider type."""
    out = softmax(lucid.tensor([1, 2]), 0, dtype=lucid.float64)
    assert out.dtype == lucid.float64
    np.testing.assert_allclose(numbers(out), np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum(), rtol=1e-15)
