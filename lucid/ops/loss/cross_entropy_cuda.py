"""Cross entropy and the negative log-likelihood, and their derivatives, on a CUDA device."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.cuda.launch.indexing import REMEMBERED, launch_for
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, VECTOR_BYTES, Kernel, address_of
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.launch.reduction import block_of, rows_shape, sum_over
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from lucid.base.arrays import Array


_CLASS = np.dtype(np.int64)

_CROSS_ENTROPY = Kernel("cross_entropy", "lucid::cross_entropy", EACH_FLOAT)
_CROSS_ENTROPY_GRAD = Kernel("cross_entropy", "lucid::cross_entropy_grad", EACH_FLOAT)
_NLL = Kernel("cross_entropy", "lucid::nll_rows", EACH_FLOAT)
_NLL_GRAD = Kernel("cross_entropy", "lucid::nll_grad", EACH_FLOAT)
_TOTAL = Kernel("cross_entropy", "lucid::loss_total", EACH_FLOAT)


def _classes_known(x: Array, target: Array, weight: Array | None) -> bool:
    """Whether the kernels take these operands."""
    return (
        C_TYPES.get(x.dtype) in FLOATS
        and target.dtype == _CLASS
        and target.flags.c_contiguous
        and (weight is None or (weight.dtype == x.dtype and weight.flags.c_contiguous))
    )


def _rows_of(x: Array, *beside: Array) -> tuple[tuple[int, ...], int, Any]:
    """Return rows, classes and their steps; whether vectors fit; and the launch shape."""
    aligned = all(array.data.ptr % VECTOR_BYTES == 0 for array in (x, *beside))
    return _rows_in(x.shape, x.strides, x.dtype.itemsize, aligned)


@lru_cache(REMEMBERED)
def _rows_in(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, aligned: bool
) -> tuple[tuple[int, ...], int, Any]:
    width = VECTOR_BYTES // itemsize
    row_step, class_step = (stride // itemsize for stride in strides)
    rows, classes = shape
    vectors = aligned and class_step == 1 and classes % width == 0 and row_step % width == 0
    block, (grid, _) = rows_shape(rows, classes, width if vectors else 1)
    return (rows, classes, row_step, class_step), int(vectors), (grid, block)


def _reduced(losses: Array, weights: Array, dtype: np.dtype[Any], reduction: str) -> tuple[Array, Array]:
    """Return the losses of rows as they are reduced, in their dtype, and the sum of the weights."""
    rows, final = len(weights), reduction == "none"
    loss, total = empty((), dtype), empty((), weights.dtype)
    _TOTAL[C_TYPES[dtype]](
        1, block_of(-(-rows // 4)), losses.data.ptr, weights.data.ptr, loss.data.ptr, total.data.ptr, rows, final,
        reduction == "mean",
    )  # fmt: skip
    return losses if final else loss, total


@planned
def cross_entropy(
    x: Array, target: Array, weight: Array | None, *, ignore_index: int, label_smoothing: float, reduction: str
) -> Any:
    """Return the loss of logits (N, C) and classes (N), each row's peak and mass, and the sum of the weights."""
    if not _classes_known(x, target, weight) or not len(x):
        return NotImplemented
    work, final = accumulation_dtype(x.dtype), reduction == "none"
    sizes, vectors, (grid, block) = _rows_of(x)
    rows = sizes[0]
    losses, weights = empty(rows, x.dtype if final else work), empty(rows, work)
    peak, mass = empty(rows, work), empty(rows, work)
    _CROSS_ENTROPY[C_TYPES[x.dtype]](
        grid, block, x.data.ptr, target.data.ptr, address_of(weight), peak.data.ptr, mass.data.ptr, losses.data.ptr,
        weights.data.ptr, *sizes, vectors, final, ignore_index, label_smoothing,
    )  # fmt: skip
    loss, total = _reduced(losses, weights, x.dtype, reduction)
    return loss, peak, mass, total


@planned
def cross_entropy_grad(
    grad: Any, x: Array, target: Array, weight: Array | None, peak: Array, mass: Array, total: Array, *,
    ignore_index: int, label_smoothing: float, reduction: str,
) -> Any:  # fmt: skip
    """Return the gradient of :func:`cross_entropy`; `grad` has one element, or one for each row, or is a number."""
    if not _classes_known(x, target, weight) or (hasattr(grad, "dtype") and grad.dtype != x.dtype):
        return NotImplemented
    weights: Any = None
    if weight is not None and label_smoothing:
        weights = sum_over(weight, (0,), False, accumulation_dtype(x.dtype))
    out = empty(x.shape, x.dtype)
    if not out.size:
        return out
    sizes, vectors, (grid, block) = _rows_of(x, out)
    _CROSS_ENTROPY_GRAD[C_TYPES[x.dtype]](
        grid, block, *_upstream(grad), x.data.ptr, target.data.ptr, address_of(weight), peak.data.ptr, mass.data.ptr,
        total.data.ptr, address_of(weights), out.data.ptr, *sizes, vectors, reduction == "mean", ignore_index,
        label_smoothing,
    )  # fmt: skip
    return out


def _upstream(grad: Any) -> tuple[int, int, float]:
    """Return address and step of the gradient of each row, and a factor in place of it."""
    if not hasattr(grad, "dtype"):
        return 0, 0, float(grad)
    return grad.data.ptr, grad.strides[0] // grad.dtype.itemsize if grad.ndim else 0, 1.0


@planned
def nll_loss(x: Array, target: Array, weight: Array | None, *, ignore_index: int, reduction: str) -> Any:
    """Return the loss of log-probabilities (N, C) and classes (N), and the sum of the weights of the rows."""
    if not _classes_known(x, target, weight):
        return NotImplemented
    work, final = accumulation_dtype(x.dtype), reduction == "none"
    (rows, *sizes), _, _ = _rows_of(x)
    losses, weights = empty(rows, x.dtype if final else work), empty(rows, work)
    if rows:
        _NLL[C_TYPES[x.dtype]](
            *launch_for(rows), x.data.ptr, target.data.ptr, address_of(weight), losses.data.ptr, weights.data.ptr,
            rows, *sizes, final, ignore_index,
        )  # fmt: skip
    return _reduced(losses, weights, x.dtype, reduction)


@planned
def nll_loss_grad(
    grad: Array, target: Array, weight: Array | None, total: Array, *, classes: int, ignore_index: int, reduction: str
) -> Any:
    """Return the gradient of :func:`nll_loss`."""
    if not _classes_known(grad, target, weight):
        return NotImplemented
    out = empty((len(target), classes), grad.dtype)
    if out.size:
        address, step, _ = _upstream(grad)
        _NLL_GRAD[C_TYPES[grad.dtype]](
            *launch_for(out.size), address, step, target.data.ptr, address_of(weight), total.data.ptr,
            out.data.ptr, len(target), classes, reduction == "mean", ignore_index,
        )  # fmt: skip
    return out
