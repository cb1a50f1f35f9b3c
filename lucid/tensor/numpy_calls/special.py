"""SciPy's special functions as lucid's ops, by their names in `scipy.special`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import no_grad
from lucid.ops.activation.sigmoid import logsigmoid, sigmoid
from lucid.ops.base.promotion import float_operand, promote_to_tensors
from lucid.ops.elementwise import arithmetic, comparison, division, exponential, nonfinite, power, selection, special
from lucid.ops.elementwise import complex as parts
from lucid.ops.elementwise.logic import logical_and, logical_not, logical_or
from lucid.ops.elementwise.trigonometry import hypot, sin, sinc
from lucid.tensor.numpy_calls import box_cox
from lucid.tensor.numpy_calls.by_scipy import by_scipy, with_slopes
from lucid.tensor.numpy_calls.slopes import SLOPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def log_of_share(x: Tensor) -> Any:
    """Return ``scipy.special.log_ndtr``: far below zero by the asymptotic series of the tail."""
    x = float_operand(x)
    # beyond that the square of the tail, of which the second slope is made, is near what float32 holds
    end = -10.0 if x.array.dtype.itemsize > 4 else -7.0
    is_far, is_above = comparison.lt(x, end), comparison.gt(x, 0)
    near = selection.where(is_far, -1.0, x)
    # at 0, too, a side is chosen: the size alone has no slope there
    size = selection.where(is_above, near, arithmetic.neg(near))
    half = arithmetic.mul(special.erfc(arithmetic.mul(size, math.sqrt(0.5))), 0.5)
    # above, all but the other tail; below, the tail itself
    body = selection.where(
        is_above, exponential.log1p(arithmetic.neg(half)), exponential.log(selection.where(is_above, 1.0, half))
    )
    far = selection.where(is_far, x, end)
    inverse = division.reciprocal(power.square(far))
    series: Any = 1.0
    for odd in range(2 * _TERMS - 1, 0, -2):
        series = arithmetic.rsub(arithmetic.mul(arithmetic.mul(inverse, odd), series), 1.0)
    tail = arithmetic.sub(
        arithmetic.add(arithmetic.mul(power.square(far), -0.5), exponential.log(series)),
        arithmetic.add(exponential.log(arithmetic.neg(far)), 0.5 * math.log(2 * math.pi)),
    )
    return selection.where(is_far, tail, body)


_TERMS = 11
"""How many terms of the series there are: ten standard deviations out, the next is below what float64 holds.

Seven standard deviations out it is below what float32 holds.
"""


def inverse_of_share(p: Tensor) -> Any:
    """Return ``scipy.special.ndtri``: by Newton's method for the logarithm of the smaller share.

    That is concave, and the start lies below its root: steps come nearer from below. The last two are recorded, and
    give derivatives up to the third.
    """
    p = float_operand(p)
    is_upper = comparison.gt(p, 0.5)
    share = selection.where(is_upper, arithmetic.rsub(p, 1), p)
    is_inside = comparison.gt(share, 0)
    wanted = exponential.log(selection.where(is_inside, share, 0.5))
    x = arithmetic.neg(power.sqrt(arithmetic.mul(wanted.detach(), -2)))
    with no_grad():
        for _ in range(6):
            x = _nearer(x, wanted)
    x = _nearer(_nearer(x, wanted), wanted)
    edge = selection.where(comparison.eq(share, 0), -math.inf, math.nan)
    x = selection.where(is_inside, x, edge)
    return selection.where(is_upper, arithmetic.neg(x), x)


def _nearer(x: Tensor, wanted: Tensor) -> Any:
    """Return Newton's next guess of `x` with `wanted` as the logarithm of the share below it."""
    logarithm = log_of_share(x)
    # the share over the height of the density
    slope = exponential.exp(arithmetic.add(logarithm, arithmetic.mul(power.square(x), 0.5)))
    step = arithmetic.mul(arithmetic.sub(logarithm, wanted), arithmetic.mul(slope, math.sqrt(2 * math.pi)))
    return arithmetic.sub(x, step)


