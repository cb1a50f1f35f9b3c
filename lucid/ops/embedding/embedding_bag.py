"""Sums, means and maxima of bags of rows, on a CUDA device without the rows themselves in memory.

What holds for it as for all layers says `lucid.ops.layers`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import among
from lucid.autograd.base import describe
from lucid.autograd.modes.state import no_grad
from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.dtype import as_dtype, dtype_of
from lucid.base.functions import cupy_functions
from lucid.cuda.launch.indexing import launch_for, steps_of
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, Kernel, address_of
from lucid.cuda.switches import looked_at
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, cast_to
from lucid.ops.base.rows import ROWS_AT_ONCE, array_sum
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.creation.filling import zeros
from lucid.ops.creation.ranges import arange
from lucid.ops.elementwise.comparison import maximum
from lucid.ops.elementwise.selection import where
from lucid.ops.embedding.embedding import rows_named, shorten
from lucid.ops.index.accumulation import sums_at
from lucid.ops.index.gather import gather
from lucid.ops.index.index_select import index_add, index_select
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor

_SUMS = Kernel("embedding_bag", "lucid::bag_sums", EACH_FLOAT)
_MOST = Kernel("embedding_bag", "lucid::bag_most", EACH_FLOAT)
_NUMBERS = Kernel("embedding_bag", "lucid::bag_numbers", [()])


@primitive(saved_as={"index": "indices"})
def _bag_sums(
    xp: ModuleType,
    weight: Array,
    shares: Array | None,
    index: Array,
    starts: Array,
    bag: Array,
    *,
    padding: int | None,
    by_frequency: bool,
) -> Array:
    """Return for each bag the sum of its rows times their shares; starts and numbers of bags say the same."""
    values = weight[index].astype(accumulation_dtype(weight.dtype), copy=False)
    if shares is not None:
        values = values * shares[:, None]
    if padding is not None:
        values[index == padding] = 0
    total = sums_at(xp, (starts.size, weight.shape[1]), (0,), [bag], values)
    if xp is np and len(index) > ROWS_AT_ONCE:
        # rows were added one after the other: of many the sum would be rounded too often
        ends = np.append(starts[1:], len(index))
        for b in np.flatnonzero(ends - starts > ROWS_AT_ONCE):
            total[b] = array_sum(values[starts[b] : ends[b]], (0,))
    return total.astype(weight.dtype, copy=False)


@_bag_sums.cuda
def _bag_sums_cuda(
    weight: Array, shares: Array | None, index: Array, starts: Array, bag: Array,
    *, padding: int | None, by_frequency: bool,
) -> Any:  # fmt: skip
    out = cupy_functions().empty((starts.size, weight.shape[1]), weight.dtype)
    shares = None if shares is None else gpu.cupy().ascontiguousarray(shares)
    if out.size:
        _SUMS[C_TYPES[weight.dtype]](
            *launch_for(out.size), weight.data.ptr, index.data.ptr, starts.data.ptr, address_of(shares), out.data.ptr,
            *_sizes(weight, index, starts, padding),
        )  # fmt: skip
    return out


def _sizes(weight: Array, index: Array, starts: Array, padding: int | None) -> tuple[int, ...]:
    return starts.size, index.size, *weight.shape, *steps_of(weight), -1 if padding is None else padding


@_bag_sums.vjp("weight")
def _bag_sums_weight(
    m: Namespace,
    grad: Array,
    shares: Array | None,
    index: Array,
    bag: Array,
    weight_shape: Ints,
    weight_dtype: np.dtype[Any],
    padding: int | None,
    by_frequency: bool,
) -> Any:
    grads = m.embedding(grad, bag, padding=None, by_frequency=False)
    if shares is not None:
        grads = m.mul(m.cast(grads, dtype=accumulation_dtype(weight_dtype)), m.unsqueeze(shares, dim=1))
    total = m.embedding_grad(grads, index, rows=weight_shape[0], padding=padding, by_frequency=by_frequency)
    return total if shares is None else m.cast(total, dtype=weight_dtype)


@_bag_sums.vjp("shares")
def _bag_sums_shares(
    m: Namespace, grad: Array, weight: Array, index: Array, bag: Array, shares_dtype: np.dtype[Any]
) -> Any:
    grads = m.cast(m.embedding(grad, bag, padding=None, by_frequency=False), dtype=shares_dtype)
    rows = m.cast(m.embedding(weight, index, padding=None, by_frequency=False), dtype=shares_dtype)
    return m.sum(m.mul(grads, rows), dim=(1,), keepdim=False, dtype=shares_dtype)


@primitive
def _bag_most(xp: ModuleType, weight: Array, index: Array, starts: Array, *, padding: int | None) -> Array:
    """Return for each bag and column the row with the greatest element, NaN before all; -1 for an empty bag."""
    out = xp.full((starts.size, weight.shape[1]), -1)
    begins = [*starts.tolist(), index.size]
    table = weight.astype(accumulation_dtype(weight.dtype), copy=False)
    for bag, (begin, end) in enumerate(itertools.pairwise(begins)):
        rows = index[begin:end]
        if padding is not None:
            rows = rows[rows != padding]
        if rows.size and out.shape[1]:
            out[bag] = rows[xp.argmax(table[rows], 0)]
    return out


@_bag_most.cuda
def _bag_most_cuda(weight: Array, index: Array, starts: Array, *, padding: int | None) -> Array:
    out = cupy_functions().empty((starts.size, weight.shape[1]), np.int64)
    if out.size:
        _MOST[C_TYPES[weight.dtype]](
            *launch_for(out.size), weight.data.ptr, index.data.ptr, starts.data.ptr, out.data.ptr,
            *_sizes(weight, index, starts, padding),
        )  # fmt: skip
    return out


@primitive
def _bag_numbers(xp: ModuleType, starts: Array, *, places: int) -> Array:
    """Return the number of the bag that each place is in: the last one that begins there or before."""
    return xp.searchsorted(starts, xp.arange(places), "right") - 1


@_bag_numbers.cuda
def _bag_numbers_cuda(starts: Array, *, places: int) -> Array:
    out = cupy_functions().empty(places, np.int64)
    if places:
        _NUMBERS[()](*launch_for(places), starts.data.ptr, out.data.ptr, starts.size, places)
    return out


def _places(
    index: Tensor, starts: Tensor | None, shares: Tensor | None, last: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return row numbers, beginnings of bags, and shares, each in one dimension; for `last` with one bag too many."""
    shape = index.array.shape
    if shares is not None and shares.array.shape != shape:
        raise ShapeError(
            f"embedding_bag: expected per_sample_weights of the shape of input, {list(shape)}, got "
            f"{list(shares.array.shape)}"
        )
    if len(shape) == 2:
        if starts is not None:
            raise ShapeError(
                f"embedding_bag: expected no offsets with an input of 2 dimensions, each row of which is a bag, got "
                f"{describe(starts)}"
            )
        begins = arange(shape[0], device=index.device) * shape[1]
        return reshape(index, -1), begins, None if shares is None else reshape(shares, -1)
    if len(shape) != 1:
        raise ShapeError(f"embedding_bag: expected input of 1 or 2 dimensions, got shape {list(shape)}")
    if starts is None:
        raise ShapeError("embedding_bag: expected offsets, where bags begin, with an input of 1 dimension, got None")
    array = starts.array
    if array.ndim != 1 or array.shape[0] < last:
        raise ShapeError(
            f"embedding_bag: expected offsets of 1 dimension{', one at least' if last else ''}, got shape "
            f"{list(array.shape)}"
        )
    if dtype_of(array).category != 1:
        raise DtypeError(f"embedding_bag: expected offsets to hold integers, got {dtype_of(array)}")
    if looked_at(array) and (array[0] != 0 or array[-1] > shape[0] or (array[1:] < array[:-1]).any()):
        raise ShapeError(
            f"embedding_bag: expected offsets that begin at 0, do not fall and end at {shape[0]}, the length of input, "
            f"at most, got {array.tolist()}"
        )
    if not array.size:
        index, shares = index[:0], None if shares is None else shares[:0]
    return index, starts, shares


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return for each bag of integers the sum, mean or maximum of the rows of `weight` that it names, (B, columns).

    A bag is a row of `input`, or what lies from one of the `offsets` to the next, the last of which is only an end with
    `include_last_offset`. The `mode` is ``"sum"``, in which rows may be multiplied by `per_sample_weights`, ``"mean"``
    or ``"max"``, in which the first of equals gets the gradient and NaN is the greatest. The row `padding_idx` counts
    for nothing; of no rows comes zero. `max_norm`, `norm_type`, `scale_grad_by_freq` and `sparse` are those of
    `embedding`, and so is what is looked at on CUDA.

    >>> import lucid
    >>> table = lucid.tensor([[0.0, 1.0], [2.0, 3.0]])
    >>> lucid.nn.functional.embedding_bag(lucid.tensor([1, 0, 1]), table, lucid.tensor([0, 2]), mode="sum").tolist()
    [[2.0, 4.0], [2.0, 3.0]]
    """
    scale_grad_by_freq, sparse = as_bool(scale_grad_by_freq, "scale_grad_by_freq"), as_bool(sparse, "sparse")
    last = as_bool(include_last_offset, "include_last_offset")
    if not among(mode, {"sum", "mean", "max"}):
        raise SettingError(f"embedding_bag: mode has to be one of 'sum', 'mean' or 'max', got {mode!r}")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise SettingError("embedding_bag: mode='max' supports neither scale_grad_by_freq nor sparse: leave them out")
    index, table, padding = rows_named("embedding_bag", input, weight, padding_idx)
    if not dtype_of(table.array).is_floating_point:
        raise DtypeError(f"embedding_bag: expected weight of a floating-point dtype, got {dtype_of(table.array)}")
    shares = None if per_sample_weights is None else tensor_operand(per_sample_weights)
    if shares is not None and mode != "sum":
        raise SettingError(f"embedding_bag: per_sample_weights is only supported for mode='sum', got mode={mode!r}")
    if shares is not None and shares.array.dtype != table.array.dtype:
        raise DtypeError(
            f"embedding_bag: expected per_sample_weights of the dtype of weight, {dtype_of(table.array)}, got "
            f"{dtype_of(shares.array)}"
        )
    starts = None if offsets is None else tensor_operand(offsets)
    index, starts, shares = _places(index, starts, shares, last and index.ndim == 1)
    if max_norm is not None:
        longest, order = as_number(max_norm, "max_norm"), as_number(norm_type, "norm_type")
        shorten("embedding_bag", table, index, longest, order, starts, shares)
    index, starts = cast_to(index, as_dtype("int64")).contiguous(), cast_to(starts, as_dtype("int64")).contiguous()
    bag = _bag_numbers(starts, places=index.array.size)
    work = as_dtype(accumulation_dtype(table.array.dtype))
    if mode == "max":
        with no_grad():
            rows = _bag_most(table, index, starts, padding=padding)
        out = where(rows < 0, 0, gather(table, 0, maximum(rows, 0)))
    else:
        if mode == "mean":
            shares = _means(index, bag, starts.array.size, padding, work)
        elif shares is not None:
            shares = cast_to(shares, work)
            if padding is not None:
                shares = where(index == padding, 0, shares)
        out = _bag_sums(table, shares, index, starts, bag, padding=padding, by_frequency=scale_grad_by_freq)
    return out[:-1] if last and input.ndim == 1 else out


def _means(index: Tensor, bag: Tensor, bags: int, padding: int | None, dtype: Any) -> Tensor:
    """Return for each place one over the number of rows that count in its bag."""
    ones = index != (-1 if padding is None else padding)
    counts = index_add(zeros(bags, dtype=dtype, device=index.device), 0, bag, cast_to(ones, dtype))
    return index_select(1 / maximum(counts, 1), 0, bag)
