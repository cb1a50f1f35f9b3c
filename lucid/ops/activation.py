"""Activation functions made of straight pieces, and elu; elementwise, each with a fused backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.primitive import primitive
from lucid.autograd.recording import unary
from lucid.cuda.elementwise import NUMBERS, Elementwise
from lucid.ops.elementwise import refuse, tensor_operand
from lucid.ops.fused import drop_where, in_blocks, keep_where
from lucid.ops.scalars import as_number
from lucid.ops.selection import CLAMP

if TYPE_CHECKING:
    from lucid.autograd.primitive import Primitive
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


HALF = np.dtype(np.float16)


def floating(name: str, x: Any) -> Any:
    """Return `x` as a floating-point tensor.

    Raises
    ------
    DtypeError
        If it is of another dtype.
    """
    refuse(name, "biuc", x, instead="convert to a floating-point dtype first")
    return tensor_operand(x)


def of_floating(op: Primitive) -> Primitive:
    """Give a primitive of one floating-point operand its caller."""

    def general(x: Any) -> Any:
        return op(floating(op.name, x))

    op.call = unary(op, general)
    return op


@primitive
def _relu(xp: Any, x: Array) -> Array:
    # of equal operands NumPy gives the second, in float16 the first: -0 stays -0
    return xp.maximum(x, 0) if x.dtype is HALF else xp.maximum(0, x)


_relu.cuda(Elementwise("activation", "Relu", dtypes=NUMBERS))


def relu_grad_into(xp: Any, out: Array, grad: Array, result: Array) -> None:
    """Write `grad` to `out` where `result`, or what it is the relu of, is above zero, and zero elsewhere."""
    drop_where(xp, out, grad, xp.less_equal(result, 0))


@primitive
def _relu_grad(xp: Any, g: Array, result: Array) -> Array:
    return in_blocks(xp, relu_grad_into, 0, g, result)


_relu_grad.cuda(Elementwise("activation", "ReluGrad", "TT"))


@_relu.vjp
def _relu_vjp(m: Any, grad: Any, out: Any) -> Any:
    return m.relu_grad(grad, out)


@_relu_grad.vjp("g")
def _relu_grad_g(m: Any, grad: Any, result: Any) -> Any:
    return m.relu_grad(grad, result)


@_relu_grad.vjp("result")
def _relu_grad_result(m: Any, grad: Any) -> Any:
    return m.zeros_like(grad)


def _relu_general(x: Any) -> Any:
    refuse("relu", "bc", x, instead="convert to a number type, or apply it to the parts")
    return _relu(tensor_operand(x))


_relu.call = unary(_relu, _relu_general)


def relu(input: Tensor) -> Tensor:
    """Return ``max(input, 0)``, elementwise; the gradient at zero is zero.

    Parameters
    ----------
    input : Tensor
        Real, not of bools.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is complex or of bools.

    Examples
    --------
    >>> import lucid
    >>> lucid.relu(lucid.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _relu.call(input)


def _leaky_relu_into(xp: Any, out: Array, x: Array, *, slope: float) -> None:
    if slope > 1:
        xp.multiply(x, slope, out=out)
        xp.minimum(x, out, out=out)
        return
    # a slope of zero makes NaN of infinity: what is above zero does not meet it
    xp.minimum(0, x, out=out)
    xp.multiply(out, slope, out=out)
    xp.maximum(x, out, out=out)


@primitive
def _leaky_relu(xp: Any, x: Array, *, slope: float) -> Array:
    return in_blocks(xp, _leaky_relu_into, 0, x, slope=slope)


_LEAKY_RELU = Elementwise("activation", "LeakyRelu", "TS")
_LEAKY_RELU_GRAD = Elementwise("activation", "LeakyReluGrad", "TTS")


@_leaky_relu.cuda
def _leaky_relu_cuda(x: Array, *, slope: float) -> Any:
    return _LEAKY_RELU(x, slope)


def _leaky_relu_grad_into(xp: Any, out: Array, grad: Array, x: Array, above: Array, *, slope: float) -> None:
    claim = xp.greater(x, 0)
    drop_where(xp, out, grad, claim)
    xp.multiply(out, slope, out=out)
    keep_where(xp, above, grad, claim)
    xp.add(out, above, out=out)


@primitive
def _leaky_relu_grad(xp: Any, g: Array, x: Array, *, slope: float) -> Array:
    return in_blocks(xp, _leaky_relu_grad_into, 1, g, x, slope=slope)


@_leaky_relu_grad.cuda
def _leaky_relu_grad_cuda(g: Array, x: Array, *, slope: float) -> Any:
    return _LEAKY_RELU_GRAD(g, x, slope)


@_leaky_relu.vjp
def _leaky_relu_vjp(m: Any, grad: Any, x: Any, slope: float) -> Any:
    return m.leaky_relu_grad(grad, x, slope=slope)


@_leaky_relu_grad.vjp("g")
def _leaky_relu_grad_g(m: Any, grad: Any, x: Any, slope: float) -> Any:
    return m.leaky_relu_grad(grad, x, slope=slope)


@_leaky_relu_grad.vjp("x")
def _leaky_relu_grad_x(m: Any, grad: Any) -> Any:
    return m.zeros_like(grad)


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Return ``max(input, 0) + negative_slope * min(input, 0)``, elementwise.

    Parameters
    ----------
    input : Tensor
        Floating point.
    negative_slope : float
        Slope below zero, and the gradient at zero.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is not floating point.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.leaky_relu(lucid.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return _leaky_relu(floating("leaky_relu", input), slope=float(as_number(negative_slope, "negative_slope")))


def _expm1_below_into(xp: Any, out: Array, x: Array, spare: Array) -> None:
    """Write ``exp(min(x, 0)) - 1`` to `out`."""
    xp.minimum(0, x, out=out)
    if out.dtype == np.float64:
        xp.expm1(out, out=out)
        return
    # 2 tanh(x/2) / (1 - tanh(x/2)), which loses no digits below zero and takes a quarter of the time
    xp.multiply(out, 0.5, out=out)
    xp.tanh(out, out=out)
    xp.subtract(1, out, out=spare)
    xp.divide(out, spare, out=out)
    xp.multiply(out, 2, out=out)


def _elu_into(xp: Any, out: Array, x: Array, spare: Array, *, alpha: float) -> None:
    _expm1_below_into(xp, out, x, spare)
    xp.multiply(out, alpha, out=out)
    xp.maximum(0, x, out=spare)
    xp.add(out, spare, out=out)


@primitive
def _elu(xp: Any, x: Array, *, alpha: float) -> Array:
    return in_blocks(xp, _elu_into, 1, x, alpha=alpha)


_ELU = Elementwise("activation", "Elu", "TS")
_ELU_GRAD = Elementwise("activation", "EluGrad", "TTS")


@_elu.cuda
def _elu_cuda(x: Array, *, alpha: float) -> Any:
    return _ELU(x, alpha)


def _elu_grad_into(xp: Any, out: Array, grad: Array, x: Array, below: Array, slope: Array, *, alpha: float) -> None:
    claim = xp.less_equal(x, 0)
    drop_where(xp, out, grad, claim)
    xp.minimum(x, 0, out=slope)
    xp.exp(slope, out=slope)
    xp.multiply(slope, alpha, out=slope)
    keep_where(xp, below, grad, claim)
    xp.multiply(below, slope, out=below)
    keep_where(xp, slope, below, claim)
    xp.add(out, slope, out=out)


@primitive
def _elu_grad(xp: Any, g: Array, x: Array, *, alpha: float) -> Array:
    return in_blocks(xp, _elu_grad_into, 2, g, x, alpha=alpha)


@_elu_grad.cuda
def _elu_grad_cuda(g: Array, x: Array, *, alpha: float) -> Any:
    return _ELU_GRAD(g, x, alpha)


@_elu.vjp
def _elu_vjp(m: Any, grad: Any, x: Any, alpha: float) -> Any:
    return m.elu_grad(grad, x, alpha=alpha)


@_elu_grad.vjp("g")
def _elu_grad_g(m: Any, grad: Any, x: Any, alpha: float) -> Any:
    return m.elu_grad(grad, x, alpha=alpha)


@_elu_grad.vjp("x")
def _elu_grad_x(m: Any, grad: Any, g: Any, x: Any, alpha: float) -> Any:
    return m.where(m.le(x, 0), m.mul(m.mul(grad, g), m.mul(m.exp(x), alpha)), 0)


def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Return `input` above zero and ``alpha * (exp(input) - 1)`` below, elementwise.

    Parameters
    ----------
    input : Tensor
        Floating point.
    alpha : float
        Depth of the lower branch.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is not floating point.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.elu(lucid.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _elu(floating("elu", input), alpha=float(as_number(alpha, "alpha")))


@primitive
def _hardtanh(xp: Any, x: Array, *, low: float, high: float) -> Array:
    kind = x.dtype.type
    # the bounds in the place in which -0 beats a bound of 0, as in relu
    if x.dtype is HALF:
        return xp.minimum(xp.maximum(x, kind(low)), kind(high))
    return xp.minimum(kind(high), xp.maximum(kind(low), x))


@_hardtanh.cuda
def _hardtanh_cuda(x: Array, *, low: float, high: float) -> Any:
    return CLAMP(x, low, high) if x.dtype.kind in "fV" else CLAMP(x, int(low), int(high))


def _hardtanh_grad_into(xp: Any, out: Array, grad: Array, x: Array, *, low: float, high: float) -> None:
    drop_where(xp, out, grad, xp.less_equal(x, low) | xp.greater_equal(x, high))


@primitive
def _hardtanh_grad(xp: Any, g: Array, x: Array, *, low: float, high: float) -> Array:
    return in_blocks(xp, _hardtanh_grad_into, 0, g, x, low=low, high=high)


_HARDTANH_GRAD = Elementwise("activation", "HardtanhGrad", "TTSS")


@_hardtanh_grad.cuda
def _hardtanh_grad_cuda(g: Array, x: Array, *, low: float, high: float) -> Any:
    return _HARDTANH_GRAD(g, x, low, high)


@_hardtanh.vjp
def _hardtanh_vjp(m: Any, grad: Any, x: Any, low: float, high: float) -> Any:
    return m.hardtanh_grad(grad, x, low=low, high=high)


@_hardtanh_grad.vjp("g")
def _hardtanh_grad_g(m: Any, grad: Any, x: Any, low: float, high: float) -> Any:
    return m.hardtanh_grad(grad, x, low=low, high=high)


@_hardtanh_grad.vjp("x")
def _hardtanh_grad_x(m: Any, grad: Any) -> Any:
    return m.zeros_like(grad)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Return ``min(max(input, min_val), max_val)``, elementwise; the gradient on the bounds is zero.

    Parameters
    ----------
    input : Tensor
        Real, not of bools.
    min_val, max_val : float
        The bounds.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is complex or of bools.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.hardtanh(lucid.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    refuse("hardtanh", "bc", input, instead="convert to a number type, or apply it to the parts")
    low, high = as_number(min_val, "min_val"), as_number(max_val, "max_val")
    return _hardtanh(tensor_operand(input), low=float(low), high=float(high))


def relu6(input: Tensor) -> Tensor:
    """Return ``min(max(input, 0), 6)``, elementwise; the gradient on the bounds is zero.

    Parameters
    ----------
    input : Tensor
        Real, not of bools.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is complex or of bools.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.relu6(lucid.tensor([-3.0, 4.0, 8.0]))
    tensor([0., 4., 6.])
    """
    return hardtanh(input, 0.0, 6.0)