def relative_entropy(x: Tensor, y: Tensor) -> Any:
    """Return ``scipy.special.rel_entr``: ``x * log(x / y)``, infinite outside of its domain."""
    x, y = promote_to_tensors(x, y, at_least_float=True)
    is_inside = logical_and(comparison.gt(x, 0), comparison.gt(y, 0))
    first, second = selection.where(is_inside, x, 1.0), selection.where(is_inside, y, 1.0)
    ratio = division.div(first.detach(), second.detach())
    is_near = logical_and(comparison.gt(ratio, 0.5), comparison.lt(ratio, 2))
    divisor = selection.where(is_near, second, 1.0)
    excess = selection.where(is_near, division.div(arithmetic.sub(first, second), divisor), 0.0)
    far = arithmetic.sub(exponential.log(first), exponential.log(second))
    inside = arithmetic.mul(first, selection.where(is_near, exponential.log1p(excess), far))
    is_zero = logical_and(comparison.eq(x, 0), comparison.ge(y, 0))
    result = selection.where(is_inside, inside, selection.where(is_zero, 0.0, math.inf))
    is_unknown = logical_or(nonfinite.isnan(x), nonfinite.isnan(y))
    return selection.where(is_unknown, arithmetic.add(x, y), result)


def divergence(x: Tensor, y: Tensor) -> Any:
    """Return ``scipy.special.kl_div``: ``x * log(x / y) - x + y``, infinite outside of its domain."""
    result = relative_entropy(x, y)
    return selection.where(comparison.eq(result, math.inf), result, arithmetic.add(arithmetic.sub(result, x), y))


def huber(delta: Tensor, r: Tensor) -> Any:
    """Return ``scipy.special.huber``: half the square of `r` near zero, a line beyond `delta`; infinite below 0."""
    delta, r = promote_to_tensors(delta, r, at_least_float=True)
    size = parts.abs(r)
    is_near = comparison.le(size, delta)
    bend = selection.where(is_near, 1.0, delta)
    line = arithmetic.mul(bend, arithmetic.sub(size, arithmetic.mul(bend, 0.5)))
    inside = selection.where(is_near, arithmetic.mul(power.square(r), 0.5), line)
    return selection.where(comparison.lt(delta, 0), math.inf, inside)


def _smooth_huber_value(delta: Tensor, r: Tensor) -> Any:
    """Return ``scipy.special.pseudo_huber``: `huber` without a corner."""
    is_none = logical_or(comparison.eq(delta, 0), _is_undecided(delta, r))
    _, share = _smooth_bend(delta, r)
    inside = selection.where(is_none, 0.0, arithmetic.mul(arithmetic.mul(delta, share), r))
    return selection.where(comparison.lt(delta, 0), math.inf, inside)


def _smooth_huber_by_delta(delta: Tensor, r: Tensor) -> Any:
    """Return the slope by delta: ``(hypot(delta, r) - delta) ** 2 / hypot(delta, r)``, without that difference."""
    height, share = _smooth_bend(delta, r)
    size = arithmetic.mul(share, r)
    slope = selection.where(nonfinite.isinf(size), size, arithmetic.mul(division.div(size, height), size))
    return selection.where(comparison.lt(delta, 0), 0.0, slope)


def _smooth_huber_slope(delta: Tensor, r: Tensor) -> Any:
    height, share = _smooth_bend(delta, r)
    slope = arithmetic.mul(delta, selection.where(nonfinite.isinf(r), share, division.div(r, height)))
    return selection.where(comparison.lt(delta, 0), 0.0, slope)


def _is_undecided(delta: Tensor, r: Tensor) -> Any:
    """Mark an `r` of zero beside a delta of zero, or of no finite number."""
    is_extreme = logical_or(comparison.eq(delta, 0), logical_not(nonfinite.isfinite(delta)))
    return logical_and(comparison.eq(r, 0), is_extreme)


def _smooth_bend(delta: Tensor, r: Tensor) -> Any:
    """Return ``hypot(delta, r)``, and its excess over delta divided by r: of -1 to 1, and no difference."""
    safe = selection.where(_is_undecided(delta, r), 1.0, delta)
    is_far = logical_and(nonfinite.isinf(r), nonfinite.isfinite(delta))
    height = hypot(safe, selection.where(is_far, 1.0, r))
    share = division.div(selection.where(is_far, 1.0, r), arithmetic.add(height, safe))
    return height, selection.where(is_far, parts.sgn(r), share)


