"""Shares of gamma and beta variates below a value, and the slopes of these variates by their parameters.

A variate z that is drawn from the share u below it, ``F(z; a) = u``, moves with its parameter at constant share by
``dz/da = -(dF/da) / p(z)``, p the density: Figurnov, Mohamed, Mnih, Implicit reparameterization gradients (2018).

Both F and its derivative are p(z) times integrals over one side of z of the density's ratio to p(z), a falling function
whose logarithm is concave: the smaller side is summed by the double exponential rule of Takahashi and Mori (1974), and
by the power series (Abramowitz and Stegun 6.5.29, 26.5.4) where z is small. All is in float64.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.entry import grad
from lucid.autograd.function import Function
from lucid.autograd.modes.state import enable_grad, is_grad_enabled
from lucid.base.limits import finfo
from lucid.ops.activation.softmax import softmax
from lucid.ops.creation.rejection import standard_gamma as drawn_gamma
from lucid.ops.elementwise.exponential import xlogy
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import digamma, lgamma
from lucid.ops.shape.broadcasting import broadcast_tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


# From here on four terms of Stirling's series are exact to the last place.
LARGE = 30.0
# x = exp(u - exp(-u)), and the weights of a trapezoid of u from -3.4 to 6.2
STEP = 0.08
NODES = tuple((math.exp(u - math.exp(-u)), (1 + math.exp(-u)) * STEP) for u in (STEP * k for k in range(-42, 78)))


def _integrals(width: Tensor, log_ratio: Callable[[Tensor], Any], moments: Callable[[Tensor], Any]) -> tuple[Any, Any]:
    """Return the integrals over s > 0 of a ratio, given by its logarithm, and of the ratio times a moment."""
    total, moment = 0.0, 0.0
    # how wide the steps are changes nothing, and their roots have no slope at 0
    width = width.detach()
    for place, weight in NODES:
        s = width * place
        part = log_ratio(s).exp() * s * weight
        total, moment = total + part, moment + moments(s) * part
    return total, moment


def _gamma_sides(alpha: Tensor, z: Tensor, log_z: Tensor | None = None) -> tuple[Any, Any, Any]:
    """Return whether it is the share above z, that share over ``z * p(z)``, and ``dz/dalpha``."""
    excess = digamma(alpha) - (z.log() if log_z is None else log_z)
    near, above = z <= 1, z > alpha
    # sum of z**k / (alpha ... (alpha + k)), and what its derivative adds
    small = where(near, z, 1.0)
    term = 1 / alpha
    fallen = term
    series, slope = term, term * fallen
    for k in range(1, 24):
        term = term * small / (alpha + k)
        fallen = fallen + 1 / (alpha + k)
        series, slope = series + term, slope + term * fallen
    # below z, t = z * exp(-s)
    a, b = where(above, z, alpha), z
    below = _integrals(1 / (a - b + b.sqrt()), lambda s: -a * s - b * (-s).expm1(), lambda s: s)
    # above z, t = z + r
    a = where(above, alpha, z)
    fall = (a - 1) / z
    beyond = _integrals(
        1 / ((1 - fall).abs() + (fall.abs() / z).sqrt()),
        lambda r: (a - 1) * (r / z).log1p() - r,
        lambda r: (r / z).log1p(),
    )
    upper = above & ~near
    share = where(near, series, where(above, beyond[0] / z, below[0]))
    low = where(near, series * excess + slope, below[0] * excess + below[1])
    return upper, share, where(upper, beyond[1] - beyond[0] * excess, z * low)


def _beta_slope(x: Tensor, a: Tensor, b: Tensor) -> Any:
    """Return ``dx/da`` of a beta variate x at a constant share below it."""
    y, total = 1 - x, a + b
    excess = digamma(a) - digamma(total) - x.log()
    close = where(total > 2, 1 / total, 0.5)
    low, high = x <= close, y <= close
    # the power series of the share below x, or above it with the parameters exchanged
    first, at = where(low, a, b), where(low, x, where(high, y, 0.0))
    term = 1 / first
    both, own = 0.0, term
    series, slope = term, where(low, -term * own, 0.0)
    for k in range(1, 56):
        term = term * at * (total + (k - 1)) / (first + k)
        both, own = both + 1 / (total + (k - 1)), own + 1 / (first + k)
        series, slope = series + term, slope + term * where(low, both - own, both)
    by_series = x * y * where(low, series * excess - slope, slope - series * excess)
    # in between by the logit of t, downwards from that of x or upwards
    down = x * total <= a
    fraction, complement = where(down, x, y), where(down, y, x)
    near, far = where(down, a, b), where(down, b, a)
    fits = ~(low | high)
    fraction, complement = where(fits, fraction, 0.5), where(fits, complement, 0.5)
    near, far = where(fits, near, 1.0), where(fits, far, 1.0)
    sum_of, moment = _integrals(
        1 / ((near - (near + far) * fraction).abs() + ((near + far) * fraction * complement).sqrt()),
        lambda s: -near * (complement * s.expm1()).log1p() - far * (fraction * (-s).expm1()).log1p(),
        lambda s: where(down, (complement * s.expm1()).log1p(), -(fraction * (-s).expm1()).log1p()),
    )
    between = x * y * where(down, sum_of * excess + moment, moment - sum_of * excess)
    return where(fits, between, by_series)


def _stirling(a: Tensor) -> Any:
    """Return the series of ``lgamma(a) - (a - 1 / 2) * log(a) + a - log(2 * pi) / 2`` for a large a."""
    inverse = 1 / a.square()
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 * inverse) * inverse) * inverse) / a


def lgamma_rise(alpha: Tensor, step: Tensor) -> Tensor:
    """Return ``lgamma(alpha + step) - lgamma(alpha)``, with digits that both have lost if alpha is large."""
    large = (alpha > LARGE) & (alpha + step > LARGE)
    a, by = where(large, alpha, LARGE), where(large, step, 1.0)
    far = (a - 0.5) * (by / a).log1p() + by * ((a + by).log() - 1) + _stirling(a + by) - _stirling(a)
    low = where(large, 1.0, alpha)
    return where(large, far, lgamma(low + where(large, 1.0, step)) - lgamma(low))


def _digamma_rest(a: Tensor) -> Any:
    """Return the series of ``log(a) - 1 / (2 * a) - digamma(a)`` for a large a."""
    inverse = 1 / a.square()
    return (1 / 12 - (1 / 120 - (1 / 252 - 1 / 240 * inverse) * inverse) * inverse) * inverse


def digamma_rise(alpha: Tensor, step: Tensor) -> Tensor:
    """Return ``digamma(alpha + step) - digamma(alpha)``, step of 0 or more, with digits that both have lost."""
    large = alpha > LARGE
    a, low = where(large, alpha, LARGE), where(large, 1.0, alpha)
    far = (step / a).log1p() + 0.5 * step / (a * (a + step)) + _digamma_rest(a) - _digamma_rest(a + step)
    return where(large, far, digamma(low + step) - digamma(low))


def gamma_entropy(alpha: Tensor) -> Tensor:
    """Return the entropy of gamma variates of rate 1, of a large alpha by Stirling's series as well."""
    large = alpha > LARGE
    a, low = where(large, alpha, LARGE), where(large, 1.0, alpha)
    far = 0.5 * ((2 * math.pi * a).log() + 1 - 1 / a) + _stirling(a) + (a - 1) * _digamma_rest(a)
    return where(large, far, low + lgamma(low) + (1 - low) * digamma(low))


