"""Evenly spaced numbers, the identity matrix, indices of a triangle. The rest says `lucid.ops.creation`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.base.arrays import Array, Number, asarray, astype
from lucid.base.device import Device, as_device
from lucid.base.dtype import as_dtype, get_default_dtype, int64
from lucid.base.memory import check_size
from lucid.errors import ShapeError
from lucid.ops.base.scalars import as_int, as_number, as_scalar
from lucid.ops.creation.filling import dtype_for, on_device

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


def arange(
    start: Number | Tensor,
    end: Number | Tensor | None = None,
    step: Number | Tensor = 1,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``start, start + step, start + 2 * step, ...`` up to but not including `end`.

    With one number only, it is the `end`, and `start` is 0. None as `dtype` is int64 if all are integers, else the
    default. A `step` that is zero or leads away from the end raises a ShapeError.

    >>> import lucid
    >>> lucid.arange(3), lucid.arange(1, 2, 0.25)
    (tensor([0, 1, 2]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))
    """
    first, last = (0, start) if end is None else (start, end)
    first, last = as_number(first, "start"), as_number(last, "end")
    by = as_number(step, "step")
    if by == 0:
        raise ShapeError("arange: step must be nonzero")
    if (last - first) * by < 0:
        raise ShapeError(f"arange: upper bound and lower bound inconsistent with step sign: {first}, {last}, step {by}")
    if not all(math.isfinite(value) for value in (first, last, by)):
        raise ShapeError(f"arange: expected finite numbers, got an unsupported range: {first} -> {last}, step {by}")
    whole = all(isinstance(value, int) for value in (first, last, by))
    if whole:
        for value in (first, last, by):
            check_size("arange", (abs(value),))
    chosen = as_dtype(dtype) if dtype is not None else int64 if whole else get_default_dtype()
    count = max(0, -((first - last) // by) if whole else math.ceil((last - first) / by))
    check_size("arange", (count,), 8)

    def make(xp: ModuleType) -> Any:
        if whole:
            return astype(xp.arange(first, first + count * by, by, dtype=xp.int64), chosen)
        return astype(first + xp.arange(count, dtype=xp.float64) * by, chosen)

    return on_device(make, device, requires_grad)


def evenly(xp: ModuleType, start: float, end: float, steps: int) -> Any:
    """Return `steps` numbers from `start` to `end` in float64, the second half counted from the end."""
    if steps < 2:
        return xp.full((steps,), start, xp.float64)
    by = (end - start) / (steps - 1)
    index = xp.arange(steps, dtype=xp.float64)
    return xp.where(index < steps // 2, start + by * index, end - by * (steps - 1 - index))


def check_steps(steps: int, name: str) -> int:
    """Return the number of steps."""
    count = as_int(steps, "steps")
    if count < 0:
        raise ShapeError(f"{name}: number of steps must be non-negative, got {count}")
    check_size(name, (count,), 8)
    return count


def linspace(
    start: Number | Tensor,
    end: Number | Tensor,
    steps: int,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included; only `start` if `steps` is 1.

    >>> import lucid
    >>> lucid.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    first, last = as_scalar(start, "start"), as_scalar(end, "end")
    count = check_steps(steps, "linspace")
    kind = dtype_for(dtype)
    return on_device(lambda xp: astype(evenly(xp, first, last, count), kind), device, requires_grad)


def logspace(
    start: Number | Tensor,
    end: Number | Tensor,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `steps` numbers from ``base ** start`` to ``base ** end`` with evenly spaced logarithms.

    `start` and `end` are the first and the last exponent, powers of `base`; with one of `steps`, there is only the
    first.

    >>> import lucid
    >>> lucid.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    first, last = as_scalar(start, "start"), as_scalar(end, "end")
    count = check_steps(steps, "logspace")
    kind, base = dtype_for(dtype), as_number(base, "base")
    return on_device(lambda xp: astype(base ** evenly(xp, first, last, count), kind), device, requires_grad)


def eye(
    n: int, m: int | None = None, *, dtype: Dtype | None = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return a matrix of `n` rows and `m` columns, `n` if it is None, with ones on its diagonal and zeros elsewhere.

    >>> import lucid
    >>> lucid.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = as_int(n, "n"), as_int(n if m is None else m, "m")
    if rows < 0 or columns < 0:
        raise ShapeError(f"eye: expected sizes of zero or more, got {rows} rows and {columns} columns")
    kind = dtype_for(dtype)
    check_size("eye", (rows, columns), kind.itemsize)
    return on_device(lambda xp: xp.eye(rows, columns, dtype=kind), device, requires_grad)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Dtype = int64, device: Device = None) -> Tensor:
    """Return the indices on and below the diagonal `offset` of a matrix of `row` rows and `col` columns, row by row.

    The result has the shape (2, count): rows and columns. Diagonals have numbers as in `tril`.

    >>> import lucid
    >>> lucid.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return corner_indices(np.tril, row, col, offset, dtype, device)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Dtype = int64, device: Device = None) -> Tensor:
    """Return the indices on and above the diagonal `offset` of a matrix of `row` rows and `col` columns, row by row.

    The result has the shape (2, count): rows and columns. Diagonals have numbers as in `triu`.

    >>> import lucid
    >>> lucid.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return corner_indices(np.triu, row, col, offset, dtype, device)


def corner_indices(corner: Callable[..., Array], row: int, col: int, offset: int, dtype: Dtype, device: Device) -> Any:
    """Return the indices that `corner`, NumPy's tril or triu, keeps of a matrix."""
    row, col = as_int(row, "row"), as_int(col, "col")
    if row < 0 or col < 0:
        raise ShapeError(f"expected sizes of zero or more, got {row} rows and {col} columns")
    check_size(f"{corner.__name__}_indices", (row, col), 16)
    indices = np.stack(np.nonzero(corner(np.ones((row, col), np.bool_), as_int(offset, "offset"))))
    return wrap(asarray(indices.astype(as_dtype(dtype).numpy), device=as_device(device)))
