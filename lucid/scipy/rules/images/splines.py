"""The coefficients of splines through samples at whole numbers: `scipy.ndimage.spline_filter`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.autograd.base import wrap
from lucid.autograd.function import Function
from lucid.base.arrays import asarray, on
from lucid.base.device import device_of
from lucid.ops.elementwise import arithmetic
from lucid.scipy.rules.images.filters import extended
from lucid.scipy.rules.rule import Array, host_library, library, put, real_or_complex, recorded, rule
from lucid.tensor.numpy_calls.operands import NumpyCallError, axis_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor

SYMMETRIC = frozenset(("reflect", "grid-mirror", "grid-wrap", "nearest"))
"""Modes of which the filter is its own adjoint; in the others it is that beside weights of a half at both ends."""

PADDING = 12
"""How many elements SciPy puts around an array of which no filter knows the mode."""

SHORT = 40
"""Up to which size the filter is a product with its matrix: SciPy cuts its sums off, and then has another adjoint."""


class SplineFilter(Function):
    """The filter along an axis that solves for the coefficients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: int, axis: int, mode: str) -> Any:
        """Return the coefficients by SciPy's filter, or CuPy's."""
        ctx.settings = order, axis, mode
        with on(x.array):
            return wrap(library("ndimage", x.array).spline_filter1d(x.array, order, axis, np.float64, mode))

    @staticmethod
    def backward(ctx: Any, *grads: Array) -> Any:
        """Return the gradient by the filter itself."""
        order, axis, mode = ctx.settings
        grad, shape = grads[0], grads[0].array.shape
        if mode in SYMMETRIC or shape[axis] == 1:
            return SplineFilter.apply(grad, order, axis, mode), None, None, None
        ends = np.ones([n if k == axis else 1 for k, n in enumerate(shape)])
        ends[(slice(None),) * axis + ([0, -1],)] = 2
        twice = wrap(asarray(ends, device=device_of(grad.array)))
        grad = SplineFilter.apply(arithmetic.mul(grad, twice), order, axis, mode)
        return arithmetic.mul(grad, wrap(asarray(1 / ends, device=device_of(grad.array)))), None, None, None


def coefficients(x: Array, order: int, axes: Sequence[int], mode: str) -> Any:
    """Return the coefficients of a spline of real samples, along some axes."""
    x = x.astype(np.float64)
    for axis in [axis_in(axis, x.ndim) for axis in axes] if order > 1 else []:
        if x.shape[axis] > SHORT:
            x = recorded(SplineFilter, x, order, axis, mode)
        else:
            matrix = put(filter_matrix(x.shape[axis], order, mode), x)
            x = lnp.moveaxis(lnp.tensordot(matrix, x, axes=(1, axis)), 0, axis)
    return x


@functools.cache
def filter_matrix(size: int, order: int, mode: str) -> np.ndarray[Any, Any]:
    """Return the matrix that SciPy's filter is."""
    filters = host_library("ndimage")
    return filters.spline_filter1d(np.eye(size), order, 0, np.float64, mode)


def of_parts(function: Callable[..., Any], x: Array, cval: Array = 0.0) -> Any:
    """Return a function of real arrays, and of a constant beyond their edges, applied to complex ones by parts."""
    if x.dtype.kind != "c":
        return function(x, cval)
    return function(lnp.real(x), lnp.real(cval)) + 1j * function(lnp.imag(x), lnp.imag(cval))


def prefiltered(x: Array, order: int, axes: int, mode: str, cval: Array, *, prefilter: bool) -> tuple[Any, int]:
    """Return the coefficients along the first axes, and how many elements were put around the array for it."""
    if not prefilter or order < 2:
        return x.astype(np.float64), 0
    if mode not in {"nearest", "grid-constant"}:
        return coefficients(x, order, range(axes), mode), 0
    for axis in range(axes):
        x = extended(x, axis, PADDING, PADDING, mode, cval)
    return coefficients(x, order, range(axes), mode), PADDING


def filtered_in(name: str, x: Array, order: int, least: int, axes: Sequence[int], output: object, mode: str) -> Any:
    """Return the coefficients along some axes in a dtype, or in its complex one; refuse an array to write into."""
    if not least <= order <= 5:
        raise RuntimeError("spline order not supported")
    if not isinstance(output, type) and hasattr(output, "shape"):
        raise NumpyCallError(f"scipy.ndimage.{name}: output cannot be an array where something requires grad")
    dtype: Any = np.dtype(output)  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownVariableType]

    def of_reals(x: Array, _: object) -> Any:
        return coefficients(x, order, axes, mode)

    return of_parts(of_reals, x).astype(np.result_type(dtype, np.complex64) if x.dtype.kind == "c" else dtype)


@rule("ndimage.spline_filter1d")
def spline_filter1d(
    input: Array, order: int = 3, axis: int = -1, output: object = np.float64, mode: str = "mirror"
) -> Any:
    """Return ``scipy.ndimage.spline_filter1d``."""
    (x,) = real_or_complex("ndimage.spline_filter1d", input)
    return filtered_in("spline_filter1d", x, order, 0, [axis], output, mode)


@rule("ndimage.spline_filter")
def spline_filter(input: Array, order: int = 3, output: object = np.float64, mode: str = "mirror") -> Any:
    """Return ``scipy.ndimage.spline_filter``."""
    (x,) = real_or_complex("ndimage.spline_filter", input)
    return filtered_in("spline_filter", x, order, 2, range(x.ndim), output, mode)
