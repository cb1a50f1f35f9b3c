"""``x[index]`` and ``x[index] = value``: basic indices give views, tensors and masks select copies.

What holds for all of it says `lucid.ops.index`. An index below zero counts from the end here.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.borrowing import borrowed
from lucid.autograd.recording.views import change_in_place
from lucid.base.arrays import asarray, is_array, namespace, on
from lucid.base.device import device_of
from lucid.errors import DtypeError, IndexKindError, IndexOutOfRangeError, SettingError
from lucid.ops.base.promotion import array_of, cast_to, tensor_dtype
from lucid.ops.base.scalars import as_bool
from lucid.ops.index.accumulation import neighbours
from lucid.ops.index.masked_select import masked_fill, masked_select
from lucid.ops.index.select import check_indices, fitted, put, select_elements, view_at
from lucid.ops.shape.axes import permute
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import EllipsisType

    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor


Index: TypeAlias = "int | slice | EllipsisType | Tensor | Array | Sequence[Any] | None"
"""What indexes one dimension, several or none; a tuple of these indexes in turn."""

# What ends a slice as it is; anything else is made an integer first.
PLAIN = frozenset((int, type(None)))


class Key(NamedTuple):
    """Parsed form of ``[index]``: first a view, then elements selected from it.

    Attributes
    ----------
    basic : tuple
        Integers, slices with steps above zero, Nones, and an Ellipsis at the end.
    dims : tuple of int
        Dimensions of the view that tensors index.
    indices : list of Tensor
        One of integers for each of `dims`.
    mask : Tensor or None
        The only index, of bools, of the shape of the view; then there are no others.
    order : tuple of int
        In which the dimensions of the view come; its last ones stay where they are.
    """

    basic: tuple[Any, ...]
    dims: tuple[int, ...] = ()
    indices: tuple[Any, ...] = ()
    mask: Any = None
    order: tuple[int, ...] = ()

    def view_of(self, input: Tensor) -> Any:
        """Return the view of `input`; itself if it is all of it and elements are selected from it."""
        if (self.dims or self.mask is not None) and all(part is ... or part == slice(None) for part in self.basic):
            view = input
        else:
            view = view_at(input, index=self.basic)
        return permute(view, *self.order, *range(len(self.order), view.array.ndim)) if self.order else view

    def indexed(self) -> tuple[Ints, tuple[Any, ...]]:
        """Return the indexed dimensions of the view and an index of integers for each, also for a mask."""
        if self.mask is None:
            return self.dims, self.indices
        return tuple(range(self.mask.array.ndim)), tuple(true_indices(self.mask.array))


def parse(index: Index, input: Tensor) -> Key:
    """Return the parsed form of ``input[index]``; an index beyond the input's dimensions or sizes is refused."""
    array: Array = input.array
    shape = array.shape
    if type(index) is int and shape:
        return Key((element(index, 0, shape), ...))
    items: Any = [as_index(item, array) for item in (cast("Any", index) if isinstance(index, tuple) else (index,))]
    if len(items) == 1 and isinstance(items[0], TensorBase):
        mask: Array = items[0].array
        if mask.dtype.kind == "b" and mask.shape == shape and shape:
            return Key((...,), mask=items[0])
    taken = sum([dims_taken(item) for item in items])
    if taken > len(shape):
        raise IndexOutOfRangeError(
            f"too many indices for tensor of dimension {len(shape)}: got {taken}; shape is {list(shape)}"
        )
    basic: list[Any] = []
    dims: list[int] = []
    indices: list[Any] = []
    # the next dimension of the input, and how many fewer the view has behind it
    dim = dropped = 0
    rest = len(shape) - taken
    for item in items:
        if type(item) is int:
            basic.append(element(item, dim, shape))
            dim += 1
            dropped += 1
        elif type(item) is slice:
            basic.append(item)
            dim += 1
        elif item is None:
            basic.append(None)
        elif item is ...:
            if rest < 0:
                raise IndexOutOfRangeError("an index can only have a single ellipsis ('...')")
            basic += [slice(None)] * rest
            dim, rest = dim + rest, -1
        else:
            parts = indices_of(item, dim, shape)
            first = len(basic) - dropped
            dims += range(first, first + len(parts))
            indices += parts
            # a single bool indexes a new dimension of size one: it takes all or nothing
            new = item.array.dtype.kind == "b" and not item.array.ndim
            basic += [None] if new else [slice(None)] * len(parts)
            dim += 0 if new else len(parts)
    return beside((*basic, ...), tuple(dims), tuple(indices))


