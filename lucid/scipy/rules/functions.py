"""Functions of `scipy.special` that are no ufuncs: those have the ops of `lucid.tensor.numpy_calls.special`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.numpy.border import plain
from lucid.ops.activation import softmax as activations
from lucid.ops.elementwise import special
from lucid.scipy.rules.recursions import in_one_dtype
from lucid.scipy.rules.rule import Array, PerAxis, by_op, in_double, rule
from lucid.tensor.numpy_calls.rule import NumpyCallError, axis_in

if TYPE_CHECKING:
    from collections.abc import Callable


def all_or_some(axis: PerAxis, ndim: int) -> Any:
    """Return the axes of a reduction, as lucid's ops take them."""
    return tuple(range(ndim)) if axis is None else axis


@rule("special.logsumexp")
def logsumexp(
    a: Array, axis: PerAxis = None, b: Array = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Return ``scipy.special.logsumexp``, of real numbers; `b` are factors."""
    a, b = in_one_dtype(a, b)
    if a.dtype.kind == "c":
        raise NumpyCallError("scipy.special.logsumexp: with a Tensor the numbers must be real")
    top = lnp.max(plain(a), axis=axis, keepdims=True)
    top = lnp.where(lnp.isfinite(top), top, 0.0)
    parts = lnp.exp(a - top)
    total = lnp.sum(parts if b is None else parts * b, axis=axis, keepdims=keepdims)
    sign = lnp.sign(plain(total))
    with np.errstate(divide="ignore", invalid="ignore"):
        result = lnp.log(total * sign if return_sign else total)
    result = result + (top if keepdims else lnp.squeeze(top, all_or_some(axis, a.ndim)))
    return (result, sign) if return_sign else result


def _enter_softmax(name: str, op: Callable[..., Any]) -> None:
    def function(x: Array, axis: PerAxis = None) -> Any:
        (x,) = in_one_dtype(x)
        if isinstance(axis, int):
            return by_op(op, x, axis)
        axes = [axis_in(k, x.ndim) for k in all_or_some(axis, x.ndim)]
        rest = [k for k in range(x.ndim) if k not in axes]
        order = [*rest, *axes]
        moved = lnp.transpose(x, order)
        lines = lnp.reshape(moved, (*moved.shape[: len(rest)], -1))
        return lnp.transpose(lnp.reshape(by_op(op, lines, -1), moved.shape), np.argsort(order).tolist())

    rule(f"special.{name}")(function)


_enter_softmax("softmax", activations.softmax)
_enter_softmax("log_softmax", activations.log_softmax)


@rule("special.polygamma")
def polygamma(n: Array, x: Array) -> Any:
    """Return ``scipy.special.polygamma``, of one order."""
    (x,) = in_double(x)
    if np.ndim(plain(n)):
        raise NumpyCallError("scipy.special.polygamma: with a Tensor the order must be one number")
    return by_op(special.polygamma, int(plain(n)), x)


@rule("special.multigammaln")
def multigammaln(a: Array, d: int) -> Any:
    """Return ``scipy.special.multigammaln``."""
    (a,) = in_double(a)
    return by_op(special.mvlgamma, a, int(d))


@rule("special.sinc")
def sinc(x: Array) -> Any:
    """Return ``scipy.special.sinc``, which is NumPy's."""
    return lnp.sinc(x)
