"""Tensors joined to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launchers import copying as kernels
from lucid.errors import ShapeError
from lucid.ops.base.dims import dim_in, tensors_in
from lucid.ops.base.elementwise import tensor_operand
from lucid.ops.base.promotion import OperandTypeError, promote
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


@primitive
def _cat(xp: Any, *tensors: Array, dim: int) -> Array:
    return xp.concatenate(tensors, axis=dim)


@_cat.vjp
def _cat_vjp(m: Any, grad: Any, tensors_shape: list[tuple[int, ...]], dim: int, needs: tuple[bool, ...]) -> Any:
    grads: list[Any] = []
    start = 0
    for shape, need in zip(tensors_shape, needs, strict=True):
        stop = start + shape[dim]
        grads.append(m.getitem(grad, index=(*(slice(None),) * dim, slice(start, stop), ...)) if need else None)
        start = stop
    return grads


@primitive
def _stack(xp: Any, *tensors: Array, dim: int) -> Array:
    return xp.stack(tensors, axis=dim)


@_stack.vjp
def _stack_vjp(m: Any, grad: Any, dim: int, needs: tuple[bool, ...]) -> Any:
    return [
        m.getitem(grad, index=(*(slice(None),) * dim, place, ...)) if need else None for place, need in enumerate(needs)
    ]


_cat.cuda(kernels.cat)
_stack.cuda(kernels.stack)


def together(tensors: Any, name: str) -> tuple[Any, ...]:
    """Return the tensors to join in their common dtype.

    Raises
    ------
    OperandTypeError
        If it is one tensor, and no sequence of them.
    """
    if isinstance(tensors, TensorBase):
        raise OperandTypeError(
            f"{name}: expected a sequence of Tensors, got one of shape {list(tensors.array.shape)}; its slices are "
            "lucid.unbind(x)"
        )
    found = tensors_in((tensors,))
    if not found:
        raise ShapeError(f"{name}: expected a non-empty list of Tensors")
    try:
        dtype = found[0].array.dtype
        if all(t.array.dtype is dtype for t in found):
            return found
    except AttributeError:
        found = tuple(map(tensor_operand, found))
    return promote(*found)


def cat(tensors: Any, dim: int = 0) -> Tensor:
    """Return the tensors joined along one of their dimensions.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of equal sizes but along `dim`; dtypes are promoted. Tensors of shape (0,) fit any.
    dim : int
        The dimension.

    Returns
    -------
    Tensor
        A copy of the promoted dtype.

    Raises
    ------
    ShapeError
        If there are no tensors, the sizes do not match, or a tensor has no dimension.
    IndexOutOfRangeError
        If there is no such dimension.
    DeviceError
        If the tensors are on different devices.

    Examples
    --------
    >>> import lucid
    >>> lucid.cat([lucid.tensor([1, 2]), lucid.tensor([3])])
    tensor([1, 2, 3])
    """
    given = together(tensors, "cat")
    shape = next((t.array.shape for t in given if t.array.shape != (0,)), (0,))
    if not shape:
        raise ShapeError("cat: a 0-dim tensor cannot be joined; use lucid.stack, or reshape it to (1,)")
    axis = dim_in(dim, len(shape))
    before, after = shape[:axis], shape[axis + 1 :]
    parts = list(given)
    for place, part in enumerate(given):
        other = part.array.shape
        if other == shape:
            continue
        if other == (0,) and len(shape) > 1:
            # adds no elements, and its gradient is empty, not missing
            parts[place] = reshape(part, *before, 0, *after)
        elif len(other) != len(shape) or other[:axis] != before or other[axis + 1 :] != after:
            raise ShapeError(
                f"cat: sizes of tensors must match except in dimension {axis}; expected them as in {list(shape)}, got "
                f"{list(other)} for tensor number {place} in the list"
            )
    return _cat(*parts, dim=axis)


def concat(tensors: Any, dim: int = 0) -> Tensor:
    """Return the tensors joined along one of their dimensions; the same as :func:`cat`.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of equal sizes but along `dim`; dtypes are promoted.
    dim : int
        The dimension.

    Returns
    -------
    Tensor
        A copy of the promoted dtype.

    Raises
    ------
    ShapeError, IndexOutOfRangeError, DeviceError
        As for :func:`cat`.

    Examples
    --------
    >>> import lucid
    >>> lucid.concat([lucid.zeros(1, 2), lucid.ones(1, 2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    return cat(tensors, dim)


def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Return tensors of one shape joined along a new dimension.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of one shape; dtypes are promoted.
    dim : int
        The place of the new dimension in the result.

    Returns
    -------
    Tensor
        A copy of the promoted dtype.

    Raises
    ------
    ShapeError
        If there are no tensors, or the shapes differ.
    IndexOutOfRangeError
        If there is no such dimension.
    DeviceError
        If the tensors are on different devices.

    Examples
    --------
    >>> import lucid
    >>> lucid.stack([lucid.tensor([1, 2]), lucid.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    parts = together(tensors, "stack")
    shape = parts[0].array.shape
    for place, part in enumerate(parts):
        if part.array.shape != shape:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(part.array.shape)} at entry {place}"
            )
    return _stack(*parts, dim=dim_in(dim, len(shape) + 1))


def hstack(tensors: Any) -> Tensor:
    """Return the tensors joined side by side: along dimension 1, or 0 if they have only one.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of equal sizes but along that dimension; those without dimension count as of shape (1,).

    Returns
    -------
    Tensor
        A copy of the promoted dtype.

    Raises
    ------
    ShapeError, DeviceError
        As for :func:`cat`.

    Examples
    --------
    >>> import lucid
    >>> lucid.hstack([lucid.tensor([[1], [2]]), lucid.tensor([[3], [4]])])
    tensor([[1, 3],
            [2, 4]])
    """
    parts = [t if t.array.ndim else reshape(t, 1) for t in together(tensors, "hstack")]
    return cat(parts, 0 if parts[0].array.ndim == 1 else 1)


def vstack(tensors: Any) -> Tensor:
    """Return the tensors joined one below the other: along dimension 0, each of one dimension being a row.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of equal sizes but along dimension 0.

    Returns
    -------
    Tensor
        A copy of the promoted dtype.

    Raises
    ------
    ShapeError, DeviceError
        As for :func:`cat`.

    Examples
    --------
    >>> import lucid
    >>> lucid.vstack([lucid.tensor([1, 2]), lucid.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    parts = together(tensors, "vstack")
    return cat([t if t.array.ndim > 1 else reshape(t, 1, t.array.size) for t in parts], 0)
