"""Recursive filters of `scipy.signal`.

A filter divides by its denominator: its output y is what, convolved with a, gives v, of which the numerator has made
the input. This division is the one Function here. It is linear in v, and its adjoint is itself, run backwards in time:
with that the gradient by v is known, and the one by a is minus the products of it and of y.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.autograd.base import wrap
from lucid.autograd.function import Function
from lucid.base.arrays import namespace, on
from lucid.ops.elementwise import arithmetic
from lucid.ops.elementwise.complex import conj
from lucid.ops.shape import axes as orders
from lucid.ops.shape.padding import pad
from lucid.ops.shape.reshape import reshape
from lucid.scipy.rules.products import Overlaps, like_operand, spread
from lucid.scipy.rules.rule import Array, host, host_library, in_dtype, in_one_dtype, library, put, recorded, rule
from lucid.tensor.numpy_calls.operands import NumpyCallError, axis_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


class Division(Function):
    """The solution y of ``a * y = v``, a causal convolution along the last axis."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, v: Tensor) -> Any:
        """Return y by SciPy's filter, or CuPy's; SciPy's too if CuPy's needs a library that is not installed."""
        try:
            filters = library("signal", v.array)
        except ImportError:
            filtered = put(host_library("signal").lfilter(np.ones(1, v.array.dtype), host(a), host(v)), v.array)
        else:
            with on(v.array):
                filtered = filters.lfilter(namespace(v.array).ones(1, v.array.dtype), a.array, v.array)
        y = wrap(filtered)
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Array) -> Any:
        """Return the gradients by a and by v."""
        a, y = ctx.saved_tensors
        last = (y.array.ndim - 1,)
        back = orders.flip(Division.apply(conj(a), orders.flip(grads[0], last)), last)
        slopes = None
        if ctx.needs_input_grad[0]:
            size = a.array.shape[0]
            # a[k] meets y[n - k] and the gradient at n
            sums = Overlaps.apply(pad(back, (0, size - 1)), conj(y))
            slopes = arithmetic.neg(like_operand(reshape(sums, (size,)), a))
        return slopes, like_operand(back, y)


# ---- filters ----


def along_last(x: Array, count: int) -> Any:
    """Return a vector as an array of `count` dimensions."""
    return lnp.reshape(x, (1,) * (count - 1) + (-1,))


def with_zeros(x: Array, count: int) -> Any:
    """Return an array with zeros behind along its last axis, up to a size."""
    missing = count - x.shape[-1]
    if missing <= 0:
        return x
    return lnp.concatenate([x, put(np.zeros((*x.shape[:-1], missing), x.dtype), x)], -1)


@rule("signal.lfilter")
def lfilter(b: Array, a: Array, x: Array, axis: int = -1, zi: Array = None) -> Any:
    """Return ``scipy.signal.lfilter``, with gradients by all of its operands."""
    b, a, x, zi = in_one_dtype(b, a, x, zi)
    b, a = lnp.atleast_1d(b), lnp.atleast_1d(a)
    for name, each in (("b", b), ("a", a)):
        if each.ndim != 1 or not each.size:
            raise ValueError(f"Parameter {name} is not a non-empty 1d array, since {name}.shape={each.shape}!")
    if not x.ndim:
        raise ValueError("x must be at least 1-D")
    if host(a)[0] == 0:
        raise ValueError("a[0] is zero, by which the coefficients are divided: leave out leading zeros of a")
    axis = axis_in(axis, x.ndim)
    x = lnp.moveaxis(x, axis, -1)
    n, states = x.shape[-1], max(b.shape[0], a.shape[0]) - 1
    b, a = b / a[0], a / a[0]
    made = with_zeros(spread(along_last(b, x.ndim), x), n + states)
    if zi is not None:
        if zi.ndim != x.ndim:
            raise ValueError(f"Dimensions of parameters x and zi must match, but x.ndim={x.ndim}, zi.ndim={zi.ndim}!")
        zi, wanted = lnp.moveaxis(zi, axis, -1), (*x.shape[:-1], states)
        if zi.shape[-1] != states or any(size not in {1, n} for size, n in zip(zi.shape, wanted, strict=True)):
            raise ValueError(
                f"Unexpected shape for parameter zi: expected {wanted} with its axis last, found {zi.shape}."
            )
        zi = lnp.broadcast_to(zi, wanted)
        made = made + with_zeros(zi, n + states)
    y = made[..., :n]
    if a.shape[0] > 1:
        y = recorded(Division, a, y)
    if zi is None:
        return lnp.moveaxis(y, -1, axis)
    final = made[..., n:]
    if states and a.shape[0] > 1:
        # what the output would still give back
        ends = y[..., max(n - states, 0) :]
        tail = spread(along_last(a, x.ndim), ends)[..., ends.shape[-1] :]
        final = final - with_zeros(tail, states)
    return lnp.moveaxis(y, -1, axis), lnp.moveaxis(final, -1, axis)


@rule("signal.lfilter_zi")
def lfilter_zi(b: Array, a: Array) -> Any:
    """Return ``scipy.signal.lfilter_zi``."""
    b, a = map(lnp.atleast_1d, in_one_dtype(b, a))
    is_filled = host(a) != 0
    if a.ndim != 1 or b.ndim != 1 or not is_filled.any():
        raise ValueError(
            "scipy.signal.lfilter_zi: expected vectors b and a, and in a a number that is not zero, got shapes "
            f"{tuple(b.shape)} and {tuple(a.shape)}"
        )
    a = a[int(is_filled.argmax()) :]
    size = max(b.shape[0], a.shape[0])
    b, a = with_zeros(b / a[0], size), with_zeros(a / a[0], size)
    step = put(np.eye(size - 1) - np.eye(size - 1, k=1), a)
    first = put(np.eye(1, size - 1), a)
    matrix = in_dtype(step, a.dtype) + lnp.reshape(a[1:], (-1, 1)) * in_dtype(first, a.dtype)
    return lnp.linalg.solve(matrix, b[1:] - a[1:] * b[0])