def lgamma_bend(alpha: Tensor, beta: Tensor) -> Tensor:
    """Return ``lgamma(beta) - lgamma(alpha) - (beta - alpha) * digamma(alpha)``."""
    large = (alpha > LARGE) & (beta > LARGE)
    a, b = (where(large, each, LARGE) for each in (alpha, beta))
    step = b - a
    rest = _stirling(b) - _stirling(a) + step * (0.5 / a + _digamma_rest(a))
    far = (step - 0.5) * log_ratio(a, b) - a * fall(a, b) + rest
    a, b = (where(large, 1.0, each) for each in (alpha, beta))
    return where(large, far, lgamma(b) - lgamma(a) - (b - a) * digamma(a))


def log_ratio(start: Tensor, end: Tensor) -> Tensor:
    """Return ``log(end / start)``, with the digits of numbers near each other and far apart."""
    x = (end - start) / start
    near = x.abs() < 0.5
    return where(near, where(near, x, 0.0).log1p(), where(near, 1.0, end / start).log())


def fall(start: Tensor, end: Tensor) -> Tensor:
    """Return ``x - log(1 + x)`` of ``x = end / start - 1``, with digits that both have lost if x is small."""
    x = (end - start) / start
    near = x.abs() < 0.01
    small = where(near, x, 0.0)
    terms: Any = 1 / 10
    for k in range(9, 1, -1):
        terms = 1 / k - small * terms
    return where(near, small.square() * terms, x - log_ratio(start, end))


def log_gamma_density(alpha: Tensor, z: Tensor) -> Tensor:
    """Return the logarithm of the density of a gamma variate at z of 0 or more.

    Of a large alpha the terms of the formula cancel: what is left of them is a function of the distance from alpha, by
    Stirling's series (Abramowitz and Stegun 6.1.41).
    """
    large = alpha > LARGE
    a = where(large, alpha, LARGE)
    at = where(large, z, LARGE)
    far = -(a - 1) * fall(a, at) - (at - a) / a - 0.5 * (2 * math.pi * a).log() - _stirling(a)
    b = where(large, 1.0, alpha)
    return where(large, far, xlogy(b - 1, z) - z - lgamma(b))


