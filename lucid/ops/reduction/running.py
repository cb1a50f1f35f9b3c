"""The largest, the smallest, and the logarithm of the sum of exponentials of all elements up to each one.

Defined on real numbers, along one dimension, which stays; what holds besides says `lucid.ops.reduction.sums`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.recording.namespace import GRAPH
from lucid.base.arrays import namespace
from lucid.cpu.running import running_places
from lucid.ops.base.dims import along, dim_in
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.promotion import float_operand
from lucid.ops.elementwise.exponential import logaddexp
from lucid.ops.index.gather import gather
from lucid.ops.index.indexing import getitem
from lucid.ops.reduction.extremes import ValuesIndices, check_ordered
from lucid.ops.reduction.sorting import check_real, comparable
from lucid.ops.shape.joining import cat

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


@on_one_device
def _places(input: Tensor, *, dim: int, largest: bool) -> Any:
    """Return the index of the extreme up to each element: the last of equal ones, and of NaN if there is one.

    CuPy accumulates no extremes: there each round compares what spans of twice the length are known to hold.
    """
    x: Array = input.array
    xp = namespace(x)
    if not x.ndim:
        return wrap(xp.zeros((), xp.int64))
    values = comparable(x)
    if xp is np:
        if (indexed := running_places(values, dim, largest=largest)) is not None:
            return wrap(indexed)
        # the last element that equals the extreme so far; which is NaN behind one
        extremes: Any = np.maximum if largest else np.minimum
        reached = values == extremes.accumulate(values, dim)
        reached |= np.isnan(values) if values.dtype.kind == "f" else False
        places = reached * xp.arange(x.shape[dim]).reshape(-1, *(1,) * (x.ndim - 1 - dim))
        return wrap(xp.maximum.accumulate(places, dim, None, xp.empty(x.shape, xp.int64)))
    values = xp.array(values)
    indices = xp.broadcast_to(xp.arange(x.shape[dim]).reshape(-1, *(1,) * (x.ndim - 1 - dim)), x.shape).astype(xp.int64)
    step = 1
    while step < x.shape[dim]:
        ahead, behind = along(dim, slice(step, None)), along(dim, slice(None, -step))
        new, old = values[ahead], values[behind]
        better = (old > new) if largest else (old < new)
        better |= xp.isnan(old) & ~xp.isnan(new) if values.dtype.kind == "f" else False
        better &= ~xp.isnan(new) if values.dtype.kind == "f" else True
        chosen = xp.where(better, indices[behind], indices[ahead])
        kept = xp.where(better, old, new)
        indices[ahead], values[ahead] = chosen, kept
        step *= 2
    return wrap(indices)


def _running(name: str, input: Tensor, dim: int, *, largest: bool) -> ValuesIndices:
    check_real(input, name)
    axis = dim_in(dim, input.array.ndim)
    indices = _places(input, dim=axis, largest=largest)
    # the indices are in range: without looking at them again
    values = GRAPH.gather(input, indices, dim=axis) if input.array.ndim else gather(input, axis, indices)
    return ValuesIndices(values, indices)


def cummax(input: Tensor, dim: int) -> ValuesIndices:
    """Return the largest of the elements up to each one along a dimension, and its index: the last of equal ones.

    A NaN is larger than any. The result is a named tuple (values, indices).

    >>> import lucid
    >>> lucid.cummax(lucid.tensor([1, 3, 2]), 0).values
    tensor([1, 3, 3])
    """
    return _running("cummax", input, dim, largest=True)


def cummin(input: Tensor, dim: int) -> ValuesIndices:
    """Return the smallest of the elements up to each one along a dimension, and its index: the last of equal ones.

    A NaN is smaller than any. The result is a named tuple (values, indices).

    >>> import lucid
    >>> lucid.cummin(lucid.tensor([3, 1, 2]), 0).values
    tensor([3, 1, 1])
    """
    return _running("cummin", input, dim, largest=False)


def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Return ``log(sum(exp(x)))`` of the elements up to each one along a dimension, without overflow.

    >>> import lucid
    >>> lucid.logcumsumexp(lucid.tensor([1000.0, 1000.0]), 0)
    tensor([1000.0000, 1000.6932])
    """
    x = float_operand(input)
    check_ordered(x, "logcumsumexp", ())
    result, axis = x, dim_in(dim, x.array.ndim)
    length, step = (x.array.shape or (1,))[axis], 1
    while step < length:
        first, ahead, behind = slice(step), slice(step, None), slice(None, -step)
        sums = logaddexp(getitem(result, along(axis, ahead)), getitem(result, along(axis, behind)))
        result = cat([getitem(result, along(axis, first)), sums], axis)
        step *= 2
    return result.clone() if result is x else result
