"""A tensor cut into views along one dimension. Common rules: `lucid.ops.shape`.

The views of one cut come from one node: none of them can be changed in place while gradients are recorded. Its backward
receives a gradient, or none, for each of them, and writes these into a single array of zeros.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import unfit
from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch import copying as kernels
from lucid.errors import IndexOutOfRangeError, ShapeError
from lucid.ops.base.dims import along, dim_in
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int
from lucid.ops.index.indexing import getitem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

    import numpy as np

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


def each(grad: Array) -> list[Any]:
    """Return the gradients of all parts; the engine gives that of a single part without a list."""
    return cast("list[Any]", grad) if isinstance(grad, list) else [grad]


def spans(sizes: Iterable[int]) -> list[slice]:
    """Return the spans of parts of these sizes, one behind the other."""
    start = 0
    return [slice(start, start := start + size) for size in sizes]


def parts_of(m: Namespace, grad: Array, dim: int, indices: Iterable[int | slice], needs: Sequence[bool]) -> list[Any]:
    """Return the gradients of tensors that were joined along `dim`, of those that need one."""
    ahead = (slice(None),) * dim
    return [
        m.getitem(grad, index=(*ahead, index, ...)) if need else None
        for index, need in zip(indices, needs, strict=True)
    ]


def joined(
    xp: ModuleType,
    parts: Sequence[Array | None],
    shape: Ints,
    dtype: np.dtype[Any],
    indices: Iterable[int | slice],
    dim: int,
) -> Array:
    """Return the gradient of a tensor that was cut along `dim`, with zeros for parts without one."""
    ahead = (slice(None),) * dim
    out = xp.zeros(shape, dtype) if any(part is None for part in parts) else xp.empty(shape, dtype)
    for index, part in zip(indices, parts, strict=True):
        if part is not None:
            out[(*ahead, index)] = part
    return out


@primitive(view=True, outputs=())
def _split(xp: ModuleType, x: Array, *, sizes: Ints, dim: int) -> tuple[Array, ...]:
    ahead, start = (slice(None),) * dim, 0
    return tuple([x[(*ahead, slice(start, start := start + size))] for size in sizes])


@_split.vjp
def _split_vjp(m: Namespace, grad: list[Any], x_shape: Ints, x_dtype: np.dtype[Any], sizes: Ints, dim: int) -> Any:
    return m.split_grad(*each(grad), shape=x_shape, dtype=x_dtype, sizes=sizes, dim=dim)


@primitive
def _split_grad(
    xp: ModuleType, *parts: Array | None, shape: Ints, dtype: np.dtype[Any], sizes: Ints, dim: int
) -> Array:
    return joined(xp, parts, shape, dtype, spans(sizes), dim)


@_split_grad.vjp
def _split_grad_vjp(m: Namespace, grad: Array, sizes: Ints, dim: int, needs: tuple[bool, ...]) -> Any:
    return parts_of(m, grad, dim, spans(sizes), needs)


@primitive(view=True, outputs=())
def _unbind(xp: ModuleType, x: Array, *, dim: int) -> tuple[Array, ...]:
    ahead = (slice(None),) * dim
    return tuple([x[(*ahead, index, ...)] for index in range(x.shape[dim])])


@_unbind.vjp
def _unbind_vjp(m: Namespace, grad: list[Any], x_shape: Ints, x_dtype: np.dtype[Any], dim: int) -> Any:
    return m.unbind_grad(*each(grad), shape=x_shape, dtype=x_dtype, dim=dim)


@primitive
def _unbind_grad(xp: ModuleType, *parts: Array | None, shape: Ints, dtype: np.dtype[Any], dim: int) -> Array:
    return joined(xp, parts, shape, dtype, range(len(parts)), dim)


@_unbind_grad.vjp
def slices_of(m: Namespace, grad: Array, dim: int, needs: tuple[bool, ...]) -> Any:
    """Return the gradients of tensors that were stacked along `dim`, of those that need one."""
    return parts_of(m, grad, dim, range(len(needs)), needs)


_split_grad.cuda(kernels.split_grad)
_unbind_grad.cuda(kernels.unbind_grad)


def length_along(input: Tensor, dim: int, name: str, error: type[Exception] = ShapeError) -> tuple[int, int]:
    """Return the dimension to cut along, and its size."""
    shape = array_of(input).shape
    if not shape:
        raise error(f"{name}: expected at least a 1-dimensional tensor, got a 0-dim tensor")
    axis = dim_in(dim, len(shape))
    return axis, shape[axis]


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return views that together are `tensor`, cut along `dim` into parts of one size, or of the sizes of a list.

    With one number as `split_size_or_sections` the last part is smaller if it must be; sizes of a list have to add up.

    >>> import lucid
    >>> lucid.split(lucid.arange(5), 2), lucid.split(lucid.arange(3), [1, 2])
    ((tensor([0, 1]), tensor([2, 3]), tensor([4])), (tensor([0]), tensor([1, 2])))
    """
    axis, length = length_along(tensor, dim, "split")
    if isinstance(split_size_or_sections, tuple | list):
        sizes = tuple([operator.index(size) for size in cast("Any", split_size_or_sections)])
        if sum(sizes) != length or any(size < 0 for size in sizes):
            raise ShapeError(
                f"split: expected sizes of zero or more that sum exactly to {length} (the size at dimension {axis}), "
                f"got {list(sizes)}"
            )
        return _split(tensor, sizes=sizes, dim=axis)
    return _split(tensor, sizes=even_sizes(length, as_int(split_size_or_sections, "split_size")), dim=axis)


