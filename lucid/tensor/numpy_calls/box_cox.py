"""Box-Cox transforms and their inverses, made of two quotients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.ops.elementwise import arithmetic, comparison, division, exponential, logic, nonfinite, power, selection
from lucid.ops.elementwise import complex as parts
from lucid.tensor.numpy_calls.by_scipy import series, with_slopes

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor

# ---- the quotients: below these sizes by their series, which has all of their slopes ----

NEAR_EXP, NEAR_LOG = 1.0, 0.125
EXP_TERMS = [1 / math.factorial(k + 1) for k in range(22)]
LOG_TERMS = [(-1) ** k / (k + 1) for k in range(22)]
EXP_SLOPE_TERMS, LOG_SLOPE_TERMS = ([k * term for k, term in enumerate(t)][1:] for t in (EXP_TERMS, LOG_TERMS))
FAR = 80
"""Beyond this 1 is lost beside the exponential, which may be out of range where its quotient is not."""


def _relative_exponential_value(x: Tensor) -> Any:
    """Return ``scipy.special.exprel``: ``(exp(x) - 1) / x``, 1 at 0."""
    is_near, is_far = comparison.lt(parts.abs(x), NEAR_EXP), comparison.gt(x, FAR)
    safe = selection.where(logic.logical_or(is_near, comparison.eq(x, math.inf)), 1.0, x)
    middle = division.div(exponential.expm1(x), safe)
    far = exponential.exp(arithmetic.sub(x, exponential.log(parts.abs(safe))))
    return selection.where(is_near, series(x, EXP_TERMS), selection.where(is_far, far, middle))


def _relative_exponential_slope(x: Tensor) -> Any:
    """Return ``(exp(x) - exprel(x)) / x``, without a difference of near numbers or of infinities."""
    is_near, is_far = comparison.lt(parts.abs(x), NEAR_EXP), comparison.gt(x, FAR)
    near = series(selection.where(is_near, x, 0.0), EXP_SLOPE_TERMS)
    safe = selection.where(is_near, 1.0, x)
    value = relative_exponential(safe)
    middle = selection.where(is_far, 1.0, safe)
    middle = division.div(arithmetic.sub(exponential.exp(middle), selection.where(is_far, 0.0, value)), middle)
    far = arithmetic.mul(value, arithmetic.rsub(division.reciprocal(safe), 1))
    return selection.where(is_near, near, selection.where(is_far, far, middle))


relative_exponential = with_slopes(_relative_exponential_value, _relative_exponential_slope)


def relative_logarithm(u: Tensor) -> Any:
    """Return ``log(1 + u) / u``, 1 at 0, of complex numbers too."""
    is_near = comparison.lt(parts.abs(u), NEAR_LOG)
    near = series(selection.where(is_near, u, 0.0), LOG_TERMS)
    safe = selection.where(is_near, 1.0, u)
    return selection.where(is_near, near, division.div(exponential.log1p(safe), safe))


# ---- the transforms ----


def _growth(line: Tensor, lmbda: Tensor) -> Any:
    """Return the product of a degree and a logarithm: 0 of a degree of 0, and of an infinite logarithm too."""
    is_endless = logic.logical_and(comparison.eq(lmbda, 0), nonfinite.isinf(line))
    return arithmetic.mul(lmbda, selection.where(is_endless, 0.0, line))


def _transform(line: Tensor, lmbda: Tensor) -> Any:
    """Return ``(exp(lmbda * line) - 1) / lmbda``, at 0 the line itself."""
    growth = _growth(line, lmbda)
    is_near, is_far = comparison.lt(parts.abs(growth), NEAR_EXP), comparison.gt(growth, FAR)
    near = arithmetic.mul(line, relative_exponential(selection.where(is_near, growth, 0.0)))
    safe = selection.where(is_near, 1.0, lmbda)
    middle = division.div(exponential.expm1(selection.where(is_far, 0.0, growth)), safe)
    size = exponential.exp(arithmetic.sub(growth, exponential.log(parts.abs(safe))))
    far = arithmetic.mul(size, parts.sgn(safe))
    return selection.where(is_near, near, selection.where(is_far, far, middle))


def _transform_by_degree(line: Tensor, lmbda: Tensor) -> Any:
    """Return its slope by the degree, ``(1 + exp(growth) * (growth - 1)) / lmbda ** 2``."""
    # an exponential of 0, at the end of the domain, is none of an infinite line, of which slopes would be NaN
    is_end = comparison.eq(_growth(line, lmbda), -math.inf)
    line = selection.where(is_end, 0.0, line)
    growth = selection.where(is_end, -1000.0, _growth(line, lmbda))
    is_near, is_far = comparison.lt(parts.abs(growth), NEAR_EXP), comparison.gt(growth, FAR)
    slope = series(selection.where(is_near, growth, 0.0), EXP_SLOPE_TERMS)
    near = arithmetic.mul(power.square(line), slope)
    safe = selection.where(is_near, 1.0, lmbda)
    usual = selection.where(is_far, -1000.0, growth)
    rest = arithmetic.mul(exponential.exp(usual), arithmetic.sub(usual, 1))
    middle = division.div(division.div(arithmetic.add(rest, 1), safe), safe)
    far = selection.where(is_far, growth, 1.0)
    size = arithmetic.sub(far, arithmetic.mul(exponential.log(parts.abs(safe)), 2))
    far = arithmetic.mul(exponential.exp(size), arithmetic.sub(far, 1))
    return selection.where(is_near, near, selection.where(is_far, far, middle))


def _box_cox_value(x: Tensor, lmbda: Tensor) -> Any:
    """Return ``scipy.special.boxcox``: ``(x ** lmbda - 1) / lmbda``, at 0 the logarithm."""
    return _transform(exponential.log(x), lmbda)


def _box_cox_slope(x: Tensor, lmbda: Tensor) -> Any:
    return power.pow(x, arithmetic.sub(lmbda, 1))


def _box_cox_of_one_more_value(x: Tensor, lmbda: Tensor) -> Any:
    """Return ``scipy.special.boxcox1p``: ``boxcox`` of ``1 + x``."""
    return _transform(exponential.log1p(x), lmbda)


def _box_cox_of_one_more_slope(x: Tensor, lmbda: Tensor) -> Any:
    # the sum is exact near -1
    is_low = comparison.lt(x, -0.5)
    low = _box_cox_slope(arithmetic.add(selection.where(is_low, x, 0.0), 1), lmbda)
    growth = exponential.xlog1py(arithmetic.sub(lmbda, 1), selection.where(is_low, 0.0, x))
    return selection.where(is_low, low, exponential.exp(growth))


box_cox = with_slopes(_box_cox_value, _box_cox_slope, lambda x, lmbda: _transform_by_degree(exponential.log(x), lmbda))
box_cox_of_one_more = with_slopes(
    _box_cox_of_one_more_value,
    _box_cox_of_one_more_slope,
    lambda x, lmbda: _transform_by_degree(exponential.log1p(x), lmbda),
)


# ---- their inverses ----


def _line_of(y: Tensor, lmbda: Tensor) -> Any:
    """Return the logarithm of the inverse, ``log(1 + lmbda * y) / lmbda``, at 0 y itself."""
    u = _growth(y, lmbda)
    is_near = comparison.lt(parts.abs(u), NEAR_LOG)
    near = arithmetic.mul(y, relative_logarithm(selection.where(is_near, u, 0.0)))
    safe = selection.where(is_near, 1.0, lmbda)
    return selection.where(is_near, near, division.div(exponential.log1p(selection.where(is_near, 0.0, u)), safe))


def _inverse_slope(y: Tensor, lmbda: Tensor) -> Any:
    """Return the slope of the inverse by y, the inverse to the power ``1 - lmbda``: 1 of a degree of 1."""
    line = _line_of(y, lmbda)
    is_line = logic.logical_and(comparison.eq(lmbda, 1), nonfinite.isinf(line))
    return exponential.exp(arithmetic.mul(arithmetic.rsub(lmbda, 1), selection.where(is_line, 0.0, line)))


def _inverse_by_degree(y: Tensor, lmbda: Tensor) -> Any:
    """Return it by the degree, of the line's slope: ``y / lmbda / (1 + lmbda * y) - line / lmbda``."""
    u, line = _growth(y, lmbda), _line_of(y, lmbda)
    is_near = comparison.lt(parts.abs(u), NEAR_LOG)
    near = arithmetic.mul(power.square(y), series(selection.where(is_near, u, 0.0), LOG_SLOPE_TERMS))
    near = arithmetic.mul(near, exponential.exp(line))
    safe = selection.where(is_near, 1.0, lmbda)
    # at the end of the domain the inverse is 0, and so is its product with the line
    finite = selection.where(comparison.eq(line, -math.inf), 0.0, line)
    product = arithmetic.mul(exponential.exp(line), finite)
    far = division.div(arithmetic.sub(arithmetic.mul(y, _inverse_slope(y, lmbda)), product), safe)
    return selection.where(is_near, near, far)


def _inverse_box_cox_value(y: Tensor, lmbda: Tensor) -> Any:
    """Return ``scipy.special.inv_boxcox``."""
    return exponential.exp(_line_of(y, lmbda))


def _inverse_box_cox_less_one_value(y: Tensor, lmbda: Tensor) -> Any:
    """Return ``scipy.special.inv_boxcox1p``."""
    return exponential.expm1(_line_of(y, lmbda))


inverse_box_cox: Callable[..., Any]
inverse_box_cox, inverse_box_cox_less_one = (
    with_slopes(value, _inverse_slope, _inverse_by_degree)
    for value in (_inverse_box_cox_value, _inverse_box_cox_less_one_value)
)
