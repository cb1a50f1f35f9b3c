"""Error functions, elementwise, of real numbers; what holds for them all says `lucid.ops.base.declaration`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lucid.autograd.recording.namespace import GRAPH
from lucid.ops.base.declaration import REAL, Fused, elementwise
from lucid.ops.elementwise.normal_tail import erf_into, erfc_into, erfinv_into

if TYPE_CHECKING:
    from lucid.tensor import Tensor

# erf'(x) = SLOPE * exp(-x**2)
SLOPE = 2 / math.sqrt(math.pi)


@elementwise(
    erf_into,
    "special.Erf",
    Fused("ErfGrad", lambda m, grad, x: m.mul(grad, m.mul(m.exp(m.neg(m.square(x))), SLOPE))),
    refused=REAL,
)
def erf(input: Tensor) -> Tensor:
    """Return the error function ``2 / sqrt(pi) * integral of exp(-t**2) from 0 to input``, elementwise.

    >>> import lucid
    >>> lucid.erf(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """
    return GRAPH.erf(input)


@elementwise(
    erfc_into,
    "special.Erfc",
    Fused("ErfcGrad", lambda m, grad, x: m.mul(grad, m.mul(m.exp(m.neg(m.square(x))), -SLOPE))),
    refused=REAL,
)
def erfc(input: Tensor) -> Tensor:
    """Return ``1 - erf(input)``, elementwise, exact also where it is small.

    >>> import lucid
    >>> lucid.erfc(lucid.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """
    return GRAPH.erfc(input)


@elementwise(
    erfinv_into,
    "special.Erfinv",
    Fused("ErfinvGrad", lambda m, grad, out: m.mul(grad, m.mul(m.exp(m.square(out)), 1 / SLOPE))),
    refused=REAL,
)
def erfinv(input: Tensor) -> Tensor:
    """Return the number whose error function is `input`, elementwise; NaN outside of [-1, 1].

    >>> import lucid
    >>> lucid.erfinv(lucid.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """
    return GRAPH.erfinv(input)
