"""Elu and its relatives, linear above zero and exponential below, elementwise, each with a fused backward.

What holds for them all says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.errors import SettingError
from lucid.ops.base.declaration import FLOATING, Slope, elementwise
from lucid.ops.base.scalars import as_number

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# With these a layer keeps mean 0 and variance 1 of what goes through it: Klambauer, Unterthiner, Mayr, Hochreiter,
# Self-normalizing neural networks, 2017.
ALPHA = 1.6732632423543772848170429916717
SCALE = 1.0507009873554804934193349852946


def _elu(m: Namespace, x: Any, *, alpha: float) -> Any:
    return m.expm1_below(m.minimum(x, 0)) * alpha + m.maximum(x, 0)


def _elu_grad(m: Namespace, g: Any, x: Any, *, alpha: float) -> Any:
    return m.where(x <= 0, m.exp(m.minimum(x, 0)) * alpha * g, g)


def _elu_grad_x(m: Namespace, grad: Array, g: Array, x: Array, alpha: float) -> Any:
    return m.where(m.le(x, 0), m.mul(m.mul(grad, g), m.mul(m.exp(x), alpha)), 0)


@elementwise(_elu, Slope(_elu_grad, _elu_grad_x), refused=FLOATING)
def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Return `input` above zero and ``alpha * (exp(input) - 1)`` below, elementwise, of a floating-point tensor.

    The lower branch goes down to minus `alpha`.

    >>> import lucid
    >>> lucid.nn.functional.elu(lucid.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return GRAPH.elu(input, alpha=float(as_number(alpha, "alpha")))


@elementwise(
    lambda m, x: _elu(m, x, alpha=ALPHA) * SCALE,
    Slope(
        lambda m, g, x: _elu_grad(m, g, x, alpha=ALPHA) * SCALE,
        lambda m, grad, g, x: _elu_grad_x(m, grad, g, x, ALPHA * SCALE),
    ),
    refused=FLOATING,
)
def selu(input: Tensor) -> Tensor:
    """Return ``1.0507 * elu(input, 1.6733)``, elementwise, of a floating-point tensor.

    The two constants keep mean and variance of activations through layers. (Klambauer, Unterthiner, Mayr, Hochreiter,
    2017.)

    >>> import lucid
    >>> lucid.selu(lucid.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return GRAPH.selu(input)


def _celu(m: Namespace, x: Any, *, alpha: float) -> Any:
    return m.expm1(m.minimum(x, 0) / alpha) * alpha + m.maximum(x, 0)


def _celu_grad(m: Namespace, g: Any, x: Any, *, alpha: float) -> Any:
    return m.where(m.isnan(x), g, m.exp(m.minimum(x, 0) / alpha) * g, rare=True)


def _celu_grad_x(m: Namespace, grad: Array, g: Array, x: Array, alpha: float) -> Any:
    bend = m.div(m.exp(m.div(x, alpha)), alpha)
    return m.where(m.le(x, 0), m.mul(m.mul(grad, g), bend), 0)


@elementwise(_celu, Slope(_celu_grad, _celu_grad_x), refused=FLOATING)
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
