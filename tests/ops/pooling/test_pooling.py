"""Pooling: errors, ties, NaN."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, ShapeError
from lucid.ops.pooling.adaptive import adaptive_avg_pool2d
from lucid.ops.pooling.pooling import avg_pool2d, max_pool1d, max_pool2d


def ones(*shape, dtype=None):
    return lucid.tensor(np.ones(shape, np.float32), dtype=dtype)


WRONG = {
    "dimensions": (
        lambda: max_pool2d(ones(4, 4), 2),
        r"max_pool2d: expected input of 4 dimensions .*got shape \(4, 4\)",
    ),
    "padding": (lambda: max_pool2d(ones(1, 1, 4, 4), 3, padding=2), "padding of at most half the window"),
    "window": (lambda: max_pool2d(ones(1, 1, 5, 5), 7), r"spans \(7, 7\) elements and fits nowhere"),
    "kernel": (lambda: max_pool1d(ones(4, 4), 0), "kernel_size to be .* at least 1, got 0"),
    "divisor": (lambda: avg_pool2d(ones(1, 1, 5, 5), 2, divisor_override=0), "divisor_override"),
    "parts": (lambda: adaptive_avg_pool2d(ones(1, 1, 5, 5), (1, 2, 3)), "output_size to be .* tuple of 2"),
    "empty": (lambda: adaptive_avg_pool2d(ones(1, 1, 0, 5), 2), "not empty"),
}


@pytest.mark.parametrize("case", WRONG)
def test_shapes_that_do_not_fit(case):
    """A shape error names the op, what was expected and what was got."""
    call, message = WRONG[case]
    with pytest.raises(ShapeError, match=message):
        call()


def test_dtypes():
    """Means need floating point; the largest element exists for integers too, not for bools."""
    with pytest.raises(DtypeError, match="floating-point input"):
        avg_pool2d(ones(1, 1, 4, 4, dtype=lucid.int64), 2)
    with pytest.raises(DtypeError, match="not defined for bool"):
        max_pool2d(ones(1, 1, 4, 4, dtype=lucid.bool), 2)
    assert max_pool2d(ones(1, 1, 4, 4, dtype=lucid.int64), 2).dtype == lucid.int64


def test_ties_go_to_the_first(rng):
    """Of equal elements the first gets the whole gradient."""
    x = ones(1, 1, 2, 4).requires_grad_()
    upstream = rng.standard_normal((1, 1, 1, 2)).astype(np.float32)
    max_pool2d(x, 2).backward(lucid.tensor(upstream))
    expected = np.zeros((1, 1, 2, 4), np.float32)
    expected[..., 0, ::2] = upstream
    np.testing.assert_array_equal(x.grad.numpy(force=True), expected)


def test_infinite_gradients_stay_where_they_belong():
    """An infinite gradient reaches the largest element only, and makes no NaN beside it."""
    x = lucid.tensor(np.array([[1.0, 3.0, 2.0, 0.0]], np.float32)).requires_grad_()
    max_pool1d(x, 2).backward(lucid.tensor(np.array([[np.inf, -np.inf]], np.float32)))
    np.testing.assert_array_equal(x.grad.numpy(force=True), [[0, np.inf, -np.inf, 0]])
