"""The methods of a tensor that change it in place, and the activations that do, as functions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from lucid.arguments import shown
from lucid.autograd.base import TensorBase
from lucid.errors import ArgumentError
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
    add_ = in_place(arithmetic.add)
    sub_ = subtract_ = in_place(arithmetic.sub)
    mul_ = multiply_ = in_place(arithmetic.mul)
    neg_ = negative_ = in_place(arithmetic.neg)
    div_ = divide_ = true_divide_ = in_place(division.div)
    floor_divide_ = in_place(division.floor_divide)
    remainder_ = in_place(division.remainder)
    fmod_ = in_place(division.fmod)
    reciprocal_ = in_place(division.reciprocal)
    pow_ = in_place(power.pow)
    square_ = in_place(power.square)
    sqrt_ = in_place(power.sqrt)
    rsqrt_ = in_place(power.rsqrt)
    exp_ = in_place(exponential.exp)
    exp2_ = in_place(exponential.exp2)
    expm1_ = in_place(exponential.expm1)
    log_ = in_place(exponential.log)
    log2_ = in_place(exponential.log2)
    log10_ = in_place(exponential.log10)
    log1p_ = in_place(exponential.log1p)
    sin_ = in_place(trigonometry.sin)
    cos_ = in_place(trigonometry.cos)
    tan_ = in_place(trigonometry.tan)
    asin_ = arcsin_ = in_place(trigonometry.asin)
    acos_ = arccos_ = in_place(trigonometry.acos)
    atan_ = arctan_ = in_place(trigonometry.atan)
    atan2_ = arctan2_ = in_place(trigonometry.atan2)
    sinh_ = in_place(trigonometry.sinh)
    cosh_ = in_place(trigonometry.cosh)
    asinh_ = arcsinh_ = in_place(trigonometry.asinh)
    acosh_ = arccosh_ = in_place(trigonometry.acosh)
    atanh_ = arctanh_ = in_place(trigonometry.atanh)
    abs_ = absolute_ = in_place(parts.abs)
    sign_ = in_place(parts.sign)
    sgn_ = in_place(parts.sgn)
    conj_physical_ = in_place(parts.conj)
    floor_ = in_place(rounding.floor)
    ceil_ = in_place(rounding.ceil)
    trunc_ = fix_ = in_place(rounding.trunc)
    round_ = in_place(rounding.round)
    frac_ = in_place(rounding.frac)
    clamp_ = in_place(selection.clamp)
    clip_ = in_place(selection.clip)
    clamp_min_ = in_place(selection.clamp_min)
    clamp_max_ = in_place(selection.clamp_max)
    copysign_ = in_place(arithmetic.copysign)
    nextafter_ = in_place(arithmetic.nextafter)
    gcd_ = in_place(division.gcd)
    lcm_ = in_place(division.lcm)
    float_power_ = in_place(power.float_power)
    ldexp_ = in_place(power.ldexp)
    xlogy_ = in_place(exponential.xlogy)
    logit_ = in_place(exponential.logit)
    hypot_ = in_place(trigonometry.hypot)
    sinc_ = in_place(trigonometry.sinc)
    deg2rad_ = in_place(trigonometry.deg2rad)
    rad2deg_ = in_place(trigonometry.rad2deg)
    heaviside_ = in_place(comparison.heaviside)
    renorm_ = in_place(covariance.renorm)
    addmv_ = in_place(composed.addmv)
    addr_ = in_place(composed.addr)
    addbmm_ = in_place(composed.addbmm)
    put_ = in_place(placing.put)
    scatter_reduce_ = in_place(scatter_reduce.scatter_reduce)
    index_reduce_ = in_place(scatter_reduce.index_reduce)
    nan_to_num_ = in_place(nonfinite.nan_to_num)
    lerp_ = in_place(combination.lerp)
    addcmul_ = in_place(combination.addcmul)
    addcdiv_ = in_place(combination.addcdiv)
    eq_ = in_place(comparison.eq)
    ne_ = not_equal_ = in_place(comparison.ne)
    lt_ = less_ = in_place(comparison.lt)
    le_ = less_equal_ = in_place(comparison.le)
    gt_ = greater_ = in_place(comparison.gt)
    ge_ = greater_equal_ = in_place(comparison.ge)
    logical_and_ = in_place(logic.logical_and)
    logical_or_ = in_place(logic.logical_or)
    logical_xor_ = in_place(logic.logical_xor)
    logical_not_ = in_place(logic.logical_not)
    bitwise_and_ = in_place(logic.bitwise_and)
    bitwise_or_ = in_place(logic.bitwise_or)
    bitwise_xor_ = in_place(logic.bitwise_xor)
    bitwise_not_ = in_place(logic.bitwise_not)
    bitwise_left_shift_ = in_place(logic.bitwise_left_shift)
    bitwise_right_shift_ = in_place(logic.bitwise_right_shift)
    cumsum_ = in_place(cumulative.cumsum)
    cumprod_ = in_place(cumulative.cumprod)
    addmm_ = in_place(addmm.addmm)
    baddbmm_ = in_place(addmm.baddbmm)
    tril_ = in_place(diagonal.tril)
    triu_ = in_place(diagonal.triu)
    scatter_ = in_place(scatter.scatter)
    scatter_add_ = in_place(scatter.scatter_add)
    index_put_ = in_place(indexing.index_put)
    index_add_ = in_place(index_select.index_add)
    index_copy_ = in_place(index_select.index_copy)
    index_fill_ = in_place(index_select.index_fill)
    masked_fill_ = in_place(masked_select.masked_fill)
    masked_scatter_ = in_place(masked_select.masked_scatter)
    fill_diagonal_ = inplace.fill_diagonal_
    relu_ = in_place(relu.relu)
    sigmoid_ = in_place(sigmoid.sigmoid)
    tanh_ = in_place(sigmoid.tanh)
    erf_ = in_place(special.erf)
    erfc_ = in_place(special.erfc)
    erfinv_ = in_place(special.erfinv)
    lgamma_ = in_place(special.lgamma)
    digamma_ = in_place(special.digamma)
    polygamma_ = in_place(operators.polygamma)
    mvlgamma_ = in_place(special.mvlgamma)
    i0_ = in_place(special.i0)
    squeeze_ = reshaped_in_place(reshape.squeeze)
    unsqueeze_ = reshaped_in_place(reshape.unsqueeze)
    transpose_ = swapdims_ = reshaped_in_place(axes.transpose)
    swapaxes_ = reshaped_in_place(axes.swapaxes)
    t_ = reshaped_in_place(axes.t)
    as_strided_ = reshaped_in_place(strided.as_strided)


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


relu_ = _function(relu.relu)
leaky_relu_ = _function(relu.leaky_relu)
hardtanh_ = _function(relu.hardtanh)
elu_ = _function(elu.elu)
selu_ = _function(elu.selu)
celu_ = _function(elu.celu)
threshold_ = _function(hard.threshold)
rrelu_ = _function(prelu.rrelu)
