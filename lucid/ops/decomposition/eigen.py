"""Eigenvalues of square matrices of any kind, and their vectors. The rest says `lucid.ops.decomposition`.

Vectors have the length 1, and are determined up to a factor of size 1: a loss must not depend on it. Gradients hold the
reciprocals of differences of values, and a matrix whose vectors do not span all has none. All of it is complex, also
where the matrix is real, and computed on the CPU: CuPy has no such iteration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.autograd.recording.primitive import primitive
from lucid.base.arrays import Array, to_device
from lucid.base.device import CPU, device_of
from lucid.ops.decomposition import host
from lucid.ops.decomposition.operands import adjoint_in, diagonal_in, on_diagonal_in, square_of
from lucid.ops.decomposition.spectral import check_phase, differences_in

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.tensor import Tensor


class eig_result(NamedTuple):
    """Eigenvalues in no order, and their vectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@primitive(outputs=("values", "vectors"), differentiable=(0, 1), holomorphic=False)
def _eig(xp: ModuleType, a: Array) -> tuple[Array, Array]:
    values, vectors = (to_device(x, device_of(a)) for x in host.eig(to_device(a, CPU)))
    return values, vectors


@_eig.vjp
def _eig_vjp(m: Namespace, grad: list[Array | None], a_dtype: Any, values: Array, vectors: Array) -> Any:
    g_values, g_vectors = grad
    n, turned = values.shape[-1], adjoint_in(m, vectors)
    inner = None if g_values is None else on_diagonal_in(m, g_values, n, n)
    if g_vectors is not None:
        turning = m.matmul(turned, g_vectors)
        check_phase("linalg.eig", turning)
        # without what changes the lengths of vectors, which are 1
        along = m.unsqueeze(m.real(diagonal_in(m, turning)), dim=len(values.shape) - 1)
        across = m.sub(turning, m.mul(m.matmul(turned, vectors), along))
        across = m.div(across, m.conj(differences_in(m, values)))
        across = m.sub(across, on_diagonal_in(m, diagonal_in(m, across), n, n))
        inner = across if inner is None else m.add(inner, across)
    out = m.solve(turned, m.matmul(inner, turned))[0]
    return out if a_dtype.kind == "c" else m.real(out)


def eig(A: Tensor) -> eig_result:
    """Return the eigenvalues of square matrices, and vectors of length 1 as columns, both complex.

    >>> import lucid
    >>> lucid.linalg.eig(lucid.tensor([[0.0, -2.0], [2.0, 0.0]])).eigenvalues
    tensor([0.+2.j, 0.-2.j])
    """
    return eig_result(*_eig(square_of("linalg.eig", A)))


def eigvals(A: Tensor) -> Tensor:
    """Return the eigenvalues, always complex, of square matrices.

    >>> import lucid
    >>> lucid.linalg.eigvals(lucid.tensor([[0.0, -2.0], [2.0, 0.0]]))
    tensor([0.+2.j, 0.-2.j])
    """
    return eig(A).eigenvalues
