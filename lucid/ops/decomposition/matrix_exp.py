"""The exponential of matrices. Common rules: `lucid.ops.decomposition`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.recording.primitive import primitive
from lucid.base.arrays import Array, namespace
from lucid.ops.decomposition.operands import square_of
from lucid.ops.linalg.matrices import product

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.tensor import Tensor

# Of Taylor's series, by the bytes of a real number: of matrices of norm 1 the rest is below half of an eps.
TERMS = {4: 12, 8: 18}


def _halvings(xp: ModuleType, a: Array) -> Array:
    """Return the number of halvings until the norm of each matrix is 1 or less; 0 if it is not finite."""
    times = xp.ceil(xp.log2(xp.maximum(xp.max(xp.sum(xp.abs(a), -2), -1), 1)))
    return xp.where(xp.isfinite(times), times, 0)


@primitive
def _matrix_exp(xp: ModuleType, a: Array) -> Array:
    """Return the exponential: that of a power of two of the matrix by its series, squared as often."""
    n, width = a.shape[-1], a.real.dtype.itemsize
    one = xp.eye(n, dtype=a.dtype)
    if not a.size:
        return a.copy()
    # each matrix is squared as often as it needs itself: more would lose digits
    times = _halvings(xp, a)
    small = a * xp.exp2(-times).astype(a.dtype)[..., None, None]
    out = one + small / TERMS[width]
    for k in range(TERMS[width] - 1, 0, -1):
        out = one + product(xp, small, out) / k
    for k in range(int(times.max())):
        out = xp.where((times > k)[..., None, None], product(xp, out, out), out)
    return out


@_matrix_exp.vjp
def _matrix_exp_vjp(m: Namespace, grad: Array, a: Array) -> Any:
    turned = m.swap_last(a)
    last, n = len(turned.shape) - 1, turned.shape[-1]
    if 0 in turned.shape:
        return m.zeros_like(a)
    # the derivative in a direction is a block of the exponential of both: a long one would have the matrix halved until
    # its digits are lost
    array = grad.array if isinstance(grad, TensorBase) else grad
    xp = namespace(array)
    length: Any = xp.exp2(_halvings(xp, array)).astype(array.dtype)[..., None, None]
    length = wrap(length) if isinstance(grad, TensorBase) else length
    above = m.cat(turned, m.div(grad, length), dim=last)
    below = m.cat(m.zeros_like(turned), turned, dim=last)
    both = m.matrix_exp(m.cat(above, below, dim=last - 1))
    return m.mul(m.getitem(both, index=(..., slice(n), slice(n, None))), length)


def matrix_exp(A: Tensor) -> Tensor:
    """Return the exponentials of square matrices, ``1 + A + A @ A / 2 + ...``.

    >>> import lucid
    >>> lucid.linalg.matrix_exp(lucid.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _matrix_exp(square_of("linalg.matrix_exp", A))
