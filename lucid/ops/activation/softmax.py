"""Softmax and its logarithm, with their fused derivatives, and the rules common to both.

- `input` is a tensor of any shape; `dtype` converts it first. Any dtype but a real floating-point one raises a
  DtypeError.
- The exponentials are summed along one dimension, `dim`, or an IndexOutOfRangeError is raised where it is not there.
- Nothing overflows: the largest element is subtracted first where it has to be. Half types are computed in float32.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.modes.state import unusual
from lucid.autograd.recording.primitive import Primitive
from lucid.base.dtype import as_dtype, dtype_of
from lucid.cpu.rows import along_rows
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, VECTOR_BYTES, Kernel
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.launch.reduction import BLOCK, merged_axes, packed_axes, power_of_two, too_many, total_bytes
from lucid.cuda.source.signature import constant
from lucid.errors import DtypeError, warn
from lucid.ops.base.declaration import adjoint
from lucid.ops.base.dims import dim_in
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, cast_to
from lucid.ops.base.rows import ROWS_BLOCK, by_rows, row_blocks, row_maxima, row_products, row_sums, sum_of
from lucid.ops.elementwise.arithmetic import neg
from lucid.ops.reduction.sums import kept_shape

# 1e12 exponentials of it are still a float32
HARMLESS = 60.0

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


_ROWS = Kernel("softmax", "lucid::softmax_rows", EACH_FLOAT)
_LINES = Kernel("softmax", "lucid::softmax_lines", EACH_FLOAT)
_GRAD_ROWS = Kernel("softmax", "lucid::softmax_grad_rows", EACH_FLOAT)
_GRAD_LINES = Kernel("softmax", "lucid::softmax_grad_lines", EACH_FLOAT)


def _total(xp: ModuleType, x: Array, axis: int) -> Array:
    """Return the sum along `axis`, kept with size 1."""
    return row_sums(x) if xp is np and x.ndim == 2 and axis == 1 else sum_of(xp, x, (axis,), keepdims=True)


def _from_largest_into(xp: ModuleType, out: Array, x: Array, axis: int) -> None:
    """Write `x` less its largest element along `axis` to `out`."""
    largest = row_maxima(x) if xp is np and x.ndim == 2 and axis == 1 else xp.max(x, axis, None, True)
    xp.subtract(x, largest, out=out)


def _softmax_into(xp: ModuleType, out: Array, spare: Array | None, x: Array, axis: int) -> None:
    total = _plain_exponentials_into(out, x) if xp is np and x.ndim == 2 and axis == 1 else None
    if total is None:
        _from_largest_into(xp, out, x, axis)
        xp.exp(out, out=out)
        total = _total(xp, out, axis)
    xp.multiply(out, xp.reciprocal(total), out=out)


def _plain_exponentials_into(out: Array, x: Array) -> Array | None:
    """Write the exponentials of rows to `out`, and return their sums; None if the largest has to be subtracted first.

    Not so where none overflows and no sum is small, so that what underflows would underflow without the largest, too.
    """
    if not x.max() < HARMLESS:
        return None
    np.exp(x, out=out)
    total = row_sums(out)
    return total if total.min() >= 0.5 else None


def _softmax_grad_into(xp: ModuleType, out: Array, spare: Array | None, grad: Array, y: Array, axis: int) -> None:
    """Write ``y * (grad - sum(grad * y))``, the gradient of softmax with the output `y`, to `out`."""
    if xp is np and y.ndim == 2 and axis == 1:
        total = row_products(grad, y)
    else:
        total = sum_of(xp, xp.multiply(grad, y, out=out), (axis,), keepdims=True)
    xp.subtract(grad, total, out=out)
    xp.multiply(out, y, out=out)


def _log_softmax_into(xp: ModuleType, out: Array, spare: Array | None, x: Array, axis: int) -> None:
    _from_largest_into(xp, out, x, axis)
    total = _total(xp, xp.exp(out, out=spare), axis)
    xp.subtract(out, xp.log(total), out=out)


def _log_softmax_grad_into(xp: ModuleType, out: Array, spare: Array | None, grad: Array, y: Array, axis: int) -> None:
    """Write ``grad - exp(y) * sum(grad)``, the gradient of log_softmax with the output `y`, to `out`."""
    xp.exp(y, out=out)
    xp.multiply(out, _total(xp, grad, axis), out=out)
    xp.subtract(grad, out, out=out)


def _whole(xp: ModuleType, into: Callable[..., None], dim: int, *arrays: Array) -> Array:
    """Return the result of ``into(xp, out, spare, *arrays, axis)`` for whole arrays, half types in float32."""
    first = arrays[0]
    if not first.size:
        return xp.empty(first.shape, first.dtype)
    work = accumulation_dtype(first.dtype)
    shape = first.shape or (1,)
    out = xp.empty(shape, work)
    into(xp, out, None, *[a.reshape(shape).astype(work, copy=False) for a in arrays], dim)
    return out.reshape(first.shape).astype(first.dtype, copy=False)


def _by_rows(name: str, into: Callable[..., None], dim: int, *arrays: Array) -> Array:
    """Return the result of `into` on the CPU, in blocks of rows if they lie along the last dimension."""
    first = arrays[0]
    if dim != first.ndim - 1 or not first.size:
        return _whole(np, into, dim, *arrays)
    known = along_rows(name, *arrays)
    if known is not None:
        return known
    columns = first.shape[-1]
    rows = first.size // columns
    flat = [a if a.ndim == 2 else a.reshape(rows, columns) for a in arrays]
    out: Array = np.empty((rows, columns), first.dtype)
    halves = first.dtype.itemsize == 2
    with by_rows(rows, columns):
        if first.size <= ROWS_BLOCK and not halves:
            into(np, out, None, *flat, 1)
            return out.reshape(first.shape)
        blocks = list(row_blocks(rows, columns))
        spare = np.empty((blocks[0].stop, columns), first.dtype)
        for block in blocks:
            if halves:
                wide = [a[block].astype(np.float32) for a in flat]
                known = along_rows(name, *wide)
                out[block] = _whole(np, into, 1, *wide) if known is None else known
            else:
                into(np, out[block], spare[: block.stop - block.start], *[a[block] for a in flat], 1)
    return out.reshape(first.shape)


def _traversal_of(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, dim: int, aligned: bool
) -> tuple[bool, int, tuple[int, int], tuple[int, ...]] | None:
    """Return how kernels walk through the lines of an array along `dim`; None if it has too many axes.

    That is whether a block holds whole lines in registers, grid and block, and what the kernels are told of lines:
    their axes and number, the elements of one, and whether loads are of 16 bytes, or the distances of elements in the
    input and in the output.
    """
    steps = [(size, stride // itemsize) for size, stride in zip(shape, strides, strict=True)] or [(1, 1)]
    length, stride = steps.pop(dim)
    kept = merged_axes(steps)
    if too_many(kept):
        return None
    lines, inner = math.prod([size for size, _ in steps]), math.prod(shape[dim + 1 :])
    each, axes = constant("rows.cuh", "HELD"), packed_axes(kept)
    if inner == 1 and (stride == 1 or length == 1) and length <= each * constant("rows.cuh", "MAX_THREADS"):
        width = VECTOR_BYTES // itemsize
        vectors = aligned and length % width == 0 and not any(step % width for _, step in kept)
        threads = power_of_two(-(-length // each))
        rows = 1 if threads > 32 else max(32 // threads, min(BLOCK // 2 // threads, power_of_two(lines)))
        return True, -(-lines // rows), (threads, rows), (*axes, lines, length, int(vectors))
    # neighbouring threads take neighbours of a line where these lie together and are many enough
    across = 1 if inner == 1 and length > 32 else min(32, power_of_two(lines))
    parts = min(BLOCK // across, power_of_two(-(-length // 4)))
    return False, -(-lines // across), (across, max(parts, 32 // across)), (*axes, lines, length, stride, inner)


def _launched(kernels: tuple[Kernel, Kernel], dim: int, logarithm: bool, shared: int, *arrays: Array) -> Any:
    """Return the result of the kernel of rows, or that of lines, for arrays along `dim`; NotImplemented without one.

    That of lines takes `shared` bytes of shared memory for each thread.
    """
    first = arrays[0]
    aligned = all(array.data.ptr % VECTOR_BYTES == 0 for array in arrays)
    traversal = _traversal_of(first.shape, first.strides, first.dtype.itemsize, dim, aligned)
    name = C_TYPES.get(first.dtype)
    if name not in FLOATS or traversal is None:
        return NotImplemented
    out = empty(first.shape, first.dtype)
    if out.size:
        held, grid, block, lines = traversal
        pointers = [array.data.ptr for array in (*arrays, out)]
        room = 0 if held else shared * block[0] * block[1]
        kernels[not held][name](grid, block, *pointers, *lines, logarithm, shared=room)
    return out


@planned
def _softmax_cuda(x: Array, dim: int, *, logarithm: bool) -> Any:
    """Return softmax along `dim`, or its logarithm; NotImplemented if there is no kernel."""
    return _launched((_ROWS, _LINES), dim, logarithm, 2 * total_bytes(x.dtype), x)


@planned
def _softmax_grad_cuda(grad: Array, y: Array, dim: int, *, logarithm: bool) -> Any:
    """Return the gradient of `_softmax_cuda` with the output `y`; NotImplemented if there is no kernel."""
    if grad.dtype != y.dtype or not y.flags.c_contiguous:
        return NotImplemented
    return _launched((_GRAD_ROWS, _GRAD_LINES), dim, logarithm, total_bytes(y.dtype), grad, y)


def _along(name: str, into: Callable[..., None], kernel: Callable[..., Any], *inputs: str) -> Primitive:
    """Return the primitive of `into`; its kernel of two functions gets a flag for the one to compute."""

    def whole(xp: ModuleType, *arrays: Array, dim: int) -> Array:
        return _whole(xp, into, dim, *arrays)

    def by_rows(*arrays: Array, dim: int) -> Array:
        return _by_rows(name, into, dim, *arrays)

    op = Primitive(whole, cpu=by_rows, name=name, inputs=inputs)
    op.cuda(functools.partial(kernel, logarithm=name.startswith("log")))
    return op


_softmax = _along("softmax", _softmax_into, _softmax_cuda, "x")
_softmax_grad = _along("softmax_grad", _softmax_grad_into, _softmax_grad_cuda, "grad", "y")
_log_softmax = _along("log_softmax", _log_softmax_into, _softmax_cuda, "x")
_log_softmax_grad = _along("log_softmax_grad", _log_softmax_grad_into, _softmax_grad_cuda, "grad", "y")


@_softmax.vjp("x", planned=True)
def _softmax_vjp(m: Namespace, grad: Array, out: Array, dim: int) -> Any:
    return m.softmax_grad(grad, out, dim=dim)


@_log_softmax.vjp("x", planned=True)
def _log_softmax_vjp(m: Namespace, grad: Array, out: Array, dim: int) -> Any:
    return m.log_softmax_grad(grad, out, dim=dim)


def _summed(m: Namespace, x: Array, dim: int) -> Any:
    return m.sum_to(x, shape=kept_shape(x.shape, (dim,)))


# softmax's Jacobian is symmetric
adjoint(_softmax_grad)


@_softmax_grad.vjp("y")
def _softmax_grad_vjp_y(m: Namespace, upper: Array, grad: Array, y: Array, dim: int) -> Any:
    inner = m.sub(grad, _summed(m, m.mul(grad, y), dim))
    return m.sub(m.mul(upper, inner), m.mul(grad, _summed(m, m.mul(upper, y), dim)))


@_log_softmax_grad.vjp("grad")
def _log_softmax_grad_vjp(m: Namespace, upper: Array, y: Array, dim: int) -> Any:
    return m.sub(upper, _summed(m, m.mul(upper, m.exp(y)), dim))


@_log_softmax_grad.vjp("y")
def _log_softmax_grad_vjp_y(m: Namespace, upper: Array, grad: Array, y: Array, dim: int) -> Any:
    return m.neg(m.mul(m.mul(upper, m.exp(y)), _summed(m, grad, dim)))


def _prepared(name: str, input: Tensor, dim: int | None, dtype: Dtype | None) -> tuple[Tensor, int]:
    """Return the tensor in the dtype that is wanted, and the dimension."""
    x = tensor_operand(input)
    if dtype is None and unusual:
        x = wide_in_autocast(x)
    wanted = dtype_of(x.array) if dtype is None else as_dtype(dtype)
    if not wanted.is_floating_point:
        raise DtypeError(
            f"{name}: expected a real floating-point dtype, got {wanted}; convert the input, or pass dtype="
        )
    if dim is None:
        warn(f"implicit dimension choice for {name}: pass dim= to say which dimension is meant")
        dim = 0 if x.array.ndim in {0, 1, 3} else 1
    return x if dtype is None else cast_to(x, wanted), dim_in(dim, x.array.ndim)


def softmax(input: Tensor, dim: int | None = None, dtype: Dtype | None = None) -> Tensor:
    """Return ``exp(x) / sum(exp(x))`` along `dim`: positive numbers that sum to 1.

    None as `dim` picks 0 for inputs of 0, 1 or 3 dimensions, else 1, and warns.

    >>> import lucid
    >>> lucid.softmax(lucid.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    x, axis = _prepared("softmax", input, dim, dtype)
    return _softmax(x, dim=axis)


def log_softmax(input: Tensor, dim: int | None = None, dtype: Dtype | None = None) -> Tensor:
    """Return ``x - log(sum(exp(x)))`` along `dim`: the logarithm of `softmax`, more exactly.

    None as `dim` picks 0 for inputs of 0, 1 or 3 dimensions, else 1, and warns.

    >>> import lucid
    >>> lucid.log_softmax(lucid.tensor([0.0, 0.0]), 0)
    tensor([-0.6931, -0.6931])
    """
    x, axis = _prepared("log_softmax", input, dim, dtype)
    return _log_softmax(x, dim=axis)


def softmin(input: Tensor, dim: int | None = None, dtype: Dtype | None = None) -> Tensor:
    """Return ``softmax(-x)`` along `dim`.

    None as `dim` picks 0 for inputs of 0, 1 or 3 dimensions, else 1, and warns.

    >>> import lucid
    >>> lucid.nn.functional.softmin(lucid.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    x, axis = _prepared("softmin", input, dim, dtype)
    return _softmax(neg(x), dim=axis)
