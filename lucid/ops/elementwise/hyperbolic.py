"""Hyperbolic functions and their inverses, elementwise: what holds for them all says `lucid.ops.base.declaration`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH
from lucid.ops.base.declaration import Fused, elementwise

if TYPE_CHECKING:
    from lucid.tensor import Tensor


@elementwise(np.sinh, "hyperbolic.Sinh", Fused("SinhGrad", lambda m, grad, x: m.mul(grad, m.cosh(x))))
def sinh(input: Tensor) -> Tensor:
    """Return the hyperbolic sine, elementwise.

    >>> import lucid
    >>> lucid.sinh(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """
    return GRAPH.sinh(input)


@elementwise(np.cosh, "hyperbolic.Cosh", Fused("CoshGrad", lambda m, grad, x: m.mul(grad, m.sinh(x))))
def cosh(input: Tensor) -> Tensor:
    """Return the hyperbolic cosine, elementwise.

    >>> import lucid
    >>> lucid.cosh(lucid.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """
    return GRAPH.cosh(input)


@elementwise(
    np.arcsinh,
    "hyperbolic.Asinh",
    Fused("AsinhGrad", lambda m, grad, x: m.div(grad, m.sqrt(m.add(m.square(x), 1.0)))),
)
def asinh(input: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic sine, elementwise.

    >>> import lucid
    >>> lucid.asinh(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """
    return GRAPH.asinh(input)


def _acosh_vjp(m: Any, grad: Any, x: Any) -> Any:
    size = x if getattr(x, "array", x).dtype.kind == "c" else m.abs(x)
    return m.div(m.div(grad, m.sqrt(m.sub(size, 1.0))), m.sqrt(m.add(size, 1.0)))


@elementwise(np.arccosh, "hyperbolic.Acosh", Fused("AcoshGrad", _acosh_vjp))
def acosh(input: Tensor) -> Tensor:
    """Return the non-negative inverse of the hyperbolic cosine, elementwise; NaN below 1.

    >>> import lucid
    >>> lucid.acosh(lucid.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """
    return GRAPH.acosh(input)


@elementwise(
    np.arctanh, "hyperbolic.Atanh", Fused("AtanhGrad", lambda m, grad, x: m.div(grad, m.sub(1.0, m.square(x))))
)
def atanh(input: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic tangent, elementwise; NaN outside of [-1, 1].

    >>> import lucid
    >>> lucid.atanh(lucid.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """
    return GRAPH.atanh(input)
