"""Sigmoid, tanh and the smooth activation functions made of them, elementwise, each with a fused backward.

What holds for them all says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.ops.base.declaration import FLOATING, Formula, Slope, elementwise
from lucid.ops.base.scalars import as_number

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


SIGMOID = Formula(lambda m, x: m.reciprocal(m.exp(-x) + 1))
SIGMOID_GRAD = Formula(lambda m, g, result: (1 - result) * result * g)
TANH_GRAD = Formula(lambda m, g, result: (1 - m.square(result)) * g)


@elementwise(
    SIGMOID,
    Slope(
        SIGMOID_GRAD,
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


@elementwise(
    np.tanh,
    Slope(
        TANH_GRAD,
        lambda m, grad, g, result: m.mul(m.mul(grad, g), m.mul(result, -2)),
    ),
)
def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent, elementwise.

    >>> import lucid
    >>> lucid.tanh(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    return GRAPH.tanh(input)


def _silu_grad(m: Namespace, g: Any, x: Any) -> Any:
    # s * (1 + x * (1 - s))
    gate = m.sigmoid(x)
    return ((1 - gate) * x + 1) * gate * g


SILU, SILU_GRAD = Formula(lambda m, x: m.sigmoid(x) * x), Formula(_silu_grad)


def silu_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    """Return ``grad * g`` times the second derivative of silu."""
    # s'(x) * (2 + x * (1 - 2 * s))
    gate = m.sigmoid(x)
    bend = m.add(m.mul(x, m.sub(1, m.mul(gate, 2))), 2)
    return m.mul(m.sigmoid_grad(m.mul(grad, g), gate), bend)


@elementwise(SILU, Slope(SILU_GRAD, silu_grad_x), refused=FLOATING)
def silu(input: Tensor) -> Tensor:
    """Return ``input * sigmoid(input)``, elementwise, of a floating-point tensor.

    >>> import lucid
    >>> lucid.nn.functional.silu(lucid.tensor([0.0, 2.0]))
    tensor([0.0000, 1.7616])
    """
    return GRAPH.silu(input)


def _softplus(m: Namespace, x: Any, *, beta: float, threshold: float) -> Any:
    scaled = x * beta
    smooth = (m.log1p_within(m.exp(-abs(scaled))) + m.maximum(scaled, 0)) / beta
    return m.where(scaled > threshold, x, smooth, rare=True)


def _softplus_grad(m: Namespace, g: Any, x: Any, *, beta: float, threshold: float) -> Any:
    scaled = x * beta
    return m.where(scaled > threshold, g, m.sigmoid(scaled) * g, rare=True)


def _softplus_grad_x(m: Namespace, grad: Array, g: Array, x: Array, beta: float, threshold: float) -> Any:
    scaled = m.mul(x, beta)
    bend = m.sigmoid_grad(m.mul(m.mul(grad, g), beta), m.sigmoid(scaled))
    return m.where(m.gt(scaled, threshold), 0, bend)


@elementwise(_softplus, Slope(_softplus_grad, _softplus_grad_x), refused=FLOATING)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return ``log(1 + exp(beta * input)) / beta``, elementwise, of a floating-point tensor: a smooth relu.

    The sharpness `beta` is not zero; where ``beta * input`` is above `threshold`, the result is `input` itself.

    >>> import lucid
    >>> lucid.nn.functional.softplus(lucid.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    factor, limit = as_number(beta, "beta"), as_number(threshold, "threshold")
    return GRAPH.softplus(input, beta=float(factor), threshold=float(limit))


@elementwise(
    lambda m, x: m.minimum(x, 0) - m.log1p_within(m.exp(-abs(x))),
    Slope(
        lambda m, g, x: m.sigmoid(-x) * g,
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
