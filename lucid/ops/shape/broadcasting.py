"""Shapes brought to one another without using memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.errors import SettingError, ShapeError
from lucid.ops.base.core import expand as _expand
from lucid.ops.base.dims import common_shape, sizes_in, tensors_in
from lucid.ops.base.promotion import array_of
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def expand(input: Tensor, *sizes: Any) -> Tensor:
    """Return a view of `input` in which dimensions of size 1 are repeated without using memory.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    *sizes : int, or one tuple of int
        The sizes of the result; -1 keeps a size. New dimensions may be added in front.

    Returns
    -------
    Tensor
        A view whose repeated elements share memory: clone() it before changing it in place.

    Raises
    ------
    ShapeError
        If there are fewer sizes than dimensions, or a size other than 1 would change.

    Examples
    --------
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
    for place, size in enumerate(wanted):
        old = shape[place - extra] if place >= extra else None
        if size < 0 and (size != -1 or old is None):
            raise ShapeError(f"expand: size {size} at dimension {place} is negative; -1 keeps a size that is there")
        if old not in {None, 1, size} and size != -1:
            raise ShapeError(
                f"The expanded size of the tensor ({size}) must match the existing size ({old}) at non-singleton "
                f"dimension {place}. Target sizes: {list(wanted)}. Tensor sizes: {list(shape)}"
            )
        full.append(old if size == -1 and old is not None else size)
    return _expand(input, shape=tuple(full))


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view of `input` expanded to the shape of `other`.

    Parameters
    ----------
    input, other : Tensor
        The shape of the first broadcasts to that of the second.

    Returns
    -------
    Tensor
        A view of `input`.

    Raises
    ------
    ShapeError
        As for :func:`expand`.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([1, 2]).expand_as(lucid.zeros(2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, array_of(other).shape)


def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """Return a view of `input` expanded to `size`; the same as :func:`expand`.

    Parameters
    ----------
    input : Tensor
        Of a shape that broadcasts to `size`.
    size : tuple of int
        The shape of the result.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ShapeError
        As for :func:`expand`.

    Examples
    --------
    >>> import lucid
    >>> lucid.broadcast_to(lucid.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, size)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return views of the tensors, all expanded to their common shape.

    Parameters
    ----------
    *tensors : Tensor
        Of shapes that broadcast against each other.

    Returns
    -------
    tuple of Tensor
        Views, in the order of the arguments.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import lucid
    >>> a, b = lucid.broadcast_tensors(lucid.zeros(2, 1), lucid.zeros(3))
    >>> a.shape, b.shape
    ((2, 3), (2, 3))
    """
    shape = common_shape(*[array_of(t).shape for t in tensors])
    return tuple([_expand(t, shape=shape) for t in tensors])


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return views of one-dimensional tensors that together give every combination of their elements.

    Parameters
    ----------
    *tensors : Tensor, or one tuple of Tensor
        Each of at most one dimension.
    indexing : str
        ``"ij"``: dimension k of each result belongs to tensor k. ``"xy"``: the first two dimensions are exchanged.

    Returns
    -------
    tuple of Tensor
        Views, one for each tensor, all of one shape.

    Raises
    ------
    ShapeError
        If a tensor has more than one dimension.
    ValueError
        If `indexing` is neither.

    Examples
    --------
    >>> import lucid
    >>> rows, columns = lucid.meshgrid(lucid.tensor([1, 2]), lucid.tensor([5, 6, 7]))
    >>> rows
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    given = tensors_in(tensors)
    if indexing not in {"ij", "xy"}:
        raise SettingError(f"meshgrid: expected indexing 'ij' or 'xy', got {indexing!r}")
    for place, tensor in enumerate(given):
        if array_of(tensor).ndim > 1:
            raise ShapeError(
                f"meshgrid: expected tensors of at most one dimension, got shape {tuple(tensor.array.shape)} at {place}"
            )
    order = list(range(len(given)))
    if indexing == "xy" and len(given) > 1:
        order[:2] = [1, 0]
    shape = [0] * len(given)
    for tensor, dim in zip(given, order, strict=True):
        shape[dim] = tensor.array.size
    found: list[Any] = []
    for tensor, dim in zip(given, order, strict=True):
        column = reshape(tensor, (tensor.array.size, *(1,) * (len(given) - dim - 1)))
        found.append(_expand(column, shape=tuple(shape)))
    return tuple(found)