class _Later(Function):
    """Values of a function that is not recorded, and called once more if its derivatives are asked for."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        ctx.function = function
        ctx.save_for_backward(*inputs)
        return function(*inputs)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        again = is_grad_enabled()
        with enable_grad():
            inputs: Any = [
                x.view_as(x) if again and x.requires_grad else x.detach().requires_grad_() for x in ctx.saved_tensors
            ]
            value = ctx.function(*inputs)
        return None, *grad(value, inputs, grad_outputs, create_graph=again)


def _gamma_slope(alpha: Tensor, z: Tensor) -> Tensor:
    """Return ``dz/dalpha`` of a gamma variate z at a constant share below it."""
    return _gamma_sides(alpha, z)[2]


def _log_gamma_slope(alpha: Tensor, log_z: Tensor) -> Tensor:
    """Return the slope of the logarithm of a gamma variate that may itself underflow."""
    z = log_z.exp().clamp(min=1e-300)
    return _gamma_sides(alpha, z, log_z)[2] / z


def _dirichlet_slope(concentration: Tensor, shares: Tensor) -> Tensor:
    """Return the slopes of shares by their own concentrations, in units of the other shares."""
    x = shares.clamp(1e-300, 1 - 2.0**-53)
    rest = concentration.sum(-1, keepdim=True) - concentration
    # a share beside none is always 1
    alone = rest <= 0
    slope = _beta_slope(where(alone, 0.5, x), concentration, where(alone, 1.0, rest))
    return where(alone, 0.0, slope / (1 - x))


class _GammaVariates(Function):
    """Gamma variates of rate 1, or their logarithms."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, logs: bool) -> Tensor:
        draws = drawn_gamma(alpha, logs=logs)
        ctx.save_for_backward(alpha, draws)
        ctx.slope = _log_gamma_slope if logs else _gamma_slope
        return draws

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad_output,) = grad_outputs
        alpha, draws = ctx.saved_tensors
        return grad_output * _Later.apply(ctx.slope, alpha.double(), draws.double()).to(draws.dtype), None


class _DirichletFrom(Function):
    """Shares of gamma variates, moved by each concentration as the beta variate that one of them is.

    Of three shares and more the slopes of these slopes depend on which concentration is moved first; their means do
    not.
    """

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        # of small concentrations all parts may underflow, and their logarithms do not
        logs = drawn_gamma(concentration.double(), logs=True)
        shares = softmax(logs, -1).clamp(min=finfo(logs.dtype).tiny).to(concentration.dtype)
        ctx.save_for_backward(concentration, shares)
        return shares

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad_output,) = grad_outputs
        concentration, shares = ctx.saved_tensors
        each = _Later.apply(_dirichlet_slope, concentration.double(), shares.double()).to(shares.dtype)
        # the others give what one gains in proportion to what they have
        return each * (grad_output - (grad_output * shares).sum(-1, keepdim=True))


def _within(alpha: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a mask of values that have others on both sides, alpha in float64, and these, 1 in place of others."""
    at = z.double()
    inside = (at > 0) & (at < math.inf)
    return inside, alpha.double(), where(inside, at, 1.0)


class _GammaShare(Function):
    """The share of gamma variates of rate 1 below z, or above it."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, z: Tensor, above: bool) -> Tensor:
        ctx.save_for_backward(alpha, z)
        ctx.above = above
        inside, a, at = _within(alpha, z)
        upper, part, _ = _gamma_sides(a, at)
        part = part * at * log_gamma_density(a, at).exp()
        end = where(z > 0, 1.0, z.double() * 0.0)
        share = where(inside, where(upper ^ above, 1 - part, part), 1 - end if above else end)
        return share.to(z.dtype)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        grad_output = -grad_outputs[0] if ctx.above else grad_outputs[0]
        alpha, z = ctx.saved_tensors
        by_alpha = by_z = None
        if ctx.needs_input_grad[0]:
            inside, a, at = _within(alpha, z)
            slope = -_Later.apply(_gamma_slope, a, at) * log_gamma_density(a, at).exp()
            by_alpha = grad_output * where(inside, slope, 0.0).to(alpha.dtype)
        if ctx.needs_input_grad[1]:
            inside = (z >= 0) & (z < math.inf)
            density = log_gamma_density(alpha, where(inside, z, 1.0)).exp()
            by_z = grad_output * where(inside, density, 0.0)
        return by_alpha, by_z, None


def standard_gamma(alpha: Tensor) -> Tensor:
    """Return gamma variates of rate 1 for each alpha, with gradients."""
    return _GammaVariates.apply(alpha, False)


def log_gamma(alpha: Tensor) -> Tensor:
    """Return logarithms of gamma variates of rate 1 for each alpha, with gradients."""
    return _GammaVariates.apply(alpha, True)


def dirichlet_from(concentration: Tensor) -> Tensor:
    """Return shares that sum to 1 of the Dirichlet distribution, with gradients."""
    return _DirichletFrom.apply(concentration)


def gamma_share(alpha: Tensor, z: Tensor, above: bool = False) -> Tensor:
    """Return the regularised lower incomplete gamma function, or the upper one, with gradients by both."""
    alpha, z = broadcast_tensors(alpha, z)
    return _GammaShare.apply(alpha, z, above)