def beside(basic: tuple[Any, ...], dims: tuple[int, ...], indices: tuple[Any, ...]) -> Key:
    """Return the key, with indices of no dimensions moved beside the others if these alone are neighbours.

    Such an index is on a CUDA device, where it is not read, and selects as the others do; but like the integer that it
    is on the CPU it must not send their common shape to the front.
    """
    if len(dims) < 2 or neighbours(dims):
        return Key(basic, dims, indices)
    single = [k for k, index in enumerate(indices) if not index.array.ndim]
    others = [k for k, index in enumerate(indices) if index.array.ndim]
    if not single or not others:
        return Key(basic, dims, indices)
    dropped = [dims[k] for k in single]
    rest = [dim for dim in range(sum(type(part) is not int for part in basic[:-1])) if dim not in dropped]
    positions = tuple([rest.index(dims[k]) for k in others])
    if not neighbours(positions):
        return Key(basic, dims, indices)
    first = positions[0]
    order = (*rest[:first], *dropped, *rest[first:])
    moved = tuple([indices[k] for k in (*single, *others)])
    return Key(basic, tuple(range(first, first + len(moved))), moved, order=order)


def indices_of(item: Tensor, dim: int, shape: tuple[int, ...]) -> list[Any]:
    """Return a tensor that indexes from `dim` on as tensors of integers, one for each dimension."""
    array: Array = item.array
    if array.dtype.kind != "b":
        return [item]
    if array.shape != shape[dim : dim + array.ndim]:
        raise IndexKindError(
            f"The shape of the mask {list(array.shape)} at index {dim} does not match the shape of the indexed tensor "
            f"{list(shape)} there"
        )
    return true_indices(array if array.ndim else array.reshape(1))


def true_indices(mask: Array) -> list[Any]:
    """Return the indices of a mask's true elements: a tensor of integers for each of its dimensions."""
    with on(mask):
        return [wrap(part) for part in namespace(mask).nonzero(mask)]


def as_index(item: Any, array: Array) -> Any:
    """Return one part of an index as int, slice with steps above zero, None, Ellipsis, or a tensor."""
    if item is None or item is ... or type(item) is int:
        return item
    if type(item) is slice:
        ends = cast("Any", item)
        if ends.step is None and type(ends.start) in PLAIN and type(ends.stop) in PLAIN:
            return ends
        parts = [None if end is None else operator.index(end) for end in (ends.start, ends.stop, ends.step)]
        if parts[2] is not None and parts[2] <= 0:
            raise SettingError(f"slice step must be greater than zero, got {parts[2]}; use lucid.flip to reverse")
        return slice(*parts)
    if isinstance(item, TensorBase):
        tensor: Any = item
    elif is_array(item) or isinstance(item, bool):
        tensor = borrowed(asarray(item, device=device_of(array)))
    elif isinstance(item, list | tuple | range):
        nested = cast("Any", item)
        tensor = wrap(asarray(nested, None if len(nested) else "int64", device_of(array)))
    elif hasattr(item, "__index__"):
        return operator.index(item)
    else:
        raise IndexKindError(
            "only integers, slices (`:`), ellipsis (`...`), None and integer or bool tensors are valid indices, got "
            f"{type(item).__name__}"
        )
    kind = tensor.array.dtype
    if kind.kind not in "ib":
        raise IndexKindError(
            f"tensors used as indices must be of int8, int16, int32, int64 or bool, got {kind.name}; convert it with "
            ".to(lucid.int64), or a mask with .to(lucid.bool)"
        )
    if type(tensor.array) is np.ndarray and not tensor.array.ndim and kind.kind == "i":
        return int(tensor.array)
    return tensor


def dims_taken(item: Any) -> int:
    """Return how many dimensions one part of an index takes."""
    if item is None or item is ...:
        return 0
    if type(item) is int or type(item) is slice or item.array.dtype.kind != "b":
        return 1
    return item.array.ndim


def element(index: int, dim: int, shape: tuple[int, ...]) -> int:
    """Return an integer index counted from the left."""
    size = shape[dim]
    if not -size <= index < size:
        raise IndexOutOfRangeError(f"index {index} is out of bounds for dimension {dim} with size {size}")
    return index + size if index < 0 else index


