"""Sigmoid, tanh and the smooth activation functions made of them, elementwise, each with a fused backward.

What holds for them all says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH
from lucid.ops.base.declaration import FLOATING, Slope, elementwise
from lucid.ops.base.scalars import as_number

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def sigmoid_into(xp: ModuleType, out: Array, x: Array) -> None:
    """Write ``1 / (1 + exp(-x))`` to `out`, which may be `x`."""
    xp.negative(x, out=out)
    xp.exp(out, out=out)
    xp.add(out, 1, out=out)
    xp.reciprocal(out, out=out)


def sigmoid_grad_into(xp: ModuleType, out: Array, g: Array, result: Array) -> None:
    """Write `g` times the slope of sigmoid to `out`, from what sigmoid gave."""
    xp.subtract(1, result, out=out)
    xp.multiply(out, result, out=out)
    xp.multiply(out, g, out=out)


@elementwise(
    sigmoid_into,
    "sigmoid.Sigmoid",
    Slope(
        "SigmoidGrad",
        sigmoid_grad_into,
        lambda m, grad, g, result: m.mul(m.mul(grad, g), m.sub(1, m.mul(result, 2))),
    ),
)
def sigmoid(input: Tensor) -> Tensor:
    """Return ``1 / (1 + exp(-input))``, elementwise.

    >>> import lucid
    >>> lucid.sigmoid(lucid.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """
    return GRAPH.sigmoid(input)


def tanh_grad_into(xp: ModuleType, out: Array, g: Array, result: Array) -> None:
    """Write `g` times the slope of tanh to `out`, which may be `result`: what tanh gave."""
    xp.square(result, out=out)
    xp.subtract(1, out, out=out)
    xp.multiply(out, g, out=out)


@elementwise(
    np.tanh,
    "sigmoid.Tanh",
    Slope("TanhGrad", tanh_grad_into, lambda m, grad, g, result: m.mul(m.mul(grad, g), m.mul(result, -2))),
)
def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent, elementwise.

    >>> import lucid
    >>> lucid.tanh(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    return GRAPH.tanh(input)


def silu_into(xp: ModuleType, out: Array, x: Array) -> None:
    """Write silu to `out`."""
    sigmoid_into(xp, out, x)
    xp.multiply(out, x, out=out)


def silu_grad_into(xp: ModuleType, out: Array, g: Array, x: Array, gate: Array) -> None:
    """Write `g` times the slope of silu to `out`."""
    # s * (1 + x * (1 - s))
    sigmoid_into(xp, gate, x)
    xp.subtract(1, gate, out=out)
    xp.multiply(out, x, out=out)
    xp.add(out, 1, out=out)
    xp.multiply(out, gate, out=out)
    xp.multiply(out, g, out=out)


def silu_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    """Return ``grad * g`` times the second derivative of silu."""
    # s'(x) * (2 + x * (1 - 2 * s))
    gate = m.sigmoid(x)
    bend = m.add(m.mul(x, m.sub(1, m.mul(gate, 2))), 2)
    return m.mul(m.sigmoid_grad(m.mul(grad, g), gate), bend)


@elementwise(silu_into, "sigmoid.Silu", Slope("SiluGrad", silu_grad_into, silu_grad_x), refused=FLOATING)
def silu(input: Tensor) -> Tensor:
    """Return ``input * sigmoid(input)``, elementwise, of a floating-point tensor.

    >>> import lucid
    >>> lucid.nn.functional.silu(lucid.tensor([0.0, 2.0]))
    tensor([0.0000, 1.7616])
    """
    return GRAPH.silu(input)


def _log1p_exp_into(xp: ModuleType, out: Array, x: Array, small: Array, sum: Array) -> None:
    """Write ``log(1 + exp(-|x|))`` to `out`."""
    xp.abs(x, out=small)
    xp.negative(small, out=small)
    xp.exp(small, out=small)
    # log(s) + (small - (s - 1)) / s with s = 1 + small as rounded: exact, and a quarter of the time of NumPy's log1p
    xp.add(small, 1, out=sum)
    xp.subtract(sum, 1, out=out)
    xp.subtract(small, out, out=small)
    xp.divide(small, sum, out=small)
    xp.log(sum, out=out)
    xp.add(out, small, out=out)


def _softplus_into(
    xp: ModuleType, out: Array, x: Array, scaled: Array, small: Array, sum: Array, *, beta: float, threshold: float
) -> None:
    xp.multiply(x, beta, out=scaled)
    _log1p_exp_into(xp, out, scaled, small, sum)
    xp.maximum(scaled, 0, out=small)
    xp.add(out, small, out=out)
    xp.divide(out, beta, out=out)
    xp.copyto(out, x, where=xp.greater(scaled, threshold))


def _softplus_grad_into(
    xp: ModuleType, out: Array, g: Array, x: Array, scaled: Array, *, beta: float, threshold: float
) -> None:
    xp.multiply(x, beta, out=scaled)
    sigmoid_into(xp, out, scaled)
    xp.multiply(out, g, out=out)
    xp.copyto(out, g, where=xp.greater(scaled, threshold))


def _softplus_grad_x(m: Namespace, grad: Array, g: Array, x: Array, beta: float, threshold: float) -> Any:
    scaled = m.mul(x, beta)
    bend = m.sigmoid_grad(m.mul(m.mul(grad, g), beta), m.sigmoid(scaled))
    return m.where(m.gt(scaled, threshold), 0, bend)


@elementwise(
    _softplus_into,
    "sigmoid.Softplus",
    Slope("SoftplusGrad", _softplus_grad_into, _softplus_grad_x),
    refused=FLOATING,
)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return ``log(1 + exp(beta * input)) / beta``, elementwise, of a floating-point tensor: a smooth relu.

    The sharpness `beta` is not zero; where ``beta * input`` is above `threshold`, the result is `input` itself.

    >>> import lucid
    >>> lucid.nn.functional.softplus(lucid.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    factor, limit = as_number(beta, "beta"), as_number(threshold, "threshold")
    return GRAPH.softplus(input, beta=float(factor), threshold=float(limit))


def _logsigmoid_into(xp: ModuleType, out: Array, x: Array, small: Array, sum: Array) -> None:
    _log1p_exp_into(xp, out, x, small, sum)
    xp.minimum(x, 0, out=small)
    xp.subtract(small, out, out=out)


def _logsigmoid_grad_into(xp: ModuleType, out: Array, g: Array, x: Array) -> None:
    xp.negative(x, out=out)
    sigmoid_into(xp, out, out)
    xp.multiply(out, g, out=out)


@elementwise(
    _logsigmoid_into,
    "sigmoid.Logsigmoid",
    Slope(
        "LogsigmoidGrad",
        _logsigmoid_grad_into,
        lambda m, grad, g, x: m.neg(m.sigmoid_grad(m.mul(grad, g), m.sigmoid(x))),
    ),
    refused=FLOATING,
)
def logsigmoid(input: Tensor) -> Tensor:
    """Return ``log(sigmoid(input))``, elementwise, of a floating-point tensor, without underflow.

    >>> import lucid
    >>> lucid.nn.functional.logsigmoid(lucid.tensor([0.0, -200.0]))
    tensor([  -0.6931, -200.0000])
    """
    return GRAPH.logsigmoid(input)
