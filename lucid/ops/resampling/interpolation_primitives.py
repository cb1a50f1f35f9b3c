"""The primitives of interpolation, both linear: that of the gradient is the adjoint of the other.

On the CPU a dimension is a product with a matrix of weights, of which only the blocks along the diagonal are made.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.index.accumulation import add_at
from lucid.ops.resampling import interpolation_cuda as kernels
from lucid.ops.resampling.taps import Axis, blocks, kept_blocks, taps

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array

# The largest size of which blocks of weights are kept.
KEPT = 4096


@primitive
def interpolated(xp: ModuleType, x: Array, *, axes: tuple[Axis, ...]) -> Array:
    """Return `x` with its last dimensions of other sizes."""
    if all(axis.kind == "nearest" for axis in axes):
        for dim, axis in enumerate(axes, x.ndim - len(axes)):
            x = x.take(xp.asarray(taps(axis)[0][:, 0]), axis=dim)
        return x
    return resized(xp, x, axes, adjoint=False)


interpolated.cuda(kernels.interpolated)


@interpolated.vjp("x", planned=True)
def interpolated_vjp(m: Namespace, grad: Array, axes: tuple[Axis, ...]) -> Any:
    """Return the gradient of each element: its shares in others come back, with the same weights."""
    return m.interpolated_grad(grad, axes=axes)


@primitive
def interpolated_grad(xp: ModuleType, grad: Array, *, axes: tuple[Axis, ...]) -> Array:
    """Return the gradient of the operand of `interpolated`."""
    return resized(xp, grad, axes, adjoint=True)


interpolated_grad.cuda(kernels.interpolated_grad)


@interpolated_grad.vjp("grad", planned=True)
def interpolated_grad_vjp(m: Namespace, grad: Array, axes: tuple[Axis, ...]) -> Any:
    """Return the gradient, interpolated."""
    return m.interpolated(grad, axes=axes)


def resized(xp: ModuleType, x: Array, axes: tuple[Axis, ...], *, adjoint: bool) -> Array:
    """Return `x` with its last dimensions resized, or the adjoint of that, one after the other."""
    dims = range(x.ndim - len(axes), x.ndim)
    # those that shrink most come first, so that there is least in between
    order = sorted(zip(dims, axes, strict=True), key=lambda each: each[1].out / each[1].size, reverse=adjoint)
    dtype = accumulation_dtype(x.dtype)
    original, out = x, x.astype(dtype, copy=False)
    if xp is np:
        for dim, axis in order:
            out = by_products(out, axis, dim, adjoint=adjoint)
        # 0 times infinity or NaN is NaN, beside where it belongs
        if np.isfinite(out.sum()):
            return out.astype(x.dtype, copy=False)
        out = original.astype(dtype, copy=False)
    for dim, axis in order:
        out = by_taps(xp, out, axis, dim, adjoint=adjoint)
    return out.astype(x.dtype, copy=False)


def by_products(x: Array, axis: Axis, dim: int, *, adjoint: bool) -> Array:
    """Return `x` resized along one dimension, by matrix products."""
    made = kept_blocks if max(axis.size, axis.out) <= KEPT else blocks
    out = np.empty((*x.shape[:dim], axis.size if adjoint else axis.out, *x.shape[dim + 1 :]), x.dtype)
    if not out.size:
        return out
    if dim == x.ndim - 1:
        rows, results = x.reshape(-1, x.shape[-1]), out.reshape(-1, out.shape[-1])
        for to, of, weight in made(axis, x.dtype, adjoint=adjoint):
            np.matmul(rows[:, of], weight.T, out=results[:, to])
        return out
    planes, results = [a.reshape(math.prod(a.shape[:dim]), a.shape[dim], -1) for a in (x, out)]
    for to, of, weight in made(axis, x.dtype, adjoint=adjoint):
        np.matmul(weight, planes[:, of], out=results[:, to])
    return out


def by_taps(xp: ModuleType, x: Array, axis: Axis, dim: int, *, adjoint: bool) -> Array:
    """Return `x` resized along one dimension, without looking at elements of weight zero."""
    index, weight = taps(axis)
    size = axis.size if adjoint else axis.out
    out = xp.zeros((*x.shape[:dim], size, *x.shape[dim + 1 :]), x.dtype)
    for k in range(index.shape[1]):
        at = xp.asarray(index[:, k])
        by = xp.asarray(weight[:, k], x.dtype).reshape(-1, *[1] * (x.ndim - dim - 1))
        part = xp.where(by == 0, x.dtype.type(0), (x if adjoint else x.take(at, axis=dim)) * by)
        if adjoint:
            add_at(xp, out, (dim,), (at,), part)
        else:
            out += part
    return out
