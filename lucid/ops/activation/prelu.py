"""Relu with a slope below zero that is learned, or drawn.

What holds for them says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.autograd.modes.casting import dtype_within
from lucid.autograd.recording.namespace import GRAPH
from lucid.base.dtype import dtype_of
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.activation.relu import leaky_relu
from lucid.ops.base.blocks import rounded_once
from lucid.ops.base.declaration import Formula, Fused, elementwise
from lucid.ops.base.operands import floating, tensor_operand
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.creation.random import rand_like
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def _chosen(xp: ModuleType, x: Array, slope: Array) -> Array:
    return xp.where(x > 0, x, slope * x)


def _sloped(xp: ModuleType, x: Array, slope: Array) -> Array:
    return rounded_once(_chosen, xp, x, slope)


@elementwise(
    Formula(lambda m, x, slope: m.where(x > 0, x, x * slope), _sloped),
    Fused(lambda m, grad, x, slope, x_shape: m.sum_to(m.where(m.gt(x, 0), grad, m.mul(grad, slope)), shape=x_shape)),
    Fused(lambda m, grad, x, slope_shape: m.sum_to(m.where(m.gt(x, 0), 0, m.mul(grad, x)), shape=slope_shape)),
    saved_as={"slope": "weight"},
)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return `input` above zero and ``weight * input`` elsewhere, elementwise, of a floating-point tensor.

    `weight` has one element, or one for each channel, which are dimension 1 of `input`, and the dtype of `input`; a
    ShapeError or DtypeError says what does not fit. (He, Zhang, Ren, Sun, Delving deep into rectifiers, 2015.)

    >>> import lucid
    >>> lucid.prelu(lucid.tensor([-2.0, 3.0]), lucid.tensor(0.25))
    tensor([-0.5000,  3.0000])
    """
    x, slope = floating("prelu", input), tensor_operand(weight)
    if dtype_within(slope) != dtype_within(x):
        raise DtypeError(
            f"prelu: expected a weight of the dtype of the input, {dtype_of(x.array)}, got {dtype_of(slope.array)}"
        )
    ndim, shape = x.array.ndim, slope.array.shape
    if len(shape) > 1:
        raise ShapeError(f"prelu: `weight` should be a scalar or 1D tensor, but got one of shape {list(shape)}")
    if slope.array.size != 1:
        channels = x.array.shape[1] if ndim > 1 else 1
        if slope.array.size != channels:
            raise ShapeError(
                f"prelu: Mismatch of parameter numbers and input channel size: weight has {slope.array.size} elements, "
                f"and the input of shape {list(x.array.shape)} {channels} channels"
            )
        slope = reshape(slope, (-1,) + (1,) * (ndim - 2))
    elif shape:
        slope = reshape(slope, ())
    return GRAPH.prelu(x, slope)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """Return `input` above zero and ``slope * input`` elsewhere, elementwise, of a floating-point tensor.

    The slope is ``(lower + upper) / 2``; with `training` each element has its own, drawn uniformly between `lower` and
    `upper` from the default generator of the device. Bounds that are not finite and in order raise a SettingError. (Xu,
    Wang, Chen, Li, 2015.)

    >>> import lucid
    >>> lucid.nn.functional.rrelu(lucid.tensor([-2.0, 3.0]), 0.25, 0.75)
    tensor([-1.,  3.])
    """
    low, high = float(as_number(lower, "lower")), float(as_number(upper, "upper"))
    check_bounds(low, high)
    x = floating("rrelu", input)
    if not as_bool(training, "training"):
        return leaky_relu(x, (low + high) / 2)
    return GRAPH.prelu(x, rand_like(x) * (high - low) + low)


def check_bounds(low: float, high: float) -> None:
    """Refuse bounds of slopes without a number between them."""
    if not (low <= high and abs(low) + abs(high) < float("inf")):
        raise SettingError(f"rrelu: expected finite lower <= upper, got {low} and {high}")
