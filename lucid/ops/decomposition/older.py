"""Functions that `lucid` has in another form than `lucid.linalg`. The rest says `lucid.ops.decomposition`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lucid.ops.base.scalars import as_bool
from lucid.ops.creation.filling import zeros
from lucid.ops.decomposition import lu, orthogonal, spectral
from lucid.ops.decomposition.inverses import slogdet
from lucid.ops.decomposition.operands import adjoint, matrices_of
from lucid.ops.decomposition.pseudoinverse import pinv
from lucid.ops.elementwise.arithmetic import add
from lucid.ops.elementwise.exponential import log

if TYPE_CHECKING:
    from lucid.tensor import Tensor


class svd_result(NamedTuple):
    """``U @ diag(S) @ V.mH``."""

    U: Tensor
    S: Tensor
    V: Tensor


def logdet(input: Tensor) -> Tensor:
    """Return the logarithms of determinants: minus infinity of 0, and NaN of a negative one.

    >>> import lucid
    >>> lucid.logdet(lucid.eye(3))
    tensor(0.)
    """
    sign, size = slogdet(input)
    return add(log(sign), size)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return pseudoinverses, as `linalg.pinv` does with `rcond` for its ``rtol``.

    >>> import lucid
    >>> lucid.pinverse(lucid.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return pinv(input, rcond)


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Return ``X`` of ``A @ X = b``, for right-hand sides `b`.

    `LU_data` and `LU_pivots` are what `linalg.lu_factor` gives for ``A``.

    >>> import lucid
    >>> lucid.lu_solve(lucid.tensor([[6.0]]), *lucid.linalg.lu_factor(lucid.tensor([[2.0]])))
    tensor([[3.]])
    """
    return lu.lu_solve(LU_data, LU_pivots, b)


def qr(input: Tensor, some: bool = True) -> orthogonal.qr_result:
    """Return ``input = Q @ R`` as `linalg.qr` does, reduced, or complete without `some`.

    >>> import lucid
    >>> lucid.qr(lucid.tensor([[-2.0]])).R.abs()
    tensor([[2.]])
    """
    return orthogonal.qr(input, "reduced" if as_bool(some, "some") else "complete")


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> svd_result:
    """Return ``input = U @ diag(S) @ V.mH``, as `linalg.svd` does but for V; without `some` U and V are square.

    Without `compute_uv` they are zeros.

    >>> import lucid
    >>> lucid.svd(lucid.tensor([[0.0, 2.0], [3.0, 0.0]])).S
    tensor([3., 2.])
    """
    a, some = matrices_of("svd", input, "input"), as_bool(some, "some")
    if as_bool(compute_uv, "compute_uv"):
        u, s, vh = spectral.svd(a, not some)
        return svd_result(u, s, adjoint(vh))
    *stack, rows, columns = a.array.shape
    u, v = (zeros(*stack, n, n, dtype=a.dtype, device=a.device) for n in (rows, columns))
    return svd_result(u, spectral.svdvals(a), v)
