"""Cross entropy straight from logits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.backend.dtype import dtype_of
from lucid.cuda.launchers import cross_entropy as kernels
from lucid.errors import DtypeError, ShapeError
from lucid.ops.activation.softmax import log_softmax
from lucid.ops.base.elementwise import add, mul, neg, tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, cast_to
from lucid.ops.base.rows import row_blocks
from lucid.ops.base.scalars import as_int, as_number
from lucid.ops.loss.likelihood import as_rows, check_classes, check_weight, row_factors, weights_of
from lucid.ops.loss.regression import check_reduction, floating, reduced
from lucid.ops.reduction.sums import sum
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


class SmoothingError(ShapeError):
    """A share of the probability lies outside of 0 to 1."""


def _peak_and_mass(xp: Any, x: Any, work: Any) -> tuple[Any, Any]:
    """Return each row's largest element and the sum of the exponentials of the distances from it."""
    if xp is not np or not x.size:
        rows = x.astype(work, copy=False)
        peak = xp.max(rows, 1, None, True) if x.size else xp.zeros((len(x), 1), work)
        return peak[:, 0], xp.sum(xp.exp(rows - peak), 1)
    peaks, masses = np.empty(len(x), work), np.empty(len(x), work)
    blocks = list(row_blocks(*x.shape))
    spare: Any = np.empty(x[blocks[0]].shape, work)
    for block in blocks:
        part = spare[: block.stop - block.start]
        peak: Any = np.max(x[block], 1, None, True).astype(work, copy=False)
        np.subtract(x[block], peak, out=part, dtype=work)
        np.exp(part, out=part)
        peaks[block], masses[block] = peak[:, 0], np.add.reduce(part, 1)
    return peaks, masses


@primitive(outputs=("loss", "peak", "mass", "total"))
def _cross_entropy(
    xp: Any,
    x: Array,
    target: Array,
    weight: Array | None,
    *,
    ignore_index: int,
    label_smoothing: float,
    reduction: str,
) -> tuple[Array, ...]:
    """Return the loss of logits (N, C) and classes (N), and what its gradient needs of each row.

    A row's loss is ``-log(softmax(x)[target])``, so ``log(sum(exp(x))) - x[target]``; the smooth part is the mean of
    that over all classes, each with its weight.
    """
    work = accumulation_dtype(x.dtype)
    classes = x.shape[1]
    peak, mass = _peak_and_mass(xp, x, work)
    valid, _, weights = weights_of(xp, target, weight, ignore_index, work)
    total = xp.asarray(xp.sum(weights))
    known, hard, smooth, _ = row_factors(xp, target, weight, total, classes, ignore_index, label_smoothing, "sum")
    log_mass = xp.log(mass)
    rows = hard * xp.where(valid, log_mass + (peak - x[xp.arange(len(x)), known]), work.type(0))
    if smooth is not None:
        each = xp.ones(classes, work) if weight is None else weight.astype(work)
        rows = rows + smooth * xp.where(
            valid, (log_mass + peak) * xp.sum(each) - x.astype(work, copy=False) @ each, work.type(0)
        )
    loss = rows if reduction == "none" else xp.asarray(xp.sum(rows))
    if reduction == "mean":
        loss = xp.asarray(loss / total)
    return loss.astype(x.dtype, copy=False), peak, mass, total


_cross_entropy.cuda(kernels.cross_entropy)


@_cross_entropy.vjp("x")
def _cross_entropy_vjp(
    m: Any, grad: Any, x: Any, target: Any, weight: Any, peak: Any, mass: Any, total: Any,
    ignore_index: Any, label_smoothing: Any, reduction: Any,
) -> Any:  # fmt: skip
    return m.cross_entropy_grad(
        grad[0], x, target, weight, peak, mass, total,
        ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction,
    )  # fmt: skip


@primitive
def _cross_entropy_grad(
    xp: Any,
    grad: Array,
    x: Array,
    target: Array,
    weight: Array | None,
    peak: Array,
    mass: Array,
    total: Array,
    *,
    ignore_index: int,
    label_smoothing: float,
    reduction: str,
) -> Array:
    """Return the gradient of `cross_entropy`: in each row softmax less one at the target, times the row's factor."""
    work = mass.dtype
    known, hard, smooth, every = row_factors(
        xp, target, weight, total, x.shape[1], ignore_index, label_smoothing, reduction
    )
    hard, scale = hard * grad, every * grad / mass
    out = xp.empty(x.shape, x.dtype)
    blocks = list(row_blocks(*x.shape)) if xp is np else [slice(0, len(x))]
    spare: Any = None if work == x.dtype or not blocks else xp.empty(x[blocks[0]].shape, work)
    offset: Any = None if smooth is None else (smooth * grad)[:, None]
    each: Any = xp.ones(1, work) if weight is None else weight.astype(work)
    for block in blocks:
        part: Any = out[block] if spare is None else spare[: block.stop - block.start]
        xp.subtract(x[block], peak[block, None], out=part)
        xp.exp(part, out=part)
        xp.multiply(part, scale[block, None], out=part)
        part[xp.arange(len(part)), known[block]] -= hard[block]
        if offset is not None:
            xp.subtract(part, offset[block] * each, out=part)
        if spare is not None:
            out[block] = part
    return out


_cross_entropy_grad.cuda(kernels.cross_entropy_grad)


