"""Losses of predicted and true numbers, elementwise, and their reductions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.primitive import primitive
from lucid.backend.dtype import dtype_of
from lucid.cuda.launch.elementwise import Elementwise
from lucid.errors import DtypeError, LucidError
from lucid.ops.base.blocks import in_blocks
from lucid.ops.base.elementwise import mul, tensor_operand
from lucid.ops.base.promotion import promote
from lucid.ops.base.scalars import as_number
from lucid.ops.reduction.sums import mean, sum
from lucid.ops.shape.broadcasting import broadcast_tensors

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


class ReductionError(LucidError, RuntimeError, ValueError):
    """A way of reducing losses is unknown."""


class LossSettingError(LucidError, RuntimeError, ValueError):
    """A setting of a loss is out of its range."""


def check_reduction(name: str, reduction: str) -> None:
    """Refuse a reduction that does not exist.

    Raises
    ------
    ReductionError
        If it is none of the three.
    """
    if reduction not in {"none", "mean", "sum"}:
        raise ReductionError(
            f"{name}: {reduction!r} is not a valid value for reduction: expected 'none', 'mean' or 'sum'"
        )


def reduced(losses: Any, reduction: str) -> Any:
    """Return the losses themselves, their mean or their sum."""
    return losses if reduction == "none" else mean(losses) if reduction == "mean" else sum(losses)


def floating(name: str, input: Any) -> Any:
    """Return the tensor of predictions.

    Raises
    ------
    DtypeError
        If it is not of a real floating-point type.
    """
    x = tensor_operand(input)
    if not dtype_of(x.array).is_floating_point:
        raise DtypeError(f"{name}: expected a real floating-point input, got {dtype_of(x.array)}; convert it first")
    return x


def paired(name: str, input: Any, target: Any) -> tuple[Any, Any]:
    """Return prediction and target in one dtype and shape; warns where their sizes differ, as PyTorch does."""
    x, y = promote(floating(name, input), tensor_operand(target), at_least_float=True)
    if x.array.shape == y.array.shape:
        return x, y
    warnings.warn(
        f"{name}: using a target size ({list(y.array.shape)}) that is different to the input size "
        f"({list(x.array.shape)}): they are broadcast against each other, which is rarely what is wanted",
        stacklevel=3,
    )
    x, y = broadcast_tensors(x, y)
    return x, y


def _squared_into(xp: Any, out: Array, a: Array, b: Array) -> None:
    xp.subtract(a, b, out=out)
    xp.multiply(out, out, out=out)


@primitive
def _squared_difference(xp: Any, a: Array, b: Array) -> Array:
    return in_blocks(xp, _squared_into, 0, a, b)


_squared_difference.cuda(Elementwise("loss", "SquaredDifference", "TT"))


@_squared_difference.vjp
def _squared_difference_vjp(m: Any, grad: Any, a: Any, b: Any, needs: Any) -> Any:
    back = m.squared_difference_grad(grad, a, b)
    return back if needs[0] else None, m.neg(back) if needs[1] else None


def _squared_grad_into(xp: Any, out: Array, grad: Array, a: Array, b: Array) -> None:
    xp.subtract(a, b, out=out)
    xp.multiply(out, grad, out=out)
    xp.multiply(out, 2, out=out)


@primitive
def _squared_difference_grad(xp: Any, grad: Array, a: Array, b: Array) -> Array:
    """Return ``2 * grad * (a - b)``."""
    return in_blocks(xp, _squared_grad_into, 0, grad, a, b)


_squared_difference_grad.cuda(Elementwise("loss", "SquaredDifferenceGrad", "TTT"))


@_squared_difference_grad.vjp("grad")
def _squared_difference_grad_vjp(m: Any, upper: Any, a: Any, b: Any) -> Any:
    return m.squared_difference_grad(upper, a, b)


@_squared_difference_grad.vjp("a", "b")
def _squared_difference_grad_vjp_ab(m: Any, upper: Any, grad: Any, needs: Any) -> Any:
    back = m.mul(m.mul(upper, grad), 2.0)
    return back if needs[0] else None, m.neg(back) if needs[1] else None


def _smooth_into(xp: Any, out: Array, a: Array, b: Array, small: Array, *, beta: float) -> None:
    xp.subtract(a, b, out=out)
    xp.absolute(out, out=out)
    if beta:
        # with s the smaller of |d| and beta, both branches are (|d| - s / 2) * (s / beta), and no part is larger
        xp.minimum(out, beta, out=small)
        xp.multiply(small, 0.5, out=small)
        xp.subtract(out, small, out=out)
        xp.divide(small, 0.5 * beta, out=small)
        xp.multiply(out, small, out=out)


@primitive
def _smooth_difference(xp: Any, a: Array, b: Array, *, beta: float) -> Array:
    """Return ``|a - b| - beta / 2``, below beta ``(a - b)**2 / (2 * beta)``."""
    return in_blocks(xp, _smooth_into, 1, a, b, beta=beta)


_SMOOTH = Elementwise("loss", "SmoothDifference", "TTS")
_SMOOTH_GRAD = Elementwise("loss", "SmoothDifferenceGrad", "TTTS")
_SMOOTH_BEND = Elementwise("loss", "SmoothDifferenceBend", "TTS")


@_smooth_difference.cuda
def _smooth_difference_cuda(a: Any, b: Any, *, beta: float) -> Any:
    return _SMOOTH(a, b, beta)


@_smooth_difference.vjp
def _smooth_difference_vjp(m: Any, grad: Any, a: Any, b: Any, beta: Any, needs: Any) -> Any:
    back = m.smooth_difference_grad(grad, a, b, beta=beta)
    return back if needs[0] else None, m.neg(back) if needs[1] else None


def _smooth_grad_into(xp: Any, out: Array, grad: Array, a: Array, b: Array, *, beta: float) -> None:
    xp.subtract(a, b, out=out)
    if beta:
        xp.divide(out, beta, out=out)
        xp.clip(out, -1, 1, out=out)
    else:
        # 0 of NaN, as the derivative of abs
        xp.copyto(out, 0, where=xp.isnan(out))
        xp.sign(out, out=out)
    xp.multiply(out, grad, out=out)


@primitive
def _smooth_difference_grad(xp: Any, grad: Array, a: Array, b: Array, *, beta: float) -> Array:
    """Return ``grad * (a - b) / beta``, with the quotient held between -1 and 1."""
    return in_blocks(xp, _smooth_grad_into, 0, grad, a, b, beta=beta)


@_smooth_difference_grad.cuda
def _smooth_difference_grad_cuda(grad: Any, a: Any, b: Any, *, beta: float) -> Any:
    return _SMOOTH_GRAD(grad, a, b, beta)


@_smooth_difference_grad.vjp("grad")
def _smooth_difference_grad_vjp(m: Any, upper: Any, a: Any, b: Any, beta: Any) -> Any:
    return m.smooth_difference_grad(upper, a, b, beta=beta)


@_smooth_difference_grad.vjp("a", "b")
def _smooth_difference_grad_vjp_ab(m: Any, upper: Any, grad: Any, a: Any, b: Any, beta: Any, needs: Any) -> Any:
    back = m.mul(m.mul(upper, grad), m.smooth_difference_bend(a, b, beta=beta))
    return back if needs[0] else None, m.neg(back) if needs[1] else None


@primitive
def _smooth_difference_bend(xp: Any, a: Array, b: Array, *, beta: float) -> Array:
    """Return the second derivative, ``1 / beta`` below beta and 0 from there on."""
    return (xp.abs(a - b) < beta) * a.dtype.type(1 / beta if beta else 0)


@_smooth_difference_bend.cuda
def _smooth_difference_bend_cuda(a: Any, b: Any, *, beta: float) -> Any:
    return _SMOOTH_BEND(a, b, beta)


def _losses(name: str, op: Any, input: Any, target: Any, weight: Any, reduction: str, **settings: Any) -> Any:
    """Return the losses of an op of prediction and target, weighed and reduced."""
    check_reduction(name, reduction)
    losses = op(*paired(name, input, target), **settings)
    return reduced(losses if weight is None else mul(losses, weight), reduction)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Return the squared error ``(input - target)**2``, by default its mean.

    Parameters
    ----------
    input, target : Tensor
        Prediction and truth, of one shape.
    reduction : ``"none"``, ``"mean"`` or ``"sum"``
        What is done with the losses of the elements.
    weight : Tensor, optional
        Factor of each loss; broadcasts against them.

    Returns
    -------
    Tensor
        0-dim, or of the shape of `input` without reduction.

    Raises
    ------
    ReductionError
        If `reduction` is something else.
    DtypeError
        If `input` is not of a real floating-point type.
    ShapeError
        If the shapes cannot be broadcast.

    Warns
    -----
    UserWarning
        If the shapes differ and are broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.mse_loss(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 4.0]))
    tensor(2.)
    """
    return _losses("mse_loss", _squared_difference, input, target, weight, reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Return the absolute error ``|input - target|``, by default its mean.

    Parameters
    ----------
    input, target : Tensor
        Prediction and truth, of one shape.
    reduction : ``"none"``, ``"mean"`` or ``"sum"``
        What is done with the losses of the elements.
    weight : Tensor, optional
        Factor of each loss; broadcasts against them.

    Returns
    -------
    Tensor
        0-dim, or of the shape of `input` without reduction.

    Raises
    ------
    ReductionError
        If `reduction` is something else.
    DtypeError
        If `input` is not of a real floating-point type.
    ShapeError
        If the shapes cannot be broadcast.

    Warns
    -----
    UserWarning
        If the shapes differ and are broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.l1_loss(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 4.0]))
    tensor(1.)
    """
    return _losses("l1_loss", _smooth_difference, input, target, weight, reduction, beta=0.0)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return ``|d| - beta / 2`` with ``d = input - target``, and ``d**2 / (2 * beta)`` where ``|d| < beta``.

    Parameters
    ----------
    input, target : Tensor
        Prediction and truth, of one shape.
    reduction : ``"none"``, ``"mean"`` or ``"sum"``
        What is done with the losses of the elements.
    beta : float, 0 or more
        Where the square gives way to the absolute value; 0 gives :func:`l1_loss`.

    Returns
    -------
    Tensor
        0-dim, or of the shape of `input` without reduction.

    Raises
    ------
    ReductionError
        If `reduction` is something else.
    LossSettingError
        If `beta` is negative.
    DtypeError
        If `input` is not of a real floating-point type.
    ShapeError
        If the shapes cannot be broadcast.

    Warns
    -----
    UserWarning
        If the shapes differ and are broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.smooth_l1_loss(lucid.tensor([0.5, 3.0]), lucid.tensor([0.0, 0.0]), reduction="none")
    tensor([0.1250, 2.5000])
    """
    beta = as_number(beta, "beta")
    if beta < 0:
        raise LossSettingError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    return _losses("smooth_l1_loss", _smooth_difference, input, target, None, reduction, beta=float(beta))


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Return ``delta * (|d| - delta / 2)`` with ``d = input - target``, and ``d**2 / 2`` where ``|d| < delta``.

    Parameters
    ----------
    input, target : Tensor
        Prediction and truth, of one shape.
    reduction : ``"none"``, ``"mean"`` or ``"sum"``
        What is done with the losses of the elements.
    delta : float, positive
        Where the square gives way to the absolute value.
    weight : Tensor, optional
        Factor of each loss; broadcasts against them.

    Returns
    -------
    Tensor
        0-dim, or of the shape of `input` without reduction.

    Raises
    ------
    ReductionError
        If `reduction` is something else.
    LossSettingError
        If `delta` is not positive.
    DtypeError
        If `input` is not of a real floating-point type.
    ShapeError
        If the shapes cannot be broadcast.

    Warns
    -----
    UserWarning
        If the shapes differ and are broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.huber_loss(lucid.tensor([0.5, 3.0]), lucid.tensor([0.0, 0.0]), reduction="none")
    tensor([0.1250, 2.5000])
    """
    delta = as_number(delta, "delta")
    if not delta > 0:
        raise LossSettingError(f"huber_loss does not support non-positive values for delta, got {delta}")
    loss = _losses("huber_loss", _smooth_difference, input, target, weight, reduction, beta=float(delta))
    return mul(loss, float(delta))