def getitem(input: Tensor, index: Index) -> Tensor:
    """Return ``input[index]``: a view for integers, slices, None and Ellipsis, a copy for tensors and masks.

    `index` is one of these, an array, a list, or a tuple of such. Integers and slices are applied first, and tensors of
    one integer are integers, but on CUDA, where they select. Other indices broadcast against each other; their common
    shape replaces the dimensions that they index if these are neighbours, else in front. A mask stands
    for the indices of its true elements. A slice with a step of zero or below raises a ValueError.

    >>> import lucid
    >>> x = lucid.tensor([[1, 2, 3], [4, 5, 6]])
    >>> x[0, ::2], x[:, [2, 0]], x[x > 4]
    (tensor([1, 3]), tensor([[3, 1],
            [6, 4]]), tensor([5, 6]))
    """
    if isinstance(index, TensorBase) and index.array.ndim and input.array.ndim and index.array.dtype.kind == "i":
        return select_elements(input, (0,), (index,))
    key = parse(index, input)
    view = key.view_of(input)
    if key.mask is not None:
        return masked_select(view, key.mask)
    return select_elements(view, key.dims, key.indices) if key.dims else view


def setitem(target: Tensor, index: Index, value: Array | Tensor | Number | Sequence[Any]) -> None:
    """Write ``target[index] = value`` in place; gradients flow to `value` there, and to the old values elsewhere.

    `index` is as for `getitem`. `value`, a tensor, an array, a number or nested lists, is broadcast to the shape of
    ``target[index]`` and cast to its dtype. A leaf that requires grad raises an InplaceError while gradients are
    recorded.

    >>> import lucid
    >>> x = lucid.zeros(2, 3)
    >>> x[:, 1] = 5
    >>> x
    tensor([[0., 5., 0.],
            [0., 5., 0.]])
    """
    key = parse(index, target)
    view = key.view_of(target)
    new = as_value(value, view)
    if key.mask is not None and not new.array.ndim:
        change_in_place(view, masked_fill(view, key.mask, new))
        return
    dims, indices = key.indexed()
    if not dims:
        change_in_place(view, fitted(new, view.array.shape))
        return
    shape = check_indices(view.array.shape, dims, indices)
    change_in_place(view, put(view, fitted(new, shape), *indices, dims=dims, accumulate=False))


def as_value(value: Array | Tensor | Number | Sequence[Any], target: Tensor) -> Any:
    """Return an assigned value as a tensor of the dtype of `target`; all but tensors is made on its device."""
    dtype = tensor_dtype(target)
    if isinstance(value, TensorBase):
        return cast_to(value, dtype)
    if is_array(value):
        return cast_to(borrowed(asarray(value, device=device_of(target.array))), dtype)
    return borrowed(asarray(value, dtype, device_of(target.array)))


def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of `input` with `values` written, or with `accumulate` added, at `indices`.

    These are a tuple of tensors, one for each of the first dimensions, of integers or bools, that broadcast against
    each other; `values` broadcast to the shape of ``input[indices]``.

    >>> import lucid
    >>> at = (lucid.tensor([0, 0]),)
    >>> lucid.index_put(lucid.zeros(2), at, lucid.tensor([1.0, 2.0]), accumulate=True)
    tensor([3., 0.])
    """
    accumulate = as_bool(accumulate, "accumulate")
    array: Array = array_of(input)
    if not isinstance(indices, tuple | list):
        raise unfit(indices, "a tuple of tensors", "indices")
    items = [as_index(index, array) for index in cast("tuple[Any, ...]", indices)]
    if not items or any(item is None or item is ... or type(item) is slice for item in items):
        raise DtypeError(f"index_put: expected one or more tensors as indices, got {indices!r}; use x[index] = value")
    # an integer is written as a list of one, because x[integer] takes it for a view
    lists = [wrap(asarray([p], "int64", device_of(array))) if type(p) is int else p for p in items]
    key = parse(tuple(lists), input)
    dims, tensors = key.indexed()
    new, view = as_value(values, input), key.view_of(input)
    shape = check_indices(view.array.shape, dims, tensors)
    out = put(view, fitted(new, shape), *tensors, dims=dims, accumulate=accumulate)
    # a single bool has added a dimension
    return out if out.array.shape == array.shape else reshape(out, array.shape)