def even_sizes(length: int, size: int) -> tuple[int, ...]:
    """Return sizes that add up to `length`, all `size` but for the last."""
    if size < 0 or (size == 0 and length):
        raise ShapeError(f"split: expected a size above zero, got split_size={size}")
    if length <= size:
        return (length,)
    return (*(size,) * (length // size), *((length % size,) if length % size else ()))


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most `chunks` views of equal size, the last being smaller if it must, that together are `input`.

    There are fewer if the size rounded up leaves nothing for the last; `tensor_split` gives as many as asked for.

    >>> import lucid
    >>> lucid.chunk(lucid.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    axis, length = length_along(input, dim, "chunk")
    chunks = as_int(chunks, "chunks")
    if chunks <= 0:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    sizes = (0,) * chunks if not length else even_sizes(length, -(-length // chunks))
    return _split(input, sizes=sizes, dim=axis)


def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return views that together are `input`, cut along `dim` into as many parts, or before the indices of a tuple.

    With a number as `indices_or_sections` the first parts are longer by one where it does not divide the size. A part
    between an index and a smaller one is empty, and the next begins at the smaller one.

    >>> import lucid
    >>> lucid.tensor_split(lucid.arange(5), 3), lucid.tensor_split(lucid.arange(3), (1, 2))
    ((tensor([0, 1]), tensor([2, 3]), tensor([4])), (tensor([0]), tensor([1]), tensor([2])))
    """
    axis, length = length_along(input, dim, "tensor_split")
    if isinstance(indices_or_sections, tuple | list):
        ends = [slice(None, end).indices(length)[1] for end in cast("Any", indices_or_sections)]
        bounds = [*zip([0, *ends], [*ends, length], strict=True)]
        if any(a > b for a, b in bounds):  # parts that share elements
            return tuple([getitem(input, along(axis, slice(a, b))) for a, b in bounds])
        return _split(input, sizes=tuple([b - a for a, b in bounds]), dim=axis)
    parts = as_int(indices_or_sections, "sections")
    if parts <= 0:
        raise ShapeError(f"tensor_split: expected a number of parts above zero, got {parts}")
    return _split(input, sizes=tuple([length // parts + (k < length % parts) for k in range(parts)]), dim=axis)


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of `input` at every index of a dimension, without that.

    >>> import lucid
    >>> lucid.unbind(lucid.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    axis, length = length_along(input, dim, "unbind", IndexOutOfRangeError)
    return _unbind(input, dim=axis) if length else ()


def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of the sizes of a list, `split_sizes`, that make up `input`, cut along `dim`.

    >>> import lucid
    >>> lucid.split_with_sizes(lucid.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    if not isinstance(split_sizes, tuple | list):
        raise unfit(split_sizes, "a sequence of ints", "split_sizes")
    return split(input, split_sizes, dim)


def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return views of columns that together are `input`: cut along dimension 1, or along 0 if there is only one.

    They are as many as a number says, `indices_or_sections`, which divides the size, or cut before indices in a tuple.

    >>> import lucid
    >>> lucid.hsplit(lucid.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return evenly_split("hsplit", input, indices_or_sections, 0 if array_of(input).ndim == 1 else 1, 1)


def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return views of rows that together are `input`, of two dimensions or more: cut along dimension 0.

    `indices_or_sections` is as in `hsplit`.

    >>> import lucid
    >>> lucid.vsplit(lucid.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return evenly_split("vsplit", input, indices_or_sections, 0, 2)


def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return views that together are `input`, of three dimensions or more: cut along dimension 2.

    `indices_or_sections` is as in `hsplit`.

    >>> import lucid
    >>> lucid.dsplit(lucid.zeros(1, 2, 4), 2)[0].shape
    lucid.Size([1, 2, 2])
    """
    return evenly_split("dsplit", input, indices_or_sections, 2, 3)


def evenly_split(
    name: str, input: Tensor, indices_or_sections: int | Sequence[int], dim: int, least: int
) -> tuple[Tensor, ...]:
    """Return ``tensor_split``'s parts; a number of parts has to divide the size."""
    shape = array_of(input).shape
    if len(shape) < least:
        raise ShapeError(f"{name}: expected at least {least} dimension{'s' * (least > 1)}, got shape {list(shape)}")
    if not isinstance(indices_or_sections, tuple | list):
        parts = as_int(indices_or_sections, "indices_or_sections")
        if parts <= 0 or shape[dim] % parts:
            raise ShapeError(
                f"{name}: expected parts that divide {shape[dim]}, the size of dimension {dim}, got {parts}"
            )
    return tensor_split(input, indices_or_sections, dim)
