"""Mish: a number times the hyperbolic tangent of its softplus, elementwise, with a fused backward.

What holds for it as for all of its kind says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import GRAPH
from lucid.ops.activation.sigmoid import sigmoid_into
from lucid.ops.base.declaration import FLOATING, Slope, elementwise

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def _gate_into(xp: ModuleType, out: Array, x: Array, rest: Array, power: Array) -> None:
    """Write ``tanh(softplus(x))`` to `out` and one minus it to `rest`, both without cancellation.

    With w = exp(-abs(x)) they are as 1 + 2w to 2w^2 where x is positive, and as 2w + w^2 to 2 elsewhere.
    """
    below = xp.less_equal(x, 0)
    xp.abs(x, out=power)
    xp.negative(power, out=power)
    xp.exp(power, out=power)
    xp.multiply(power, 2, out=rest)
    xp.add(rest, 1, out=out)
    xp.square(power, out=power)
    xp.add(rest, power, out=rest)
    xp.copyto(out, rest, where=below)
    xp.multiply(power, 2, out=rest)
    xp.copyto(rest, 2, where=below)
    xp.add(out, rest, out=power)
    xp.divide(out, power, out=out)
    xp.divide(rest, power, out=rest)


def _mish_into(xp: ModuleType, out: Array, x: Array, rest: Array, power: Array) -> None:
    _gate_into(xp, out, x, rest, power)
    xp.multiply(out, x, out=out)


def _mish_grad_into(xp: ModuleType, out: Array, g: Array, x: Array, rest: Array, slope: Array) -> None:
    # t + x * s * (1 - t) * (1 + t), t the gate and s the sigmoid
    _gate_into(xp, out, x, rest, slope)
    sigmoid_into(xp, slope, x)
    xp.multiply(slope, x, out=slope)
    xp.multiply(slope, rest, out=slope)
    xp.add(out, 1, out=rest)
    xp.multiply(slope, rest, out=slope)
    xp.add(out, slope, out=out)
    xp.multiply(out, g, out=out)


def _mish_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    # (1 - t * t) * s * (2 + x * (1 - s - 2 * t * s))
    slope = m.sigmoid(x)
    gate = m.tanh(m.softplus(x, beta=1.0, threshold=20.0))
    bend = m.add(m.mul(x, m.sub(1, m.mul(slope, m.add(m.mul(gate, 2), 1)))), 2)
    return m.mul(m.tanh_grad(m.mul(grad, g), gate), m.mul(slope, bend))


@elementwise(_mish_into, "sigmoid.Mish", Slope("MishGrad", _mish_grad_into, _mish_grad_x), refused=FLOATING)
def mish(input: Tensor) -> Tensor:
    """Return ``input * tanh(softplus(input))``, elementwise, of a floating-point tensor.

    >>> import lucid
    >>> lucid.nn.functional.mish(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """
    return GRAPH.mish(input)
