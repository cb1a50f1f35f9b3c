"""Gelu, exact and by tanh, elementwise, with fused backwards. Common rules: `lucid.ops.base.declaration`."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.modes.state import is_grad_enabled, thread
from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.primitive import primitive
from lucid.errors import CallError
from lucid.ops.base.blocks import give_sign, in_blocks, repeated
from lucid.ops.base.declaration import FLOATING, Formula, Slope, declare, elementwise
from lucid.ops.elementwise.normal_tail import PEAK, tail_into

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.primitive_node import PrimitiveNode
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# from so many elements on, finding the slope beside gelu takes less than what else is done for it
MANY = 1 << 14
# the argument of tanh: RISE * (x + CUBIC * x**3)
RISE, CUBIC = math.sqrt(2 / math.pi), 0.044715


class ApproximationError(CallError):
    """An approximation is unknown."""


def _gelu_into(xp: ModuleType, out: Array, x: Array, tail: Array, size: Array, density: Array, spare: Array) -> None:
    tail_into(xp, tail, size, x, density, spare)
    _from_tail_into(xp, out, x, tail, size)


def _gelu_grad_into(
    xp: ModuleType, out: Array, g: Array, x: Array, tail: Array, size: Array, density: Array, spare: Array
) -> None:
    tail_into(xp, tail, size, x, density, spare)
    _slope_into(xp, tail, x, tail, size, density)
    xp.multiply(tail, g, out=out)


def _from_tail_into(xp: ModuleType, out: Array, x: Array, tail: Array, size: Array) -> None:
    # max(x, 0) - |x| * Q(|x|) with the upper tail Q: no difference of nearly equal numbers far below zero. There it is
    # -0 less the product, so that what underflows keeps its sign; of equal operands NumPy gives the second.
    xp.multiply(tail, size, out=tail)
    xp.maximum(repeated(xp, -0.0, x), x, out=out)
    xp.subtract(out, tail, out=out)


def _slope_into(xp: ModuleType, slope: Array, x: Array, tail: Array, size: Array, density: Array) -> None:
    """Write the slope of gelu to `slope`; it may be `tail`."""
    # 1/2 + sign(x) * (1/2 - s) with the slope s at -|x|, which is the tail less |x| times the density
    xp.multiply(density, size, out=density)
    xp.multiply(density, PEAK, out=density)
    xp.subtract(tail, density, out=slope)
    xp.subtract(0.5, slope, out=slope)
    give_sign(xp, slope, x, density)
    xp.add(slope, 0.5, out=slope)


def _with_slope_into(
    xp: ModuleType, out: Array, slope: Array, x: Array, tail: Array, size: Array, density: Array, spare: Array
) -> None:
    tail_into(xp, tail, size, x, density, spare)
    _slope_into(xp, slope, x, tail, size, density)
    _from_tail_into(xp, out, x, tail, size)


def _tail(m: Namespace, x: Any) -> tuple[Any, Any]:
    """Return ``|x|``, at most 40, and the normal distribution's share above it: beyond 40 zero, in any dtype."""
    size = m.fmin(abs(x), 40)
    return size, 0.5 * m.erfc(size * math.sqrt(0.5))


def _gelu(m: Namespace, x: Any) -> Any:
    size, tail = _tail(m, x)
    return m.maximum(x, -0.0) - size * tail


def _slope(m: Namespace, x: Any) -> Any:
    size, tail = _tail(m, x)
    rise = 0.5 - tail + size * (PEAK * m.exp(-0.5 * size * size))
    return 0.5 + m.where(x > 0, rise, m.where(x < 0, -rise, x))


# by hand on NumPy: gelu, its slope, and both at once share the tail and the density beside it
GELU, GELU_GRAD = Formula(_gelu, _gelu_into), Formula(lambda m, g, x: g * _slope(m, x), _gelu_grad_into)
_BOTH = Formula(lambda m, x: (_gelu(m, x), _slope(m, x)))


def gelu_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    """Return ``grad * g`` times the second derivative of gelu."""
    # beyond 40 it is zero in any dtype, while squares overflow
    square = m.square(m.clamp(x, -40, 40))
    bend = m.mul(m.exp(m.mul(square, -0.5)), m.mul(m.sub(2, square), PEAK))
    return m.mul(m.mul(grad, g), bend)


