"""The methods of a tensor that change it in place, and the activations that do, as functions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from lucid.arguments import shown
from lucid.autograd.base import TensorBase
from lucid.errors import ArgumentError

# imports, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
from lucid.ops.activation import elu, hard, prelu, relu, sigmoid
from lucid.ops.base import strided
from lucid.ops.elementwise import (
    arithmetic,
    combination,
    comparison,
    division,
    exponential,
    logic,
    nonfinite,
    power,
    rounding,
    selection,
    special,
    trigonometry,
)
from lucid.ops.elementwise import complex as parts
from lucid.ops.index import index_select, indexing, masked_select, placing, scatter, scatter_reduce
from lucid.ops.linalg import addmm, composed
from lucid.ops.reduction import covariance, cumulative
from lucid.ops.shape import axes, diagonal, reshape
from lucid.tensor import inplace, operators, random_fill
from lucid.tensor.attributes import Attributes
from lucid.tensor.inplace import in_place, reshaped_in_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor

P = ParamSpec("P")


class InPlaceMethods(Attributes):
    """The functions of `lucid` that may write their result into their first argument: their names end in ``_``."""

    __slots__ = ()

    copy_ = inplace.copy_
    fill_ = inplace.fill_
    zero_ = inplace.zero_
    normal_ = random_fill.normal_
    uniform_ = random_fill.uniform_
    exponential_ = random_fill.exponential_
    log_normal_ = random_fill.log_normal_
    cauchy_ = random_fill.cauchy_
    geometric_ = random_fill.geometric_
    bernoulli_ = random_fill.bernoulli_
    random_ = random_fill.random_
    fill_diagonal_ = inplace.fill_diagonal_
    polygamma_ = in_place(operators.polygamma)

    # in-place methods, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
    # activation
    relu_ = in_place(relu.relu)
    tanh_ = in_place(sigmoid.tanh)
    sigmoid_ = in_place(sigmoid.sigmoid)
    # elementwise
    add_ = in_place(arithmetic.add)
    copysign_ = in_place(arithmetic.copysign)
    mul_ = multiply_ = in_place(arithmetic.mul)
    neg_ = negative_ = in_place(arithmetic.neg)
    nextafter_ = in_place(arithmetic.nextafter)
    sub_ = subtract_ = in_place(arithmetic.sub)
    addcdiv_ = in_place(combination.addcdiv)
    addcmul_ = in_place(combination.addcmul)
    lerp_ = in_place(combination.lerp)
    eq_ = in_place(comparison.eq)
    ge_ = greater_equal_ = in_place(comparison.ge)
    gt_ = greater_ = in_place(comparison.gt)
    heaviside_ = in_place(comparison.heaviside)
    le_ = less_equal_ = in_place(comparison.le)
    lt_ = less_ = in_place(comparison.lt)
    ne_ = not_equal_ = in_place(comparison.ne)
    abs_ = absolute_ = in_place(parts.abs)
    conj_physical_ = in_place(parts.conj)
    sgn_ = in_place(parts.sgn)
    sign_ = in_place(parts.sign)
    div_ = divide_ = true_divide_ = in_place(division.div)
    floor_divide_ = in_place(division.floor_divide)
    fmod_ = in_place(division.fmod)
    gcd_ = in_place(division.gcd)
    lcm_ = in_place(division.lcm)
    reciprocal_ = in_place(division.reciprocal)
    remainder_ = in_place(division.remainder)
    exp_ = in_place(exponential.exp)
    exp2_ = in_place(exponential.exp2)
    expm1_ = in_place(exponential.expm1)
    log_ = in_place(exponential.log)
    log1p_ = in_place(exponential.log1p)
    log2_ = in_place(exponential.log2)
    log10_ = in_place(exponential.log10)
    logit_ = in_place(exponential.logit)
    xlogy_ = in_place(exponential.xlogy)
    bitwise_and_ = in_place(logic.bitwise_and)
    bitwise_left_shift_ = in_place(logic.bitwise_left_shift)
    bitwise_not_ = in_place(logic.bitwise_not)
    bitwise_or_ = in_place(logic.bitwise_or)
    bitwise_right_shift_ = in_place(logic.bitwise_right_shift)
    bitwise_xor_ = in_place(logic.bitwise_xor)
    logical_and_ = in_place(logic.logical_and)
    logical_not_ = in_place(logic.logical_not)
    logical_or_ = in_place(logic.logical_or)
    logical_xor_ = in_place(logic.logical_xor)
    nan_to_num_ = in_place(nonfinite.nan_to_num)
    float_power_ = in_place(power.float_power)
    ldexp_ = in_place(power.ldexp)
    pow_ = in_place(power.pow)
    rsqrt_ = in_place(power.rsqrt)
    sqrt_ = in_place(power.sqrt)
    square_ = in_place(power.square)
    ceil_ = in_place(rounding.ceil)
    floor_ = in_place(rounding.floor)
    frac_ = in_place(rounding.frac)
    round_ = in_place(rounding.round)
    trunc_ = fix_ = in_place(rounding.trunc)
    clamp_ = in_place(selection.clamp)
    clamp_max_ = in_place(selection.clamp_max)
    clamp_min_ = in_place(selection.clamp_min)
    clip_ = in_place(selection.clip)
    digamma_ = in_place(special.digamma)
    erf_ = in_place(special.erf)
    erfc_ = in_place(special.erfc)
    erfinv_ = in_place(special.erfinv)
    i0_ = in_place(special.i0)
    lgamma_ = in_place(special.lgamma)
    mvlgamma_ = in_place(special.mvlgamma)
    acos_ = arccos_ = in_place(trigonometry.acos)
    acosh_ = arccosh_ = in_place(trigonometry.acosh)
    asin_ = arcsin_ = in_place(trigonometry.asin)
    asinh_ = arcsinh_ = in_place(trigonometry.asinh)
    atan_ = arctan_ = in_place(trigonometry.atan)
    atan2_ = arctan2_ = in_place(trigonometry.atan2)
    atanh_ = arctanh_ = in_place(trigonometry.atanh)
    cos_ = in_place(trigonometry.cos)
    cosh_ = in_place(trigonometry.cosh)
    deg2rad_ = in_place(trigonometry.deg2rad)
    hypot_ = in_place(trigonometry.hypot)
    rad2deg_ = in_place(trigonometry.rad2deg)
    sin_ = in_place(trigonometry.sin)
    sinc_ = in_place(trigonometry.sinc)
    sinh_ = in_place(trigonometry.sinh)
    tan_ = in_place(trigonometry.tan)
    # index
    index_add_ = in_place(index_select.index_add)
    index_copy_ = in_place(index_select.index_copy)
    index_fill_ = in_place(index_select.index_fill)
    index_put_ = in_place(indexing.index_put)
    masked_fill_ = in_place(masked_select.masked_fill)
    masked_scatter_ = in_place(masked_select.masked_scatter)
    put_ = in_place(placing.put)
    scatter_add_ = in_place(scatter.scatter_add)
    scatter_ = in_place(scatter.scatter)
    index_reduce_ = in_place(scatter_reduce.index_reduce)
    scatter_reduce_ = in_place(scatter_reduce.scatter_reduce)
    # linalg
    baddbmm_ = in_place(addmm.baddbmm)
    addmm_ = in_place(addmm.addmm)
    addbmm_ = in_place(composed.addbmm)
    addmv_ = in_place(composed.addmv)
    addr_ = in_place(composed.addr)
    # reduction
    renorm_ = in_place(covariance.renorm)
    cumprod_ = in_place(cumulative.cumprod)
    cumsum_ = in_place(cumulative.cumsum)
    # shape
    tril_ = in_place(diagonal.tril)
    triu_ = in_place(diagonal.triu)
    # base
    as_strided_ = reshaped_in_place(strided.as_strided)
    # shape
    swapaxes_ = reshaped_in_place(axes.swapaxes)
    t_ = reshaped_in_place(axes.t)
    transpose_ = swapdims_ = reshaped_in_place(axes.transpose)
    squeeze_ = reshaped_in_place(reshape.squeeze)
    unsqueeze_ = reshaped_in_place(reshape.unsqueeze)


def _function(op: Callable[Concatenate[Tensor, P], Tensor]) -> Callable[Concatenate[Tensor, P], Tensor]:
    """Return the in-place form of an op as a function: of most activations there is no method."""
    change = in_place(op)

    @functools.wraps(op)
    def call(input: Tensor, *args: P.args, **kwargs: P.kwargs) -> Tensor:
        if not isinstance(input, TensorBase):
            raise ArgumentError(f"{op.__name__}_: input: expected a Tensor, got {shown(input)}")
        return change(input, *args, **kwargs)

    call.__name__ = call.__qualname__ = f"{op.__name__}_"
    call.__module__ = __name__
    call.__doc__ = f"""Return `input` after setting it to ``{op.__name__}(input, ...)``.

    A leaf that requires grad, and what otherwise may not be changed, raises an InplaceError.
    """
    return call


# in-place functions, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
# activation
celu_ = _function(elu.celu)
selu_ = _function(elu.selu)
elu_ = _function(elu.elu)
threshold_ = _function(hard.threshold)
rrelu_ = _function(prelu.rrelu)
hardtanh_ = _function(relu.hardtanh)
leaky_relu_ = _function(relu.leaky_relu)
relu_ = _function(relu.relu)
