"""Linear filters of `scipy.ndimage`: the array is continued beyond its edges, and weights move along it."""

from __future__ import annotations

import functools
import numbers
import operator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lucid import numpy as lnp
from lucid.numpy.border import plain
from lucid.scipy.rules.products import windows
from lucid.scipy.rules.rule import Array, PerAxis, as_array, host, in_dtype, put, real_or_complex, rule
from lucid.tensor.numpy_calls.operands import axis_in, is_sequence, is_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Number: TypeAlias = Any
"""A number of Python's, or an array of no dimension, which may be recorded."""


# ---- beyond the edges, by SciPy's names of the modes ----

MODES = {
    "reflect": "reflect", "grid-mirror": "reflect", "mirror": "mirror", "nearest": "nearest", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip
"""Of filters, whose places are whole numbers."""


def check_mode(mode: str) -> None:
    """Refuse other names than those of modes."""
    if mode not in MODES:
        raise RuntimeError(f"boundary mode not supported: expected one of {', '.join(MODES)}, got {mode!r}")


def place_in(index: Array, size: int, mode: str) -> Any:
    """Return the index of the element for a whole number that may lie beyond an edge; -1 for a constant."""
    if mode == "constant":
        return lnp.where((index < 0) | (index >= size), -1, index)
    if mode == "nearest" or size == 1:
        return lnp.clip(index, 0, size - 1)
    if mode == "wrap":
        return index % size
    period = 2 * size - (2 if mode == "mirror" else 0)
    index = index % period
    turned: Any = (period if mode == "mirror" else period - 1) - index
    return lnp.where(index < size, index, turned)


def extended(x: Array, axis: int, before: int, after: int, mode: str, cval: Array = 0.0) -> Any:
    """Return an array with some elements more in front and behind along an axis."""
    check_mode(mode)
    axis, mode = axis_in(axis, x.ndim), MODES[mode]
    size = x.shape[axis]

    def beyond(start: int, count: int) -> list[Any]:
        if not count:
            return []
        if mode == "constant":
            shape = [count if k == axis else n for k, n in enumerate(x.shape)]
            return [filled(x, shape, cval)]
        places = place_in(np.arange(start, start + count), size, mode)
        return [lnp.take(x, put(places, x), axis=axis)]

    parts = [*beyond(-before, before), x, *beyond(size, after)]
    return parts[0] if len(parts) == 1 else lnp.concatenate(parts, axis)


def filled(x: Array, shape: list[int], value: Array) -> Any:
    """Return a constant in a shape, beside an array and in its dtype; a recorded one is broadcast."""
    if is_tensor(value):
        return lnp.broadcast_to(in_dtype(as_array(value), x.dtype), shape)
    return put(np.full(shape, value, x.dtype), x)


# ---- settings of axes ----


def axes_of(axes: PerAxis, ndim: int) -> list[int]:
    """Return the axes of a filter, given as one, several, or None for all, counted from the front."""
    if axes is None:
        return list(range(ndim))
    result = [axis_in(axis, ndim) for axis in (axes if np.ndim(axes) else [axes])]
    if len(set(result)) != len(result):
        raise ValueError(f"axes must be unique, got {axes}")
    return result


def for_each(value: PerAxis, count: int) -> list[Any]:
    """Return a list of settings for several axes, from one for all or one for each."""
    if not is_sequence(value) and not getattr(value, "ndim", 0):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise RuntimeError(f"sequence argument must have length equal to input rank, {count}: got {len(values)}")
    return values


def in_order(axes: Sequence[int], ndim: int, *settings: PerAxis) -> list[list[Any]]:
    """Return settings of axes in the order of the array's axes, that of weights and footprints.

    As SciPy reads them: in the order of `axes` where these are some of the axes, and as they stand where they are all.
    """
    order = np.argsort(axes) if len(axes) < ndim else range(len(axes))
    return [[values[k] for k in order] for values in (for_each(each, len(axes)) for each in settings)]


# ---- sums with weights ----


def filtered(
    x: Array,
    w: Array,
    axes: Sequence[int],
    mode: PerAxis = "reflect",
    cval: Number = 0.0,
    origin: PerAxis = 0,
    *,
    turned: bool = False,
) -> Any:
    """Return the windows of weights that cover some axes, around each element; `turned`, of a convolution."""
    if w.ndim != len(axes):
        raise RuntimeError(f"weights.ndim ({w.ndim}) must match len(axes) ({len(axes)})")
    (origins,) = in_order(axes, x.ndim, origin)
    axes, sizes = sorted(axes), w.shape
    if not w.size:
        raise RuntimeError("no filter weights given")
    if not x.size:
        return in_dtype(x * lnp.sum(w), x.dtype if w.dtype.kind != "c" else np.result_type(x.dtype, np.complex64))
    if turned:
        w = w[(..., *(slice(None, None, -1),) * w.ndim)]
        origins = [-o - (1 - size % 2) for o, size in zip(origins, sizes, strict=True)]
    elif w.dtype.kind == "c":
        w = lnp.conj(w)
    if w.dtype.kind == "c" and x.dtype.kind != "c":
        x = x.astype(np.result_type(x.dtype, np.complex64))
    modes = for_each(mode, len(axes))
    for k, size, o, each in zip(axes, sizes, origins, modes, strict=True):
        before = size // 2 + o
        if not 0 <= before < size:
            raise ValueError("Invalid origin; origin must satisfy -(size // 2) <= origin <= (size - 1) // 2")
        x = extended(x, k, before, size - 1 - before, each, cval)
    shape = [1] * x.ndim
    for k, size in zip(axes, sizes, strict=True):
        shape[k] = size
    return windows(x, lnp.reshape(w, shape), drops=True)


def _enter_sums(name: str, *, turned: bool) -> Callable[..., Any]:
    """Enter the rules of sums with weights, the second of a vector of them along one axis; return that."""

    def of_array(input: Array, weights: Array, axes: PerAxis = None, **settings: PerAxis) -> Any:
        x, w = real_or_complex(f"ndimage.{name}", input, weights)
        return filtered(x, w, axes_of(axes, x.ndim), **settings, turned=turned)

    def along_one(input: Array, weights: Array, axis: int = -1, **settings: PerAxis) -> Any:
        x, w = real_or_complex(f"ndimage.{name}1d", input, weights)
        return filtered(x, w, axes_of(axis, x.ndim), **settings, turned=turned)

    rule(f"ndimage.{name}", "input weights mode cval origin axes")(of_array)
    return rule(f"ndimage.{name}1d", "input weights axis mode cval origin")(along_one)


_enter_sums("correlate", turned=False)
convolve1d = _enter_sums("convolve", turned=True)


# ---- filters of which SciPy makes the weights ----


def gaussian_weights(sigma: Number, order: int, radius: int, like: Array) -> Any:
    """Return samples of a derivative of the normal density, normalized so that those of the density sum to one."""
    if order < 0:
        raise ValueError("order must be non-negative")
    x = put(np.arange(-radius, radius + 1.0), like)
    inverse = 1 / lnp.square(as_array(sigma)) if lnp.ndim(sigma) == 0 and not isinstance(sigma, float) else 1 / sigma**2
    weights = lnp.exp(x * x * inverse * -0.5)
    weights = weights / lnp.sum(weights)
    # the factors of the density in its derivatives: q' - q * x / sigma**2
    factors: list[Any] = [1.0]
    for _ in range(order):
        derived = [*[k * q for k, q in enumerate(factors)][1:], 0.0, 0.0]
        moved = [0.0, *[-(inverse * q) for q in factors]]
        factors = [a + b for a, b in zip(derived, moved, strict=True)]
    return weights * sum(q * x**k for k, q in enumerate(factors)) if order else weights


@rule("ndimage.gaussian_filter1d", "input sigma axis order mode cval truncate radius")
def gaussian_filter1d(
    input: Array,
    sigma: Number,
    axis: int = -1,
    order: int = 0,
    truncate: float = 4.0,
    radius: PerAxis = None,
    **settings: Array,
) -> Any:
    """Return ``scipy.ndimage.gaussian_filter1d``, with a gradient by sigma too, of a fixed radius."""
    (x,) = real_or_complex("ndimage.gaussian_filter1d", input)
    size = int(truncate * float(host(sigma)) + 0.5) if radius is None else radius
    if not isinstance(size, numbers.Integral) or size < 0:
        raise ValueError("Radius must be a nonnegative integer.")
    w = gaussian_weights(sigma, order, int(size), x)
    # what is correlated is turned: the derivatives are those of a convolution
    return filtered(x, w[::-1], axes_of(axis, x.ndim), **settings)


@rule("ndimage.gaussian_filter")
def gaussian_filter(
    input: Array,
    sigma: PerAxis,
    order: PerAxis = 0,
    mode: PerAxis = "reflect",
    cval: Number = 0.0,
    truncate: float = 4.0,
    *,
    radius: PerAxis = None,
    axes: PerAxis = None,
) -> Any:
    """Return ``scipy.ndimage.gaussian_filter``."""
    (x,) = real_or_complex("ndimage.gaussian_filter", input)
    along = axes_of(axes, x.ndim)
    settings = [for_each(each, len(along)) for each in (sigma, order, mode, radius)]
    for axis, s, o, m, r in zip(along, *settings, strict=True):
        if float(host(s)) > 1e-15:
            x = gaussian_filter1d(x, s, axis, o, truncate, radius=r, mode=m, cval=cval)
    return x


@rule("ndimage.uniform_filter1d", "input size axis mode cval origin")
def uniform_filter1d(input: Array, size: int, axis: int = -1, **settings: PerAxis) -> Any:
    """Return ``scipy.ndimage.uniform_filter1d``."""
    (x,) = real_or_complex("ndimage.uniform_filter1d", input)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    return filtered(x, put(np.full(size, 1 / size), x), axes_of(axis, x.ndim), **settings)


@rule("ndimage.uniform_filter")
def uniform_filter(
    input: Array,
    size: PerAxis = 3,
    mode: PerAxis = "reflect",
    cval: Number = 0.0,
    origin: PerAxis = 0,
    *,
    axes: PerAxis = None,
) -> Any:
    """Return ``scipy.ndimage.uniform_filter``."""
    (x,) = real_or_complex("ndimage.uniform_filter", input)
    along = axes_of(axes, x.ndim)
    for axis, n, m, o in zip(along, *[for_each(each, len(along)) for each in (size, mode, origin)], strict=True):
        x = uniform_filter1d(x, n, axis, mode=m, cval=cval, origin=o) if n > 1 else x
    return x


def _enter_slopes(name: str, smoothing: list[float]) -> None:
    @rule(f"ndimage.{name}")
    def function(input: Array, axis: int = -1, mode: PerAxis = "reflect", cval: Number = 0.0) -> Any:
        """Return differences along an axis, smoothed along the others."""
        (x,) = real_or_complex(f"ndimage.{name}", input)
        axis = axis_in(axis, x.ndim)
        modes = for_each(mode, x.ndim)
        # the differences first: what is smoothed then has differences beyond the edges that are `cval` again
        for k in sorted(range(x.ndim), key=lambda k: k != axis):
            w = put(np.asarray([-1.0, 0.0, 1.0] if k == axis else smoothing), x)
            x = filtered(x, w, [k], modes[k], cval)
        return x


_enter_slopes("prewitt", [1.0, 1.0, 1.0])
_enter_slopes("sobel", [1.0, 2.0, 1.0])


@rule("ndimage.laplace")
def laplace(input: Array, mode: PerAxis = "reflect", cval: Number = 0.0, *, axes: PerAxis = None) -> Any:
    """Return ``scipy.ndimage.laplace``."""
    (x,) = real_or_complex("ndimage.laplace", input)
    w = put(np.asarray([1.0, -2.0, 1.0]), x)
    along = axes_of(axes, x.ndim)
    modes = for_each(mode, len(along))
    parts = [filtered(x, w, [axis], m, cval) for axis, m in zip(along, modes, strict=True)]
    # what no axis is filtered along stays as it is
    return functools.reduce(operator.add, parts) if parts else lnp.copy(x)


def _gaussian_parts(
    x: Array, sigma: PerAxis, order: int, mode: PerAxis, along: list[int], settings: dict[str, Any]
) -> list[Any]:
    """Return an array filtered by derivatives of the normal density, of an order along some axes in turn.

    As SciPy does it: along all others by the density, in the mode of the axis of the derivative.
    """
    parts: list[Any] = []
    for axis, m in zip(along, for_each(mode, len(along)), strict=True):
        orders = [order if k == axis else 0 for k in range(x.ndim)]
        parts.append(gaussian_filter(x, sigma, orders, m, **settings))
    return parts


@rule("ndimage.gaussian_laplace")
def gaussian_laplace(
    input: Array, sigma: PerAxis, mode: PerAxis = "reflect", cval: Array = 0.0, axes: PerAxis = None, kwargs: Any = None
) -> Any:
    """Return ``scipy.ndimage.gaussian_laplace``; `kwargs` are further arguments of the filter."""
    settings: dict[str, Any] = {"cval": cval, **(kwargs or {})}
    (x,) = real_or_complex("ndimage.gaussian_laplace", input)
    along = axes_of(axes, x.ndim)
    if len(along) < x.ndim:
        widths = dict(zip(along, for_each(sigma, len(along)), strict=True))
        sigma = [widths.get(k, 0.0) for k in range(x.ndim)]
    return sum(_gaussian_parts(x, sigma, 2, mode, along, settings)) if along else lnp.copy(x)


@rule("ndimage.gaussian_gradient_magnitude")
def gaussian_gradient_magnitude(
    input: Array, sigma: PerAxis, mode: PerAxis = "reflect", cval: Array = 0.0, axes: PerAxis = None, kwargs: Any = None
) -> Any:
    """Return ``scipy.ndimage.gaussian_gradient_magnitude``."""
    settings: dict[str, Any] = {"cval": cval, **(kwargs or {})}
    (x,) = real_or_complex("ndimage.gaussian_gradient_magnitude", input)
    along = axes_of(axes, x.ndim)
    if not along:
        return lnp.copy(x)
    parts = _gaussian_parts(x, sigma, 1, mode, along, settings)
    total: Any = sum(lnp.square(part) for part in parts)
    # the slope of the root at zero is taken as zero, as a norm's: all parts of it are at a least value
    is_zero = plain(total) == 0
    return lnp.where(is_zero, 0.0, lnp.sqrt(lnp.where(is_zero, 1.0, total)))
