"""Sums, means and diagonals of sparse matrices: methods of theirs."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from lucid import numpy as lnp
from lucid.base import gpu
from lucid.base.arrays import namespace, on
from lucid.numpy.border import plain
from lucid.scipy.sparse.building import in_dtype
from lucid.scipy.sparse.operands import MatrixSizeError, array_like, sums_at, taken
from lucid.tensor.numpy_calls.operands import NumpyCallError, is_recorded

if TYPE_CHECKING:
    from lucid.scipy.sparse.base import Stored


def no_out(name: str, out: object) -> None:
    """Refuse an array that is to be written into."""
    if out is not None:
        raise NumpyCallError(f"{name} of a sparse matrix: out is not taken: use what is returned")


def one_axis(name: str, axis: object) -> int | None:
    """Return 0 or 1 for an axis, or a tuple of one; None for both."""
    axes: list[Any] = [*axis] if isinstance(axis, tuple) else [0, 1] if axis is None else [axis]
    numbers = [operator.index(each) for each in axes]
    places = {number % 2 for number in numbers if -2 <= number < 2}
    if not places or len(places) != len(numbers):
        raise MatrixSizeError(
            f"{name} of a sparse matrix: expected one axis of -2 to 1, or two that differ, got {axis}"
        )
    return None if len(places) == 2 else places.pop()


def is_librarys(self: Stored) -> bool:
    """Return whether the library reduces: plain values, but CuPy's sums have two dimensions, of an array too."""
    return not is_recorded(self.data) and not (self.is_array and gpu.is_gpu_array(plain(self.data)))


def sum_along(self: Any, axis: int | tuple[int, ...] | None = None, dtype: object = None, out: None = None) -> Any:
    """Return the sum, or the sums along an axis: of one dimension of an array, of two of a matrix."""
    no_out("sum", out)
    axis = one_axis("sum", axis)
    if is_librarys(self):
        return array_like(self.to_scipy().sum(axis, dtype=dtype), None)
    if dtype is None:
        with on(plain(self.data)):
            dtype = plain(self.data)[:0].sum().dtype
    data = in_dtype(self.data, dtype)
    if axis is None:
        return lnp.sum(data)
    sums = sums_at(data, self.pattern.places[1 - axis], self.shape[1 - axis])
    return sums if self.is_array else sums.reshape((1, -1) if axis == 0 else (-1, 1))


def mean_along(self: Any, axis: int | tuple[int, ...] | None = None, dtype: object = None, out: None = None) -> Any:
    """Return the mean, or the means along an axis."""
    no_out("mean", out)
    axis = one_axis("mean", axis)
    if is_librarys(self):
        return array_like(self.to_scipy().mean(axis, dtype=dtype), None)
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