def _gate(m: Namespace, x: Any) -> Any:
    """Return ``(1 + tanh(u)) / 2 = 1 / (1 + exp(-2 * u))`` with the cubic u: no digits lost below zero."""
    return m.reciprocal(m.exp((m.square(x) * (-2 * RISE * CUBIC) + -2 * RISE) * x) + 1)


def _gelu_tanh_grad(m: Namespace, g: Any, x: Any) -> Any:
    # s * (1 + x * (1 - s) * 2 * u') with the gate s and u' = RISE * (1 + 3 * CUBIC * x**2)
    gate = _gate(m, x)
    rise = (m.square(x) * (6 * RISE * CUBIC) + 2 * RISE) * x
    return (rise * (1 - gate) + 1) * gate * g


GELU_TANH, GELU_TANH_GRAD = Formula(lambda m, x: _gate(m, x) * x), Formula(_gelu_tanh_grad)


def gelu_tanh_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    """Return ``grad * g`` times the second derivative of gelu by tanh."""
    # t' * (u' + x * u'' / 2 - x * t * u'**2) with t = tanh(u), t' = 1 - t**2: zero beyond 16, while powers overflow
    x = m.clamp(x, -16, 16)
    square = m.square(x)
    t = m.tanh(m.mul(m.add(m.mul(square, RISE * CUBIC), RISE), x))
    rise = m.add(m.mul(square, 3 * RISE * CUBIC), RISE)
    bend = m.add(rise, m.mul(square, 3 * RISE * CUBIC))
    bend = m.sub(bend, m.mul(m.mul(x, t), m.square(rise)))
    return m.mul(m.tanh_grad(m.mul(grad, g), t), bend)


declare("gelu_tanh", GELU_TANH, Slope(GELU_TANH_GRAD, gelu_tanh_grad_x), refused=FLOATING)


class _Known(NamedTuple):
    """The slope at an array."""

    slope: Array
    x: weakref.ref[Array]


@primitive
def _gelu_and_slope(xp: ModuleType, x: Array, *, known: _Known) -> Array:
    """Return gelu, and write its slope if it is asked for: half of the work for either is the tail."""
    run = _BOTH.loop.of((x,))
    return in_blocks(xp, *((_with_slope_into, 4) if run is None else (run, 0)), known.slope, x)


@_gelu_and_slope.vjp("x")
def _gelu_and_slope_vjp(m: Namespace, grad: Array, x: Array, known: _Known) -> Any:
    # what is recorded goes back to x, from which the slope came; and a hook may have unpacked another x
    return m.mul(grad, known.slope) if m is not GRAPH and known.x() is x else m.gelu_grad(grad, x)


def _release(node: PrimitiveNode) -> None:
    """Free the saved values, and the slope with them."""
    plan, _, versions, _ = node.kept
    node.kept = plan, None, versions[:0], (None,)


# whoever meets the node need not know how many elements there were
_gelu_and_slope.node_type.__name__ = "GeluBackward0"
_gelu_and_slope.node_type.release = _release
del _gelu_and_slope.node_type._saved_known  # pyright: ignore[reportAttributeAccessIssue] # noqa: SLF001


def _wants_slope(x: Tensor) -> bool:
    """Return whether NumPy is to find the slope beside gelu: for a backward, and many elements.

    Not inside of saved-tensor hooks: what they pack is not kept here, and what they unpack is what counts.
    """
    array = x.array
    return (
        type(array) is np.ndarray
        and array.size > MANY
        and array.itemsize >= 4
        and array.dtype.kind == "f"
        and x.requires_grad
        and is_grad_enabled()
        and not thread.state.saved_hooks
    )


@elementwise(GELU, Slope(GELU_GRAD, gelu_grad_x), refused=FLOATING)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return `input` times the share of the normal distribution below it, elementwise, of a floating-point tensor.

    `approximate` is ``"none"``, or ``"tanh"`` for
    ``0.5 * input * (1 + tanh(sqrt(2 / pi) * (input + 0.044715 * input**3)))``; else an ApproximationError is raised.

    >>> import lucid
    >>> lucid.nn.functional.gelu(lucid.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    """
    if approximate == "none":
        if isinstance(input, TensorBase) and _wants_slope(input):
            x = input.array
            return _gelu_and_slope(input, known=_Known(np.empty(x.shape, x.dtype), weakref.ref(x)))
        return GRAPH.gelu(input)
    if approximate == "tanh":
        return GRAPH.gelu_tanh(input)
    raise ApproximationError(f"gelu: expected approximate to be 'none' or 'tanh', got {approximate!r}")
