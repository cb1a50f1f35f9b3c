"""Mish: a number times the hyperbolic tangent of its softplus, elementwise, with a fused backward.

What holds for it as for all of its kind says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.ops.base.declaration import FLOATING, Slope, elementwise

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def _gate(m: Namespace, x: Any) -> tuple[Any, Any]:
    """Return ``tanh(softplus(x))`` and one minus it, both without cancellation.

    With w = exp(-abs(x)) they are as 1 + 2w to 2w^2 where x is positive, and as 2w + w^2 to 2 elsewhere.
    """
    power = m.exp(-abs(x))
    twice, square, below = power * 2, m.square(power), x <= 0
    up, down = m.where(below, twice + square, twice + 1), m.where(below, 2, square * 2)
    return up / (up + down), down / (up + down)


def _mish_grad(m: Namespace, g: Any, x: Any) -> Any:
    # t + x * s * (1 - t) * (1 + t), t the gate and s the sigmoid
    gate, rest = _gate(m, x)
    return (m.sigmoid(x) * x * rest * (gate + 1) + gate) * g


def _mish_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    # (1 - t * t) * s * (2 + x * (1 - s - 2 * t * s)), zero far from zero, where the product overflows
    x = m.clamp(x, -1000, 1000)
    slope = m.sigmoid(x)
    gate = m.tanh(m.softplus(x, beta=1.0, threshold=20.0))
    bend = m.add(m.mul(x, m.sub(1, m.mul(slope, m.add(m.mul(gate, 2), 1)))), 2)
    return m.mul(m.tanh_grad(m.mul(grad, g), gate), m.mul(slope, bend))


@elementwise(lambda m, x: _gate(m, x)[0] * x, Slope(_mish_grad, _mish_grad_x), refused=FLOATING)
def mish(input: Tensor) -> Tensor:
    """Return ``input * tanh(softplus(input))``, elementwise, of a floating-point tensor.

    >>> import lucid
    >>> lucid.nn.functional.mish(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """
    return GRAPH.mish(input)
