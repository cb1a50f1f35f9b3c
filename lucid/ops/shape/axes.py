"""Dimensions in another order or another direction. Common rules: `lucid.ops.shape`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch import copying
from lucid.cuda.launch.elementwise import converted
from lucid.errors import ShapeError
from lucid.ops.base.dims import dim_in, dims_in, sizes_in
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int, is_single
from lucid.ops.shape.reshape import clone, reshape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


@primitive(view=True)
def _permute(xp: ModuleType, x: Array, *, dims: Ints) -> Array:
    return x.transpose(dims)


@_permute.vjp
def _permute_vjp(m: Namespace, grad: Array, dims: Ints) -> Any:
    inverse = [0] * len(dims)
    for position, dim in enumerate(dims):
        inverse[dim] = position
    return m.permute(grad, dims=tuple(inverse))


def _reversed(x: Array, dims: tuple[int, ...]) -> Array:
    return x[tuple([slice(None, None, -1) if d in dims else slice(None) for d in range(x.ndim)])]


@primitive
def _flip(xp: ModuleType, x: Array, *, dims: Ints) -> Array:
    return _reversed(x, dims).copy()


@_flip.cuda
def _flip_cuda(x: Array, *, dims: tuple[int, ...]) -> Any:
    return converted(_reversed(x, dims), x.dtype)


@_flip.vjp
def _flip_vjp(m: Namespace, grad: Array, dims: Ints) -> Any:
    return m.flip(grad, dims=dims)


@primitive
def _roll(xp: ModuleType, x: Array, *, shifts: Ints, dims: Ints) -> Array:
    return rolled(xp, x, shifts[0], dims[0]) if len(dims) == 1 else xp.roll(x, shifts, dims)


def rolled(xp: ModuleType, x: Array, shift: int, dim: int) -> Array:
    """Return ``numpy.roll`` along one dimension, without its checks of arguments, as slow as the copies."""
    size = x.shape[dim]
    shift = shift % size if size else 0
    out, before = xp.empty_like(x), (slice(None),) * dim
    out[(*before, slice(shift, None))] = x[(*before, slice(size - shift))]
    out[(*before, slice(shift))] = x[(*before, slice(size - shift, None))]
    return out


_roll.cuda(copying.roll)


@_roll.vjp
def _roll_vjp(m: Namespace, grad: Array, shifts: Ints, dims: Ints) -> Any:
    return m.roll(grad, shifts=tuple([-s for s in shifts]), dims=dims)


def permute(input: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """Return a view of `input` with its dimensions in the order `dims`, all of them.

    >>> import lucid
    >>> lucid.permute(lucid.zeros(2, 3, 4), (2, 0, 1)).shape
    lucid.Size([4, 2, 3])
    """
    order = sizes_in(dims)
    ndim = array_of(input).ndim
    if len(order) != ndim:
        raise ShapeError(f"permute: expected an order of all {ndim} dimensions, got {list(order)}")
    return _permute(input, dims=dims_in(order, ndim))


def transpose(input: Tensor, dim0: Any, dim1: int | None = None) -> Tensor:
    """Return a view of `input` with its dimensions `dim0` and `dim1` exchanged.

    All of them in one tuple, or None for the reverse order, are the `axes` of ``numpy.transpose``.

    >>> import lucid
    >>> lucid.transpose(lucid.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """
    ndim = array_of(input).ndim
    if dim1 is None:
        if dim0 is None:
            return _permute(input, dims=tuple(range(ndim)[::-1]))
        if isinstance(dim0, tuple | list):
            return permute(input, cast("Any", dim0))
    first, second = dim_in(dim0, ndim), dim_in(dim1, ndim)
    order = list(range(ndim))
    if ndim:
        order[first], order[second] = second, first
    return _permute(input, dims=tuple(order))


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Return a view of `input` with its dimensions `axis0` and `axis1` exchanged; the same as `transpose`.

    >>> import lucid
    >>> lucid.swapaxes(lucid.zeros(2, 3, 4), 0, -1).shape
    lucid.Size([4, 3, 2])
    """
    return transpose(input, axis0, axis1)


def t(input: Tensor) -> Tensor:
    """Return a view of a matrix with rows and columns exchanged; a tensor of fewer dimensions stays as it is.

    >>> import lucid
    >>> lucid.t(lucid.zeros(2, 3)).shape
    lucid.Size([3, 2])
    """
    ndim = array_of(input).ndim
    if ndim > 2:
        raise ShapeError(
            f"t: expected a tensor with at most 2 dimensions, got {ndim}; use transpose(dim0, dim1) or .mT"
        )
    return _permute(input, dims=tuple(range(ndim))[::-1])


def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Return a view of `input` with the dimensions `source` at the positions `destination`; the rest keep their order.

    >>> import lucid
    >>> lucid.movedim(lucid.zeros(2, 3, 4), 0, -1).shape
    lucid.Size([3, 4, 2])
    """
    ndim = array_of(input).ndim
    taken, positions = dims_in(source, ndim), dims_in(destination, ndim)
    if len(taken) != len(positions):
        raise ShapeError(
            f"movedim: expected as many destinations as sources, got {len(taken)} sources ({source}) and "
            f"{len(positions)} destinations ({destination})"
        )
    rest = iter([d for d in range(ndim) if d not in taken])
    goes = dict(zip(positions, taken, strict=True))
    return _permute(input, dims=tuple([goes[d] if d in goes else next(rest) for d in range(ndim)]))


def flip(input: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """Return a copy of `input` with the order of its elements reversed along `dims`.

    >>> import lucid
    >>> lucid.flip(lucid.tensor([[1, 2], [3, 4]]), 0)
    tensor([[3, 4],
            [1, 2]])
    """
    return _flip(input, dims=dims_in(sizes_in(dims), array_of(input).ndim))


def fliplr(input: Tensor) -> Tensor:
    """Return a copy of `input` with its columns (dimension 1) in reverse order.

    >>> import lucid
    >>> lucid.fliplr(lucid.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if array_of(input).ndim < 2:
        raise ShapeError(f"fliplr: expected at least 2 dimensions, got shape {list(input.array.shape)}")
    return _flip(input, dims=(1,))


def flipud(input: Tensor) -> Tensor:
    """Return a copy of `input` with its rows (dimension 0) in reverse order.

    >>> import lucid
    >>> lucid.flipud(lucid.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if not array_of(input).ndim:
        raise ShapeError("flipud: expected at least 1 dimension, got a 0-dim tensor")
    return _flip(input, dims=(0,))


def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Return a copy of `input` shifted by `shifts` along `dims`; elements that leave at one end enter at the other.

    Each of the two is an int or a tuple, of equal length. If `dims` is None, the flattened tensor is shifted.

    >>> import lucid
    >>> lucid.roll(lucid.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    ndim = array_of(input).ndim
    amounts = sizes_in((shifts,))
    named: Any = (dims,) if dims is not None and is_single(dims) else dims
    if named is None or (not named and len(amounts) == 1):
        if len(amounts) != 1:
            raise ShapeError(f"roll: expected one dimension for each shift, got shifts {amounts} and no dims")
        shape = input.array.shape
        return reshape(_roll(reshape(input, -1), shifts=amounts, dims=(0,)), shape) if ndim else clone(input)
    axes = tuple([dim_in(d, ndim) for d in named])
    if len(axes) != len(amounts):
        raise ShapeError(f"roll: expected one dimension for each shift, got shifts {amounts} and dims {axes}")
    return _roll(input, shifts=amounts, dims=axes) if ndim else clone(input)


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy of `input` turned `k` times by 90 degrees, from the first of the two dimensions `dims` on.

    >>> import lucid
    >>> lucid.rot90(lucid.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    plane = dims_in(dims, array_of(input).ndim)
    if len(plane) != 2:
        raise ShapeError(f"rot90: expected two dimensions, got {dims}")
    first, second = plane
    turns = as_int(k, "k") % 4
    if turns == 0:
        return clone(input)
    if turns == 2:
        return _flip(input, dims=plane)
    return _flip(transpose(input, first, second), dims=(first if turns == 1 else second,))