def with_ends(x: Array, kind: str | None, count: int) -> Any:
    """Return an array with `count` elements more at both ends of its last axis."""
    if x.shape[-1] <= count:
        raise ValueError(f"The length of the input vector x must be greater than padlen, which is {count}.")
    if kind is None or not count:
        return x
    first, last = x[..., :1], x[..., -1:]
    if kind == "constant":
        return lnp.concatenate([lnp.repeat(first, count, -1), x, lnp.repeat(last, count, -1)], -1)
    before, behind = lnp.flip(x[..., 1 : count + 1], -1), lnp.flip(x[..., -count - 1 : -1], -1)
    if kind == "odd":
        before, behind = 2 * first - before, 2 * last - behind
    return lnp.concatenate([before, x, behind], -1)


def both_ways(
    step: Callable[..., Any],
    x: Array,
    usual: int,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
) -> Any:
    """Return an array filtered forward and backward; ``step(x, x0)`` filters as if x0 had lasted before."""
    if padtype not in {"odd", "even", "constant", None}:
        raise ValueError(f"padtype must be 'even', 'odd', 'constant', or None, got {padtype!r}")
    axis = axis_in(axis, x.ndim)
    x = lnp.moveaxis(x, axis, -1)
    # SciPy adds nothing for a length below zero
    count = 0 if padtype is None else usual if padlen is None else max(padlen, 0)
    wide = with_ends(x, padtype, count)
    y = step(wide, wide[..., :1])
    y = lnp.flip(step(lnp.flip(y, -1), y[..., -1:]), -1)
    return lnp.moveaxis(y[..., count : y.shape[-1] - count], -1, axis)


@rule("signal.filtfilt", "b a x axis padtype padlen method")
def filtfilt(b: Array, a: Array, x: Array, method: str = "pad", **padding: Array) -> Any:
    """Return ``scipy.signal.filtfilt``."""
    if method != "pad":
        raise NumpyCallError(f"scipy.signal.filtfilt: with a Tensor only method='pad' can be used, got {method!r}")
    b, a, x = in_one_dtype(b, a, x)
    b, a = lnp.atleast_1d(b), lnp.atleast_1d(a)
    state = lfilter_zi(b, a)

    def step(x: Array, x0: Array) -> Any:
        return lfilter(b, a, x, -1, along_last(state, x.ndim) * x0)[0]

    return both_ways(step, x, 3 * max(a.shape[0], b.shape[0]), **padding)


def sections_of(sos: Array) -> Any:
    """Return second-order sections, checked."""
    if sos.ndim != 2 or sos.shape[1] != 6:
        raise ValueError("sos must be shape (n_sections, 6)")
    if not (host(sos)[:, 3] == 1).all():
        raise ValueError("sos[:, 3] should be all ones")
    return sos


@rule("signal.sosfilt")
def sosfilt(sos: Array, x: Array, axis: int = -1, zi: Array = None) -> Any:
    """Return ``scipy.signal.sosfilt``: one filter after another."""
    sos, x, zi = in_one_dtype(sos, x, zi)
    states: list[Any] = []
    count = sections_of(sos).shape[0]
    if zi is not None:
        wanted = [count, *x.shape]
        wanted[axis_in(axis, x.ndim) + 1] = 2
        if list(zi.shape) != wanted:
            raise ValueError(
                f"Invalid zi shape. With axis={axis!r}, an input with shape {tuple(x.shape)!r}, and an sos array with "
                f"{count} sections, zi must have shape {tuple(wanted)!r}, got {tuple(zi.shape)!r}."
            )
    for k in range(count):
        if zi is None:
            x = lfilter(sos[k, :3], sos[k, 3:], x, axis)
        else:
            x, state = lfilter(sos[k, :3], sos[k, 3:], x, axis, zi[k])
            states.append(state)
    return x if zi is None else (x, lnp.stack(states))


@rule("signal.sosfilt_zi")
def sosfilt_zi(sos: Array) -> Any:
    """Return ``scipy.signal.sosfilt_zi``."""
    (sos,) = in_one_dtype(sos)
    states: list[Any] = []
    scale: Any = 1.0
    for k in range(sections_of(sos).shape[0]):
        states.append(scale * lfilter_zi(sos[k, :3], sos[k, 3:]))
        scale = scale * (lnp.sum(sos[k, :3]) / lnp.sum(sos[k, 3:]))
    return lnp.stack(states)


@rule("signal.sosfiltfilt", "sos x axis padtype padlen")
def sosfiltfilt(sos: Array, x: Array, **padding: Array) -> Any:
    """Return ``scipy.signal.sosfiltfilt``."""
    sos, x = in_one_dtype(sos, x)
    state = sosfilt_zi(sos)
    values = host(sos)
    # a section of first order has a tap less
    taps = 2 * len(values) + 1 - min((values[:, 2] == 0).sum(), (values[:, 5] == 0).sum())

    def step(x: Array, x0: Array) -> Any:
        return sosfilt(sos, x, -1, lnp.reshape(state, (-1, *(1,) * (x.ndim - 1), 2)) * x0)[0]

    return both_ways(step, x, 3 * int(taps), **padding)
