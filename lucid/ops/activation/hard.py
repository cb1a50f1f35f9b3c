"""Sigmoid and silu made of straight pieces, and functions that shrink, elementwise, each with a fused backward.

What holds for them all says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import GRAPH
from lucid.errors import SettingError
from lucid.ops.base.blocks import drop_where
from lucid.ops.base.declaration import FLOATING, Slope, elementwise, flat
from lucid.ops.base.scalars import as_number

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def _six_gates_into(xp: ModuleType, out: Array, x: Array) -> None:
    """Write ``min(max(x + 3, 0), 6)`` to `out`."""
    xp.add(x, 3, out=out)
    xp.maximum(out, 0, out=out)
    xp.minimum(out, 6, out=out)


def _hardsigmoid_into(xp: ModuleType, out: Array, x: Array) -> None:
    _six_gates_into(xp, out, x)
    xp.divide(out, 6, out=out)


def _hardsigmoid_grad_into(xp: ModuleType, out: Array, grad: Array, x: Array, sixth: Array) -> None:
    xp.divide(grad, 6, out=sixth)
    # NaN is outside
    drop_where(xp, out, sixth, ~(xp.greater(x, -3) & xp.less(x, 3)))


@elementwise(
    _hardsigmoid_into,
    "activation.Hardsigmoid",
    Slope("HardsigmoidGrad", _hardsigmoid_grad_into, flat),
    refused=FLOATING,
)
def hardsigmoid(input: Tensor) -> Tensor:
    """Return ``min(max(input + 3, 0), 6) / 6``, elementwise, of a floating-point tensor.

    The gradient at -3 and 3 is zero.

    >>> import lucid
    >>> lucid.nn.functional.hardsigmoid(lucid.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    return GRAPH.hardsigmoid(input)


def _hardswish_into(xp: ModuleType, out: Array, x: Array) -> None:
    _six_gates_into(xp, out, x)
    xp.multiply(out, x, out=out)
    xp.divide(out, 6, out=out)


def _hardswish_grad_into(xp: ModuleType, out: Array, grad: Array, x: Array, slope: Array) -> None:
    xp.divide(x, 3, out=slope)
    xp.add(slope, 0.5, out=slope)
    # NaN counts as above
    xp.copyto(slope, 1, where=~xp.less(x, 3))
    xp.multiply(slope, grad, out=slope)
    drop_where(xp, out, slope, xp.less_equal(x, -3))


def _hardswish_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    inside = m.logical_and(m.gt(x, -3), m.lt(x, 3))
    return m.where(inside, m.div(m.mul(grad, g), 3), 0)


@elementwise(
    _hardswish_into,
    "activation.Hardswish",
    Slope("HardswishGrad", _hardswish_grad_into, _hardswish_grad_x),
    refused=FLOATING,
)
def hardswish(input: Tensor) -> Tensor:
    """Return ``input * min(max(input + 3, 0), 6) / 6``, elementwise, of a floating-point tensor.

    The gradient at -3 is 0, at 3 it is 1. (Howard and others, Searching for MobileNetV3, 2019.)

    >>> import lucid
    >>> lucid.nn.functional.hardswish(lucid.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000,  1.1250,  4.0000])
    """
    return GRAPH.hardswish(input)


def _within(xp: ModuleType, x: Array, lambd: float) -> Any:
    return xp.greater_equal(x, -lambd) & xp.less_equal(x, lambd)


def _hardshrink_into(xp: ModuleType, out: Array, x: Array, *, lambd: float) -> None:
    drop_where(xp, out, x, _within(xp, x, lambd))


def _shrink_grad_into(xp: ModuleType, out: Array, grad: Array, x: Array, *, lambd: float) -> None:
    drop_where(xp, out, grad, _within(xp, x, lambd))


@elementwise(_hardshrink_into, "activation.Hardshrink", Slope("ShrinkGrad", _shrink_grad_into, flat), refused=FLOATING)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return `input` where it is below ``-lambd`` or above `lambd`, else 0, elementwise, of a floating-point tensor.

    >>> import lucid
    >>> lucid.hardshrink(lucid.tensor([-1.0, 0.3, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    return GRAPH.hardshrink(input, lambd=float(as_number(lambd, "lambd")))


def _softshrink_into(xp: ModuleType, out: Array, x: Array, *, lambd: float) -> None:
    xp.clip(x, -lambd, lambd, out=out)
    xp.subtract(x, out, out=out)


@elementwise(_softshrink_into, "activation.Softshrink", Slope("ShrinkGrad", _shrink_grad_into, flat), refused=FLOATING)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return `input` moved towards zero by `lambd`, and 0 where it is nearer, elementwise, of a floating-point tensor.

    A `lambd` below 0 raises a SettingError.

    >>> import lucid
    >>> lucid.nn.functional.softshrink(lucid.tensor([-1.0, 0.3, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    lambd = float(as_number(lambd, "lambd"))
    if not lambd >= 0:
        raise SettingError(f"softshrink: lambda must be greater or equal to 0, but found to be {lambd}")
    return GRAPH.softshrink(input, lambd=lambd)


def _threshold_into(xp: ModuleType, out: Array, x: Array, *, threshold: float, value: float) -> None:
    xp.copyto(out, x)
    xp.copyto(out, value, where=xp.less_equal(x, threshold))


def _threshold_grad_into(xp: ModuleType, out: Array, grad: Array, x: Array, *, threshold: float, value: float) -> None:
    drop_where(xp, out, grad, xp.less_equal(x, threshold))


@elementwise(
    _threshold_into, "activation.Threshold", Slope("ThresholdGrad", _threshold_grad_into, flat), refused=FLOATING
)
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """Return `input` where it is above `threshold` and `value` elsewhere, elementwise, of a floating-point tensor.

    The gradient at `threshold` is zero.

    >>> import lucid
    >>> lucid.threshold(lucid.tensor([-1.0, 0.3, 2.0]), 0.5, 9.0)
    tensor([9., 9., 2.])
    """
    limit, other = float(as_number(threshold, "threshold")), float(as_number(value, "value"))
    return GRAPH.threshold(input, threshold=limit, value=other)
