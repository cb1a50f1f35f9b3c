"""Elements by their rank: the k-th smallest, quantiles, medians without NaN, the most frequent.

What holds for them says `lucid.ops.reduction.sums` of reductions, and `lucid.ops.reduction.sorting` of order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.base.arrays import asarray
from lucid.base.device import device_of
from lucid.base.dtype import dtype_of
from lucid.cuda.switches import looked_at
from lucid.errors import DtypeError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.ops.base.dims import dim_in
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_bool, as_int, as_number
from lucid.ops.creation.ranges import arange
from lucid.ops.elementwise.arithmetic import mul, sub
from lucid.ops.elementwise.combination import lerp
from lucid.ops.elementwise.comparison import eq, ne
from lucid.ops.elementwise.nonfinite import isinf, isnan
from lucid.ops.elementwise.rounding import ceil, floor, round
from lucid.ops.elementwise.selection import clamp, where
from lucid.ops.index.gather import gather
from lucid.ops.index.select import narrow
from lucid.ops.reduction.extremes import ValuesIndices, argmax, check_ordered
from lucid.ops.reduction.running import cummax
from lucid.ops.reduction.sorting import check_real, sort, topk
from lucid.ops.reduction.sums import any as any_of
from lucid.ops.reduction.sums import kept_shape, sum
from lucid.ops.shape.axes import movedim
from lucid.ops.shape.broadcasting import expand
from lucid.ops.shape.joining import cat
from lucid.ops.shape.reshape import reshape, squeeze

if TYPE_CHECKING:
    from lucid.tensor import Tensor

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _lined_up(name: str, input: Tensor, dim: int) -> tuple[Any, int]:
    """Return a tensor of one dimension or more, and the dimension, after checking that it has elements."""
    check_real(input, name)
    axis = dim_in(dim, input.array.ndim)
    x: Any = input if input.array.ndim else reshape(input, 1)
    check_ordered(x, name, (axis,))
    return x, axis


def _reduced(input: Tensor, values: Any, indices: Any, axis: int, keepdim: bool) -> ValuesIndices:
    """Return values and indices of one element along a dimension in the shape of a reduction."""
    if keepdim and input.array.ndim:
        return ValuesIndices(values, indices)
    return ValuesIndices(squeeze(values, axis), squeeze(indices, axis))


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """Return the `k`-th smallest element along a dimension, counted from 1, and its index.

    The result is a named tuple (values, indices); a `k` that is not there raises an IndexOutOfRangeError.

    >>> import lucid
    >>> lucid.kthvalue(lucid.tensor([3.0, 1.0, 2.0]), 2).values
    tensor(2.)
    """
    x, axis = _lined_up("kthvalue", input, dim)
    rank, size = as_int(k, "k"), x.array.shape[axis]
    if not 1 <= rank <= size:
        raise IndexOutOfRangeError(
            f"kthvalue(): selected number k out of range for dimension {axis}: expected 1 to {size}, got {rank}"
        )
    keepdim = as_bool(keepdim, "keepdim")
    # the last of those from the nearer end on
    largest = 2 * rank > size
    last = size - rank if largest else rank - 1
    values, indices = topk(x, last + 1, axis, largest)
    return _reduced(input, narrow(values, axis, last, 1), narrow(indices, axis, last, 1), axis, keepdim)


def msort(input: Tensor) -> Tensor:
    """Return the elements of `input` in ascending order along dimension 0.

    >>> import lucid
    >>> lucid.msort(lucid.tensor([3, 1, 2]))
    tensor([1, 2, 3])
    """
    return sort(input, 0).values


def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of the elements that are not NaN, of an even number the lower of the two in the middle.

    Without `dim` it stands alone; with an int it is a named tuple (values, indices). Of nothing but NaN it is NaN.

    >>> import lucid
    >>> lucid.nanmedian(lucid.tensor([4.0, float("nan"), 3.0]))
    tensor(3.)
    """
    keepdim = as_bool(keepdim, "keepdim")
    if dim is None:
        check_real(input, "nanmedian")
        flat = reshape(input, -1)
        if not flat.array.size and flat.array.dtype.kind in "fV":
            return sum(flat) / 0
        element = nanmedian(flat, 0).values
        # equal elements share the gradient, as in median
        return element if not flat.requires_grad else _shared(flat, element.detach())
    x, axis = _lined_up("nanmedian", input, dim)
    values, indices = sort(x, axis)
    # NaN stands behind all others
    count = sum(isnan(x) == 0, axis, True)
    middle = clamp((count - 1) // 2, min=0)
    return _reduced(input, gather(values, axis, middle), gather(indices, axis, middle), axis, keepdim)


def _shared(flat: Any, element: Any) -> Any:
    """Return a found element with a gradient that all elements equal to it share."""
    equals = eq(flat.detach(), element)
    shared = sum(where(equals, flat, 0) / clamp(sum(equals), min=1))
    # shares of an element may add up to another one, and a sum has lost the sign of zero
    return where(isinf(element), shared, sub(element, sub(shared.detach(), shared)))


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """Return the most frequent element along a dimension, the smallest of several, and its last index.

    The result is a named tuple (values, indices).

    >>> import lucid
    >>> lucid.mode(lucid.tensor([3, 1, 3, 1, 2])).values
    tensor(1)
    """
    x, axis = _lined_up("mode", input, dim)
    values, indices = sort(x, axis)
    size, shape = x.array.shape[axis], [1] * x.array.ndim
    shape[axis] = size
    place = expand(reshape(arange(size, device=x.device), shape), x.array.shape)
    begins = ne(narrow(values, axis, 1, size - 1), narrow(values, axis, 0, size - 1))
    starts = where(cat([place.narrow(axis, 0, 1) == 0, begins], axis), place, 0)
    length = place - cummax(starts, axis).values
    end = argmax(length, axis, keepdim=True)
    return _reduced(input, gather(values, axis, end), gather(indices, axis, end), axis, as_bool(keepdim, "keepdim"))


def _quantile(
    name: str, input: Tensor, q: float | Tensor, dim: int | None, keepdim: bool, interpolation: str, *, skip: bool
) -> Any:
    if not among(interpolation, INTERPOLATIONS):
        raise SettingError(
            f"{name}: expected interpolation to be one of {', '.join(INTERPOLATIONS)}, got {interpolation!r}"
        )
    input, q = [wide_in_autocast(x, cpu=True, cuda=False) for x in (input, q)]
    array, keepdim = array_of(input), as_bool(keepdim, "keepdim")
    if array.dtype.name not in {"float32", "float64"}:
        raise DtypeError(f"{name}: expected a tensor of float32 or float64, got {array.dtype.name}: convert it first")
    number = None if isinstance(q, TensorBase) else as_number(q, "q")
    level: Any = q if number is None else wrap(asarray(number, dtype_of(array), device_of(array)))
    if level.array.dtype != array.dtype or level.array.ndim > 1:
        raise ShapeError(
            f"{name}: expected q to be a number, or a tensor of at most 1 dimension of {array.dtype.name}, got shape "
            f"{list(level.array.shape)} of {level.array.dtype.name}"
        )
    if number is None:
        inside = not looked_at(level.array) or bool(((level.array >= 0) & (level.array <= 1)).all())
    else:
        inside = 0 <= number <= 1
    if not inside:
        raise SettingError(f"{name}: q must be in the range [0, 1] but got {q if number is None else number}")
    axis = None if dim is None else dim_in(dim, array.ndim)
    # the elements of each in the last dimension
    x: Any = reshape(input, 1, -1) if axis is None or not array.ndim else movedim(input, axis, -1)
    if not x.array.shape[-1]:
        raise ShapeError(f"{name}: input tensor must be non-empty along dim, got shape {list(array.shape)}")
    ordered = sort(x, -1).values
    missing = isnan(x)
    last = sub(sum(missing == 0, -1, True), 1) if skip else x.array.shape[-1] - 1
    where_ = mul(reshape(level, -1), clamp(last, min=0) if skip else last)
    where_ = expand(where_.to(x.dtype), (*x.array.shape[:-1], level.array.size))
    if not skip:
        where_ = where(expand(any_of(missing, -1, True), where_.array.shape), float(last), where_)
    if interpolation in {"lower", "higher", "nearest"}:
        chosen = {"lower": floor, "higher": ceil, "nearest": round}[interpolation](where_)
        result = gather(ordered, -1, chosen.long())
    else:
        below = floor(where_)
        weight = sub(where_, below) if interpolation == "linear" else 0.5
        result = lerp(gather(ordered, -1, below.long()), gather(ordered, -1, ceil(where_).long()), weight)
    # the levels come first
    result = movedim(result, -1, 0)
    dims = tuple(range(array.ndim)) if axis is None else (axis,)
    rest = kept_shape(array.shape, dims) if keepdim else [size for d, size in enumerate(array.shape) if d not in dims]
    return reshape(result, (*level.array.shape, *rest))


def quantile(
    input: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return the quantile `q` of all elements, or of those along a dimension; NaN if one is.

    Of several `q` in a vector, each in [0, 1], the result has one more dimension in front. Between two elements lies
    what `interpolation` says: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"`` or ``"nearest"``.

    >>> import lucid
    >>> lucid.quantile(lucid.tensor([1.0, 2.0, 4.0]), 0.75)
    tensor(3.)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, skip=False)


def nanquantile(
    input: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return `quantile` of the elements that are not NaN; NaN if there are none.

    `q` and `interpolation` are as there.

    >>> import lucid
    >>> lucid.nanquantile(lucid.tensor([1.0, float("nan"), 4.0]), 0.5)
    tensor(2.5000)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, skip=True)
