"""Running sums and products along a dimension, and products over it.

What holds for all reductions says `lucid.ops.reduction.sums`. Here `dim` is one dimension, running results keep the
shape, and those of integers and bools are int64. Gradients of products are right with zeros too. On a CUDA device there
is a kernel for running sums, for running products and for linear recurrences.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.primitive import primitive
from lucid.base.arrays import astype
from lucid.base.dtype import as_dtype, dtype_of, int64
from lucid.base.functions import cupy_functions
from lucid.cpu import running
from lucid.cuda.launch import reduction
from lucid.cuda.launch.indexing import launch_for
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel, address_of
from lucid.cuda.launch.plans import launches_only
from lucid.ops.base.dims import along, dim_in
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, cast_to
from lucid.ops.base.rows import running_sums
from lucid.ops.base.scalars import as_bool
from lucid.ops.shape.axes import rolled
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


# Elements that one thread goes through by itself, and lines that fill a device with one thread each.
SHORT = 32
MANY_LINES = 1 << 15


class Lines(NamedTuple):
    """The lines of an array along one dimension.

    Attributes
    ----------
    address : int
        Of the first element that is read.
    kept : tuple of int
        The axes of lines, as the kernels take them.
    step : int
        From element to element, in elements.
    """

    address: int
    kept: tuple[int, ...]
    step: int


def lines_of(x: Array, dim: int, *, reverse: bool) -> Lines | None:
    """Return the lines of `x` along `dim`, from their ends on if `reverse`; None if there are too many axes."""
    kept = reduction.merged_axes(reduction.steps_of(x, [d for d in range(x.ndim) if d != dim]))
    if reduction.too_many(kept):
        return None
    step = x.strides[dim] // x.dtype.itemsize
    last = (x.shape[dim] - 1) * x.strides[dim]
    return Lines(x.data.ptr + (last if reverse else 0), reduction.packed_axes(kept), -step if reverse else step)


class Scan:
    """A function of all elements of a line up to each.

    Parameters
    ----------
    op : str
        In `kernels/reduction/cumulative.cu`.
    gathers : callable
        ``gathers(dtype)`` gives the bytes of what it gathers.
    dtypes : iterable of str
        The C types that it takes.
    """

    def __init__(self, op: str, gathers: Callable[[Any], int], dtypes: Iterable[str]) -> None:
        names = set(dtypes)
        self.bytes = gathers
        self.instances = {dtype: (name, f"lucid::{op}") for dtype, name in C_TYPES.items() if name in names}
        known = tuple(self.instances.values())
        self.lines = Kernel("cumulative", "lucid::scan_lines", known)
        self.rows = Kernel("cumulative", "lucid::scan_rows", known)

    def __call__(self, x: Array, factor: Array | None = None, *, dim: int, reverse: bool, dtype: Any = None) -> Any:
        """Return the results for `x` along `dim`, as `dtype` or its own; NotImplemented without a kernel for it."""
        dtype = x.dtype if dtype is None else dtype
        instance, code = self.instances.get(x.dtype), reduction.dtype_code(dtype)
        if instance is None or code is None or not x.ndim or (factor is not None and factor.dtype != x.dtype):
            return NotImplemented
        of_x = lines_of(x, dim, reverse=reverse)
        of_factor = lines_of(x if factor is None else factor, dim, reverse=reverse)
        if of_x is None or of_factor is None:
            return NotImplemented
        out = cupy_functions().empty(x.shape, dtype)
        if not out.size:
            return out
        length, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
        lines = out.size // length
        first, step = ((length - 1) * inner, -inner) if reverse else (0, inner)
        numbers = (
            *of_x.kept, *of_factor.kept, lines, length, of_x.step, of_factor.step, step, first, inner, code
        )  # fmt: skip
        if length <= SHORT or (inner >= SHORT and lines >= MANY_LINES):
            self.lines[instance](*launch_for(lines), of_x.address, of_factor.address, out.data.ptr, *numbers)
            return out
        block = reduction.block_of(length)
        few = lines < reduction.FULL // 2
        chunks = max(1, min(reduction.FULL // lines, length // (8 * block), block)) if few else 1
        room = cupy_functions().empty(lines * chunks * self.bytes(x.dtype), np.uint8) if chunks > 1 else None
        arguments = of_x.address, of_factor.address, out.data.ptr, address_of(room), *numbers
        if room is not None:
            self.rows[instance]((lines, chunks), block, *arguments, 1)
        self.rows[instance]((lines, chunks), block, *arguments, 0)
        return out


def _running_bytes(dtype: Any) -> int:
    return 8 if dtype == np.float32 else reduction.total_bytes(dtype)


_SHIFT = Kernel("cumulative", "lucid::shift", EACH_FLOAT)


@primitive
def _shift(xp: ModuleType, x: Array, *, dim: int, by: int, fill: float) -> Array:
    """Return `x` moved by one up (1) or down (-1) along `dim`, with `fill` in the gap."""
    moved = rolled(xp, x, by, dim)
    moved[along(dim, slice(0, 1) if by > 0 else slice(-1, None))] = fill
    return moved


@_shift.cuda
def _shift_cuda(x: Array, *, dim: int, by: int, fill: float) -> Any:
    name = C_TYPES.get(x.dtype)
    lines = lines_of(x, dim, reverse=False) if x.ndim else None
    if name not in FLOATS or lines is None:
        return NotImplemented
    out = cupy_functions().empty(x.shape, x.dtype)
    if out.size:
        length, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
        _SHIFT[name](
            *launch_for(out.size), lines.address, out.data.ptr,
            *lines.kept, out.size // length, length, lines.step, inner, by, fill,
        )  # fmt: skip
    return out


@_shift.vjp
def _shift_vjp(m: Namespace, grad: Array, dim: int, by: int) -> Any:
    return m.shift(grad, dim=dim, by=-by, fill=0.0)


@primitive
def _recurrence(xp: ModuleType, x: Array, factor: Array, *, dim: int, reverse: bool) -> Array:
    """Return s with ``s[k] = x[k] + factor[k] * s[k - 1]`` along `dim`, or ``s[k + 1]`` in reverse."""
    # Twice as many terms in each round (Hillis and Steele): whole arrays on either device, and no division, so that
    # zeros among the factors do no harm.
    work = accumulation_dtype(x.dtype)
    total, product = astype(x, work, copy=True), astype(factor, work, copy=True)
    size, step = x.shape[dim], 1
    while step < size:
        late, early = slice(step, None), slice(None, -step)
        target, source = (early, late) if reverse else (late, early)
        target, source = along(dim, target), along(dim, source)
        total[target] += product[target] * total[source]
        # the right-hand side is a new array, so that overlap of the two parts does not matter
        product[target] = product[target] * product[source]
        step *= 2
    return astype(total, x.dtype)


_recurrence.cuda(Scan("Recurrence", lambda dtype: 2 * reduction.total_bytes(dtype), FLOATS))


@_recurrence.vjp
def _recurrence_vjp(m: Namespace, grad: Array, factor: Array, out: Array, dim: int, reverse: bool, needs: Any) -> Any:
    by = 1 if reverse else -1
    back = m.recurrence(grad, m.shift(factor, dim=dim, by=by, fill=0.0), dim=dim, reverse=not reverse)
    return back, m.mul(back, m.shift(out, dim=dim, by=-by, fill=0.0)) if needs[1] else None


def _accumulated(
    xp: ModuleType, accumulate: Callable[..., Array], x: Array, dim: int, reverse: bool, dtype: np.dtype[Any]
) -> Any:
    work = accumulation_dtype(dtype)
    if not x.ndim:
        return astype(x, dtype, copy=True)
    if not reverse:
        return astype(accumulate(x, axis=dim, dtype=work), dtype)
    backwards = along(dim, slice(None, None, -1))
    return xp.ascontiguousarray(astype(accumulate(x[backwards], axis=dim, dtype=work)[backwards], dtype))


# Methods: NumPy's functions are written in Python, and the warnings of what they call would be NumPy's, not lucid's.
def _sums(x: Array, axis: int, dtype: np.dtype[Any]) -> Array:
    return x.cumsum(axis, dtype)


def _products(x: Array, axis: int, dtype: np.dtype[Any], out: Array | None = None) -> Array:
    return x.cumprod(axis, dtype, out)


@primitive
def _cumsum(xp: ModuleType, x: Array, *, dim: int, reverse: bool, dtype: np.dtype[Any]) -> Array:
    if xp is np and x.dtype == dtype and (out := running.running_sums(x, dim, reverse=reverse)) is not None:
        return out
    return _accumulated(xp, running_sums if xp is np and dtype.kind in "fcV" else _sums, x, dim, reverse, dtype)


_cumsum.cuda(Scan("CumulativeSum", reduction.total_bytes, C_TYPES.values()))


@_cumsum.vjp
def _cumsum_vjp(
    m: Namespace, grad: Array, x_dtype: np.dtype[Any], dim: int, reverse: bool, dtype: np.dtype[Any]
) -> Any:
    back = m.cumsum(grad, dim=dim, reverse=not reverse, dtype=dtype)
    return back if dtype == x_dtype else m.cast(back, dtype=x_dtype)


@primitive
def _cumprod(xp: ModuleType, x: Array, *, dim: int, reverse: bool) -> Array:
    if xp is np and (out := running.running_products(x, dim, reverse=reverse)) is not None:
        return out
    if x.dtype != np.float32:
        return _accumulated(xp, _products, x, dim, reverse, x.dtype)
    # later elements may bring back what has left the range: 1e-30, 1e-60, 1e-30
    wide = x.astype(np.float64)
    return _accumulated(xp, functools.partial(_products, out=wide), wide, dim, reverse, wide.dtype).astype(x.dtype)


_cumprod.cuda(Scan("CumulativeProduct", _running_bytes, C_TYPES.values()))


@_cumprod.vjp
def _cumprod_vjp(m: Namespace, grad: Array, x: Array, x_dtype: np.dtype[Any], dim: int, reverse: bool) -> Any:
    if not x.shape:
        return grad
    x, grad = widened(m, x_dtype, x, grad)
    # y[i] = x[0] ... x[i]. The gradient of x[k] is the sum over i >= k of grad[i] * x[0] ... x[i] without x[k]: what
    # lies before k is the product so far, what lies behind obeys s[k] = grad[k] + x[k + 1] * s[k + 1].
    by = -1 if reverse else 1
    before = m.cumprod(m.shift(x, dim=dim, by=by, fill=1.0), dim=dim, reverse=reverse)
    behind = m.recurrence(grad, m.shift(x, dim=dim, by=-by, fill=0.0), dim=dim, reverse=not reverse)
    return narrowed(m, x_dtype, m.mul(before, behind))


def widened(m: Namespace, dtype: np.dtype[Any], *arrays: Array) -> tuple[Any, ...]:
    """Return arrays of `dtype` as float64 if that is float32: products of parts leave its range."""
    return tuple([m.cast(x, dtype=np.dtype(np.float64)) for x in arrays]) if dtype == np.float32 else arrays


def narrowed(m: Namespace, dtype: np.dtype[Any], x: Array) -> Any:
    """Return a result computed of `widened` arrays in their dtype."""
    return m.cast(x, dtype=dtype) if dtype == np.float32 else x


@primitive
def _prod(xp: ModuleType, x: Array, *, dim: int, keepdim: bool) -> Array:
    if not x.ndim:
        return x.copy()
    return astype(xp.prod(x, axis=dim, dtype=accumulation_dtype(x.dtype), keepdims=keepdim), x.dtype)


@_prod.cuda
@launches_only
def _prod_cuda(x: Array, *, dim: int, keepdim: bool) -> Any:
    return reduction.reduced_as(reduction.PRODUCT, x, (dim,) if x.ndim else (), keepdim, x.dtype)


@_prod.vjp
def _prod_vjp(m: Namespace, grad: Array, x: Array, x_dtype: np.dtype[Any], dim: int, keepdim: bool) -> Any:
    if not x.shape:
        return grad
    if not keepdim:
        grad = m.reshape(grad, shape=(*x.shape[:dim], 1, *x.shape[dim + 1 :]))
    x, grad = widened(m, x_dtype, x, grad)
    # the product of all others, without division: zeros among the factors do no harm
    before = m.cumprod(m.shift(x, dim=dim, by=1, fill=1.0), dim=dim, reverse=False)
    behind = m.cumprod(m.shift(x, dim=dim, by=-1, fill=1.0), dim=dim, reverse=True)
    return narrowed(m, x_dtype, m.mul(grad, m.mul(before, behind)))


def _accumulating(input: Tensor, dtype: Dtype | None, *, wide_on_cpu: bool = False) -> tuple[Tensor, Dtype]:
    """Return the tensor and the dtype of its running sum or product."""
    x = tensor_operand(input)
    if dtype is not None:
        wanted = as_dtype(dtype)
        return cast_to(x, wanted), wanted
    x = wide_in_autocast(x, cpu=wide_on_cpu)
    own = dtype_of(x.array)
    return x, own if own.category > 1 else int64


def cumsum(input: Tensor, dim: int, *, dtype: Dtype | None = None) -> Tensor:
    """Return the running sums along `dim`, ``y[i] = x[0] + ... + x[i]``.

    >>> import lucid
    >>> lucid.cumsum(lucid.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 3., 6.])
    """
    x, wanted = _accumulating(input, dtype)
    return _cumsum(x, dim=dim_in(dim, x.array.ndim), reverse=False, dtype=wanted.numpy)


def cumprod(input: Tensor, dim: int, *, dtype: Dtype | None = None) -> Tensor:
    """Return the running products along `dim`, ``y[i] = x[0] * ... * x[i]``.

    >>> import lucid
    >>> lucid.cumprod(lucid.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 2., 6.])
    """
    x, wanted = _accumulating(input, dtype)
    return _cumprod(cast_to(x, wanted), dim=dim_in(dim, x.array.ndim), reverse=False)


def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """Return the product of all elements, or of those along `dim`; 1 if there are none.

    >>> import lucid
    >>> lucid.prod(lucid.tensor([[1.0, 2.0], [3.0, 4.0]]), 0)
    tensor([3., 8.])
    """
    x, wanted = _accumulating(input, dtype, wide_on_cpu=True)
    x, keepdim = cast_to(x, wanted), as_bool(keepdim, "keepdim")
    if dim is not None:
        return _prod(x, dim=dim_in(dim, x.array.ndim), keepdim=keepdim)
    out = _prod(reshape(x, -1), dim=0, keepdim=False)
    return reshape(out, (1,) * x.array.ndim) if keepdim else out