smooth_huber = with_slopes(_smooth_huber_value, _smooth_huber_by_delta, _smooth_huber_slope)


def power_of_ten(x: Tensor) -> Any:
    """Return ``scipy.special.exp10``."""
    return power.pow(10.0, float_operand(x))


def cosine_less_one(x: Tensor) -> Any:
    """Return ``scipy.special.cosm1``: ``cos(x) - 1``, exact also for small results."""
    return arithmetic.mul(power.square(sin(arithmetic.mul(float_operand(x), 0.5))), -2)


def of_both(name: str, op: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a ufunc by an op for real numbers, and by SciPy for complex ones."""
    of_complex = by_scipy(name)

    def function(x: Tensor) -> Any:
        return (of_complex if x.array.dtype.kind == "c" else op)(x)

    return function


def scaled(bessel: Callable[[Any], Any], order: int) -> Callable[[Any], Any]:
    """Return a Bessel function times ``exp(-abs(x))``, as ``scipy.special.i0e`` and ``i1e`` are.

    From 50 on by the asymptotic series in ``1 / abs(x)``.
    """

    def function(x: Tensor) -> Any:
        x = float_operand(x)
        size = parts.abs(x)
        is_far = comparison.gt(size, 50)
        near, far = selection.where(is_far, 1.0, x), selection.where(is_far, size, 50.0)
        inverse: Any = division.reciprocal(arithmetic.mul(far, 8))
        series: Any = 1.0
        for k in range(12, 0, -1):
            series = arithmetic.rsub(
                arithmetic.mul(arithmetic.mul(inverse, (4 * order - (2 * k - 1) ** 2) / k), series), 1
            )
        tail = division.div(series, power.sqrt(arithmetic.mul(far, 2 * math.pi)))
        tail = arithmetic.mul(tail, parts.sgn(x)) if order else tail
        middle = arithmetic.mul(bessel(near), exponential.exp(arithmetic.neg(parts.abs(near))))
        return selection.where(is_far, tail, middle)

    return function


def log_of_logistic(x: Tensor) -> Any:
    """Return ``scipy.special.log_expit``, of integers too."""
    return logsigmoid(float_operand(x))


SPECIAL: dict[str, Callable[..., Any]] = {
    **{name: by_scipy(name) for name in SLOPES},
    "boxcox": box_cox.box_cox,
    "boxcox1p": box_cox.box_cox_of_one_more,
    "cosm1": cosine_less_one,
    "entr": exponential.entr,
    "erf": of_both("erf", special.erf),
    "erfc": of_both("erfc", special.erfc),
    "erfinv": special.erfinv,
    "exp10": power_of_ten,
    "exp2": exponential.exp2,
    "expit": sigmoid,
    "expm1": exponential.expm1,
    "exprel": box_cox.relative_exponential,
    "gammaln": special.lgamma,
    "huber": huber,
    "i0": special.i0,
    "i0e": scaled(special.i0, 0),
    "i1": special.i1,
    "i1e": scaled(special.i1, 1),
    "inv_boxcox": box_cox.inverse_box_cox,
    "inv_boxcox1p": box_cox.inverse_box_cox_less_one,
    "kl_div": divergence,
    "log1p": exponential.log1p,
    "log_expit": log_of_logistic,
    "log_ndtr": log_of_share,
    "logit": exponential.logit,
    "ndtr": special.ndtr,
    "ndtri": inverse_of_share,
    "pseudo_huber": smooth_huber,
    "psi": special.digamma,
    "rel_entr": relative_entropy,
    "xlog1py": exponential.xlog1py,
    "xlogy": exponential.xlogy,
}
"""By the name of a ufunc of `scipy.special`, the function of tensors that it is."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "digamma": special.digamma,
    "multigammaln": special.mvlgamma,
    "polygamma": special.polygamma,
    "sinc": sinc,
    "zeta": by_scipy("_zeta"),
}
"""The same of functions that are no ufuncs, which SciPy looks for in `lucid.array_api.special` alone."""
