"""Sums of products of an array and of weights that move along it: one form of three arrays, and its three derivatives.

Of an array P, weights w and an array g, all of as many dimensions, the form is ``sum(P[n + k] * w[k] * g[n])``. It is
linear in each of the three, so that what it is without one of them is all that there is: `windows` without g, `spread`
without P, `overlaps` without w; the gradients of each are the other two.
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


def windows(P: Array, w: Array) -> Any:
    """Return ``sum(P[n + k] * w[k])`` for each n with all of the weights on the array."""
    return recorded(Windows, P, w)


def spread(w: Array, g: Array) -> Any:
    """Return ``sum(w[k] * g[m - k])``, the full convolution."""
    return recorded(Spread, w, g)


def _correlated(a: Array, w: Array, *, is_behind: bool) -> Any:
    """Return the windows of all elements of an array, beginning at each, or ending there."""
    if a.dtype.kind == "f" and w.dtype.kind == "c":
        a = a.astype(np.result_type(a.dtype, np.complex64))
    if not a.ndim:
        return namespace(a).asarray(a * w, a.dtype)
    # SciPy conjugates complex weights
    w = w.conj() if w.dtype.kind == "c" else w
    origin = [(size - 1) // 2 if is_behind else -(size // 2) for size in w.shape]
    filters = library("ndimage", a)
    if gpu.is_gpu_array(a):
        with on(a):
            return filters.correlate(a, w, mode="constant", origin=origin)
    # SciPy leaves out weights below 2e-16 whatever the others are
    power = np.frexp(np.abs(w).max(initial=0))[1]
    scale = 2.0 ** -max(int(power), -1000) if power < 0 else 1.0
    along = [k for k, size in enumerate(w.shape) if size > 1]
    if len(along) > 1:
        result = filters.correlate(a, w * scale, mode="constant", origin=origin)
    else:
        k = along[0] if along else 0
        result = filters.correlate1d(a, (w * scale).reshape(-1), k, mode="constant", origin=origin[k])
    return result if scale == 1 else np.divide(result, scale, dtype=result.dtype)


class Windows(Function):
    """The form without g."""

    @staticmethod
    def forward(ctx: Any, P: Tensor, w: Tensor) -> Any:
        """Return the form by SciPy's correlation, or CuPy's."""
        ctx.save_for_backward(P, w)
        a, b = P.array, w.array
        kept = tuple([slice(0, max(n - k + 1, 0)) for n, k in zip(a.shape, b.shape, strict=True)])
        return wrap(_copied(_correlated(a, b, is_behind=False)[kept]))

    @staticmethod
    def backward(ctx: Any, *grads: Array) -> Any:
        """Return the gradients of both."""
        P, w = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (
            like_operand(Spread.apply(conj(w), grads[0]), P) if needs[0] else None,
            like_operand(Overlaps.apply(conj(P), grads[0]), w) if needs[1] else None,
        )


class Spread(Function):
    """The form without P."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, g: Tensor) -> Any:
        """Return the full convolution by SciPy's correlation with turned weights, or CuPy's."""
        ctx.save_for_backward(w, g)
        a, b = g.array, w.array
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
            like_operand(Windows.apply(grads[0], conj(w)), g) if needs[1] else None,
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
            like_operand(Spread.apply(grads[0], conj(g)), P) if needs[0] else None,
            like_operand(Windows.apply(conj(P), grads[0]), g) if needs[1] else None,
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
