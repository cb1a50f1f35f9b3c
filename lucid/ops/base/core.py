"""The primitives that the engine itself and most derivatives stand on: sums of gradients, copies, zeros, conjugates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.base.memory import c_copy
from lucid.cuda.launch.elementwise import ALL, Elementwise, converted
from lucid.cuda.launch.plans import launches_only
from lucid.cuda.launch.reduction import sum_over
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.rows import sum_of

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints


def broadcast_axes(shape: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes to sum an array of `shape` over, to undo its broadcasting from `wanted`."""
    extra = len(shape) - len(wanted)
    return (*range(extra), *(extra + i for i, size in enumerate(wanted) if size == 1 and shape[extra + i] != 1))


def sum_to_array(xp: ModuleType, x: Array, shape: Ints) -> Array:
    """Return `x` summed to `shape`, half types accumulated in float32."""
    if x.shape == shape:
        return x
    total = sum_of(xp, x, broadcast_axes(x.shape, shape), accumulation_dtype(x.dtype))
    return total.reshape(shape).astype(x.dtype, copy=False)


def _sum_to_cpu(x: Array, *, shape: tuple[int, ...] | None) -> Array:
    return x if shape is None or x.shape == shape else sum_to_array(np, x, shape)


@primitive(cpu=_sum_to_cpu)
def sum_to(xp: ModuleType, x: Array, *, shape: tuple[int, ...] | None) -> Array:
    """Return `x` summed over the axes that `shape` was broadcast along; `x` itself if there are none.

    None stands for the shape of an operand that was not broadcast.
    """
    return x if shape is None else sum_to_array(xp, x, shape)


@sum_to.cuda
@launches_only
def _sum_to_cuda(x: Any, *, shape: tuple[int, ...] | None) -> Any:
    if shape is None or x.shape == shape:
        return x
    total = sum_over(x, broadcast_axes(x.shape, shape), False, x.dtype)
    return total if total is NotImplemented or total.shape == shape else total.reshape(shape)


@sum_to.vjp
def sum_to_vjp(m: Namespace, grad: Array, x_shape: Ints) -> Any:
    """Return the gradient, the same for each summed element."""
    return m.expand(grad, shape=x_shape)


def _sum_to_graph(x: Any, *, shape: tuple[int, ...] | None) -> Any:
    return x if shape is None or x.array.shape == shape else sum_to(x, shape=shape)


sum_to.call = _sum_to_graph


def _expand_cpu(x: Array, *, shape: tuple[int, ...]) -> Array:
    # NumPy takes what broadcast_to gives for read-only, also where no element is repeated
    wide = np.broadcast_to(x, shape)
    return x.reshape(shape) if wide.size == x.size else wide


@primitive(view=True, cpu=_expand_cpu)
def expand(xp: ModuleType, x: Array, *, shape: Ints) -> Array:
    """Return a view of `x` broadcast to `shape`."""
    return xp.broadcast_to(x, shape)


@expand.vjp
def expand_vjp(m: Namespace, grad: Array, x_shape: Ints) -> Any:
    """Return the sum over the copies."""
    return m.sum_to(grad, shape=x_shape)


@primitive
def zeros_like(xp: ModuleType, x: Array) -> Array:
    """Return zeros of the shape, dtype and device of `x`."""
    return xp.zeros(x.shape, x.dtype)


@primitive(cpu=c_copy)
def clone(xp: ModuleType, x: Array) -> Array:
    """Return a copy of `x` in memory of its own."""
    return xp.array(x, order="C")


@clone.cuda
@launches_only
def _clone_cuda(x: Array) -> Any:
    return converted(x, x.dtype)


@clone.vjp
def clone_vjp(m: Namespace, grad: Array) -> Any:
    """Return the gradient unchanged."""
    return grad


def _conj_cpu(x: Array) -> Array:
    return np.conjugate(x) if x.dtype.kind == "c" else x


@primitive(cpu=_conj_cpu, holomorphic=False)
def conj(xp: ModuleType, x: Array) -> Array:
    """Return the complex conjugate of `x`; `x` itself if it is real."""
    return xp.conjugate(x) if x.dtype.kind == "c" else x


@conj.vjp
def conj_vjp(m: Namespace, grad: Array) -> Any:
    """Return the conjugate of the gradient."""
    return m.conj(grad)


@primitive
def add_into(xp: ModuleType, into: Array, x: Array) -> Array:
    """Add `x` to `into` in place; only for arrays that the engine owns."""
    into += x
    return into


ADD = Elementwise("elementwise", "Add", "TT", dtypes=ALL)


@add_into.cuda
def _add_into_cuda(into: Array, x: Array) -> Any:
    return ADD(into, x, out=into)


@primitive
def copy_into(xp: ModuleType, into: Array, x: Array) -> Array:
    """Write `x` to `into`, in its dtype."""
    into[...] = x
    return into


@copy_into.cuda
def _copy_into_cuda(into: Array, x: Array) -> Any:
    return converted(x, into.dtype, into)
