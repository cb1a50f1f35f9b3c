"""Evenly spaced numbers, and the identity matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.backend.arrays import astype
from lucid.backend.dtype import as_dtype, get_default_dtype
from lucid.errors import ShapeError
from lucid.ops.base.scalars import as_int, as_number
from lucid.ops.creation.filling import dtype_for, on_device

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return ``start, start + step, start + 2 * step, ...`` up to but not including `end`.

    Parameters
    ----------
    start, end, step : number
        With one number only, it is the end, and the start is 0.
    dtype : dtype, optional
        If None, int64 if all three are integers, else the default dtype.
    device : device, optional
        The default device if None.
    requires_grad : bool
        Whether operations on the tensor are recorded.

    Returns
    -------
    Tensor
        Of shape (ceil((end - start) / step),).

    Raises
    ------
    ShapeError
        If the step is zero or leads away from the end.
    DtypeError, DeviceError
        As for :func:`zeros`.

    Examples
    --------
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
    whole = all(isinstance(value, int) for value in (first, last, by))
    chosen = as_dtype(dtype) if dtype is not None else as_dtype("int64") if whole else get_default_dtype()
    count = max(0, -((first - last) // by) if whole else math.ceil((last - first) / by))

    def make(xp: Any) -> Any:
        if whole:
            return astype(xp.arange(first, first + count * by, by, dtype=xp.int64), chosen)
        return astype(first + xp.arange(count, dtype=xp.float64) * by, chosen)

    return on_device(make, device, requires_grad)


def evenly(xp: Any, start: float, end: float, steps: int) -> Any:
    """Return `steps` numbers from `start` to `end` in float64, the second half counted from the end."""
    if steps < 2:
        return xp.full((steps,), start, xp.float64)
    by = (end - start) / (steps - 1)
    places = xp.arange(steps, dtype=xp.float64)
    return xp.where(places < steps // 2, start + by * places, end - by * (steps - 1 - places))


def check_steps(steps: Any, name: str) -> int:
    """Return the number of steps."""
    count = as_int(steps, "steps")
    if count < 0:
        raise ShapeError(f"{name}: number of steps must be non-negative, got {count}")
    return count


def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included.

    Parameters
    ----------
    start, end : number
        The first and the last.
    steps : int
        How many; with 1, only `start`.
    dtype : dtype, optional
        The default dtype if None.
    device : device, optional
        The default device if None.
    requires_grad : bool
        Whether operations on the tensor are recorded.

    Returns
    -------
    Tensor
        Of shape (steps,).

    Raises
    ------
    ShapeError
        If `steps` is negative.
    DtypeError, DeviceError
        As for :func:`zeros`.

    Examples
    --------
    >>> import lucid
    >>> lucid.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    first, last = as_number(start, "start"), as_number(end, "end")
    count = check_steps(steps, "linspace")
    kind = dtype_for(dtype)
    return on_device(lambda xp: astype(evenly(xp, first, last, count), kind), device, requires_grad)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `steps` numbers from ``base ** start`` to ``base ** end`` whose logarithms are evenly spaced.

    Parameters
    ----------
    start, end : number
        The first and the last exponent.
    steps : int
        How many; with 1, only the first.
    base : float
        The base of the powers.
    dtype : dtype, optional
        The default dtype if None.
    device : device, optional
        The default device if None.
    requires_grad : bool
        Whether operations on the tensor are recorded.

    Returns
    -------
    Tensor
        Of shape (steps,).

    Raises
    ------
    ShapeError
        If `steps` is negative.
    DtypeError, DeviceError
        As for :func:`zeros`.

    Examples
    --------
    >>> import lucid
    >>> lucid.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    first, last = as_number(start, "start"), as_number(end, "end")
    count = check_steps(steps, "logspace")
    kind, base = dtype_for(dtype), as_number(base, "base")
    return on_device(lambda xp: astype(base ** evenly(xp, first, last, count), kind), device, requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a matrix with ones on its diagonal and zeros elsewhere.

    Parameters
    ----------
    n, m : int
        Rows and columns; as many columns as rows if `m` is None.
    dtype : dtype, optional
        The default dtype if None.
    device : device, optional
        The default device if None.
    requires_grad : bool
        Whether operations on the tensor are recorded.

    Returns
    -------
    Tensor
        Of shape (n, m).

    Raises
    ------
    ShapeError
        If a size is negative.
    DtypeError, DeviceError
        As for :func:`zeros`.

    Examples
    --------
    >>> import lucid
    >>> lucid.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = as_int(n, "n"), as_int(n if m is None else m, "m")
    if rows < 0 or columns < 0:
        raise ShapeError(f"eye: expected sizes of zero or more, got {rows} rows and {columns} columns")
    kind = dtype_for(dtype)
    return on_device(lambda xp: xp.eye(rows, columns, dtype=kind), device, requires_grad)
