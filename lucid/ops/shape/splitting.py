"""A tensor cut into views along one dimension.

The views of one cut come from one node. Its backward receives a gradient, or none, for each of them, and writes these
into a single array of zeros.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, cast

from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launchers import copying as kernels
from lucid.errors import IndexOutOfRangeError, ShapeError
from lucid.ops.base.dims import dim_in
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


def each(grad: Any) -> list[Any]:
    """Return the gradients of all parts; the engine gives that of a single part without a list."""
    return cast("list[Any]", grad) if isinstance(grad, list) else [grad]


@primitive(view=True, outputs=())
def _split(xp: Any, x: Array, *, sizes: tuple[int, ...], dim: int) -> tuple[Array, ...]:
    ahead = (slice(None),) * dim
    parts: list[Array] = []
    start = 0
    for size in sizes:
        parts.append(x[(*ahead, slice(start, start + size))])
        start += size
    return tuple(parts)


@_split.vjp
def _split_vjp(
    m: Any, grad: list[Any], x_shape: tuple[int, ...], x_dtype: Any, sizes: tuple[int, ...], dim: int
) -> Any:
    return m.split_grad(*each(grad), shape=x_shape, dtype=x_dtype, sizes=sizes, dim=dim)


@primitive
def _split_grad(xp: Any, *parts: Any, shape: tuple[int, ...], dtype: Any, sizes: tuple[int, ...], dim: int) -> Array:
    ahead = (slice(None),) * dim
    whole = sum(size for part, size in zip(parts, sizes, strict=True) if part is not None) == shape[dim]
    out = xp.empty(shape, dtype) if whole else xp.zeros(shape, dtype)
    start = 0
    for part, size in zip(parts, sizes, strict=True):
        if part is not None:
            out[(*ahead, slice(start, start + size))] = part
        start += size
    return out


_split_grad.cuda(kernels.split_grad)


@_split_grad.vjp
def _split_grad_vjp(m: Any, grad: Any, sizes: tuple[int, ...], dim: int, needs: tuple[bool, ...]) -> Any:
    ahead = (slice(None),) * dim
    grads: list[Any] = []
    start = 0
    for size, need in zip(sizes, needs, strict=True):
        grads.append(m.getitem(grad, index=(*ahead, slice(start, start + size), ...)) if need else None)
        start += size
    return grads


@primitive(view=True, outputs=())
def _unbind(xp: Any, x: Array, *, dim: int) -> tuple[Array, ...]:
    ahead = (slice(None),) * dim
    return tuple([x[(*ahead, place, ...)] for place in range(x.shape[dim])])


@_unbind.vjp
def _unbind_vjp(m: Any, grad: Any, x_shape: tuple[int, ...], x_dtype: Any, dim: int) -> Any:
    return m.unbind_grad(*each(grad), shape=x_shape, dtype=x_dtype, dim=dim)


@primitive
def _unbind_grad(xp: Any, *parts: Any, shape: tuple[int, ...], dtype: Any, dim: int) -> Array:
    ahead = (slice(None),) * dim
    out = xp.zeros(shape, dtype) if any(part is None for part in parts) else xp.empty(shape, dtype)
    for place, part in enumerate(parts):
        if part is not None:
            out[(*ahead, place)] = part
    return out


_unbind_grad.cuda(kernels.unbind_grad)


@_unbind_grad.vjp
def _unbind_grad_vjp(m: Any, grad: Any, dim: int, needs: tuple[bool, ...]) -> Any:
    ahead = (slice(None),) * dim
    return [m.getitem(grad, index=(*ahead, place, ...)) if need else None for place, need in enumerate(needs)]


def length_along(input: Any, dim: Any, name: str, error: type[Exception] = ShapeError) -> tuple[int, int]:
    """Return the dimension to cut along, and its size."""
    shape = array_of(input).shape
    if not shape:
        raise error(f"{name}: expected at least a 1-dimensional tensor, got a 0-dim tensor")
    axis = dim_in(dim, len(shape))
    return axis, shape[axis]


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views that together are `tensor`, cut along one dimension.

    Parameters
    ----------
    tensor : Tensor
        Of at least one dimension.
    split_size_or_sections : int or list of int
        The size of each part, the last being smaller if it must; or the size of every part.
    dim : int
        The dimension to cut along.

    Returns
    -------
    tuple of Tensor
        Views; none of them can be changed in place while gradients are recorded.

    Raises
    ------
    ShapeError
        If a size is negative, the sizes do not add up to that of `dim`, or the tensor has no dimension.
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.split(lucid.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> lucid.split(lucid.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
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
    if size == 0 or length <= size:
        return (length,)
    return (*(size,) * (length // size), *((length % size,) if length % size else ()))


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most `chunks` views of equal size (the last may be smaller) that together are `input`.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    chunks : int
        How many; there are fewer if the size rounded up leaves nothing for the last. `tensor_split` always gives as
        many as asked for.
    dim : int
        The dimension to cut along.

    Returns
    -------
    tuple of Tensor
        Views; none of them can be changed in place while gradients are recorded.

    Raises
    ------
    ShapeError
        If `chunks` is not above zero, or the tensor has no dimension.
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
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


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views that together are `input`, cut into equal parts or at given places.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    indices_or_sections : int, or tuple of int
        How many parts, the first being one longer where the size does not divide; or before which places to cut.
    dim : int
        The dimension to cut along.

    Returns
    -------
    tuple of Tensor
        Views; none of them can be changed in place while gradients are recorded.

    Raises
    ------
    ShapeError
        If the number of parts is not above zero, or the tensor has no dimension.
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor_split(lucid.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> lucid.tensor_split(lucid.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    axis, length = length_along(input, dim, "tensor_split")
    if isinstance(indices_or_sections, tuple | list):
        ends = [slice(None, end).indices(length)[1] for end in cast("Any", indices_or_sections)]
        if all(a <= b for a, b in zip([0, *ends], [*ends, length], strict=True)):
            sizes = tuple([b - a for a, b in zip([0, *ends], [*ends, length], strict=True)])
            return _split(input, sizes=sizes, dim=axis)
        raise ShapeError(
            f"tensor_split: expected places in growing order, got {list(cast('Any', indices_or_sections))}"
        )
    parts = as_int(indices_or_sections, "sections")
    if parts <= 0:
        raise ShapeError(f"tensor_split: expected a number of parts above zero, got {parts}")
    sizes = tuple([length // parts + (place < length % parts) for place in range(parts)])
    return _split(input, sizes=sizes, dim=axis)


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of `input` at every place of a dimension, which is left out.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        The dimension.

    Returns
    -------
    tuple of Tensor
        Views; none of them can be changed in place while gradients are recorded.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.unbind(lucid.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    axis, length = length_along(input, dim, "unbind", IndexOutOfRangeError)
    return _unbind(input, dim=axis) if length else ()
