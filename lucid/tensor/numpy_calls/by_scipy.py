"""Special functions whose values SciPy computes, on the host, and whose slopes are known: in their last argument."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.function import Function
from lucid.ops.base.promotion import promote_to_tensors
from lucid.ops.elementwise import arithmetic, division, exponential, power, special
from lucid.ops.shape.broadcasting import broadcast_tensors
from lucid.tensor.numpy_calls.rule import NumpyCallError, beside

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


class SpecialFunction(Function):
    """The function of a name, of parameters and x, with its slope in x."""

    @staticmethod
    def forward(ctx: Any, name: str, x: Any, *parameters: Any) -> Any:
        """Return SciPy's values."""
        ctx.name = name
        ctx.save_for_backward(x, *parameters)
        function = getattr(sys.modules["scipy.special._ufuncs"], name)
        return beside(function(*[each.numpy(force=True) for each in (*parameters, x)]), x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradient by x alone."""
        x, *parameters = ctx.saved_tensors
        return None, arithmetic.mul(grads[0], SLOPES[ctx.name](*parameters, x)), *[None] * len(parameters)


def by_scipy(name: str) -> Callable[..., Any]:
    """Return the function of a name of `SLOPES`.

    It raises a NumpyCallError where a parameter requires grad, whose slope is not known, and without SciPy.
    """

    def function(*operands: Tensor | float) -> Any:
        if "scipy.special._ufuncs" not in sys.modules:
            raise NumpyCallError(f"scipy.special.{name}: its values are SciPy's: import scipy.special first")
        *parameters, x = broadcast_tensors(*promote_to_tensors(*operands, at_least_float=True))
        if any(isinstance(each, TensorBase) and each.requires_grad for each in parameters):
            raise NumpyCallError(
                f"scipy.special.{name}: only its last argument can be differentiated, and another one requires grad: "
                "use tensor.detach(), or lucid.autograd.Function with the derivative of your own"
            )
        return SpecialFunction.apply(name, x, *parameters)

    return function


# ---- slopes ----


def _gamma_density(a: Tensor, x: Tensor) -> Any:
    power_of = exponential.xlogy(arithmetic.sub(a, 1), x)
    return exponential.exp(arithmetic.sub(arithmetic.sub(power_of, x), special.lgamma(a)))


def _chi_square_density(v: Tensor, x: Tensor) -> Any:
    return arithmetic.mul(_gamma_density(arithmetic.mul(v, 0.5), arithmetic.mul(x, 0.5)), 0.5)


def _beta_density(a: Tensor, b: Tensor, x: Tensor) -> Any:
    rest = exponential.xlog1py(arithmetic.sub(b, 1), arithmetic.neg(x))
    size = arithmetic.add(exponential.xlogy(arithmetic.sub(a, 1), x), rest)
    scale = arithmetic.sub(arithmetic.add(special.lgamma(a), special.lgamma(b)), special.lgamma(arithmetic.add(a, b)))
    return exponential.exp(arithmetic.sub(size, scale))


def _f_density(m: Tensor, n: Tensor, x: Tensor) -> Any:
    whole = arithmetic.add(arithmetic.mul(m, x), n)
    share = division.div(arithmetic.mul(m, x), whole)
    inner = division.div(arithmetic.mul(m, n), power.square(whole))
    return arithmetic.mul(_beta_density(arithmetic.mul(m, 0.5), arithmetic.mul(n, 0.5), share), inner)


def _student_density(v: Tensor, t: Tensor) -> Any:
    half = arithmetic.mul(v, 0.5)
    scale = arithmetic.sub(special.lgamma(arithmetic.add(half, 0.5)), special.lgamma(half))
    spread = arithmetic.mul(exponential.log(arithmetic.mul(v, math.pi)), 0.5)
    fall = arithmetic.mul(arithmetic.add(half, 0.5), exponential.log1p(division.div(power.square(t), v)))
    return exponential.exp(arithmetic.sub(arithmetic.sub(scale, spread), fall))


def _downwards(slope: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: arithmetic.neg(slope(*operands))


def _less_by_part(first: str, second: str, sign: float) -> Callable[..., Any]:
    """Return the slope ``sign * first(x) - second(x) / x`` of a Bessel function of order 1."""

    def slope(x: Tensor) -> Any:
        return arithmetic.sub(arithmetic.mul(by_scipy(first)(x), sign), division.div(by_scipy(second)(x), x))

    return slope


OF_ONE: dict[str, Callable[[Any], Any]] = {
    "cbrt": lambda x: division.div(by_scipy("cbrt")(x), arithmetic.mul(x, 3)),
    "erfcx": lambda x: arithmetic.sub(
        arithmetic.mul(by_scipy("erfcx")(x), arithmetic.mul(x, 2)), 2 / math.sqrt(math.pi)
    ),
    "exp1": lambda x: arithmetic.neg(division.div(exponential.exp(arithmetic.neg(x)), x)),
    "expi": lambda x: division.div(exponential.exp(x), x),
    "gamma": lambda x: arithmetic.mul(by_scipy("gamma")(x), special.digamma(x)),
    "j0": _downwards(by_scipy("j1")),
    "j1": _less_by_part("j0", "j1", 1),
    "k0": _downwards(by_scipy("k1")),
    "k1": _less_by_part("k0", "k1", -1),
    "rgamma": lambda x: arithmetic.neg(arithmetic.mul(by_scipy("rgamma")(x), special.digamma(x))),
    "y0": _downwards(by_scipy("y1")),
    "y1": _less_by_part("y0", "y1", 1),
}
SLOPES: dict[str, Callable[..., Any]] = {
    **OF_ONE,
    "betainc": _beta_density,
    "betaincc": _downwards(_beta_density),
    "chdtr": _chi_square_density,
    "chdtrc": _downwards(_chi_square_density),
    "fdtr": _f_density,
    "fdtrc": _downwards(_f_density),
    "gammainc": _gamma_density,
    "gammaincc": _downwards(_gamma_density),
    "stdtr": _student_density,
}
"""By the name of a ufunc of `scipy.special`, its slope in the last argument, of all its arguments."""
