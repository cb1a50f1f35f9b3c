"""Elements repeated in memory. Common rules: `lucid.ops.shape`.

Numbers of copies are zero or more, or a ShapeError is raised.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.arrays import asarray, namespace, to_device
from lucid.base.device import device_of
from lucid.base.memory import check_size
from lucid.cuda.launch import copying as kernels
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.dims import dim_in, sizes_in
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int
from lucid.ops.index.select import select_at
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


@primitive
def _repeat(xp: ModuleType, x: Array, *, repeats: Ints) -> Array:
    return xp.tile(x, repeats)


_repeat.cuda(kernels.repeat)


@_repeat.vjp
def _repeat_vjp(m: Namespace, grad: Array, x_shape: Ints, repeats: Ints) -> Any:
    full = (1,) * (len(repeats) - len(x_shape)) + tuple(x_shape)
    copies = tuple([size for pair in zip(repeats, full, strict=True) for size in pair])
    once = tuple([size for old in full for size in (1, old)])
    return m.reshape(m.sum_to(m.reshape(grad, shape=copies), shape=once), shape=tuple(x_shape))


@primitive
def _repeat_interleave(xp: ModuleType, x: Array, *, repeats: int, dim: int) -> Array:
    return xp.repeat(x, repeats, dim)


@_repeat_interleave.vjp
def _repeat_interleave_vjp(m: Namespace, grad: Array, x_shape: Ints, repeats: int, dim: int) -> Any:
    copies = (*x_shape[: dim + 1], repeats, *x_shape[dim + 1 :])
    once = (*x_shape[: dim + 1], 1, *x_shape[dim + 1 :])
    return m.reshape(m.sum_to(m.reshape(grad, shape=copies), shape=once), shape=tuple(x_shape))


def repeat(input: Tensor, *sizes: Any) -> Tensor:
    """Return copies of `input` side by side, as many along each dimension as `sizes` says, new ones in front.

    Numbers in a list beside an axis, and an axis of None, are those of ``numpy.repeat``; two integers are sizes, but
    for ``cupy.repeat``, which calls this method with a number and an axis.

    >>> import lucid
    >>> lucid.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if len(sizes) == 2:
        count, axis = sizes
        if axis is None or isinstance(count, list | tuple) or getattr(count, "ndim", 0) or of_cupy(input):
            tensor: Any = input
            return tensor._in_numpys_form("repeat", (input, count, axis), {})  # noqa: SLF001
    repeats = sizes_in(sizes)
    if len(repeats) < input.array.ndim or min(repeats, default=0) < 0:
        raise ShapeError(
            f"repeat: expected numbers of copies of zero or more, a number for each of the {input.array.ndim} "
            f"dimensions, got {list(repeats)}; tile() fills in ones, and NumPy's repeat(x, count, axis) is in "
            "lucid.numpy"
        )
    return repeated(input, repeats, "repeat")


def of_cupy(input: Tensor) -> bool:
    """Return whether ``cupy.repeat`` calls `repeat`: no argument tells its number and axis from two sizes."""
    if isinstance(input.array, np.ndarray):
        return False
    method = sys._getframe(1)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - who asks
    callers = method.f_back, method.f_back and method.f_back.f_back
    return any(frame is not None and frame.f_code is gpu.cupy().repeat.__code__ for frame in callers)


def repeated(input: Tensor, counts: tuple[int, ...], name: str) -> Tensor:
    """Return copies of `input`, as many along each dimension as `counts` says, new ones in front."""
    check_counts(counts, name)
    array = input.array
    whole = (*(1,) * (len(counts) - array.ndim), *array.shape)
    check_size(name, [size * count for size, count in zip(whole, counts, strict=True)], array.itemsize)
    return _repeat(input, repeats=counts)


def check_counts(counts: tuple[int, ...], name: str) -> None:
    """Raise unless all numbers of copies are zero or more."""
    if any(count < 0 for count in counts):
        raise ShapeError(f"{name}: expected numbers of copies of zero or more, got {list(counts)}")


def tile(input: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """Return copies of `input` side by side, as many along its last dimensions as `dims` says, one along the others.

    >>> import lucid
    >>> lucid.tile(lucid.tensor([[1, 2], [3, 4]]), (2,))
    tensor([[1, 2, 1, 2],
            [3, 4, 3, 4]])
    """
    counts = sizes_in(dims)
    return repeated(input, (1,) * (array_of(input).ndim - len(counts)) + counts, "tile")


def repeat_interleave(
    input: Tensor,
    repeats: int | Sequence[int] | Tensor | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Return a copy of `input` with every slice along `dim`, or every element if it is None, repeated on the spot.

    `repeats` is one number or one for each, of integers, or a DtypeError is raised; on CUDA a tensor makes the call
    wait for it. Without it, `input` holds the numbers, and the result is how often to take each index. `output_size` is
    accepted for compatibility.

    >>> import lucid
    >>> lucid.repeat_interleave(lucid.tensor([5, 6]), 2), lucid.repeat_interleave(lucid.tensor([1, 3]))
    (tensor([5, 5, 6, 6]), tensor([0, 1, 1, 1]))
    """
    if output_size is not None:
        as_int(output_size, "output_size")
    if repeats is None:
        return repeated_indices(input.array, input.array)
    x = reshape(input, array_of(input).size) if dim is None or not array_of(input).ndim else input
    axis = dim_in(0 if dim is None else dim, x.array.ndim)
    if isinstance(repeats, TensorBase | list | tuple | np.ndarray):
        counts = repeats.array if isinstance(repeats, TensorBase) else asarray(repeats, None, "cpu")
        if counts.size != 1:
            if counts.shape != (x.array.shape[axis],):
                raise ShapeError(
                    f"repeat_interleave: expected one number for each of the {x.array.shape[axis]} slices along "
                    f"dimension {axis}, got repeats of shape {list(counts.shape)}"
                )
            return select_at(x, repeated_indices(counts, x.array), dims=(axis,))
        repeats = counts.reshape(()).item()
    count = as_int(repeats, "repeats")
    check_counts((count,), "repeat_interleave")
    whole = [size * count if dim == axis else size for dim, size in enumerate(x.array.shape)]
    check_size("repeat_interleave", whole, x.array.itemsize)
    return _repeat_interleave(x, repeats=count, dim=axis)


def repeated_indices(counts: Array, like: Array) -> Any:
    """Return the indices 0, 1, ... each as often as `counts` says, on the device of `like`."""
    if counts.dtype.kind != "i" or counts.ndim != 1:
        raise DtypeError(
            f"repeat_interleave: expected repeats to be integers in one dimension, got shape {list(counts.shape)}, "
            f"{counts.dtype.name}"
        )
    host: Array = to_device(counts, "cpu")
    check_counts(tuple(host[host < 0].tolist()), "repeat_interleave")
    # in Python's numbers, whose sum does not wrap around
    check_size("repeat_interleave", (sum(host.tolist()),), 8)
    indices = np.repeat(np.arange(len(host)), host)
    return wrap(indices if namespace(like) is np else asarray(indices, device=device_of(like)))
