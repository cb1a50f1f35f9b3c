"""The gated linear unit: one half of a tensor times the sigmoid of the other.

What holds for it says `lucid.ops.activation.softmax`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch.plans import empty
from lucid.errors import ShapeError
from lucid.ops.base.declaration import Formula, of_formula
from lucid.ops.base.dims import along, dim_in
from lucid.ops.base.operands import floating

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def _halves(x: Array, dim: int) -> tuple[Any, Any]:
    """Return both halves along `dim`, as views."""
    half = x.shape[dim] // 2
    return x[along(dim, slice(half))], x[along(dim, slice(half, None))]


_FORMULA = Formula(lambda m, a, b: m.sigmoid(b) * a)


@primitive
def _glu(xp: ModuleType, x: Array, *, dim: int) -> Array:
    return _FORMULA.apply(xp, *_halves(x, dim))


_GLU = of_formula(_FORMULA, "Glu")
_GRAD_A = of_formula(lambda m, grad, b: grad * m.sigmoid(b), "GluGradA")
_GRAD_B = of_formula(lambda m, grad, a, b: grad * m.sigmoid_grad(a, m.sigmoid(b)), "GluGradB")


@_glu.cuda
def _glu_cuda(x: Array, *, dim: int) -> Any:
    return _GLU(*_halves(x, dim))


def _glu_grad(grad: Array, x: Array, dim: int) -> Any:
    out = empty(x.shape, x.dtype)
    (a, b), (to_a, to_b) = _halves(x, dim), _halves(out, dim)
    if _GRAD_A(grad, b, out=to_a) is NotImplemented or _GRAD_B(grad, a, b, out=to_b) is NotImplemented:
        return NotImplemented
    return out


@_glu.vjp("x", cuda=_glu_grad)
def _glu_vjp(m: Namespace, grad: Array, x: Array, dim: int) -> Any:
    half = x.shape[dim] // 2
    a, b = m.split(x, sizes=(half, half), dim=dim)
    gate = m.sigmoid(b)
    return m.cat(m.mul(grad, gate), m.mul(grad, m.sigmoid_grad(a, gate)), dim=dim)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return ``a * sigmoid(b)``, `a` and `b` the halves of a floating-point tensor along `dim`.

    A size that is odd raises a ShapeError. (Dauphin, Fan, Auli, Grangier, Language modeling with gated convolutional
    networks, 2017.)

    >>> import lucid
    >>> lucid.nn.functional.glu(lucid.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """
    x = floating("glu", input)
    if not x.array.ndim:
        raise ShapeError("glu does not support 0-dimensional tensors: it takes the halves of a dimension")
    place = dim_in(dim, x.array.ndim)
    if x.array.shape[place] % 2:
        raise ShapeError(f"glu: Halving dimension must be even, but dimension {place} is size {x.array.shape[place]}")
    return _glu(x, dim=place)
