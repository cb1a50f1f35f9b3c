"""Sums of products of an array and of weights that move along it: one form of three arrays, and its three derivatives.

Of an array P, weights w and an array g, all of as many dimensions, the form is ``sum(P[n + k] * w[k] * g[n])``. It is
linear in each of the three, so that what it is without one of them is all that there is: `windows` without g, `spread`
without P, `overlaps` without w; the gradients of each are the other two.

`drops` says that weights below 2e-16 in several dimensions count as none, as `scipy.ndimage` has it, and `scipy.signal`
has not.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.function import Function
from lucid.base import gpu
from lucid.base.arrays import namespace, on
from lucid.base.dtype import as_dtype
from lucid.ops.base.promotion import cast_to
from lucid.ops.elementwise.complex import conj, real
from lucid.scipy.rules.rule import library, recorded

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def windows(P: Array, w: Array, *, drops: bool = False) -> Any:
    """Return ``sum(P[n + k] * w[k])`` for each n with all of the weights on the array."""
    return recorded(Windows, P, w, drops)


def spread(w: Array, g: Array) -> Any:
    """Return ``sum(w[k] * g[m - k])``, the full convolution."""
    return recorded(Spread, w, g, False)


EPSILON = float(np.finfo(np.float64).eps)
"""The size up to which `scipy.ndimage` leaves out weights in several dimensions."""


def _is_by_filter(a: Array, w: Array, *, drops: bool) -> bool:
    """Return whether filters of `scipy.ndimage` give the form: not beside weights that they leave out.

    Zeros matter beside NaN, and so do weights that are NaN beside the zeros beyond the edges.
    """
    if drops or not a.ndim or gpu.is_gpu_array(a):
        return True
    sizes = np.abs(w)
    if not np.isfinite(sizes).all():
        return False
    if max(w.shape) == w.size or (least := sizes.min(initial=np.inf)) > EPSILON:
        return True
    if least == 0:
        least = sizes.min(initial=np.inf, where=sizes > 0)
    return bool(least > EPSILON and np.isfinite(a).all())


def _correlated(a: Array, w: Array, *, is_behind: bool) -> Any:
    """Return the windows of all elements of an array, beginning at each, or ending there."""
    a = _as_complex(a, w)
    if not a.ndim:
        return namespace(a).asarray(a * w, a.dtype)
    # SciPy conjugates complex weights
    w = w.conj() if w.dtype.kind == "c" else w
    origin = [(size - 1) // 2 if is_behind else -(size // 2) for size in w.shape]
    filters = library("ndimage", a)
    if gpu.is_gpu_array(a):
        with on(a):
            return filters.correlate(a, w, mode="constant", origin=origin)
    if max(w.shape) < w.size:
        return filters.correlate(a, w, mode="constant", origin=origin)
    k = w.shape.index(w.size)
    return filters.correlate1d(a, w.reshape(-1), k, mode="constant", origin=origin[k])


def _as_complex(a: Array, w: Array) -> Any:
    """Return an array, as complex numbers beside complex weights."""
    return a.astype(np.result_type(a.dtype, np.complex64)) if a.dtype.kind == "f" and w.dtype.kind == "c" else a


class Windows(Function):
    """The form without g."""

    @staticmethod
    def forward(ctx: Any, P: Tensor, w: Tensor, drops: bool) -> Any:
        """Return the form by SciPy's correlation, or CuPy's."""
        ctx.save_for_backward(P, w)
        ctx.drops = drops
        a, b = P.array, w.array
        sizes = [max(n - k + 1, 0) for n, k in zip(a.shape, b.shape, strict=True)]
        if _is_by_filter(a, b, drops=drops):
            return wrap(_copied(_correlated(a, b, is_behind=False)[tuple(map(slice, sizes))]))
        a = _as_complex(a, b)
        total = np.zeros(sizes, np.result_type(a, b))
        for k in np.ndindex(*b.shape):
            total += a[tuple([slice(i, i + n) for i, n in zip(k, sizes, strict=True)])] * b[k]
        return wrap(total.astype(a.dtype, copy=False))

    @staticmethod
    def backward(ctx: Any, *grads: Array) -> Any:
        """Return the gradients of both."""
        P, w = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (
            like_operand(Spread.apply(conj(w), grads[0], ctx.drops), P) if needs[0] else None,
            like_operand(Overlaps.apply(conj(P), grads[0]), w) if needs[1] else None,
            None,
        )


class Spread(Function):
    """The form without P."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, g: Tensor, drops: bool) -> Any:
        """Return the full convolution by SciPy's correlation with turned weights, or CuPy's."""
        ctx.save_for_backward(w, g)
        ctx.drops = drops
        a, b = g.array, w.array
        if not _is_by_filter(a, b, drops=drops):
            a = _as_complex(a, b)
            total = np.zeros([n + m - 1 for n, m in zip(a.shape, b.shape, strict=True)], np.result_type(a, b))
            for k in np.ndindex(*b.shape):
                total[tuple([slice(i, i + n) for i, n in zip(k, a.shape, strict=True)])] += a * b[k]
            return wrap(total.astype(a.dtype, copy=False))
        turned = b[(..., *(slice(None, None, -1),) * b.ndim)]
        with on(a):
            padded = namespace(a).pad(a, [(0, size - 1) for size in b.shape]) if a.ndim else a
        return wrap(_correlated(padded, turned, is_behind=True))

    @staticmethod
    def backward(ctx: Any, *grads: Array) -> Any:
        """Return the gradients of both."""
        w, g = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (
            like_operand(Overlaps.apply(grads[0], conj(g)), w) if needs[0] else None,
            like_operand(Windows.apply(grads[0], conj(w), ctx.drops), g) if needs[1] else None,
            None,
        )


class Overlaps(Function):
    """The form without w: a sum for each place of the weights."""

    @staticmethod
    def forward(ctx: Any, P: Tensor, g: Tensor) -> Any:
        """Return one inner product for each place."""
        ctx.save_for_backward(P, g)
        a, b = P.array, g.array
        shape = tuple([n - m + 1 for n, m in zip(a.shape, b.shape, strict=True)])
        with on(a):
            xp = namespace(a)
            result = xp.empty(shape, xp.result_type(a, b))
            for k in itertools.product(*map(range, shape)):
                part = a[tuple([slice(i, i + m) for i, m in zip(k, b.shape, strict=True)])]
                result[k] = (part * b).sum()
        return wrap(result)

    @staticmethod
    def backward(ctx: Any, *grads: Array) -> Any:
        """Return the gradients of both."""
        P, g = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (
            like_operand(Spread.apply(grads[0], conj(g), False), P) if needs[0] else None,
            like_operand(Windows.apply(conj(P), grads[0], False), g) if needs[1] else None,
        )


def like_operand(grad: Tensor, x: TensorBase) -> Any:
    """Return a gradient in the dtype of its operand: real of real."""
    wanted = x.array.dtype
    if grad.array.dtype.kind == "c" and wanted.kind != "c":
        grad = real(grad)
    return cast_to(grad, as_dtype(wanted))


def _copied(array: Array) -> Any:
    with on(array):
        return namespace(array).asarray(array, order="C")
