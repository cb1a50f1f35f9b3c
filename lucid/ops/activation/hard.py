"""Sigmoid and silu made of straight pieces, and functions that shrink, elementwise, each with a fused backward.

What holds for them all says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.errors import SettingError
from lucid.ops.base.declaration import FLOATING, Slope, elementwise, flat
from lucid.ops.base.scalars import as_number

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def _six_gates(m: Namespace, x: Any) -> Any:
    return m.minimum(m.maximum(x + 3, 0), 6)


@elementwise(
    lambda m, x: _six_gates(m, x) / 6,
    # NaN is outside
    Slope(lambda m, g, x: m.where((x > -3) & (x < 3), g / 6, 0), flat),
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


def _hardswish_grad(m: Namespace, g: Any, x: Any) -> Any:
    # NaN counts as above
    return m.where(x <= -3, 0, m.where(x < 3, x / 3 + 0.5, 1) * g)


def _hardswish_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    inside = m.logical_and(m.gt(x, -3), m.lt(x, 3))
    return m.where(inside, m.div(m.mul(grad, g), 3), 0)


@elementwise(lambda m, x: _six_gates(m, x) * x / 6, Slope(_hardswish_grad, _hardswish_grad_x), refused=FLOATING)
def hardswish(input: Tensor) -> Tensor:
    """Return ``input * min(max(input + 3, 0), 6) / 6``, elementwise, of a floating-point tensor.

    The gradient at -3 is 0, at 3 it is 1. (Howard and others, Searching for MobileNetV3, 2019.)

    >>> import lucid
    >>> lucid.nn.functional.hardswish(lucid.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000,  1.1250,  4.0000])
    """
    return GRAPH.hardswish(input)


def _shrink_grad(m: Namespace, g: Any, x: Any, *, lambd: Any) -> Any:
    return m.where((x >= -lambd) & (x <= lambd), 0, g)


def _hardshrink(m: Namespace, x: Any, *, lambd: Any) -> Any:
    return _shrink_grad(m, x, x, lambd=lambd)


@elementwise(_hardshrink, Slope(_shrink_grad, flat), refused=FLOATING)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return `input` if it is below ``-lambd`` or above `lambd`, else 0, elementwise, of a floating-point tensor.

    >>> import lucid
    >>> lucid.hardshrink(lucid.tensor([-1.0, 0.3, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    return GRAPH.hardshrink(input, lambd=float(as_number(lambd, "lambd")))


def _softshrink(m: Namespace, x: Any, *, lambd: Any) -> Any:
    return x - m.clamp(x, -lambd, lambd)


@elementwise(_softshrink, Slope(_shrink_grad, flat), refused=FLOATING)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return `input` moved towards zero by `lambd`, but not past it, elementwise, of a floating-point tensor.

    A `lambd` below 0 raises a SettingError.

    >>> import lucid
    >>> lucid.nn.functional.softshrink(lucid.tensor([-1.0, 0.3, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    lambd = float(as_number(lambd, "lambd"))
    if not lambd >= 0:
        raise SettingError(f"softshrink: lambda must be greater or equal to 0, but found to be {lambd}")
    return GRAPH.softshrink(input, lambd=lambd)


def _threshold(m: Namespace, x: Any, *, threshold: Any, value: Any) -> Any:
    return m.where(x <= threshold, value, x)


def _threshold_grad(m: Namespace, g: Any, x: Any, *, threshold: Any, value: Any) -> Any:
    return m.where(x <= threshold, 0, g)


@elementwise(_threshold, Slope(_threshold_grad, flat), refused=FLOATING)
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """Return `input` if it is above `threshold`, else `value`, elementwise, of a floating-point tensor.

    The gradient at `threshold` is zero.

    >>> import lucid
    >>> lucid.threshold(lucid.tensor([-1.0, 0.3, 2.0]), 0.5, 9.0)
    tensor([9., 9., 2.])
    """
    limit, other = float(as_number(threshold, "threshold")), float(as_number(value, "value"))
    return GRAPH.threshold(input, threshold=limit, value=other)
