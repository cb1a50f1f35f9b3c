"""Random matrices: covariances of normal vectors, and correlations."""

from __future__ import annotations

import math
from numbers import Integral
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import no_grad
from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution, ExponentialFamily
from lucid.distributions.families.gamma import Beta
from lucid.distributions.families.multivariate import OfCovariance, factor_of, one_of
from lucid.distributions.implicit import standard_gamma
from lucid.distributions.utils import named_tensors
from lucid.errors import ArgumentError, SettingError
from lucid.ops.base.dims import common_shape
from lucid.ops.base.promotion import promote_to_tensors
from lucid.ops.creation.ranges import arange, eye
from lucid.ops.decomposition.inverses import slogdet
from lucid.ops.decomposition.triangular import cholesky, solve_triangular
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import digamma, lgamma, mvlgamma
from lucid.ops.linalg.products import matmul
from lucid.ops.shape.joining import cat
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


class Wishart(OfCovariance, ExponentialFamily):
    """Sums of `df` outer products of normal vectors, with one form of their covariance V given.

    The density is proportional to ``det(X)**((df - n - 1) / 2) * exp(-trace(V**-1 @ X) / 2)`` over positive definite
    n x n matrices X. `df` is above n - 1, and need not be whole. One of `covariance_matrix`, `precision_matrix`, its
    inverse, and `scale_tril`, its lower Cholesky factor, is given.

    >>> import lucid
    >>> lucid.distributions.Wishart(lucid.tensor(3.0), lucid.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    df: Tensor

    @property
    def arg_constraints(self) -> Any:
        """`df` is above the size of the matrices, less 1."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        named = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        count, name, form = one_of("Wishart", {"df": df}, named)
        shape = Size(common_shape(tuple(form.shape[:-2]), tuple(count.shape)))
        self.df = count.expand(shape)
        vars(self)[name] = form.expand(*shape, *form.shape[-2:])
        self._event_shape = form.shape[-2:]
        super().__init__(shape, form.shape[-2:], validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, form)

    def _times(self, count: Tensor, matrix: Tensor) -> Tensor:
        return count[..., None, None] * matrix

    @property
    def mean(self) -> Tensor:
        return self._times(self.df, self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        above = self.df - self.event_shape[-1] - 1
        return self._times(where(above > 0, above, math.nan), self.covariance_matrix)

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diag = v.diagonal(dim1=-2, dim2=-1)
        return self._times(self.df, v.square() + diag.unsqueeze(-1) * diag.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # Bartlett's decomposition: chi variates of falling freedom on the diagonal, normal numbers below
        n = self.event_shape[-1]
        shape = self._extended_shape(sample_shape)
        freedom = self.df.unsqueeze(-1) - arange(n, dtype=self.df.dtype, device=self.df.device)
        chi = (2 * standard_gamma((0.5 * freedom).expand(shape[:-1]))).sqrt()
        noise = self._normal(sample_shape, self.df).tril(-1)
        root = matmul(self._unbroadcasted_scale_tril, noise + chi.diag_embed())
        drawn = matmul(root, root.mT)
        # as much more on the diagonal as rounding may take from the least eigenvalue: a draw is positive definite
        more = 2 * n * finfo(drawn.dtype).eps
        return drawn + (more * drawn.diagonal(dim1=-2, dim2=-1)).diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        nu, n = self.df, self.event_shape[-1]
        size = nu * (0.5 * n * math.log(2) + self._half_log_det()) + mvlgamma(0.5 * nu, n)

        def logs(value: Tensor) -> Tensor:
            factor, value = promote_to_tensors(self._unbroadcasted_scale_tril, value)
            within = solve_triangular(factor, cholesky(value), upper=False)
            return 0.5 * (nu - n - 1) * slogdet(value).logabsdet - 0.5 * within.square().sum((-2, -1)) - size

        return self._density(value, logs)

    def _safe(self) -> Any:
        return eye(self.event_shape[-1], dtype=self.df.dtype, device=self.df.device)

    def entropy(self) -> Tensor:
        nu, n = self.df, self.event_shape[-1]
        each = 0.5 * (nu.unsqueeze(-1) - arange(n, dtype=nu.dtype, device=nu.device))
        size = (n + 1) * (0.5 * n * math.log(2) + self._half_log_det()) + mvlgamma(0.5 * nu, n)
        return size - 0.5 * (nu - n - 1) * digamma(each).sum(-1) + 0.5 * nu * n

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -0.5 * self.precision_matrix, 0.5 * (self.df - self.event_shape[-1] - 1)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        n = self.event_shape[-1]
        half = y + 0.5 * (n + 1)
        return half * (n * math.log(2) - slogdet(-2 * x).logabsdet) + mvlgamma(half, n)


class LKJCholesky(Distribution):
    """Lower Cholesky factors of `dim` x `dim` correlation matrices, with a density proportional to ``det**(c - 1)``.

    c, the `concentration`, is above 0: with 1 all correlation matrices are as likely, with more those near the unit
    matrix are likelier. Lewandowski, Kurowicka, Joe: Generating random correlation matrices based on vines and extended
    onion method (2009).

    >>> import lucid
    >>> factor = lucid.distributions.LKJCholesky(3, 0.5).sample()
    >>> lucid.allclose((factor @ factor.mT).diagonal(), lucid.ones(3))
    True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    concentration: Tensor

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if not isinstance(dim, Integral):
            raise ArgumentError(f"LKJCholesky: dim: expected a whole number, got {dim!r}")
        if dim < 2:
            raise SettingError(f"LKJCholesky: dim: expected a whole number from 2 on, got {dim}")
        self.dim = dim = int(dim)
        (self.concentration,) = named_tensors("LKJCholesky", {"concentration": concentration})
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # each row is a direction, of the length whose square is beta distributed, and what is left of 1
        with no_grad():
            c = self.concentration
            place = arange(self.dim - 1, dtype=c.dtype, device=c.device)
            place = cat([place[:1], place])
            beta = Beta(0.5 * place + 0.5, (c + 0.5 * (self.dim - 2)).unsqueeze(-1) - 0.5 * place, validate_args=False)
            square = beta.sample(sample_shape)
            noise = self._normal(sample_shape, c).tril(-1)
            length = noise.square().sum(-1, keepdim=True).sqrt()
            row = square.sqrt().unsqueeze(-1) * noise / where(length > 0, length, 1.0)
            pivots = (1 - row.square().sum(-1)).clamp(min=finfo(row.dtype).tiny).sqrt()
            return row + pivots.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        c, n = self.concentration, self.dim - 1
        power = 2 * (c.unsqueeze(-1) - 1) + arange(n - 1, -1, -1, dtype=c.dtype, device=c.device)
        alpha = c + 0.5 * n
        size = 0.5 * n * math.log(math.pi) + mvlgamma(alpha - 0.5, n) - n * lgamma(alpha)
        return self._density(
            value, lambda value: (power * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1) - size
        )

    def _safe(self) -> Any:
        c = self.concentration
        return eye(self.dim, dtype=c.dtype, device=c.device)
