"""Cross entropy straight from logits. Common rules of losses: `lucid.ops.loss`.

With classes it is one op, which keeps the logits and two numbers for each row. Its gradient is ``softmax(input)``, less
1 at the target, times weight and upstream gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.primitive import primitive
from lucid.base.dtype import dtype_of
from lucid.errors import ArgumentError, DtypeError, ShapeError
from lucid.ops.activation.softmax import log_softmax
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, cast_to
from lucid.ops.base.rows import row_blocks, row_maxima, row_sums
from lucid.ops.base.scalars import as_int, as_number
from lucid.ops.elementwise.arithmetic import add, mul, neg
from lucid.ops.loss import cross_entropy_cuda as kernels
from lucid.ops.loss.likelihood import as_rows, check_classes, check_weight, of_shape, row_factors, weights_of
from lucid.ops.loss.regression import check_reduction, floating, reduced
from lucid.ops.reduction.sums import sum
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


class SmoothingError(ShapeError):
    """A share of the probability lies outside of 0 to 1."""


def _peak_and_mass(xp: ModuleType, x: Array, work: np.dtype[Any]) -> tuple[Any, Any]:
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
        peak = row_maxima(x[block]).astype(work, copy=False)
        np.subtract(x[block], peak, out=part, dtype=work)
        np.exp(part, out=part)
        peaks[block], masses[block] = peak[:, 0], row_sums(part)[:, 0]
    return peaks, masses


@primitive(outputs=("loss", "peak", "mass", "total"))
def _cross_entropy(
    xp: ModuleType,
    x: Array,
    target: Array,
    weight: Array | None,
    *,
    ignore_index: int,
    label_smoothing: float,
    reduction: str,
) -> tuple[Array, ...]:
    """Return the loss of logits (N, C) and classes (N), and the values of each row for its gradient.

    A row's loss is ``-log(softmax(x)[target])``, so ``log(sum(exp(x))) - x[target]``; the smooth part is the mean of
    that over all classes, each with its weight.
    """
    work = accumulation_dtype(x.dtype)
    classes = x.shape[1]
    peak, mass = _peak_and_mass(xp, x, work)
    valid, known, weights = weights_of(xp, target, weight, ignore_index, work)
    total = xp.asarray(xp.sum(weights))
    hard, smooth, _ = row_factors(xp, (valid, known, weights), weight, total, classes, label_smoothing, "sum")
    log_mass = xp.log(mass)
    rows = hard * xp.where(valid, log_mass + (peak - x[xp.arange(len(x)), known]), work.type(0))
    if smooth is not None:
        each = xp.ones(classes, work) if weight is None else weight.astype(work)
        below = xp.subtract(x, peak[:, None], dtype=work)
        rows = rows + smooth * xp.where(valid, log_mass * xp.sum(each) - below @ each, work.type(0))
    loss = rows if reduction == "none" else xp.asarray(xp.sum(rows))
    if reduction == "mean":
        loss = xp.asarray(loss / total)
    return loss.astype(x.dtype, copy=False), peak, mass, total


_cross_entropy.cuda(kernels.cross_entropy)


@_cross_entropy.vjp("x", planned=True)
def _cross_entropy_vjp(
    m: Namespace, grad: Array, x: Array, target: Array, weight: Array, peak: Array, mass: Array, total: Array,
    ignore_index: int, label_smoothing: float, reduction: str,
) -> Any:  # fmt: skip
    return m.cross_entropy_grad(
        grad[0], x, target, weight, peak, mass, total,
        ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction,
    )  # fmt: skip


@primitive
def _cross_entropy_grad(
    xp: ModuleType,
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
    rows = weights_of(xp, target, weight, ignore_index, work)
    hard, smooth, every = row_factors(xp, rows, weight, total, x.shape[1], label_smoothing, reduction)
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
        part[xp.arange(len(part)), rows[1][block]] -= hard[block]
        if offset is not None:
            xp.subtract(part, offset[block] * each, out=part)
        if spare is not None:
            out[block] = part
    return out


_cross_entropy_grad.cuda(kernels.cross_entropy_grad)


@_cross_entropy_grad.vjp("grad")
def _cross_entropy_grad_vjp(
    m: Namespace, upper: Array, x: Array, target: Array, weight: Array, peak: Array, mass: Array, total: Array,
    grad_shape: Ints, ignore_index: int, label_smoothing: float, reduction: str,
) -> Any:  # fmt: skip
    slope = m.cross_entropy_grad(
        1.0, x, target, weight, peak, mass, total,
        ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction,
    )  # fmt: skip
    rows = m.mul(upper, slope)
    return m.reshape(m.sum_to(rows, shape=(grad_shape[0], 1) if grad_shape else ()), shape=grad_shape)


@_cross_entropy_grad.vjp("x")
def _cross_entropy_grad_vjp_x(
    m: Namespace, upper: Array, grad: Array, x: Array, target: Array, weight: Array, total: Array,
    ignore_index: int, label_smoothing: float, reduction: str,
) -> Any:  # fmt: skip
    factor = m.cross_entropy_factor(
        target, weight, total,
        classes=x.shape[1], ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction,
    )  # fmt: skip
    back = m.softmax_grad(upper, m.softmax(x, dim=1), dim=1)
    return m.mul(back, m.reshape(m.mul(grad, factor), shape=(x.shape[0], 1)))


@primitive
def _cross_entropy_factor(
    xp: ModuleType,
    target: Array,
    weight: Array | None,
    total: Array,
    *,
    classes: int,
    ignore_index: int,
    label_smoothing: float,
    reduction: str,
) -> Array:
    """Return the factor of each row's softmax in the gradient."""
    rows = weights_of(xp, target, weight, ignore_index, total.dtype)
    return row_factors(xp, rows, weight, total, classes, label_smoothing, reduction)[2]


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return ``-weight[target] * log(softmax(input)[target])`` of logits, or averaged over target probabilities.

    A `target` of the shape of `input` holds the probabilities of the classes, and the mean divides by the number of
    losses; there is no `ignore_index` then. `label_smoothing`, 0 to 1, or a SmoothingError is raised, is the share of
    the target that is spread over all classes.

    >>> import lucid
    >>> lucid.nn.functional.cross_entropy(lucid.tensor([[0.0, 0.0], [0.0, 0.0]]), lucid.tensor([0, 1]))
    tensor(0.6931)
    """
    check_reduction("cross_entropy", reduction)
    ignore_index = as_int(ignore_index, "ignore_index")
    label_smoothing = as_number(label_smoothing, "label_smoothing")
    if not 0 <= label_smoothing <= 1:
        raise SmoothingError(f"cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    input, target, weight = [wide_in_autocast(x, cpu=True) for x in (input, target, weight)]
    x, known = floating("cross_entropy", input), tensor_operand(target)
    if x.array.shape == known.array.shape and x.array.ndim:
        if ignore_index >= 0:
            raise ArgumentError(
                f"cross_entropy: ignore_index={ignore_index} is for targets that are classes, and target has "
                "probabilities: set those that are not to count to zero"
            )
        return _with_probabilities(x, known, weight, reduction, label_smoothing)
    rows, flat, losses = as_rows("cross_entropy", x, known, weight)
    check_classes(flat, rows.array.shape[1], ignore_index)
    loss = _cross_entropy(
        rows, flat, weight, ignore_index=ignore_index, label_smoothing=float(label_smoothing), reduction=reduction
    )[0]
    return of_shape(loss, losses, reduction)


def _with_probabilities(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Any:
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
