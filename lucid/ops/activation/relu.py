"""Activation functions made of straight pieces, elementwise, each with a fused backward.

What holds for them all says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.cpu.halves import of_halves
from lucid.cuda.launch.elementwise import NUMBERS
from lucid.errors import SettingError
from lucid.ops.base.declaration import FLOATING, Formula, Slope, elementwise, flat
from lucid.ops.base.scalars import as_number
from lucid.ops.elementwise.selection import CLAMP

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


HALF = np.dtype(np.float16)
_maximum_of_halves = of_halves(np.maximum)
# What functions of real numbers that keep integers refuse.
NUMBER = ("bc", "convert to a number type, or apply it to the parts")


def _relu(xp: ModuleType, x: Array) -> Array:
    # of equal operands NumPy gives the second, in float16 the first: -0 stays -0
    if x.itemsize == 2 and xp is np:
        zero = np.zeros((), x.dtype)
        return _maximum_of_halves(x, zero) if x.dtype is HALF else _maximum_of_halves(zero, x)
    return xp.maximum(x, 0) if x.dtype is HALF else xp.maximum(0, x)


def relu_grad(m: Namespace, g: Any, result: Any) -> Any:
    """Return `g` if `result`, or the input of relu, is above zero, and zero otherwise, elementwise."""
    return m.where(result <= 0, 0, g)


@elementwise(Formula(lambda m, x: m.where(x < 0, 0, x), _relu), Slope(relu_grad, flat), refused=NUMBER, dtypes=NUMBERS)
def relu(input: Tensor) -> Tensor:
    """Return ``max(input, 0)``, elementwise, of a real tensor but no bools; the gradient at zero is zero.

    >>> import lucid
    >>> lucid.relu(lucid.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return GRAPH.relu(input)


def _leaky_relu_into(xp: ModuleType, out: Array, x: Array, *, slope: float) -> None:
    if slope > 1:
        xp.multiply(x, slope, out=out)
        xp.minimum(x, out, out=out)
        return
    # a slope of zero makes NaN of infinity: what is above zero does not meet it
    xp.minimum(0, x, out=out)
    xp.multiply(out, slope, out=out)
    xp.maximum(x, out, out=out)


def _leaky_relu_grad(m: Namespace, g: Any, x: Any, *, slope: Any) -> Any:
    return m.where(x > 0, g, g * slope)


def _leaky_relu(m: Namespace, x: Any, *, slope: Any) -> Any:
    return _leaky_relu_grad(m, x, x, slope=slope)


@elementwise(
    Formula(_leaky_relu, _leaky_relu_into),
    Slope(_leaky_relu_grad, flat),
    refused=FLOATING,
    saved_as={"slope": "negative_slope"},
)
def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Return ``max(input, 0) + negative_slope * min(input, 0)``, elementwise, of a floating-point tensor.

    The gradient at zero is `negative_slope`.

    >>> import lucid
    >>> lucid.nn.functional.leaky_relu(lucid.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return GRAPH.leaky_relu(input, slope=float(as_number(negative_slope, "negative_slope")))


def _hardtanh(xp: ModuleType, x: Array, *, low: float, high: float) -> Array:
    kind = x.dtype.type
    # the bounds in the order in which -0 beats a bound of 0, as in relu
    if x.dtype is HALF:
        return xp.minimum(xp.maximum(x, kind(low)), kind(high))
    return xp.minimum(kind(high), xp.maximum(kind(low), x))


def _hardtanh_cuda(x: Array, *, low: float, high: float) -> Any:
    return CLAMP(x, low, high) if x.dtype.kind in "fV" else CLAMP(x, int(low), int(high))


def _hardtanh_grad(m: Namespace, g: Any, x: Any, *, low: Any, high: Any) -> Any:
    return m.where((x <= low) | (x >= high), 0, g)


@elementwise(
    _hardtanh,
    Slope(_hardtanh_grad, flat),
    kernel=_hardtanh_cuda,
    refused=NUMBER,
    dtypes=NUMBERS,
    saved_as={"low": "min_val", "high": "max_val"},
)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Return ``min(max(input, min_val), max_val)``, elementwise, of a real tensor but no bools.

    The gradient on the bounds `min_val` and `max_val` is zero. A SettingError is raised if `min_val` is the larger.

    >>> import lucid
    >>> lucid.nn.functional.hardtanh(lucid.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    low, high = as_number(min_val, "min_val"), as_number(max_val, "max_val")
    if low > high:
        raise SettingError(f"hardtanh: min_val cannot be greater than max_val, got {low} and {high}")
    return GRAPH.hardtanh(input, low=float(low), high=float(high))


def relu6(input: Tensor) -> Tensor:
    """Return ``min(max(input, 0), 6)``, elementwise, as `hardtanh` does.

    >>> import lucid
    >>> lucid.nn.functional.relu6(lucid.tensor([-3.0, 4.0, 8.0]))
    tensor([0., 4., 6.])
    """
    return hardtanh(input, 0.0, 6.0)
