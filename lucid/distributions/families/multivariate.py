"""Normal vectors, with a covariance in full or as a few factors and a diagonal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution
from lucid.distributions.utils import lazy_property, parameters_of
from lucid.errors import SettingError, ShapeError
from lucid.ops.base.dims import common_shape
from lucid.ops.base.promotion import promote_to_tensors
from lucid.ops.creation.random import randn
from lucid.ops.creation.ranges import eye
from lucid.ops.decomposition.triangular import cholesky, cholesky_inverse, solve_triangular
from lucid.ops.linalg.products import matmul
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


def one_of(title: str, other: dict[str, Any], named: dict[str, Any]) -> tuple[Tensor, str, Tensor]:
    """Return another parameter, and the name and the value of that one of three matrices that is given."""
    matrices = {name: value for name, value in named.items() if value is not None}
    if len(matrices) != 1:
        raise SettingError(f"{title}: expected one of {', '.join(named)}, got {', '.join(matrices) or 'none'}")
    (name,) = matrices
    own, matrix = parameters_of(title, {**other, **matrices})
    if matrix.dim() < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ShapeError(f"{title}: expected {name} of square matrices, got shape {tuple(matrix.shape)}")
    return own, name, matrix


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """Return the lower Cholesky factor of the covariance that a matrix of this name is of."""
    if name == "covariance_matrix":
        return cholesky(matrix)
    return _of_inverse(matrix) if name == "precision_matrix" else matrix


def _of_inverse(precision: Tensor) -> Tensor:
    """Return the lower Cholesky factor of the inverse, without the inverse."""
    # the factor of the matrix turned round is, turned back, an upper one
    upper = cholesky(precision.flip((-2, -1))).flip((-2, -1))
    one = eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return solve_triangular(upper.mT, one, upper=False)


def squared_length(factor: Tensor, away: Tensor) -> Tensor:
    """Return ``|inverse(factor) @ away|**2`` of the last dimension, with few and large triangular systems."""
    factor, away = promote_to_tensors(factor, away)
    batch, n = tuple(factor.shape[:-2]), away.shape[-1]
    many = away.dim() - 1 - len(batch)
    if many <= 0:
        return solve_triangular(factor, away.unsqueeze(-1), upper=False).square().sum((-2, -1))
    # what the factors do not depend on stands side by side as columns
    shape = (*away.shape[:many], *common_shape(batch, tuple(away.shape[many:-1])))
    columns = away.expand(*shape, n).reshape(math.prod(shape[:many]), *shape[many:], n).movedim(0, -1)
    lengths = solve_triangular(factor, columns, upper=False).square().sum(-2)
    return lengths.movedim(-1, 0).reshape(shape)


def wide(of: Distribution, matrix: Tensor) -> Tensor:
    """Return matrices in the batch shape of a distribution."""
    return matrix.expand(*of.batch_shape, *matrix.shape[-2:])


class OfCovariance(Distribution):
    """The base of distributions given by one of three forms of a covariance."""

    _unbroadcasted_scale_tril: Tensor

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return wide(self, self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors."""
        factor = self._unbroadcasted_scale_tril
        return wide(self, matmul(factor, factor.mT))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return wide(self, cholesky_inverse(self._unbroadcasted_scale_tril))

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class _NormalVectors(Distribution):
    """The base of normal vectors around `loc`."""

    support = constraints.real_vector
    has_rsample = True
    loc: Tensor

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class MultivariateNormal(_NormalVectors, OfCovariance):
    """Vectors around `loc` with the density ``exp(-|L**-1 @ (x - loc)|**2 / 2) / (det(L) * (2 * pi)**(n / 2))``.

    L is the lower Cholesky factor of the covariance. One of `covariance_matrix`, `precision_matrix`, its inverse, both
    positive definite, and `scale_tril`, which is L, is given.

    >>> import lucid
    >>> normal = lucid.distributions.MultivariateNormal(lucid.zeros(2), scale_tril=lucid.eye(2))
    >>> normal.log_prob(lucid.ones(2))
    tensor(-2.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        named = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        loc, name, matrix = one_of("MultivariateNormal", {"loc": loc}, named)
        if loc.dim() < 1:
            raise ShapeError("MultivariateNormal: expected loc of at least one dimension, got a number")
        shape = Size(common_shape(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1])))
        n = loc.shape[-1]
        if matrix.shape[-1] != n:
            raise ShapeError(f"MultivariateNormal: expected {name} of {n} x {n}, got shape {tuple(matrix.shape)}")
        self.loc = loc.expand(*shape, n)
        vars(self)[name] = matrix.expand(*shape, n, n)
        super().__init__(shape, (n,), validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.square().sum(-1).expand(*self.batch_shape, *self.event_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = self._normal(sample_shape, self.loc)
        return self.loc + matmul(self._unbroadcasted_scale_tril, noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        far = squared_length(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + far) - self._half_log_det()

    def entropy(self) -> Tensor:
        value = 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
        return value.expand(self.batch_shape)


class LowRankMultivariateNormal(_NormalVectors):
    """Normal vectors around `loc` with the covariance ``W @ W.mT + diag(d)``.

    W, `cov_factor`, is of n rows and as many columns as there are factors, d is `cov_diag`, above 0. Only matrices of
    the size of the columns are factored (Woodbury's identity, and the matrix determinant lemma).

    >>> import lucid
    >>> from lucid.distributions import LowRankMultivariateNormal
    >>> normal = LowRankMultivariateNormal(lucid.zeros(2), lucid.tensor([[1.0], [0.0]]), lucid.ones(2))
    >>> normal.covariance_matrix
    tensor([[2., 0.],
            [0., 1.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        title = "LowRankMultivariateNormal"
        named = {"loc": loc, "cov_factor": cov_factor, "cov_diag": cov_diag}
        loc, cov_factor, cov_diag = parameters_of(title, named)
        if loc.dim() < 1:
            raise ShapeError(f"{title}: expected loc of at least one dimension, got a number")
        n = loc.shape[-1]
        if cov_factor.dim() < 2 or cov_factor.shape[-2] != n:
            raise ShapeError(f"{title}: expected cov_factor of {n} rows, got shape {tuple(cov_factor.shape)}")
        if cov_diag.dim() < 1 or cov_diag.shape[-1] != n:
            raise ShapeError(f"{title}: expected cov_diag of {n} numbers, got shape {tuple(cov_diag.shape)}")
        shape = common_shape(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1]))
        self.loc, self.cov_diag = loc.expand(*shape, n), cov_diag.expand(*shape, n)
        self.cov_factor = cov_factor.expand(*shape, *cov_factor.shape[-2:])
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        super().__init__(shape, (n,), validate_args)
        # of I + W.mT @ diag(1 / d) @ W
        inner = matmul(cov_factor.mT / cov_diag.unsqueeze(-2), cov_factor)
        one = eye(cov_factor.shape[-1], dtype=cov_factor.dtype, device=cov_factor.device)
        self._unbroadcasted_capacitance_tril = cholesky(inner + one)

    @lazy_property
    def variance(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        value = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return value.expand(*self.batch_shape, *self.event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        factor = self._unbroadcasted_cov_factor / root
        inner = matmul(factor, factor.mT) + eye(self.event_shape[0], dtype=factor.dtype, device=factor.device)
        return wide(self, root * cholesky(inner))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return wide(self, matmul(factor, factor.mT) + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        half = solve_triangular(self._unbroadcasted_capacitance_tril, scaled, upper=False)
        return wide(self, (1 / self._unbroadcasted_cov_diag).diag_embed() - matmul(half.mT, half))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = (*self._extended_shape(sample_shape)[:-1], self.cov_factor.shape[-1])
        common = randn(*shape, dtype=self.loc.dtype, device=self.loc.device)
        own = self._normal(sample_shape, self.loc)
        shared = matmul(self._unbroadcasted_cov_factor, common.unsqueeze(-1)).squeeze(-1)
        return self.loc + shared + self._unbroadcasted_cov_diag.sqrt() * own

    def _log_det(self) -> Tensor:
        own = self._unbroadcasted_capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 2 * own + self._unbroadcasted_cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        away, diag = value - self.loc, self._unbroadcasted_cov_diag
        factor, scaled = promote_to_tensors(self._unbroadcasted_cov_factor, away / diag)
        shared = matmul(factor.mT, scaled.unsqueeze(-1)).squeeze(-1)
        far = (away.square() / diag).sum(-1) - squared_length(self._unbroadcasted_capacitance_tril, shared)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + self._log_det() + far)

    def entropy(self) -> Tensor:
        value = 0.5 * (self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det())
        return value.expand(self.batch_shape)
