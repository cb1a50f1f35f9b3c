"""Gelu, exact and by tanh, elementwise, with fused backwards; what holds for them says `lucid.ops.base.declaration`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import GRAPH
from lucid.errors import LucidError
from lucid.ops.base.blocks import give_sign
from lucid.ops.base.declaration import FLOATING, Slope, declare, elementwise
from lucid.ops.elementwise.normal_tail import PEAK, tail_into, tail_slope_into

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor

# the argument of tanh: RISE * (x + CUBIC * x**3)
RISE, CUBIC = math.sqrt(2 / math.pi), 0.044715


class ApproximationError(LucidError, RuntimeError, ValueError):
    """An approximation is unknown."""


def gelu_into(xp: ModuleType, out: Array, x: Array, tail: Array, size: Array, density: Array, spare: Array) -> None:
    """Write gelu to `out`."""
    # max(x, 0) - |x| * Q(|x|) with the upper tail Q: no difference of nearly equal numbers far below zero. There it is
    # -0 less the product, so that what underflows keeps its sign; of equal operands NumPy gives the second.
    tail_into(xp, tail, size, x, density, spare)
    xp.multiply(tail, size, out=tail)
    xp.maximum(-0.0, x, out=out)
    xp.subtract(out, tail, out=out)


def gelu_grad_into(
    xp: ModuleType, out: Array, g: Array, x: Array, slope: Array, size: Array, density: Array, spare: Array
) -> None:
    """Write `g` times the slope of gelu to `out`."""
    # 1/2 + sign(x) * (1/2 - s) with the slope s at -|x|
    tail_slope_into(xp, slope, size, x, density, spare)
    xp.subtract(0.5, slope, out=slope)
    give_sign(xp, slope, x, spare)
    xp.add(slope, 0.5, out=slope)
    xp.multiply(slope, g, out=out)


def gelu_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    """Return ``grad * g`` times the second derivative of gelu."""
    square = m.square(x)
    bend = m.mul(m.exp(m.mul(square, -0.5)), m.mul(m.sub(2, square), PEAK))
    return m.mul(m.mul(grad, g), bend)


def _gate_into(xp: ModuleType, out: Array, x: Array) -> None:
    """Write ``(1 + tanh(u)) / 2 = 1 / (1 + exp(-2 * u))``, with the cubic u, to `out`: no digits lost below zero."""
    xp.square(x, out=out)
    xp.multiply(out, -2 * RISE * CUBIC, out=out)
    xp.add(out, -2 * RISE, out=out)
    xp.multiply(out, x, out=out)
    xp.exp(out, out=out)
    xp.add(out, 1, out=out)
    xp.reciprocal(out, out=out)


def gelu_tanh_into(xp: ModuleType, out: Array, x: Array) -> None:
    """Write gelu by tanh to `out`."""
    _gate_into(xp, out, x)
    xp.multiply(out, x, out=out)


def gelu_tanh_grad_into(xp: ModuleType, out: Array, g: Array, x: Array, gate: Array, rest: Array) -> None:
    """Write `g` times the slope of gelu by tanh to `out`."""
    # s * (1 + x * (1 - s) * 2 * u') with the gate s and u' = RISE * (1 + 3 * CUBIC * x**2)
    _gate_into(xp, gate, x)
    xp.square(x, out=out)
    xp.multiply(out, 6 * RISE * CUBIC, out=out)
    xp.add(out, 2 * RISE, out=out)
    xp.multiply(out, x, out=out)
    xp.subtract(1, gate, out=rest)
    xp.multiply(out, rest, out=out)
    xp.add(out, 1, out=out)
    xp.multiply(out, gate, out=out)
    xp.multiply(out, g, out=out)


def gelu_tanh_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    """Return ``grad * g`` times the second derivative of gelu by tanh."""
    # t' * (u' + x * u'' / 2 - x * t * u'**2) with t = tanh(u), t' = 1 - t**2
    square = m.square(x)
    t = m.tanh(m.mul(m.add(m.mul(square, RISE * CUBIC), RISE), x))
    rise = m.add(m.mul(square, 3 * RISE * CUBIC), RISE)
    bend = m.add(rise, m.mul(square, 3 * RISE * CUBIC))
    bend = m.sub(bend, m.mul(m.mul(x, t), m.square(rise)))
    return m.mul(m.tanh_grad(m.mul(grad, g), t), bend)


declare(
    "gelu_tanh",
    gelu_tanh_into,
    "gelu.GeluTanh",
    Slope("GeluTanhGrad", gelu_tanh_grad_into, gelu_tanh_grad_x),
    refused=FLOATING,
)


@elementwise(gelu_into, "gelu.Gelu", Slope("GeluGrad", gelu_grad_into, gelu_grad_x), refused=FLOATING)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return `input` times the share of the normal distribution below it, elementwise, of a floating-point tensor.

    `approximate` is ``"none"``, or ``"tanh"`` for
    ``0.5 * input * (1 + tanh(sqrt(2 / pi) * (input + 0.044715 * input**3)))``; else an ApproximationError is raised.

    >>> import lucid
    >>> lucid.nn.functional.gelu(lucid.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    """
    if approximate == "none":
        return GRAPH.gelu(input)
    if approximate == "tanh":
        return GRAPH.gelu_tanh(input)
    raise ApproximationError(f"gelu: expected approximate to be 'none' or 'tanh', got {approximate!r}")
