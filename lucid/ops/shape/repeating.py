"""Elements repeated in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.recording.primitive import primitive
from lucid.backend.arrays import asarray, namespace, to_device
from lucid.backend.device import device_of
from lucid.cuda.launchers import copying as kernels
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.dims import dim_in, sizes_in
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int
from lucid.ops.index.select import pick_at
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


@primitive
def _repeat(xp: Any, x: Array, *, repeats: tuple[int, ...]) -> Array:
    return xp.tile(x, repeats)


_repeat.cuda(kernels.repeat)


@_repeat.vjp
def _repeat_vjp(m: Any, grad: Any, x_shape: tuple[int, ...], repeats: tuple[int, ...]) -> Any:
    full = (1,) * (len(repeats) - len(x_shape)) + tuple(x_shape)
    copies = tuple([size for pair in zip(repeats, full, strict=True) for size in pair])
    once = tuple([size for old in full for size in (1, old)])
    return m.reshape(m.sum_to(m.reshape(grad, shape=copies), shape=once), shape=tuple(x_shape))


@primitive
def _repeat_interleave(xp: Any, x: Array, *, repeats: int, dim: int) -> Array:
    return xp.repeat(x, repeats, dim)


@_repeat_interleave.vjp
def _repeat_interleave_vjp(m: Any, grad: Any, x_shape: tuple[int, ...], repeats: int, dim: int) -> Any:
    copies = (*x_shape[: dim + 1], repeats, *x_shape[dim + 1 :])
    once = (*x_shape[: dim + 1], 1, *x_shape[dim + 1 :])
    return m.reshape(m.sum_to(m.reshape(grad, shape=copies), shape=once), shape=tuple(x_shape))


def repeat(input: Tensor, *sizes: Any) -> Tensor:
    """Return copies of `input` side by side along every dimension.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    *sizes : int, or one tuple of int
        How many copies along each dimension; there may be more than `input` has, for new dimensions in front.

    Returns
    -------
    Tensor
        Of the dtype of `input`.

    Raises
    ------
    ShapeError
        If there are fewer numbers than dimensions, or one is negative.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    repeats = sizes_in(sizes)
    if len(repeats) < input.array.ndim:
        raise ShapeError(
            f"repeat: expected a number for each of the {input.array.ndim} dimensions, got {list(repeats)}; "
            "tile() fills in ones"
        )
    check_counts(repeats, "repeat")
    return _repeat(input, repeats=repeats)


def check_counts(counts: tuple[int, ...], name: str) -> None:
    """Raise unless all numbers of copies are zero or more."""
    if any(count < 0 for count in counts):
        raise ShapeError(f"{name}: expected numbers of copies of zero or more, got {list(counts)}")


def tile(input: Tensor, *dims: Any) -> Tensor:
    """Return copies of `input` side by side, by numbers for its last dimensions.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    *dims : int, or one tuple of int
        How many copies along each dimension, counted from the last; 1 for those that are left out.

    Returns
    -------
    Tensor
        Of the dtype of `input`.

    Raises
    ------
    ShapeError
        If a number is negative.

    Examples
    --------
    >>> import lucid
    >>> lucid.tile(lucid.tensor([[1, 2], [3, 4]]), (2,))
    tensor([[1, 2, 1, 2],
            [3, 4, 3, 4]])
    """
    counts = sizes_in(dims)
    check_counts(counts, "tile")
    return _repeat(input, repeats=(1,) * (array_of(input).ndim - len(counts)) + counts)


def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None) -> Tensor:
    """Return `input` with every element, or every slice along a dimension, repeated on the spot.

    Parameters
    ----------
    input : Tensor
        Of any shape. If it is the only argument, it holds numbers, and the result is how often to take each place:
        ``[0] * input[0] + [1] * input[1] + ...``.
    repeats : int or Tensor
        How often each is repeated: one number, or one for each slice. On CUDA a tensor makes the call wait for it.
    dim : int, optional
        The dimension; if None, the flattened tensor is repeated.
    output_size : int, optional
        Accepted for compatibility.

    Returns
    -------
    Tensor
        Of the dtype of `input`.

    Raises
    ------
    ShapeError
        If there are not as many numbers as slices, or one is negative.
    DtypeError
        If the numbers are not integers.
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.repeat_interleave(lucid.tensor([5, 6]), 2)
    tensor([5, 5, 6, 6])
    >>> lucid.repeat_interleave(lucid.tensor([5, 6]), lucid.tensor([1, 3]))
    tensor([5, 6, 6, 6])
    """
    if output_size is not None:
        as_int(output_size, "output_size")
    if repeats is None:
        return taken_places(input.array, input.array)
    x = reshape(input, array_of(input).size) if dim is None or not array_of(input).ndim else input
    axis = dim_in(0 if dim is None else dim, x.array.ndim)
    if isinstance(repeats, TensorBase | list | tuple | np.ndarray):
        counts = repeats.array if isinstance(repeats, TensorBase) else asarray(repeats, None, "cpu")
        if counts.size == 1:
            repeats = counts.reshape(()).item()
        else:
            if counts.shape != (x.array.shape[axis],):
                raise ShapeError(
                    f"repeat_interleave: expected one number for each of the {x.array.shape[axis]} slices along "
                    f"dimension {axis}, got repeats of shape {list(counts.shape)}"
                )
            return pick_at(x, taken_places(counts, x.array), dims=(axis,))
    count = as_int(repeats, "repeats")
    check_counts((count,), "repeat_interleave")
    return _repeat_interleave(x, repeats=count, dim=axis)


def taken_places(counts: Array, like: Array) -> Any:
    """Return the places 0, 1, ... each as often as `counts` says, on the device of `like`."""
    if counts.dtype.kind != "i" or counts.ndim != 1:
        raise DtypeError(
            f"repeat_interleave: expected repeats to be integers in one dimension, got shape {list(counts.shape)}, "
            f"{counts.dtype.name}"
        )
    host: Array = to_device(counts, "cpu")
    check_counts(tuple(host[host < 0].tolist()), "repeat_interleave")
    places = np.repeat(np.arange(len(host)), host)
    return wrap(places if namespace(like) is np else asarray(places, device=device_of(like)))
