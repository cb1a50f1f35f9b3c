"""Softsign and tanhshrink, elementwise, each with a fused backward.

What holds for them says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.ops.base.declaration import REAL, Slope, elementwise

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def _softsign_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    size = m.add(m.abs(x), 1)
    return m.div(m.mul(m.mul(grad, g), m.mul(m.sgn(x), -2)), m.mul(m.square(size), size))


@elementwise(
    lambda m, x: x / (abs(x) + 1),
    Slope(lambda m, g, x: g / m.square(abs(x) + 1), _softsign_grad_x),
    refused=REAL,
)
def softsign(input: Tensor) -> Tensor:
    """Return ``input / (1 + abs(input))``, elementwise, of a real tensor.

    >>> import lucid
    >>> lucid.nn.functional.softsign(lucid.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return GRAPH.softsign(input)


def _tanhshrink_grad_x(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    t = m.tanh(x)
    return m.tanh_grad(m.mul(m.mul(grad, g), m.mul(t, 2)), t)


@elementwise(
    lambda m, x: x - m.tanh(x), Slope(lambda m, g, x: m.square(m.tanh(x)) * g, _tanhshrink_grad_x), refused=REAL
)
def tanhshrink(input: Tensor) -> Tensor:
    """Return ``input - tanh(input)``, elementwise, of a real tensor.

    >>> import lucid
    >>> lucid.nn.functional.tanhshrink(lucid.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2384,  0.0000,  1.0360])
    """
    return GRAPH.tanhshrink(input)
