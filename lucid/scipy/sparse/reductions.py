"""Sums, means and diagonals of sparse matrices: methods of theirs."""

from __future__ import annotations

from typing import Any

from lucid import numpy as lnp
from lucid.base import gpu
from lucid.base.arrays import namespace, on
from lucid.numpy.border import plain
from lucid.scipy.sparse.building import in_dtype
from lucid.scipy.sparse.operands import MatrixSizeError, sums_at, taken
from lucid.tensor.numpy_calls.definition import NumpyCallError, is_recorded


def _no_out(out: object) -> None:
    if out is not None:
        raise NumpyCallError("a sum of a sparse matrix: out is not taken: use what is returned")


def sum_along(self: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Return the sum, or the sums along an axis: of one dimension of an array, of two of a matrix."""
    _no_out(out)
    # CuPy's sums have two dimensions, of what is an array too
    if not is_recorded(self.data) and not (self.is_array and gpu.is_gpu_array(plain(self.data))):
        return self.to_scipy().sum(axis, dtype=dtype)
    data = self.data if dtype is None else in_dtype(self.data, dtype)
    if axis is None:
        return lnp.sum(data)
    axis = axis + 2 if axis < 0 else axis
    if axis not in {0, 1}:
        raise MatrixSizeError(f"sum of a sparse matrix: expected an axis of -2 to 1, got {axis}")
    sums = sums_at(data, self.pattern.places[1 - axis], self.shape[1 - axis])
    return sums if self.is_array else sums.reshape((1, -1) if axis == 0 else (-1, 1))


def mean_along(self: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Return the mean, or the means along an axis."""
    _no_out(out)
    if not is_recorded(self.data) and not (self.is_array and gpu.is_gpu_array(plain(self.data))):
        return self.to_scipy().mean(axis, dtype=dtype)
    return self.sum(axis, dtype) / (self.shape[0] * self.shape[1] if axis is None else self.shape[axis])


def diagonal(self: Any, k: int = 0) -> Any:
    """Return a diagonal."""
    if not is_recorded(self.data):
        return self.to_scipy().diagonal(k)
    rows, columns = self.pattern.places
    with on(rows):
        (index,) = namespace(rows).nonzero(rows + k == columns)
        begin = rows[index] + min(k, 0)
    return sums_at(taken(self.data, index), begin, max(0, min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0))))


def trace(self: Any, offset: int = 0) -> Any:
    """Return the sum of a diagonal."""
    return lnp.sum(self.diagonal(offset))
