"""The functions of the array API that change shapes and order, and those that choose elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.array_api.operands import checked_tensor, together
from lucid.ops.index.indexing import getitem
from lucid.ops.shape import broadcasting, joining
from lucid.ops.shape import reshape as reshaping
from lucid.tensor.numpy_calls.operands import axis_in
from lucid.tensor.numpy_calls.rules import joining as joined
from lucid.tensor.numpy_calls.rules import reductions, selection, shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.array_api.operands import Axes
    from lucid.tensor import Tensor

__all__ = [
    "broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat",
    "reshape", "roll", "squeeze", "stack", "take", "take_along_axis", "tile", "unstack",
]  # fmt: skip


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Return ``broadcast_arrays`` of the array API."""
    return list(broadcasting.broadcast_tensors(*arrays)) if arrays else []


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Return ``broadcast_to`` of the array API."""
    return shapes.broadcasted(checked_tensor(x), shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Return ``concat`` of the array API: without an axis, of all elements in a row."""
    return joined.concatenated(together([checked_tensor(each) for each in arrays]), axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """Return ``expand_dims`` of the array API."""
    return shapes.expanded(checked_tensor(x), axis)


def flip(x: Tensor, /, *, axis: Axes = None) -> Tensor:
    """Return ``flip`` of the array API: without an axis, along all."""
    return shapes.flipped(checked_tensor(x), axis)


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """Return ``moveaxis`` of the array API."""
    return shapes.moved(checked_tensor(x), source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Return ``permute_dims`` of the array API."""
    return shapes.transposed(checked_tensor(x), axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return ``repeat`` of the array API."""
    return shapes.repeated(checked_tensor(x), repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Return ``reshape`` of the array API.

    Raises
    ------
    ShapeError
        If a copy is needed, and `copy` is False.
    """
    return reshaping.view(x, shape) if copy is False else shapes.reshaped(checked_tensor(x), shape, copy=copy)


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axes = None) -> Tensor:
    """Return ``roll`` of the array API."""
    return shapes.rolled(checked_tensor(x), shift, axis)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return ``squeeze`` of the array API."""
    return shapes.squeezed(checked_tensor(x), axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Return ``stack`` of the array API."""
    return joining.stack(together([checked_tensor(each) for each in arrays]), axis)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return ``take`` of the array API."""
    line, k = reductions.along(checked_tensor(x), axis)
    return getitem(line, (*(slice(None),) * k, indices))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return ``take_along_axis`` of the array API."""
    return selection.taken_along(checked_tensor(x), checked_tensor(indices), axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Return ``tile`` of the array API."""
    return shapes.tiled(checked_tensor(x), repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return ``unstack`` of the array API: views, each of them open to changes in place."""
    array = checked_tensor(x).array
    k = axis_in(axis, array.ndim)
    return tuple([getitem(x, (*(slice(None),) * k, place)) for place in range(array.shape[k])])
