"""Softmax and its logarithm, with their fused derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.backend.dtype import as_dtype, dtype_of
from lucid.cuda.launchers import softmax as kernels
from lucid.errors import DtypeError
from lucid.ops.base.dims import dim_in
from lucid.ops.base.elementwise import neg, tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, cast_to
from lucid.ops.base.rows import row_blocks
from lucid.ops.reduction.sums import kept_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


def _softmax_into(xp: Any, out: Array, spare: Any, x: Array, axis: int) -> None:
    xp.subtract(x, xp.max(x, axis, None, True), out=out)
    xp.exp(out, out=out)
    xp.multiply(out, xp.reciprocal(xp.sum(out, axis, None, None, True)), out=out)


def _softmax_grad_into(xp: Any, out: Array, spare: Any, grad: Array, y: Array, axis: int) -> None:
    if xp is np and y.ndim == 2 and axis == 1:
        total = np.einsum("ij,ij->i", grad, y)[:, None]
    else:
        total = xp.sum(xp.multiply(grad, y, out=out), axis, None, None, True)
    xp.subtract(grad, total, out=out)
    xp.multiply(out, y, out=out)


def _log_softmax_into(xp: Any, out: Array, spare: Any, x: Array, axis: int) -> None:
    xp.subtract(x, xp.max(x, axis, None, True), out=out)
    total = xp.sum(xp.exp(out, out=spare), axis, None, None, True)
    xp.subtract(out, xp.log(total), out=out)


def _log_softmax_grad_into(xp: Any, out: Array, spare: Any, grad: Array, y: Array, axis: int) -> None:
    xp.exp(y, out=out)
    xp.multiply(out, xp.sum(grad, axis, None, None, True), out=out)
    xp.subtract(grad, out, out=out)


def _whole(xp: Any, into: Callable[..., None], dim: int, *arrays: Array) -> Array:
    """Return what ``into(xp, out, spare, *arrays, axis)`` writes for whole arrays, half types in float32."""
    first = arrays[0]
    if not first.size:
        return xp.empty(first.shape, first.dtype)
    work = accumulation_dtype(first.dtype)
    shape = first.shape or (1,)
    out = xp.empty(shape, work)
    into(xp, out, None, *[a.reshape(shape).astype(work, copy=False) for a in arrays], dim)
    return out.reshape(first.shape).astype(first.dtype, copy=False)


def _by_rows(into: Callable[..., None], dim: int, *arrays: Array) -> Array:
    """Return what `into` writes, on the CPU, in blocks of rows where the rows lie along the last dimension."""
    first = arrays[0]
    if dim != first.ndim - 1 or not first.size:
        return _whole(np, into, dim, *arrays)
    columns = first.shape[-1]
    flat = [a.reshape(-1, columns) for a in arrays]
    out: Array = np.empty(flat[0].shape, first.dtype)
    blocks = list(row_blocks(len(out), columns))
    spare = np.empty(out[blocks[0]].shape, first.dtype)
    for block in blocks:
        if first.dtype.itemsize > 2:
            into(np, out[block], spare[: block.stop - block.start], *[a[block] for a in flat], 1)
        else:
            out[block] = _whole(np, into, 1, *[a[block] for a in flat])
    return out.reshape(first.shape)


def _softmax_cpu(x: Array, *, dim: int) -> Array:
    return _by_rows(_softmax_into, dim, x)


@primitive(cpu=_softmax_cpu)
def _softmax(xp: Any, x: Array, *, dim: int) -> Array:
    return _whole(xp, _softmax_into, dim, x)


@_softmax.cuda
def _softmax_cuda(x: Any, *, dim: int) -> Any:
    return kernels.softmax(x, dim, logarithm=False)


@_softmax.vjp
def _softmax_vjp(m: Any, grad: Any, out: Any, dim: Any) -> Any:
    return m.softmax_grad(grad, out, dim=dim)


def _softmax_grad_cpu(grad: Array, y: Array, *, dim: int) -> Array:
    return _by_rows(_softmax_grad_into, dim, grad, y)


@primitive(cpu=_softmax_grad_cpu)
def _softmax_grad(xp: Any, grad: Array, y: Array, *, dim: int) -> Array:
    """Return ``y * (grad - sum(grad * y))``, the gradient of softmax, whose output is `y`."""
    return _whole(xp, _softmax_grad_into, dim, grad, y)


@_softmax_grad.cuda
def _softmax_grad_cuda(grad: Any, y: Any, *, dim: int) -> Any:
    return kernels.softmax_grad(grad, y, dim, logarithm=False)


def _summed(m: Any, x: Any, dim: int) -> Any:
    return m.sum_to(x, shape=kept_shape(x.shape, (dim,)))


@_softmax_grad.vjp("grad")
def _softmax_grad_vjp(m: Any, upper: Any, y: Any, dim: Any) -> Any:
    # softmax's Jacobian is symmetric
    return m.softmax_grad(upper, y, dim=dim)


@_softmax_grad.vjp("y")
def _softmax_grad_vjp_y(m: Any, upper: Any, grad: Any, y: Any, dim: Any) -> Any:
    inner = m.sub(grad, _summed(m, m.mul(grad, y), dim))
    return m.sub(m.mul(upper, inner), m.mul(grad, _summed(m, m.mul(upper, y), dim)))


def _log_softmax_cpu(x: Array, *, dim: int) -> Array:
    return _by_rows(_log_softmax_into, dim, x)


@primitive(cpu=_log_softmax_cpu)
def _log_softmax(xp: Any, x: Array, *, dim: int) -> Array:
    return _whole(xp, _log_softmax_into, dim, x)


@_log_softmax.cuda
def _log_softmax_cuda(x: Any, *, dim: int) -> Any:
    return kernels.softmax(x, dim, logarithm=True)


@_log_softmax.vjp
def _log_softmax_vjp(m: Any, grad: Any, out: Any, dim: Any) -> Any:
    return m.log_softmax_grad(grad, out, dim=dim)


def _log_softmax_grad_cpu(grad: Array, y: Array, *, dim: int) -> Array:
    return _by_rows(_log_softmax_grad_into, dim, grad, y)


@primitive(cpu=_log_softmax_grad_cpu)
def _log_softmax_grad(xp: Any, grad: Array, y: Array, *, dim: int) -> Array:
    """Return ``grad - exp(y) * sum(grad)``, the gradient of log_softmax, whose output is `y`."""
    return _whole(xp, _log_softmax_grad_into, dim, grad, y)


@_log_softmax_grad.cuda
def _log_softmax_grad_cuda(grad: Any, y: Any, *, dim: int) -> Any:
    return kernels.softmax_grad(grad, y, dim, logarithm=True)


@_log_softmax_grad.vjp("grad")
def _log_softmax_grad_vjp(m: Any, upper: Any, y: Any, dim: Any) -> Any:
    return m.sub(upper, _summed(m, m.mul(upper, m.exp(y)), dim))


@_log_softmax_grad.vjp("y")
def _log_softmax_grad_vjp_y(m: Any, upper: Any, grad: Any, y: Any, dim: Any) -> Any:
    return m.neg(m.mul(m.mul(upper, m.exp(y)), _summed(m, grad, dim)))


def _prepared(name: str, input: Any, dim: int, dtype: Any) -> tuple[Any, int]:
    """Return the tensor in the dtype that is wanted, and the dimension.

    Raises
    ------
    DtypeError
        If the dtype is not a real floating-point type.
    """
    x = tensor_operand(input)
    wanted = dtype_of(x.array) if dtype is None else as_dtype(dtype)
    if not wanted.is_floating_point:
        raise DtypeError(
            f"{name}: expected a real floating-point dtype, got {wanted}; convert the input, or pass dtype="
        )
    return cast_to(x, wanted), dim_in(dim, x.array.ndim)


def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return ``exp(x) / sum(exp(x))`` along `dim`: positive numbers that sum to 1.

    Parameters
    ----------
    input : Tensor
        Real floating-point, of any shape.
    dim : int
        The dimension along which the results sum to 1.
    dtype : dtype, optional
        Of the result, and of `input` before.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`. The largest element is subtracted first, so that nothing overflows. Half
        types are computed in float32.

    Raises
    ------
    DtypeError
        If the dtype is not a real floating-point type.
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.softmax(lucid.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    x, axis = _prepared("softmax", input, dim, dtype)
    return _softmax(x, dim=axis)


def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return ``x - log(sum(exp(x)))`` along `dim`: the logarithm of :func:`softmax`, more exactly.

    Parameters
    ----------
    input : Tensor
        Real floating-point, of any shape.
    dim : int
        The dimension along which the exponentials of the results sum to 1.
    dtype : dtype, optional
        Of the result, and of `input` before.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`. Half types are computed in float32.

    Raises
    ------
    DtypeError
        If the dtype is not a real floating-point type.
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.log_softmax(lucid.tensor([0.0, 0.0]), 0)
    tensor([-0.6931, -0.6931])
    """
    x, axis = _prepared("log_softmax", input, dim, dtype)
    return _log_softmax(x, dim=axis)


def softmin(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return ``softmax(-x)`` along `dim`.

    Parameters
    ----------
    input : Tensor
        Real floating-point, of any shape.
    dim : int
        The dimension along which the results sum to 1.
    dtype : dtype, optional
        Of the result, and of `input` before.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If the dtype is not a real floating-point type.
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.softmin(lucid.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    x, axis = _prepared("softmin", input, dim, dtype)
    return _softmax(neg(x), dim=axis)
