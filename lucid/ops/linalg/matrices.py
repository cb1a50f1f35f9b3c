"""Products of raw matrices on either device, and the requirements on operands of a matrix product."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.modes.casting import dtype_within
from lucid.base.memory import c_copy
from lucid.cuda.libraries import blas
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.promotion import array_of, as_operand, only_tensors, tensor_dtype

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


# Bits of the integers that a dtype holds exactly.
EXACT = {"f": 24, "d": 53}
# Rows, columns and terms of a product of integers below which it stays one of integers, and their product.
NARROW = 16
LARGE = 1 << 17


def readable(x: Array) -> Array:
    """Return `x`, copied if BLAS cannot read its matrices in place: neither rows nor columns lie densely.

    Gradients of sums come as broadcast views, which are of that kind.
    """
    if x.flags.c_contiguous or x.ndim < 2:
        return x
    row, column = x.strides[-2:]
    size = x.itemsize
    if (column == size and row >= size * x.shape[-1]) or (row == size and column >= size * x.shape[-2]):
        return x
    return c_copy(x)


def product(xp: ModuleType, a: Array, b: Array) -> Array:
    """Return the matrix product of raw arrays by the rules of ``numpy.matmul``; half types are summed in float32."""
    return product_cpu(a, b) if xp is np else blas.matmul(a, b)


def product_cpu(a: Array, b: Array) -> Array:
    """Return the matrix product of NumPy arrays."""
    if a.dtype.itemsize == 2 and a.dtype.kind in "fV":
        wide = product_cpu(a.astype(np.float32), b.astype(np.float32, copy=False))
        return wide.astype(a.dtype) if a.dtype == b.dtype else wide
    if b.dtype.itemsize == 2 and b.dtype.kind in "fV":
        b = b.astype(np.float32)
    if a.dtype.kind in "iu" and _large(a, b):
        return _product_of_integers(a, b)
    a, b = readable(a), readable(b)
    if b.ndim != 2 or a.ndim < 3:
        return np.matmul(a, b)
    # one large product instead of one for each matrix of the stack
    out = np.empty((*a.shape[:-1], b.shape[1]), np.result_type(a, b))
    rows = math.prod(a.shape[:-1])
    np.matmul(a.reshape(rows, a.shape[-1]), b, out=out.reshape(rows, b.shape[1]))
    return out


def _large(a: Array, b: Array) -> bool:
    """Return whether each matrix product of two arrays is so much work that it is worth another dtype."""
    if min(a.ndim, b.ndim) < 2 or not a.size or not b.size:
        return False
    sizes = a.shape[-2], a.shape[-1], b.shape[-1]
    return min(sizes) >= NARROW and math.prod(sizes) >= LARGE


def _product_of_integers(a: Array, b: Array) -> Array:
    """Return the matrix product of integers, modulo the numbers of their dtype as NumPy's, by BLAS.

    Its floats hold integers exactly below a power of 2. Where sums of products may be larger, factors are cut into
    parts of fewer bits, and the products of all parts are added.
    """
    dtype = np.result_type(a, b)
    of_a, of_b, of_sums = _bits(a), _bits(b), a.shape[-1].bit_length()
    work = np.dtype(np.float32 if of_a + of_b + of_sums <= EXACT["f"] else np.float64)
    room = EXACT[work.char] - of_sums
    total: Any = 0
    others = _parts(b, max(room // 2, room - of_a))
    for low, part in _parts(a, max(room // 2, room - of_b)):
        wide = part.astype(work)
        for high, other in others:
            if low + high < 8 * dtype.itemsize:
                total = total + (product_cpu(wide, other.astype(work)).astype(np.int64) << (low + high))
    return total.astype(dtype)


def _bits(x: Array) -> int:
    """Return how many bits the sizes of integers have."""
    return max(int(x.max()), -int(x.min())).bit_length()


def _parts(x: Array, width: int) -> list[tuple[int, Array]]:
    """Return parts of integers, of at most `width` bits, and the shift of each: shifted, their sum is `x`."""
    parts: list[tuple[int, Array]] = []
    shift = 0
    while _bits(x) > width:
        parts.append((shift, x & x.dtype.type((1 << width) - 1)))
        x, shift = x >> width, shift + width
    return [*parts, (shift, x)]


def same_dtype(name: str, *operands: Tensor, bias: Tensor | None = None) -> None:
    """Refuse operands, with a bias that there may be, that `autocast` leaves in several dtypes, and bools."""
    tensors = operands if bias is None else (*operands, bias)
    only_tensors(*tensors)
    dtype = dtype_within(tensors[0])
    if any(dtype_within(t) != dtype for t in tensors):
        got = ", ".join(map(str, map(tensor_dtype, tensors)))
        raise DtypeError(f"{name}: expected operands of one dtype, got {got}; convert them with .to(dtype)")
    if dtype.kind == "b":
        raise DtypeError(f"{name}: not defined for bool; convert the operands with .to(dtype)")


def same_inner(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Refuse shapes that cannot be multiplied as matrices, batch dimensions apart; guess at a transposed operand."""
    if not a or not b:
        raise ShapeError(
            f"{name}: expected operands of at least 1 dimension, got shapes {a} and {b}; multiply by a scalar with *"
        )
    if a[-1] != b[-2 if len(b) > 1 else 0]:
        hint = "; did you mean b.T?" if len(b) == 2 and a[-1] == b[1] else ""
        hint = "; did you mean a.T?" if not hint and len(a) == 2 and a[0] == b[-2 if len(b) > 1 else 0] else hint
        raise ShapeError(f"{name}: inner sizes differ: a has shape {a}, b has shape {b}{hint}")


def of_dimensions(name: str, *expected: tuple[str, Any, int]) -> None:
    """Refuse tensors that do not have the expected number of dimensions, by the name of the argument."""
    for argument, tensor, ndim in expected:
        if array_of(tensor).ndim != ndim:
            raise ShapeError(
                f"{name}: expected {argument} of {ndim} dimension{'s' if ndim > 1 else ''}, "
                f"got shape {tensor.array.shape}"
            )


def factor_of(name: str, operand: object, like: object = None) -> Any:
    """Return an operand of a product as a tensor, beside the other one; a number is refused."""
    tensor = as_operand(operand, like)
    if not isinstance(tensor, TensorBase):
        raise ShapeError(f"{name}: expected tensors of at least 1 dimension, got the number {operand!r}")
    return tensor


def broadcastable(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Refuse stacks of matrices with leading dimensions that do not broadcast."""
    try:
        np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise ShapeError(
            f"{name}: leading dimensions {a[:-2]} and {b[:-2]} cannot be broadcast: a has shape {a}, b has shape {b}"
        ) from None


def stacks_of_one_length(name: str, arguments: tuple[str, str], a: Tensor, b: Tensor) -> None:
    """Refuse tensors, by the names of the arguments, that are not two stacks of as many matrices."""
    of_dimensions(name, (arguments[0], a, 3), (arguments[1], b, 3))
    if a.array.shape[0] != b.array.shape[0]:
        raise ShapeError(
            f"{name}: expected stacks of as many matrices, got shapes {a.array.shape} and {b.array.shape}; "
            "matmul broadcasts a stack of one"
        )


def broadcast_to_shape(name: str, argument: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Refuse an operand that cannot be broadcast to the shape of the result."""
    if shape == wanted[len(wanted) - len(shape) :]:
        return
    extra = len(wanted) - len(shape)
    if extra < 0 or any(size not in {1, wanted[extra + i]} for i, size in enumerate(shape)):
        raise ShapeError(f"{name}: expected {argument} that can be broadcast to {wanted}, got shape {shape}")
