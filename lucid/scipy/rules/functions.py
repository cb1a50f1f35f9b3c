"""Functions of `scipy.special` that are no ufuncs: those have the ops of `lucid.tensor.numpy_calls.special`.

Some are ufuncs behind a check, or with other values outside of where these have a meaning.
"""

from __future__ import annotations

import functools
import math
import operator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.base import gpu
from lucid.numpy.border import plain, ufunc_called
from lucid.ops.activation import softmax as activations
from lucid.ops.elementwise import special
from lucid.scipy.rules.rule import Array, PerAxis, by_op, host, in_double, in_one_dtype, put, rule
from lucid.tensor.numpy_calls.operands import NumpyCallError, axis_in, is_recorded
from lucid.tensor.numpy_calls.slopes import SLOPES

if TYPE_CHECKING:
    from collections.abc import Callable


UFUNCS: Any = import_module("scipy.special._ufuncs")


@rule("special.logsumexp")
def logsumexp(
    a: Array, axis: PerAxis = None, b: Array = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Return ``scipy.special.logsumexp``; `b` are factors."""
    # a number of Python's has no dtype of its own
    a, b = (*in_one_dtype(a), b) if type(b) in {bool, int, float} else in_one_dtype(a, b)
    if b is not None:
        a, b = lnp.broadcast_arrays(a, b) if hasattr(b, "dtype") else (a, lnp.full_like(plain(a), b))
    is_complex = a.dtype.kind == "c"
    # the real parts of the exponents say the sizes of the terms
    values, factors = lnp.real(plain(a)), plain(b)
    counted = values if b is None else lnp.where(factors == 0, -np.inf, values)
    # of nothing, the zeros that the sum of nothing is
    top = (lnp.max if values.size else lnp.sum)(counted, axis=axis, keepdims=True)
    top = lnp.where(lnp.isfinite(top), top, 0.0)
    powers = a - top
    if b is not None:
        powers = _uncounted(powers, factors)
    terms = lnp.exp(powers) if b is None else lnp.exp(powers) * b
    total = lnp.sum(terms, axis=axis, keepdims=keepdims)
    sign: Array = lnp.sign(plain(total))
    if is_complex:
        sign = total / lnp.where(sign == 0, 1.0, lnp.abs(total))
    # of a rest that is small beside the largest, the logarithm is exact by that rest alone
    largest = lnp.sum(lnp.where(counted == top, terms, 0.0), axis=axis, keepdims=keepdims)
    rest = lnp.sum(lnp.where(counted == top, 0.0, terms), axis=axis, keepdims=keepdims)
    is_small = abs(plain(rest)) < abs(plain(largest)) * 0.5
    if return_sign and not is_complex:
        largest, total = largest * sign, total * sign
        rest = rest * sign
    with np.errstate(divide="ignore", invalid="ignore"):
        large = lnp.log(lnp.where(is_small, largest, total))
        result = large + lnp.log1p(lnp.where(is_small, rest / lnp.where(is_small, largest, 1.0), 0.0))
    if is_complex:
        # the angles of two logarithms can be more than half a turn together
        turns = lnp.round(lnp.imag(plain(result)) / (2 * math.pi))
        result = lnp.real(result) if return_sign else result - 2j * math.pi * turns
    result = result + (top if keepdims else lnp.squeeze(top, axis))
    if b is not None:
        # SciPy counts them where the sum is infinite without
        with np.errstate(over="ignore"):
            is_lost = lnp.any((factors == 0) & ~(lnp.exp(values) < np.inf), axis=axis, keepdims=keepdims)
        result = lnp.where(is_lost & lnp.isinf(plain(result)), np.nan, result)
    return (result, sign) if return_sign else result


def _uncounted(powers: Array, factors: Array) -> Any:
    """Return powers with those changed that a factor of 0 leaves out of the sum, and that are out of range.

    What is finite keeps its slope by the factor, as far as its exponential has one.
    """
    values = lnp.real(plain(powers))
    limit = float(np.log(np.finfo(values.dtype).max)) - 1
    is_out = (factors == 0) & ~(values <= limit)
    return lnp.where(is_out & lnp.isfinite(values), limit, lnp.where(is_out, -np.inf, powers))


def _enter_softmax(name: str, op: Callable[..., Any]) -> None:
    def function(x: Array, axis: PerAxis = None) -> Any:
        (x,) = in_one_dtype(x)
        if axis is not None and not np.ndim(axis):
            return by_op(op, x, axis_in(axis, x.ndim))
        axes = [axis_in(k, x.ndim) for k in (range(x.ndim) if axis is None else axis)]
        rest = [k for k in range(x.ndim) if k not in axes]
        order = [*rest, *axes]
        moved = lnp.transpose(x, order)
        lines = lnp.reshape(moved, (*moved.shape[: len(rest)], math.prod(moved.shape[len(rest) :])))
        return lnp.transpose(lnp.reshape(by_op(op, lines, -1), moved.shape), np.argsort(order).tolist())

    rule(f"special.{name}")(function)


_enter_softmax("softmax", activations.softmax)
_enter_softmax("log_softmax", activations.log_softmax)


@rule("special.polygamma")
def polygamma(n: Array, x: Array) -> Any:
    """Return ``scipy.special.polygamma``: NaN of an order that is no whole number, or below 0."""
    (x,) = in_double(x)
    if is_recorded(n):
        raise NumpyCallError("scipy.special.polygamma: with a Tensor the order must not require grad: n.detach()")
    orders = host(n)
    if orders.ndim:
        shape = np.broadcast_shapes(orders.shape, x.shape)
        orders, x = np.broadcast_to(orders, shape), lnp.broadcast_to(x, shape)
        total = x * 0.0
        for each in np.unique(orders).tolist():
            is_one = put(orders == each, x)
            # the others may be at a pole
            total = lnp.where(is_one, polygamma(each, lnp.where(is_one, x, 1.0)), total)
        return total
    order = float(orders)
    if order < 0 or order != order // 1:
        return x * np.nan
    return by_op(special.polygamma, int(order), x)


@rule("special.multigammaln")
def multigammaln(a: Array, d: int) -> Any:
    """Return ``scipy.special.multigammaln``."""
    (a,) = in_double(a)
    if np.ndim(d) or d != d // 1:
        raise ValueError(f"scipy.special.multigammaln: d should be a positive integer (dimension), got {d!r}")
    if (plain(a) <= 0.5 * (d - 1)).any():
        raise ValueError(
            f"scipy.special.multigammaln: expected every a above 0.5 * (d - 1) = {0.5 * (d - 1)}, the domain, got "
            f"{plain(a).min()}"
        )
    return by_op(special.mvlgamma, a, int(d))


rule("special.sinc")(lnp.sinc)


# ---- ufuncs under another name ----


def by_ufunc(name: str, *operands: Array) -> Any:
    """Return the result of one of SciPy's ufuncs for arrays, in its own dtypes."""
    like = next((array for x in operands if gpu.is_gpu_array(array := plain(x))), None)
    arguments = [put(x, like) if isinstance(x, np.ndarray) else x for x in operands]
    return ufunc_called(getattr(UFUNCS, name), "__call__", tuple(arguments), {}, "scipy.special.")


@rule("special.zeta")
def zeta(x: Array, q: Array = None) -> Any:
    """Return ``scipy.special.zeta`` of two arguments, differentiable by the second."""
    if q is None:
        raise NumpyCallError("scipy.special.zeta: with a Tensor q must be given, by which alone there is a gradient")
    return by_ufunc("_zeta", x, q)


@rule("special.lambertw")
def lambertw(z: Array, k: Array = 0, tol: Array = 1e-8) -> Any:
    """Return ``scipy.special.lambertw``, a complex function."""
    return by_ufunc("_lambertw", z, np.asarray(host(k), np.int64), tol)


def _enter_spherical(name: str, parity: int) -> None:
    """Enter a spherical Bessel function, for negative z by its parity for even orders; 0 if it has none."""

    def function(n: Array, z: Array, derivative: bool = False) -> Any:
        (z,) = in_one_dtype(z)
        orders = put(np.asarray(host(n), np.int64), z)
        op = partial(by_op, SLOPES[f"_{name}"][-1]) if derivative else partial(by_ufunc, f"_{name}")
        if z.dtype.kind == "c":
            return op(orders, z)
        is_below = plain(z) < 0
        if parity:
            # the derivative has the other parity
            other = (parity - orders % 2 * (2 * parity)) * (-1 if derivative else 1)
            return op(orders, lnp.where(is_below, -z, z)) * lnp.where(is_below, other, 1)
        if is_below.any():
            raise NumpyCallError(f"scipy.special.{name}: with a Tensor z must not be negative: real(f(n, z + 0j))")
        return op(orders, z)

    rule(f"special.{name}")(function)


for _name, _parity in (("spherical_in", 1), ("spherical_jn", 1), ("spherical_kn", 0), ("spherical_yn", -1)):
    _enter_spherical(_name, _parity)


def _enter_derivative(name: str, bessel: str, phase: int, sign: int = 1) -> None:
    """Enter the n-th derivative of a Bessel function, as a sum of functions of other orders."""

    def function(v: Array, z: Array, n: int = 1) -> Any:
        if is_recorded(v):
            raise NumpyCallError(f"scipy.special.{name}: with a Tensor the order v must not require grad: v.detach()")
        n = operator.index(n)
        if n < 0:
            raise ValueError(f"scipy.special.{name}: n must be a non-negative integer, got {n}")
        (z,) = in_one_dtype(z)
        # of a number of Python's the precision is that of z where SciPy makes no array of it
        order = v if type(v) in {bool, int, float} and not n else np.asarray(host(v))
        terms = [by_ufunc(bessel, order + (2 * k - n), z) * float(math.comb(n, k) * phase**k) for k in range(n + 1)]
        return functools.reduce(operator.add, terms) * (sign**n / 2.0**n)

    rule(f"special.{name}")(function)


_enter_derivative("h1vp", "hankel1", -1)
_enter_derivative("h2vp", "hankel2", -1)
_enter_derivative("ivp", "iv", 1)
_enter_derivative("jvp", "jv", -1)
_enter_derivative("kvp", "kv", 1, -1)
_enter_derivative("yvp", "yv", -1)


# ---- counts ----


def _where_chosen(N: Array, k: Array, count: Callable[[Any, Any], Any]) -> Any:
    """Return how many choices of k out of N there are, none unless ``0 <= k <= N``."""
    all_of, some = in_one_dtype(N, k)
    whole, part = plain(all_of), plain(some)
    is_inside = (part <= whole) & (whole >= 0) & (part >= 0)
    return lnp.where(is_inside, count(lnp.where(is_inside, all_of, 1.0), lnp.where(is_inside, some, 0.0)), 0.0)


@rule("special.comb")
def comb(N: Array, k: Array) -> Any:
    """Return ``scipy.special.comb``, of floats."""
    return _where_chosen(N, k, lambda N, k: by_ufunc("binom", N, k))


@rule("special.perm")
def perm(N: Array, k: Array) -> Any:
    """Return ``scipy.special.perm``, of floats."""
    return _where_chosen(N, k, lambda N, k: by_ufunc("poch", N - k + 1, k))


@rule("special.factorial")
def factorial(n: Array) -> Any:
    """Return ``scipy.special.factorial``, of floats: zero below zero."""
    (n,) = in_double(n)
    is_below = plain(n) < 0
    return lnp.where(is_below, 0.0, by_ufunc("gamma", lnp.where(is_below, 0.0, n) + 1))
