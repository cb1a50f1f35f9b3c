"""Singular values, eigenvalues of Hermitian matrices, and their vectors. The rest says `lucid.ops.decomposition`.

Vectors are determined up to their sign, or for complex numbers a factor of size 1, and more where values are equal: a
loss must not depend on it. Gradients hold the reciprocals of differences of values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.autograd.base import TensorBase
from lucid.errors import NotDifferentiableError, SettingError
from lucid.ops.base.scalars import as_bool
from lucid.ops.decomposition.operands import adjoint_in, diagonal_in, matrices_of, of_library, on_diagonal_in, square_of
from lucid.ops.elementwise.complex import holds_complex

if TYPE_CHECKING:
    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


class svd_result(NamedTuple):
    """``U @ diag(S) @ Vh``."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class eigh_result(NamedTuple):
    """Eigenvalues in ascending order, and their vectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _skew(m: Namespace, x: Any) -> Any:
    return m.sub(x, adjoint_in(m, x))


def differences_in(m: Namespace, values: Any) -> Any:
    """Return ``values[j] - values[i]``, and 1 on the diagonal."""
    n, ndim = values.shape[-1], len(values.shape)
    gaps = m.sub(m.unsqueeze(values, dim=ndim - 1), m.unsqueeze(values, dim=ndim))
    return m.add(gaps, on_diagonal_in(m, m.add(m.zeros_like(values), 1), n, n))


def check_phase(name: str, turning: Any) -> None:
    """Refuse a loss that depends on the undetermined phase of complex vectors, their factor of size 1.

    `turning` holds, on its diagonals, how the loss changes with these.
    """
    array = turning.array if isinstance(turning, TensorBase) else turning
    along = array.diagonal(0, -2, -1).imag
    if along.size and float(abs(along).max()) > PHASE * max(1.0, float(abs(array).max())):
        raise NotDifferentiableError(
            f"{name}: the loss depends on the phase of complex vectors, which is not determined: make it the same for "
            "all factors of size 1"
        )


# The share of a gradient that rounding may leave along the phase.
PHASE = 1e-2


_svd = of_library("svd", settings=("full",), outputs=("u", "s", "vh"), differentiable=(0, 1, 2), holomorphic=False)


@_svd.vjp
def _svd_vjp(m: Namespace, grad: list[Array | None], u: Array, s: Array, vh: Array, full: bool) -> Any:
    rows, columns, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    g_u, g_s, g_vh = grad
    if full and rows != columns:
        first = slice(k)
        g_u, u = (None if x is None else m.getitem(x, index=(..., first)) for x in (g_u, u))
        g_vh, vh = (None if x is None else m.getitem(x, index=(..., first, slice(None))) for x in (g_vh, vh))
    if g_u is None and g_vh is None:
        return m.matmul(m.mul(u, m.unsqueeze(g_s, dim=len(s.shape) - 1)), vh)
    last = len(s.shape)
    across, down = m.unsqueeze(s, dim=last - 1), m.unsqueeze(s, dim=last)
    v, uh = adjoint_in(m, vh), adjoint_in(m, u)
    of_u = None if g_u is None else _skew(m, m.matmul(uh, g_u))
    of_v = None if g_vh is None else _skew(m, m.matmul(vh, adjoint_in(m, g_vh)))
    squares = differences_in(m, m.mul(s, s))
    inner = on_diagonal_in(m, m.zeros_like(s) if g_s is None else g_s, k, k)
    if of_u is not None:
        inner = m.add(inner, m.mul(m.div(of_u, squares), across))
    if of_v is not None:
        inner = m.add(inner, m.mul(down, m.div(of_v, squares)))
    if holds_complex(u):
        # on the diagonal the two cancel each other, but for the phase that u and v have in common
        check_phase("linalg.svd", of_u if of_v is None else of_v if of_u is None else m.add(of_u, of_v))
        if of_u is not None:
            inner = m.add(inner, on_diagonal_in(m, m.div(diagonal_in(m, of_u), m.mul(s, 2)), k, k))
    out = m.matmul(m.matmul(u, inner), vh)
    if rows > k and g_u is not None:
        outside = m.div(g_u, across)
        outside = m.sub(outside, m.matmul(u, m.matmul(uh, outside)))
        out = m.add(out, m.matmul(outside, vh))
    if columns > k and g_vh is not None:
        outside = m.div(g_vh, down)
        outside = m.sub(outside, m.matmul(m.matmul(outside, v), vh))
        out = m.add(out, m.matmul(u, outside))
    return out


_singular_values = of_library("singular_values", holomorphic=False)


@_singular_values.vjp
def _singular_values_vjp(m: Namespace, grad: Array, a: Array) -> Any:
    u, _, vh = m.svd(a, full=False)
    return m.matmul(m.mul(u, m.unsqueeze(grad, dim=len(grad.shape) - 1)), vh)


_eigh = of_library("eigh", settings=("upper",), outputs=("values", "vectors"), differentiable=(0, 1), holomorphic=False)


@_eigh.vjp
def _eigh_vjp(m: Namespace, grad: list[Array | None], values: Array, vectors: Array) -> Any:
    g_values, g_vectors = grad
    n, turned = values.shape[-1], adjoint_in(m, vectors)
    if g_vectors is None:
        return m.matmul(m.mul(vectors, m.unsqueeze(g_values, dim=len(values.shape) - 1)), turned)
    turning = m.matmul(turned, g_vectors)
    if holds_complex(vectors):
        check_phase("linalg.eigh", turning)
    # without its diagonal, which is imaginary, and only in the phase
    inner = m.div(m.mul(_skew(m, turning), 0.5), differences_in(m, values))
    if holds_complex(vectors):
        inner = m.sub(inner, on_diagonal_in(m, diagonal_in(m, inner), n, n))
    if g_values is not None:
        inner = m.add(inner, on_diagonal_in(m, g_values, n, n))
    return m.matmul(m.matmul(vectors, inner), turned)


_eigenvalues = of_library("eigenvalues", settings=("upper",), holomorphic=False)


@_eigenvalues.vjp
def _eigenvalues_vjp(m: Namespace, grad: Array, a: Array, upper: bool) -> Any:
    _, vectors = m.eigh(a, upper=upper)
    return m.matmul(m.mul(vectors, m.unsqueeze(grad, dim=len(grad.shape) - 1)), adjoint_in(m, vectors))


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> svd_result:
    """Return ``A = U @ diag(S) @ Vh``, of orthonormal columns and singular values in descending order.

    With `full_matrices` U and Vh are square; a loss must not depend on the columns that this adds. `driver` names a
    function of cuSOLVER in PyTorch, and is None.

    >>> import lucid
    >>> lucid.linalg.svd(lucid.tensor([[0.0, 2.0], [3.0, 0.0]])).S
    tensor([3., 2.])
    """
    a = _without_driver("linalg.svd", A, driver)
    return svd_result(*_svd(a, full=as_bool(full_matrices, "full_matrices")))


def _without_driver(name: str, A: Tensor, driver: str | None) -> Any:
    a = matrices_of(name, A)
    if driver is not None:
        raise SettingError(f"{name}: expected driver=None, got {driver!r}: CuPy chooses the function of cuSOLVER")
    return a


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return singular values, in descending order; `driver` is None, as of `linalg.svd`.

    >>> import lucid
    >>> lucid.linalg.svdvals(lucid.tensor([[0.0, 2.0], [3.0, 0.0]]))
    tensor([3., 2.])
    """
    return _singular_values(_without_driver("linalg.svdvals", A, driver))