@_cross_entropy_grad.vjp("grad")
def _cross_entropy_grad_vjp(
    m: Any, upper: Any, x: Any, target: Any, weight: Any, peak: Any, mass: Any, total: Any, grad_shape: Any,
    ignore_index: Any, label_smoothing: Any, reduction: Any,
) -> Any:  # fmt: skip
    slope = m.cross_entropy_grad(
        1.0, x, target, weight, peak, mass, total,
        ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction,
    )  # fmt: skip
    rows = m.mul(upper, slope)
    return m.reshape(m.sum_to(rows, shape=(grad_shape[0], 1) if grad_shape else ()), shape=grad_shape)


@_cross_entropy_grad.vjp("x")
def _cross_entropy_grad_vjp_x(
    m: Any, upper: Any, grad: Any, x: Any, target: Any, weight: Any, total: Any,
    ignore_index: Any, label_smoothing: Any, reduction: Any,
) -> Any:  # fmt: skip
    factor = m.cross_entropy_factor(
        target, weight, total,
        classes=x.shape[1], ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction,
    )  # fmt: skip
    back = m.softmax_grad(upper, m.softmax(x, dim=1), dim=1)
    return m.mul(back, m.reshape(m.mul(grad, factor), shape=(x.shape[0], 1)))


@primitive
def _cross_entropy_factor(
    xp: Any,
    target: Array,
    weight: Array | None,
    total: Array,
    *,
    classes: int,
    ignore_index: int,
    label_smoothing: float,
    reduction: str,
) -> Array:
    """Return what the softmax of each row counts for in the gradient."""
    return row_factors(xp, target, weight, total, classes, ignore_index, label_smoothing, reduction)[3]


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return ``-weight[target] * log(softmax(input)[target])``, or the same averaged over target probabilities.

    Parameters
    ----------
    input : Tensor, shape (C,), (N, C) or (N, C, d1, ...)
        Logits: any real numbers.
    target : Tensor, shape (), (N,) or (N, d1, ...); or that of `input`
        Classes, integers from 0 to C - 1 or `ignore_index`. Of the shape of `input` and floating-point: probabilities
        of the classes, for which the loss is ``-sum(weight * target * log(softmax(input)))``.
    weight : Tensor, optional, shape (C,)
        Weight of each class; of the dtype of `input`.
    ignore_index : int
        Targets of this value count for nothing; not for probabilities.
    reduction : ``"none"``, ``"mean"`` or ``"sum"``
        The mean is the sum of the losses divided by the sum of the weights of their targets (for probabilities, by the
        number of losses), NaN if no target counts.
    label_smoothing : float, 0 to 1
        Which share of the target is spread evenly over all classes.

    Returns
    -------
    Tensor
        0-dim, or of the shape of a target of classes without reduction; of the dtype of `input`. Half types are
        computed in float32.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    DtypeError
        If `target` holds neither integers nor, in the shape of `input`, floating-point numbers; or `weight` has another
        dtype than `input`.
    IndexOutOfRangeError
        If a target on the CPU, or in debug mode on a GPU, is no class.
    ReductionError
        If `reduction` is something else.
    SmoothingError
        If `label_smoothing` is not between 0 and 1.

    Notes
    -----
    With classes this is one op, which keeps the logits and two numbers for each row. Its gradient is
    ``softmax(input)``, less 1 at the target, times weight and upstream gradient.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.cross_entropy(lucid.tensor([[0.0, 0.0], [0.0, 0.0]]), lucid.tensor([0, 1]))
    tensor(0.6931)
    """
    check_reduction("cross_entropy", reduction)
    ignore_index = as_int(ignore_index, "ignore_index")
    label_smoothing = as_number(label_smoothing, "label_smoothing")
    if not 0 <= label_smoothing <= 1:
        raise SmoothingError(f"cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    x, known = floating("cross_entropy", input), tensor_operand(target)
    if x.array.shape == known.array.shape and x.array.ndim:
        return _with_probabilities(x, known, weight, reduction, label_smoothing)
    rows, flat, losses = as_rows("cross_entropy", x, known, weight)
    check_classes(flat, rows.array.shape[1], ignore_index)
    loss = _cross_entropy(
        rows, flat, weight, ignore_index=ignore_index, label_smoothing=float(label_smoothing), reduction=reduction
    )[0]
    return reshape(loss, losses) if reduction == "none" and len(losses) != 1 else loss


def _with_probabilities(x: Any, target: Any, weight: Any, reduction: str, label_smoothing: float) -> Any:
    """Return the cross entropy with probabilities of the classes."""
    if not dtype_of(target.array).is_floating_point:
        raise DtypeError(
            "cross_entropy: Expected floating point type for target with class probabilities, got "
            f"{dtype_of(target.array)}; for targets of classes leave out the dimension of the classes"
        )
    dim = 0 if x.array.ndim == 1 else 1
    classes = x.array.shape[dim]
    check_weight("cross_entropy", x, weight, classes)
    if label_smoothing:
        target = add(mul(target, 1 - label_smoothing), label_smoothing / max(classes, 1))
    each = mul(log_softmax(x, dim), cast_to(target, dtype_of(x.array)))
    if weight is not None:
        each = mul(each, reshape(weight, (classes, *(1,) * (x.array.ndim - 1 - dim))))
    return reduced(neg(sum(each, dim)), reduction)
