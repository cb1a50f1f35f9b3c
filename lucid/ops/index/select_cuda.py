"""Ops that select, write or add by index, on a CUDA device: the functions behind their primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base import gpu
from lucid.base.functions import cupy_functions
from lucid.cuda.launch.indexing import MAX_BLOCKS, add, along, contiguous, form_of, read, selected, steps_of, write
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel
from lucid.cuda.launch.plans import planned
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.arrays import Array


_shorten_rows = Kernel("embedding", "lucid::shorten_rows", EACH_FLOAT)


# ---- an index of the rank of the table ----


@planned
def gather(x: Array, index: Array, *, dim: int) -> Any:
    """Return the elements of `x` at `index` along a dimension."""
    return read(x, along(form_of(x), index, dim, None), index.shape)


def gather_grad(grad: Array, index: Array, *, shape: tuple[int, ...], dim: int, unique: bool) -> Any:
    """Return zeros of `shape` with `grad` added, or written if no index is named twice, at `index`."""
    out = cupy_functions().zeros(shape, grad.dtype if unique else accumulation_dtype(grad.dtype))
    walk = along(contiguous(shape), index, dim, grad)
    done = write(out, walk, grad) if unique else add(out, walk, grad)
    return out.astype(grad.dtype, copy=False) if done else NotImplemented


def _scattered(put: Callable[..., bool], x: Array, index: Array, src: Any, dim: int, dtype: Any) -> Any:
    if hasattr(src, "shape") and (src.shape != index.shape or src.dtype != x.dtype):
        return NotImplemented
    walk = along(contiguous(x.shape), index, dim, src if hasattr(src, "shape") else None)
    out = gpu.cupy().array(x, dtype, order="C")
    return out.astype(x.dtype, copy=False) if put(out, walk, src) else NotImplemented


def scatter(x: Array, index: Array, src: Any, *, dim: int) -> Any:
    """Return a copy of `x` with `src`, an array or a number, written at `index` along a dimension."""
    return _scattered(write, x, index, src, dim, x.dtype)


def scatter_add(x: Array, index: Array, src: Any, *, dim: int) -> Any:
    """Return a copy of `x` with `src`, an array or a number, added at `index` along a dimension."""
    return _scattered(add, x, index, src, dim, accumulation_dtype(x.dtype))


# ---- indices of some dimensions ----


def index(x: Array, *indices: Array, dims: tuple[int, ...]) -> Any:
    """Return the elements of `x` that `indices` select along `dims`."""
    walk = selected(form_of(x), dims, indices, None, wrap=True)
    if walk is None:
        return index(gpu.cupy().ascontiguousarray(x), *indices, dims=dims)
    return read(x, walk, tuple([dim[0] for dim in walk.dims]))


def index_grad(grad: Array, *indices: Array, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """Return zeros of `shape` with `grad` added at the elements that `indices` select along `dims`."""
    walk = selected(contiguous(shape), dims, indices, grad, wrap=True)
    out = cupy_functions().zeros(shape, accumulation_dtype(grad.dtype))
    return out.astype(grad.dtype, copy=False) if walk and add(out, walk, grad) else NotImplemented


def index_put(x: Array, value: Any, *indices: Array, dims: tuple[int, ...], accumulate: bool) -> Any:
    """Return a copy of `x` with `value`, an array or a number, written or added at `indices` along `dims`."""
    walk = selected(contiguous(x.shape), dims, indices, None, wrap=True)
    if walk is None or (hasattr(value, "shape") and value.dtype != x.dtype):
        return NotImplemented
    xp = cupy_functions()
    if hasattr(value, "shape"):
        value = xp.broadcast_to(value, tuple([dim[0] for dim in walk.dims]))
        steps = steps_of(value)
        walk = walk._replace(dims=tuple([(*dim[:3], step) for dim, step in zip(walk.dims, steps, strict=True)]))
    out = xp.array(x, accumulation_dtype(x.dtype) if accumulate else x.dtype, order="C")
    done = add(out, walk, value) if accumulate else write(out, walk, value)
    return out.astype(x.dtype, copy=False) if done else NotImplemented


# ---- rows of a table ----


@planned
def embedding(weight: Array, index: Array, **_: Any) -> Any:
    """Return the rows of `weight` that `index` names."""
    walk = selected(form_of(weight), (0,), (index,), None, wrap=False)
    return read(weight, walk, (*index.shape, *weight.shape[1:]))


def _use_count(index: Array, rows: int) -> Array:
    """Return how often each row is named."""
    counts = cupy_functions().zeros(rows, np.int64)
    walk = selected(contiguous((rows,)), (0,), (index,), None, wrap=False)
    if walk is not None:
        add(counts, walk, 1)
    return counts


def embedding_grad(grad: Array, index: Array, *, rows: int, padding: int | None, by_frequency: bool) -> Any:
    """Return for each row of the table the sum of the gradients of its uses, each times its share."""
    if C_TYPES.get(grad.dtype) not in FLOATS:
        return NotImplemented
    shape = (rows, grad.shape[-1])
    walk = selected(contiguous(shape), (0,), (index,), grad, wrap=False)
    out = cupy_functions().zeros(shape, accumulation_dtype(grad.dtype))
    uses = _use_count(index, rows) if by_frequency else None
    if walk is None or not add(out, walk, grad, use_count=uses, skipped=-1 if padding is None else padding):
        return NotImplemented
    return out.astype(grad.dtype, copy=False)


def embedding_shares(index: Array, *, rows: int, padding: int | None, by_frequency: bool, dtype: Any) -> Any:
    """Return the share of each use in the gradient."""
    xp = cupy_functions()
    shares = (1 / xp.maximum(_use_count(index, rows), 1) if by_frequency else xp.ones(rows)).astype(dtype)
    if padding is not None:
        shares[padding : padding + 1] = 0
    return embedding(shares[:, None], index)


def shorten(weight: Array, index: Array, max_norm: float, norm_type: float) -> bool:
    """Shorten the rows in use that are longer than `max_norm`, in place; False without a kernel."""
    name = C_TYPES.get(weight.dtype)
    if name not in FLOATS:
        return False
    rows, columns = weight.shape
    used = cupy_functions().zeros(rows, np.uint8)
    walk = selected(contiguous((rows,)), (0,), (index,), None, wrap=False)
    if walk is not None and walk.elements and columns:
        write(used, walk, 1)
        block = min(128, -(-columns // 32) * 32)
        _shorten_rows[str(name)](
            min(rows, MAX_BLOCKS), block, weight.data.ptr, used.data.ptr, rows, columns, *steps_of(weight),
            float(max_norm), float(norm_type),
        )  # fmt: skip
    return True
