"""Matrices with orthonormal columns as functions of matrices without constraints, for `parametrizations.orthogonal`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.autograd.modes.state import no_grad
from lucid.base.limits import finfo
from lucid.errors import NotDifferentiableError, SettingError, ShapeError
from lucid.nn.module.module import Module
from lucid.ops.creation.filling import zeros, zeros_like
from lucid.ops.creation.random import randn
from lucid.ops.creation.ranges import eye
from lucid.ops.decomposition.inverses import solve
from lucid.ops.decomposition.matrix_exp import matrix_exp
from lucid.ops.decomposition.orthogonal import geqrf, householder_product
from lucid.ops.reduction.closeness import allclose
from lucid.ops.shape.joining import cat

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def _unit(x: Tensor, size: int) -> Any:
    return eye(size, dtype=x.dtype, device=x.device)


def _skew(x: Any) -> Any:
    """Return a square matrix that is minus its own adjoint, made of the lower triangle of a tall one."""
    rows, columns = x.shape[-2:]
    lower = x.tril()
    if rows > columns:
        lower = cat([lower, zeros(*x.shape[:-1], rows - columns, dtype=x.dtype, device=x.device)], -1)
    return lower - lower.mH


def _exponential(x: Any) -> Any:
    return matrix_exp(_skew(x))[..., : x.shape[-1]]


def _cayley(x: Any) -> Any:
    half = _skew(x) / 2
    unit = _unit(x, x.shape[-2])
    return solve(unit - half, unit + half)[..., : x.shape[-1]]


def _reflections(x: Any) -> Any:
    """Return a product of reflections, of the vectors below the diagonal, with the signs that stand on it."""
    vectors = x.tril(-1)
    factors = 2.0 / (1.0 + (vectors * vectors).sum(-2))
    signs = x.detach().diagonal(dim1=-2, dim2=-1).trunc()
    return householder_product(vectors, factors) * signs.unsqueeze(-2)


MAPS: dict[str, Callable[[Any], Any]] = {
    "matrix_exp": _exponential,
    "cayley": _cayley,
    "householder": _reflections,
}
"""By name: what makes orthonormal columns of any matrix of at least as many rows as columns."""


def _is_orthogonal(q: Any) -> bool:
    rows, columns = q.shape[-2:]
    return allclose(
        q.mH @ q, _unit(q, columns).expand(*q.shape[:-2], columns, columns), atol=10 * rows * finfo(q.dtype).eps
    )


def _drawn_beside(q: Any, columns: int) -> Any:
    def drawn() -> Any:
        return randn(*q.shape[:-1], columns, dtype=q.real.dtype, device=q.device)

    return drawn() + 1j * drawn() if q.is_complex() else drawn()


def _made_orthogonal(a: Any) -> Any:
    """Return Q of ``a = Q @ R``, with a diagonal of R that is positive."""
    packed, factors = geqrf(a)
    signs = packed.diagonal(dim1=-2, dim2=-1).sgn()
    return householder_product(packed, factors) * signs.unsqueeze(-2)


class Orthogonal(Module):
    """The parametrization: orthonormal columns, or rows if there are fewer of these.

    Parameters
    ----------
    shape : tuple of int
        Of the weight.
    orthogonal_map : str
        A key of `MAPS`.
    use_trivialization : bool
        Whether the result is multiplied by a constant orthogonal matrix, the buffer `base`, by which a weight can be
        assigned.
    """

    base: Any

    def __init__(self, shape: tuple[int, ...], orthogonal_map: str, *, use_trivialization: bool) -> None:
        super().__init__()
        self.shape = shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        """Return the weight."""
        wide = X.shape[-2] < X.shape[-1]
        q = MAPS[self.orthogonal_map](X.mT if wide else X)
        if self.use_trivialization:
            q = self.base @ q
        return q.mT if wide else q

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:
        """Return the tensor that `forward` makes into `Q`; columns that are not orthonormal are made so.

        Raises
        ------
        ShapeError
            If it has another shape than the weight.
        NotDifferentiableError
            If the map cannot be reversed, and there is no trivialization.
        """
        if tuple(Q.shape) != self.shape:
            raise ShapeError(f"expected a tensor of shape {list(self.shape)}, got shape {list(Q.shape)}")
        wide = Q.shape[-2] < Q.shape[-1]
        q = Q.mT if wide else Q
        if not self.use_trivialization:
            x = self._reversed(q)
            return x.mT if wide else x
        rows, columns = q.shape[-2:]
        if rows > columns:
            self.base = _made_orthogonal(cat([q, _drawn_beside(q, rows - columns)], -1))
        else:
            self.base = q.clone() if _is_orthogonal(q) else _made_orthogonal(q)
        # of no vectors, and of these signs, the reflections make a unit matrix, as the other maps do of any diagonal
        start = zeros_like(Q)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1)
        return start

    def _reversed(self, q: Any) -> Any:
        if self.orthogonal_map != "householder":
            raise NotDifferentiableError(
                f"orthogonal: a weight cannot be assigned with the map {self.orthogonal_map!r} and "
                "use_trivialization=False: leave use_trivialization True, or take the map 'householder'"
            )
        packed, factors = geqrf(q)
        signs = packed.diagonal(dim1=-2, dim2=-1).sign()
        # where LAPACK leaves a reflection out, the map makes one of a vector of zeros, which changes the sign
        signs = signs.where(factors != 0, -signs)
        below = packed.tril(-1)
        below.diagonal(dim1=-2, dim2=-1).copy_(signs)
        return below


def check_map(weight: Tensor, orthogonal_map: str | None) -> str:
    """Return the name of the map for a weight: the one that is given, or the usual one."""
    if weight.ndim < 2:
        raise ShapeError(f"orthogonal: expected a matrix or a stack of matrices, got shape {list(weight.shape)}")
    real = not weight.is_complex()
    if orthogonal_map is None:
        return "householder" if real and weight.shape[-2] != weight.shape[-1] else "matrix_exp"
    if not among(orthogonal_map, MAPS):
        raise SettingError(
            f"orthogonal: orthogonal_map: expected one of {', '.join(map(repr, MAPS))}, got {orthogonal_map!r}"
        )
    if orthogonal_map == "householder" and not real:
        raise SettingError("orthogonal: the map 'householder' is not there for complex weights; use 'matrix_exp'")
    return orthogonal_map