def _is_upper(name: str, UPLO: str) -> bool:
    if not isinstance(UPLO, str) or UPLO.upper() not in {"L", "U"}:
        raise SettingError(f"{name}: expected UPLO 'L' or 'U', got {UPLO!r}")
    return UPLO.upper() == "U"


def eigh(A: Tensor, UPLO: str = "L") -> eigh_result:
    """Return the eigenvalues of Hermitian matrices in ascending order, and orthonormal vectors as columns.

    The triangle that is read is the lower one for `UPLO` ``"L"``, and the upper one for ``"U"``. The gradient is that
    of the whole matrix.

    >>> import lucid
    >>> lucid.linalg.eigh(lucid.tensor([[0.0, 2.0], [2.0, 0.0]])).eigenvalues
    tensor([-2.,  2.])
    """
    return eigh_result(*_eigh(square_of("linalg.eigh", A), upper=_is_upper("linalg.eigh", UPLO)))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of Hermitian matrices in ascending order; `UPLO` is as of `linalg.eigh`.

    >>> import lucid
    >>> lucid.linalg.eigvalsh(lucid.tensor([[0.0, 2.0], [2.0, 0.0]]))
    tensor([-2.,  2.])
    """
    return _eigenvalues(square_of("linalg.eigvalsh", A), upper=_is_upper("linalg.eigvalsh", UPLO))
