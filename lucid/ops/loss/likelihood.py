"""The negative log-likelihood of classes, and checks and weights of all losses of classes.

What holds for all losses says `lucid.ops.loss`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.primitive import primitive
from lucid.base.dtype import dtype_of
from lucid.cuda.switches import looked_at
from lucid.errors import DtypeError, IndexOutOfRangeError, ShapeError
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, array_of
from lucid.ops.base.scalars import as_int
from lucid.ops.loss import cross_entropy_cuda as kernels
from lucid.ops.loss.regression import check_reduction, floating
from lucid.ops.shape.axes import movedim
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


def weights_of(
    xp: ModuleType, target: Array, weight: Array | None, ignore_index: int, work: np.dtype[Any]
) -> tuple[Any, Any, Any]:
    """Return whether each row counts, a class to read for every row, and the weight of each row."""
    valid = target != ignore_index
    known = xp.where(valid, target, 0)
    weights = valid.astype(work) if weight is None else xp.where(valid, weight.astype(work)[known], work.type(0))
    return valid, known, weights


def row_factors(
    xp: ModuleType,
    rows: tuple[Array, Array, Array],
    weight: Array | None,
    total: Array,
    classes: int,
    smoothing: float,
    reduction: str,
) -> tuple[Any, Any, Any]:
    """Return the factors of the loss, the smooth loss and the softmax of rows, as of `weights_of`, in the result."""
    work = total.dtype
    valid, _, hard = rows
    if reduction == "mean":
        # a row that does not count has no gradient, even where none counts
        hard = xp.where(valid, hard / total, work.type(0))
    if not smoothing:
        return hard, None, hard
    hard = hard * (1 - smoothing)
    smooth = valid.astype(work) * (smoothing / max(classes, 1))
    if reduction == "mean":
        smooth = xp.where(valid, smooth / total, work.type(0))
    return hard, smooth, hard + smooth * (classes if weight is None else weight.sum(dtype=work))


@primitive(outputs=("loss", "total"))
def _nll_loss(
    xp: ModuleType, x: Array, target: Array, weight: Array | None, *, ignore_index: int, reduction: str
) -> tuple[Array, Array]:
    """Return the loss of log-probabilities (N, C) and classes (N), and the sum of the weights of the rows."""
    work = accumulation_dtype(x.dtype)
    valid, known, weights = weights_of(xp, target, weight, ignore_index, work)
    total = xp.asarray(xp.sum(weights))
    rows = xp.where(valid, -x[xp.arange(len(x)), known] * weights, work.type(0))
    if reduction == "none":
        return rows.astype(x.dtype, copy=False), total
    loss = xp.asarray(xp.sum(rows) / total if reduction == "mean" else xp.sum(rows))
    return loss.astype(x.dtype, copy=False), total


_nll_loss.cuda(kernels.nll_loss)


@_nll_loss.vjp("x", planned=True)
def _nll_loss_vjp(
    m: Namespace,
    grad: Array,
    x_shape: Ints,
    target: Array,
    weight: Array,
    total: Array,
    ignore_index: int,
    reduction: str,
) -> Any:
    return m.nll_loss_grad(
        grad[0], target, weight, total, classes=x_shape[1], ignore_index=ignore_index, reduction=reduction
    )


@primitive
def _nll_loss_grad(
    xp: ModuleType,
    grad: Array,
    target: Array,
    weight: Array | None,
    total: Array,
    *,
    classes: int,
    ignore_index: int,
    reduction: str,
) -> Array:
    """Return the gradient of `nll_loss`: minus the weight of each row at the index of its class."""
    rows = weights_of(xp, target, weight, ignore_index, total.dtype)
    hard, _, _ = row_factors(xp, rows, weight, total, classes, 0.0, reduction)
    out = xp.zeros((len(target), classes), grad.dtype)
    out[xp.arange(len(target)), rows[1]] = -hard * grad
    return out


_nll_loss_grad.cuda(kernels.nll_loss_grad)


@_nll_loss_grad.vjp("grad")
def _nll_loss_grad_vjp(
    m: Namespace,
    upper: Array,
    target: Array,
    weight: Array,
    total: Array,
    grad_shape: Ints,
    ignore_index: int,
    reduction: str,
) -> Any:
    # the loss is linear, and so is its gradient: without the division by the total it is the loss of the upper one
    loss = m.nll_loss(
        upper, target, weight, ignore_index=ignore_index, reduction="none" if reduction == "none" else "sum"
    )[0]
    return m.div(loss, total) if reduction == "mean" else loss


def check_weight(name: str, input: Tensor, weight: Tensor | None, classes: int) -> None:
    """Refuse weights that are not one for each class, of the dtype of the input."""
    if weight is None:
        return
    if array_of(weight).shape != (classes,):
        raise ShapeError(
            f"{name}: weight tensor should be defined either for all {classes} classes or no classes but got "
            f"weight tensor of shape: {list(weight.array.shape)}"
        )
    if weight.array.dtype != input.array.dtype:
        raise DtypeError(
            f"{name}: expected weight of the dtype of the input, {dtype_of(input.array)}, got {dtype_of(weight.array)}"
        )


def as_rows(name: str, input: Tensor, target: Tensor, weight: Tensor | None) -> tuple[Any, Any, tuple[int, ...]]:
    """Return logits as (N, C), classes as (N), and the shape of the losses.

    Shapes that do not fit raise a ShapeError, a target that holds no integers a DtypeError.
    """
    shape, wanted = input.array.shape, target.array.shape
    if not shape:
        raise ShapeError(f"{name}: expected an input of shape (C,), (N, C) or (N, C, d1, ...), got a 0-dim tensor")
    classes = shape[0] if len(shape) == 1 else shape[1]
    losses = () if len(shape) == 1 else (shape[0], *shape[2:])
    if wanted != losses:
        raise ShapeError(
            f"{name}: Expected input batch_size and further dimensions to match target: an input of shape "
            f"{list(shape)} (N, C, ...) takes a target of shape {list(losses)}, got {list(wanted)}"
        )
    if not classes and target.array.size:
        raise ShapeError(f"{name}: expected logits of at least one class, got an input of shape {list(shape)}")
    if dtype_of(target.array).category != 1:
        raise DtypeError(f"{name}: expected a target of integers (int64), got {dtype_of(target.array)}")
    check_weight(name, input, weight, classes)
    if len(shape) > 2:
        input = movedim(input, 1, -1)
    rows = input if len(shape) == 2 else reshape(input, (-1 if input.array.size else 0, classes))
    return rows, target if target.array.ndim == 1 else reshape(target, -1), losses


def of_shape(loss: Tensor, losses: Ints, reduction: str) -> Tensor:
    """Return the losses of rows in the shape of the target, and a mean or a sum as it is."""
    return reshape(loss, losses) if reduction == "none" and len(losses) != 1 else loss


def check_classes(target: Tensor, classes: int, ignore_index: int) -> None:
    """Refuse targets that are no classes; on a GPU, since that means waiting, in debug mode only."""
    array = target.array
    if not looked_at(array) or (array.min() >= 0 and array.max() < classes):
        return
    wrong = array[(array != ignore_index) & ((array < 0) | (array >= classes))]
    if wrong.size:
        raise IndexOutOfRangeError(
            f"Target {int(wrong[0])} is out of bounds: expected 0 to {classes - 1}, or ignore_index={ignore_index}"
        )


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood ``-weight[target] * input[target]`` of log-probabilities.

    >>> import lucid
    >>> lucid.nn.functional.nll_loss(lucid.tensor([[-1.0, -2.0], [-3.0, -4.0]]), lucid.tensor([0, 1]))
    tensor(2.5000)
    """
    check_reduction("nll_loss", reduction)
    input, weight = wide_in_autocast(input, cpu=True), wide_in_autocast(weight, cpu=True)
    x, classes = floating("nll_loss", input), tensor_operand(target)
    rows, flat, losses = as_rows("nll_loss", x, classes, weight)
    ignore_index = as_int(ignore_index, "ignore_index")
    check_classes(flat, rows.array.shape[1], ignore_index)
    return of_shape(_nll_loss(rows, flat, weight, ignore_index=ignore_index, reduction=reduction)[0], losses, reduction)
