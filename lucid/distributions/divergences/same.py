"""Divergences of two distributions of one family."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import is_grad_enabled
from lucid.distributions.distribution import ExponentialFamily
from lucid.distributions.families.bounded import ContinuousBernoulli, Uniform
from lucid.distributions.families.categorical import Categorical, OneHotCategorical
from lucid.distributions.families.composed import Independent, TransformedDistribution
from lucid.distributions.families.exponential import Exponential, Pareto
from lucid.distributions.families.gamma import Beta, Dirichlet, Gamma
from lucid.distributions.families.location import Cauchy, Gumbel, HalfCauchy, Laplace
from lucid.distributions.families.multivariate import LowRankMultivariateNormal, MultivariateNormal
from lucid.distributions.families.normal import HalfNormal, Normal
from lucid.distributions.families.trials import Bernoulli, Binomial, Geometric, Poisson, log_ways
from lucid.distributions.implicit import fall, lgamma_bend, log_ratio
from lucid.distributions.kl import kl_divergence, register_kl
from lucid.distributions.transformations.base import tensors_of
from lucid.distributions.utils import euler_constant, log1p_square, sum_rightmost
from lucid.errors import ShapeError
from lucid.ops.activation.sigmoid import logsigmoid, softplus
from lucid.ops.base.dims import common_shape
from lucid.ops.decomposition.triangular import solve_triangular
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import digamma, lgamma

# families have their own parts, and those of PyTorch's protocol, under an underscore
# pyright: reportPrivateUsage=false

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def _of_one_batch(p: Any, q: Any) -> tuple[Any, Any]:
    """Return both with the batch shape that they have together, for formulas that count dimensions."""
    shape = common_shape(tuple(p.batch_shape), tuple(q.batch_shape))
    p, q = (each if each.batch_shape == shape else each.expand(shape) for each in (p, q))
    return p, q


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = p.scale / q.scale
    return 0.5 * (ratio.square() + ((p.loc - q.loc) / q.scale).square() - 1) - ratio.log()


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p: HalfCauchy, q: HalfCauchy) -> Tensor:
    return _cauchy(p.base_dist, q.base_dist)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    ratio = p.scale / q.scale
    return log1p_square(0.5 * (1 - ratio) / ratio.sqrt()) + log1p_square((p.loc - q.loc) / (p.scale + q.scale))


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, p.loc - q.loc
    # both terms have a kink at 0, and the sum has none: the slope of the distance there is that of one side
    apart = where(away < 0, -away, away)
    return apart / q.scale + ratio * (-apart / p.scale).exp() - ratio.log() - 1


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return apart + euler_constant * (ratio - 1) + (lgamma(ratio + 1) - apart).exp() - ratio.log() - 1


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    value = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, value)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    return where((q.low > p.low) | (q.high < p.high), math.inf, ((q.high - q.low) / (p.high - p.low)).log())


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    step = q.concentration - p.concentration
    by_rate = p.concentration * fall(p.rate, q.rate) - step * log_ratio(p.rate, q.rate)
    return lgamma_bend(p.concentration, q.concentration) + by_rate


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    size = lgamma(total) - lgamma(b.sum(-1)) - (lgamma(a) - lgamma(b)).sum(-1)
    return size + ((a - b) * (digamma(a) - digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    mine, other = p._finite_logits(), q._finite_logits()
    one = p.probs * (softplus(-other) - softplus(-mine))
    # finite logits leave a chance, however small
    never, always = (q.logits == end if q._by_logits else q.probs == (end > 0) for end in (-math.inf, math.inf))
    one = where(p.probs == 0, 0.0, where(never, math.inf, one))
    zero = p._failed * (softplus(other) - softplus(mine))
    return one + where(p._failed == 0, 0.0, where(always, math.inf, zero))


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    mine, other = p._slope(), q._slope()
    return (p.mean - 0.5) * (mine - other) - p._log_size(mine) + q._log_size(other)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    p, q = _of_one_batch(p, q)
    value = p.total_count * _bernoulli(_trial(p), _trial(q))
    if bool((p.total_count < q.total_count).any().item()):
        # the numbers of ways differ, and trials of q that p has not fail
        counts = p._counted(int(p.total_count.max().item()), expand=False)
        few = where(counts <= p.total_count, counts, 0.0)
        ways = log_ways(p.total_count, few) - log_ways(q.total_count, few)
        chance = where(counts <= p.total_count, Binomial(p.total_count, p.probs, None, False).log_prob(few).exp(), 0.0)
        more = (q.total_count - p.total_count).clamp(min=0)
        # where there are none their logarithm may be infinite, and is not asked for
        fails = (
            logsigmoid(-where(more > 0, q.logits, 0.0)) if q._by_logits else (-where(more > 0, q.probs, 0.0)).log1p()
        )
        value = value + (chance * ways).sum(0) - more * fails
    return where(p.total_count > q.total_count, math.inf, value)


def _trial(of: Binomial) -> Bernoulli:
    return Bernoulli(None, of.logits, False) if of._by_logits else Bernoulli(of.probs, None, False)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - q._log_chance(1.0, p.mean)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    # as q can have a rate of 0 where p has
    none = p.rate == 0
    rate = where(none, 1.0, p.rate)
    return where(none, q.rate - p.rate, rate * fall(rate, where(none, 1.0, q.rate)))


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    if p._num_events != q._num_events:
        raise ShapeError(f"kl_divergence: expected as many choices of both, got {p._num_events} and {q._num_events}")
    none = p.probs == 0
    each = p.probs * where(none, 0.0, p.logits - q.logits)
    never = q.logits == -math.inf if q._by_logits else q.probs == 0
    return where(~none & never, math.inf, each).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


# ---- normal vectors ----


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate(p: Any, q: Any) -> Tensor:
    first, second = p.scale_tril, q.scale_tril
    ratio = second.diagonal(dim1=-2, dim2=-1).log().sum(-1) - first.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    away = (q.loc - p.loc).unsqueeze(-1)
    spread = solve_triangular(second, first, upper=False).square().sum((-2, -1))
    apart = solve_triangular(second, away, upper=False).square().sum((-2, -1))
    return ratio + 0.5 * (spread + apart - p.event_shape[0])


# ---- of others ----


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: Independent: as many dimensions of both have to be part of a draw")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    words = f"kl_divergence: {type(p).__name__} and {type(q).__name__}: of transformed distributions the transforms "
    if p.transforms != q.transforms:
        raise NotImplementedError(f"{words}have to be the same")
    if not all(each.bijective for each in p.transforms):
        raise NotImplementedError(f"{words}have to be bijective: others bring values together")
    ours, theirs = ([id(t) for t in tensors_of(each.transforms) if t.requires_grad] for each in (p, q))
    if is_grad_enabled() and ours != theirs:
        raise NotImplementedError(
            f"{words}have to share the tensors that require grad, as the divergence has slopes by each; for its value "
            "call it in no_grad()"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            "kl_divergence: expected a pair that is registered, or two of one exponential family, got "
            f"{type(p).__name__} and {type(q).__name__}"
        )
    p, q = _of_one_batch(p, q)
    thetas, means, size = p._mean_statistics()
    others = q._natural_params
    total = q._log_normalizer(*others) - size
    for theta, other, mean in zip(thetas, others, means, strict=True):
        inner = (other - theta) * mean
        total = total - sum_rightmost(inner, inner.dim() - len(p.batch_shape))
    return total
