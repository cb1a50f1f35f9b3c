"""Shapes brought to one another without using memory. Common rules: `lucid.ops.shape`.

Repeated elements share memory: clone() before a change in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.autograd.recording.namespace import GRAPH
from lucid.base.dtype import int64
from lucid.base.memory import check_size
from lucid.errors import SettingError, ShapeError
from lucid.ops.base.core import clone
from lucid.ops.base.core import expand as _expand
from lucid.ops.base.dims import common_shape, sizes_in, tensors_in
from lucid.ops.base.promotion import array_of, cast_to
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


def expand(input: Tensor, *sizes: int | Sequence[int]) -> Tensor:
    """Return a view of `input` with dimensions of size 1 repeated to `sizes` without using memory.

    -1 keeps a size. New dimensions may be added in front.

    >>> import lucid
    >>> lucid.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    wanted = sizes_in(sizes)
    shape = array_of(input).shape
    extra = len(wanted) - len(shape)
    if extra < 0:
        raise ShapeError(
            f"expand: the number of sizes provided ({len(wanted)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(shape)})"
        )
    full: list[int] = []
    for position, size in enumerate(wanted):
        old = shape[position - extra] if position >= extra else None
        if size < 0 and (size != -1 or old is None):
            raise ShapeError(f"expand: size {size} at dimension {position} is negative; -1 keeps a size that is there")
        if old not in {None, 1, size} and size != -1:
            raise ShapeError(
                f"The expanded size of the tensor ({size}) must match the existing size ({old}) at non-singleton "
                f"dimension {position}. Target sizes: {list(wanted)}. Tensor sizes: {list(shape)}"
            )
        full.append(old if size == -1 and old is not None else size)
    check_size("expand", full, input.array.itemsize)
    return _expand(input, shape=tuple(full))


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view of `input` expanded to the shape of `other`.

    >>> import lucid
    >>> lucid.tensor([1, 2]).expand_as(lucid.zeros(2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, array_of(other).shape)


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Return a view of `input` expanded to one `size`; the same as `expand`.

    >>> import lucid
    >>> lucid.broadcast_to(lucid.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, size)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return views of the `tensors`, all expanded to their common shape.

    >>> import lucid
    >>> a, b = lucid.broadcast_tensors(lucid.zeros(2, 1), lucid.zeros(3))
    >>> a.shape, b.shape
    (lucid.Size([2, 3]), lucid.Size([2, 3]))
    """
    shape = common_shape(*[array_of(t).shape for t in tensors])
    check_size("broadcast_tensors", shape, max([t.array.itemsize for t in tensors], default=1))
    return tuple([_expand(t, shape=shape) for t in tensors])


def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return views of `tensors` of one dimension that together give every combination of their elements.

    With `indexing` ``"ij"`` dimension k of each result belongs to tensor k; with ``"xy"`` the first two are exchanged.
    Anything else raises a ValueError.

    >>> import lucid
    >>> rows, columns = lucid.meshgrid(lucid.tensor([1, 2]), lucid.tensor([5, 6, 7]))
    >>> rows
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    vectors = tensors_in(tensors)
    if not among(indexing, {"ij", "xy"}):
        raise SettingError(f"meshgrid: expected indexing 'ij' or 'xy', got {indexing!r}")
    for k, tensor in enumerate(vectors):
        if array_of(tensor).ndim > 1:
            raise ShapeError(
                f"meshgrid: expected tensors of at most one dimension, got shape {tuple(tensor.array.shape)} at {k}"
            )
    order = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        order[:2] = [1, 0]
    shape = [vectors[dim].array.size for dim in order]
    check_size("meshgrid", shape, max([tensor.array.itemsize for tensor in vectors], default=1))
    grids: list[Any] = []
    for tensor, dim in zip(vectors, order, strict=True):
        column = reshape(tensor, (tensor.array.size, *(1,) * (len(vectors) - dim - 1)))
        grids.append(_expand(column, shape=tuple(shape)))
    return tuple(grids)


def sum_to_size(input: Tensor, *size: int | Sequence[int]) -> Tensor:
    """Return `input` summed along dimensions so that it has a shape that broadcasts to its own.

    >>> import lucid
    >>> lucid.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    shape, wanted = array_of(input).shape, sizes_in(size)
    extra = len(shape) - len(wanted)
    if extra < 0 or any(want not in {1, have} for want, have in zip(wanted, shape[extra:], strict=True)):
        raise ShapeError(f"size {list(wanted)} is not expandable to size {list(shape)}: sum_to_size cannot sum to it")
    if wanted == shape:
        return clone(input)
    # as in `sum`, integers and bools are summed in int64
    return GRAPH.sum_to(cast_to(input, int64) if input.array.dtype.kind in "biu" else input, shape=wanted)
