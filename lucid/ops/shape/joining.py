"""Tensors joined to one. Common rules: `lucid.ops.shape`.

`tensors` is a sequence of them, not empty, on one device; the result has their promoted dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch import copying as kernels
from lucid.errors import ShapeError
from lucid.ops.base.dims import dim_in, tensors_in
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import OperandTypeError, promote
from lucid.ops.shape.reshape import reshape
from lucid.ops.shape.splitting import parts_of, slices_of, spans

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


@primitive
def _cat(xp: ModuleType, *tensors: Array, dim: int) -> Array:
    return xp.concatenate(tensors, axis=dim)


@_cat.vjp
def _cat_vjp(m: Namespace, grad: Array, tensors_shape: list[tuple[int, ...]], dim: int, needs: tuple[bool, ...]) -> Any:
    return parts_of(m, grad, dim, spans(shape[dim] for shape in tensors_shape), needs)


@primitive
def _stack(xp: ModuleType, *tensors: Array, dim: int) -> Array:
    return xp.stack(tensors, axis=dim)


_stack.vjp(slices_of)
_cat.cuda(kernels.cat)
_stack.cuda(kernels.stack)


def together(tensors: Sequence[Tensor], name: str) -> tuple[Any, ...]:
    """Return the tensors to join in their common dtype; one tensor, and no sequence of them, is refused."""
    if isinstance(tensors, TensorBase):
        raise OperandTypeError(
            f"{name}: expected a sequence of Tensors, got one of shape {list(tensors.array.shape)}; its slices are "
            "lucid.unbind(x)"
        )
    parts = tensors_in((tensors,))
    if not parts:
        raise ShapeError(f"{name}: expected a non-empty list of Tensors")
    try:
        dtype = parts[0].array.dtype
        if all(t.array.dtype is dtype for t in parts):
            return parts
    except AttributeError:
        parts = tuple(map(tensor_operand, parts))
    return promote(*parts)


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return a copy of `tensors`, of equal sizes but along `dim`, joined there; those of shape (0,) fit any.

    >>> import lucid
    >>> lucid.cat([lucid.tensor([1, 2]), lucid.tensor([3])])
    tensor([1, 2, 3])
    """
    joined = together(tensors, "cat")
    shape = next((t.array.shape for t in joined if t.array.shape != (0,)), (0,))
    if not shape:
        raise ShapeError("cat: a 0-dim tensor cannot be joined; use lucid.stack, or reshape it to (1,)")
    axis = dim_in(dim, len(shape))
    before, after = shape[:axis], shape[axis + 1 :]
    parts = list(joined)
    for position, part in enumerate(joined):
        other = part.array.shape
        if other == shape:
            continue
        if other == (0,) and len(shape) > 1:
            # adds no elements, and its gradient is empty, not missing
            parts[position] = reshape(part, *before, 0, *after)
        elif len(other) != len(shape) or other[:axis] != before or other[axis + 1 :] != after:
            raise ShapeError(
                f"cat: sizes of tensors must match except in dimension {axis}; expected them as in {list(shape)}, got "
                f"{list(other)} for tensor number {position} in the list"
            )
    return _cat(*parts, dim=axis)


def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return a copy of `tensors`, of equal sizes but along `dim`, joined there; the same as `cat`.

    >>> import lucid
    >>> lucid.concat([lucid.zeros(1, 2), lucid.ones(1, 2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    return cat(tensors, dim)


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return a copy of `tensors` of one shape, joined along a new dimension, `dim` of the result.

    >>> import lucid
    >>> lucid.stack([lucid.tensor([1, 2]), lucid.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    parts = together(tensors, "stack")
    shape = parts[0].array.shape
    for position, part in enumerate(parts):
        if part.array.shape != shape:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(part.array.shape)} at entry {position}"
            )
    return _stack(*parts, dim=dim_in(dim, len(shape) + 1))


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return a copy of `tensors` joined side by side: along dimension 1, or 0 if they have only one or none.

    >>> import lucid
    >>> lucid.hstack([lucid.tensor([[1], [2]]), lucid.tensor([[3], [4]])])
    tensor([[1, 3],
            [2, 4]])
    """
    parts = [t if t.array.ndim else reshape(t, 1) for t in together(tensors, "hstack")]
    return cat(parts, 0 if parts[0].array.ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return a copy of `tensors` joined one below the other: along dimension 0, each of one dimension being a row.

    >>> import lucid
    >>> lucid.vstack([lucid.tensor([1, 2]), lucid.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return cat([t if t.array.ndim > 1 else reshape(t, 1, t.array.size) for t in together(tensors, "vstack")], 0)
