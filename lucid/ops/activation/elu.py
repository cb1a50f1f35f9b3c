"""Elu and what is made like it, linear above zero and exponential below, elementwise, each with a fused backward.

What holds for them all says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH
from lucid.errors import SettingError
from lucid.ops.base.blocks import drop_where, keep_where
from lucid.ops.base.declaration import FLOATING, Slope, elementwise
from lucid.ops.base.scalars import as_number

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# With these a layer keeps mean 0 and variance 1 of what goes through it: Klambauer, Unterthiner, Mayr, Hochreiter,
# Self-normalizing neural networks, 2017; kernels/activation/activation.cu has them too.
ALPHA = 1.6732632423543772848170429916717
SCALE = 1.0507009873554804934193349852946


def _expm1_below_into(xp: ModuleType, out: Array, x: Array, spare: Array) -> None:
    """Write ``exp(min(x, 0)) - 1`` to `out`."""
    xp.minimum(0, x, out=out)
    if out.dtype == np.float64:
        xp.expm1(out, out=out)
        return
    # 2 tanh(x/2) / (1 - tanh(x/2)), which loses no digits below zero and takes a quarter of the time
    xp.multiply(out, 0.5, out=out)
    xp.tanh(out, out=out)
    xp.subtract(1, out, out=spare)
    xp.divide(out, spare, out=out)
    xp.multiply(out, 2, out=out)


def _elu_into(xp: ModuleType, out: Array, x: Array, spare: Array, *, alpha: float) -> None:
    _expm1_below_into(xp, out, x, spare)
    xp.multiply(out, alpha, out=out)
    xp.maximum(0, x, out=spare)
    xp.add(out, spare, out=out)


def _elu_grad_into(
    xp: ModuleType, out: Array, grad: Array, x: Array, below: Array, slope: Array, *, alpha: float
) -> None:
    mask = xp.less_equal(x, 0)
    drop_where(xp, out, grad, mask)
    xp.minimum(x, 0, out=slope)
    xp.exp(slope, out=slope)
    xp.multiply(slope, alpha, out=slope)
    keep_where(xp, below, grad, mask)
    xp.multiply(below, slope, out=below)
    keep_where(xp, slope, below, mask)
    xp.add(out, slope, out=out)


def _elu_grad_x(m: Namespace, grad: Array, g: Array, x: Array, alpha: float) -> Any:
    return m.where(m.le(x, 0), m.mul(m.mul(grad, g), m.mul(m.exp(x), alpha)), 0)


@elementwise(_elu_into, "activation.Elu", Slope("EluGrad", _elu_grad_into, _elu_grad_x), refused=FLOATING)
def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Return `input` above zero and ``alpha * (exp(input) - 1)`` below, elementwise, of a floating-point tensor.

    The lower branch goes down to minus `alpha`.

    >>> import lucid
    >>> lucid.nn.functional.elu(lucid.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return GRAPH.elu(input, alpha=float(as_number(alpha, "alpha")))


def _selu_into(xp: ModuleType, out: Array, x: Array, spare: Array) -> None:
    _elu_into(xp, out, x, spare, alpha=ALPHA)
    xp.multiply(out, SCALE, out=out)


def _selu_grad_into(xp: ModuleType, out: Array, grad: Array, x: Array, below: Array, slope: Array) -> None:
    _elu_grad_into(xp, out, grad, x, below, slope, alpha=ALPHA)
    xp.multiply(out, SCALE, out=out)


def _selu_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    return _elu_grad_x(m, grad, g, x, ALPHA * SCALE)


@elementwise(_selu_into, "activation.Selu", Slope("SeluGrad", _selu_grad_into, _selu_grad_x), refused=FLOATING)
def selu(input: Tensor) -> Tensor:
    """Return ``1.0507 * elu(input, 1.6733)``, elementwise, of a floating-point tensor.

    The two constants keep mean and variance of activations through layers. (Klambauer, Unterthiner, Mayr, Hochreiter,
    2017.)

    >>> import lucid
    >>> lucid.selu(lucid.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return GRAPH.selu(input)


def _celu_into(xp: ModuleType, out: Array, x: Array, above: Array, *, alpha: float) -> None:
    xp.minimum(0, x, out=out)
    xp.divide(out, alpha, out=out)
    xp.expm1(out, out=out)
    xp.multiply(out, alpha, out=out)
    xp.maximum(0, x, out=above)
    xp.add(out, above, out=out)


def _celu_grad_into(xp: ModuleType, out: Array, grad: Array, x: Array, *, alpha: float) -> None:
    xp.minimum(0, x, out=out)
    xp.divide(out, alpha, out=out)
    xp.exp(out, out=out)
    xp.multiply(out, grad, out=out)
    xp.copyto(out, grad, where=xp.isnan(x))


def _celu_grad_x(m: Namespace, grad: Array, g: Array, x: Array, alpha: float) -> Any:
    bend = m.div(m.exp(m.div(x, alpha)), alpha)
    return m.where(m.le(x, 0), m.mul(m.mul(grad, g), bend), 0)


@elementwise(_celu_into, "activation.Celu", Slope("CeluGrad", _celu_grad_into, _celu_grad_x), refused=FLOATING)
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Return `input` above zero and ``alpha * (exp(input / alpha) - 1)`` below, elementwise, of floating-point numbers.

    Its slope is continuous whatever `alpha` is; an `alpha` of 0 raises a SettingError. (Barron, 2017.)

    >>> import lucid
    >>> lucid.celu(lucid.tensor([-1.0, 2.0]), 2.0)
    tensor([-0.7869,  2.0000])
    """
    alpha = float(as_number(alpha, "alpha"))
    if not alpha:
        raise SettingError("celu: expected an alpha that is not 0, by which the input is divided, got 0")
    return GRAPH.celu(input, alpha=alpha)
