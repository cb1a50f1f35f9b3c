"""Losses of predicted and true numbers, elementwise, and the reductions of all losses.

What holds for all losses says `lucid.ops.loss`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.base.dtype import dtype_of
from lucid.errors import CallError, DtypeError, warn
from lucid.ops.base.declaration import Formula, adjoint, fused
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import promote
from lucid.ops.base.scalars import as_number
from lucid.ops.elementwise.arithmetic import mul
from lucid.ops.elementwise.division import div
from lucid.ops.reduction.sums import mean, sum
from lucid.ops.shape.broadcasting import broadcast_tensors

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.autograd.recording.primitive import Primitive
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


class ReductionError(CallError):
    """A way of reducing losses is unknown."""


class LossSettingError(CallError):
    """A setting of a loss is out of its range."""


def check_reduction(name: str, reduction: str) -> None:
    """Refuse a reduction that does not exist."""
    if not among(reduction, {"none", "mean", "sum"}):
        raise ReductionError(
            f"{name}: {reduction!r} is not a valid value for reduction: expected 'none', 'mean' or 'sum'"
        )


def reduced(losses: Tensor, reduction: str, weight: Tensor | None = None) -> Tensor:
    """Return the losses, times their weights, themselves, their mean or their sum."""
    if weight is not None:
        losses = mul(losses, weight)
    return losses if reduction == "none" else mean(losses) if reduction == "mean" else sum(losses)


def floating(name: str, input: Tensor) -> Tensor:
    """Return the tensor of predictions; a DtypeError if it is not of a real floating-point type."""
    x = tensor_operand(input)
    if not dtype_of(x.array).is_floating_point:
        raise DtypeError(f"{name}: expected a real floating-point input, got {dtype_of(x.array)}; convert it first")
    return x


def truth(name: str, target: Tensor) -> Tensor:
    """Return the tensor of true numbers; a DtypeError if they are complex."""
    y = tensor_operand(target)
    if dtype_of(y.array).is_complex:
        raise DtypeError(f"{name}: expected a real target, got {dtype_of(y.array)}; convert it first")
    return y


def paired(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return prediction and target in one dtype and shape; warns if their sizes differ, as PyTorch does."""
    x, y = promote(floating(name, input), truth(name, target), at_least_float=True)
    if x.array.shape == y.array.shape:
        return x, y
    warn(
        f"{name}: using a target size ({list(y.array.shape)}) that is different to the input size "
        f"({list(x.array.shape)}): they are broadcast against each other, which is rarely what is wanted",
    )
    x, y = broadcast_tensors(x, y)
    return x, y


_squared_difference = fused("squared_difference", Formula(lambda m, a, b: m.square(a - b)), saved_as={"b": "target"})


def _to_both(m: Namespace, back: Array, needs: tuple[bool, bool]) -> tuple[Any, Any]:
    """Return the gradients of both operands of a difference, given that of the first."""
    return back if needs[0] else None, m.neg(back) if needs[1] else None


@_squared_difference.vjp
def _squared_difference_vjp(m: Namespace, grad: Array, a: Array, b: Array, needs: tuple[bool, bool]) -> Any:
    return _to_both(m, m.squared_difference_grad(grad, a, b), needs)


_squared_difference_grad = fused("squared_difference_grad", lambda m, grad, a, b: (a - b) * grad * 2)
adjoint(_squared_difference_grad)


@_squared_difference_grad.vjp("a", "b")
def _squared_difference_bend(m: Namespace, upper: Array, grad: Array, needs: tuple[bool, bool]) -> Any:
    return _to_both(m, m.mul(m.mul(upper, grad), 2.0), needs)


def _smooth_into(xp: ModuleType, out: Array, a: Array, b: Array, small: Array, *, beta: float) -> None:
    """Write ``|a - b| - beta / 2``, below beta ``(a - b)**2 / (2 * beta)``, to `out`."""
    xp.subtract(a, b, out=out)
    xp.absolute(out, out=out)
    if beta:
        # with s the smaller of |d| and beta, both branches are (|d| - s / 2) * (s / beta), and no part is larger
        xp.minimum(out, beta, out=small)
        xp.multiply(small, 0.5, out=small)
        xp.subtract(out, small, out=out)
        xp.divide(small, 0.5 * beta, out=small)
        xp.multiply(out, small, out=out)


def _smooth(m: Namespace, a: Any, b: Any, *, beta: Any) -> Any:
    size = abs(a - b)
    small = m.minimum(size, beta)
    return m.where(m.eq(beta, 0), size, (size - small / 2) * (small / beta))


# by hand on NumPy, and so its derivatives: what is done depends on whether beta is 0
_smooth_difference = fused("smooth_difference", Formula(_smooth, _smooth_into))


@_smooth_difference.vjp
def _smooth_difference_vjp(m: Namespace, grad: Array, a: Array, b: Array, beta: float, needs: tuple[bool, bool]) -> Any:
    return _to_both(m, m.smooth_difference_grad(grad, a, b, beta=beta), needs)


def _smooth_grad_into(xp: ModuleType, out: Array, grad: Array, a: Array, b: Array, *, beta: float) -> None:
    """Write ``grad * (a - b) / beta``, with the quotient held between -1 and 1, to `out`."""
    xp.subtract(a, b, out=out)
    if beta:
        xp.divide(out, beta, out=out)
        xp.clip(out, -1, 1, out=out)
    else:
        # 0 of NaN, as the derivative of abs
        xp.copyto(out, 0, where=xp.isnan(out))
        xp.sign(out, out=out)
    xp.multiply(out, grad, out=out)


def _smooth_grad(m: Namespace, grad: Any, a: Any, b: Any, *, beta: Any) -> Any:
    step = a - b
    return grad * m.where(m.eq(beta, 0), m.sgn(step), m.clamp(step / beta, -1, 1))


_smooth_difference_grad = fused("smooth_difference_grad", Formula(_smooth_grad, _smooth_grad_into))
adjoint(_smooth_difference_grad)


@_smooth_difference_grad.vjp("a", "b")
def _smooth_difference_grad_vjp(
    m: Namespace, upper: Array, grad: Array, a: Array, b: Array, beta: float, needs: tuple[bool, bool]
) -> Any:
    return _to_both(m, m.mul(m.mul(upper, grad), m.smooth_difference_bend(a, b, beta=beta)), needs)


def _smooth_bend(xp: ModuleType, a: Array, b: Array, *, beta: float) -> Array:
    """Return the second derivative, ``1 / beta`` below beta and 0 from there on."""
    return (xp.abs(a - b) < beta) * a.dtype.type(1 / beta if beta else 0)


def _bend(m: Namespace, a: Any, b: Any, *, beta: Any) -> Any:
    return m.where(abs(a - b) < beta, 1 / beta, 0)


fused("smooth_difference_bend", Formula(_bend, _smooth_bend))


def _losses(
    name: str, op: Primitive, input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, **settings: float
) -> Tensor:
    """Return the losses of an op of prediction and target, weighed and reduced; a mean is that of the weights."""
    check_reduction(name, reduction)
    losses = op(*paired(name, input, target), **settings)
    if weight is None or reduction != "mean":
        return reduced(losses, reduction, weight)
    losses, weight = broadcast_tensors(losses, weight)
    return div(sum(mul(losses, weight)), sum(weight))


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Return the squared error ``(input - target)**2``; a mean with a `weight` divides by the sum of the weights.

    >>> import lucid
    >>> lucid.nn.functional.mse_loss(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 4.0]))
    tensor(2.)
    """
    return _losses("mse_loss", _squared_difference, input, target, weight, reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Return the absolute error ``|input - target|``; a mean with a `weight` divides by the sum of the weights.

    >>> import lucid
    >>> lucid.nn.functional.l1_loss(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 4.0]))
    tensor(1.)
    """
    return _losses("l1_loss", _smooth_difference, input, target, weight, reduction, beta=0.0)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return ``|d| - beta / 2`` with ``d = input - target``, and ``d**2 / (2 * beta)`` for ``|d| < beta``.

    With a `beta` of 0 that is `l1_loss`; below 0 a LossSettingError is raised.

    >>> import lucid
    >>> lucid.nn.functional.smooth_l1_loss(lucid.tensor([0.5, 3.0]), lucid.tensor([0.0, 0.0]), reduction="none")
    tensor([0.1250, 2.5000])
    """
    beta = as_number(beta, "beta")
    if not beta >= 0:
        raise LossSettingError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    return _losses("smooth_l1_loss", _smooth_difference, input, target, None, reduction, beta=float(beta))


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Return ``delta * (|d| - delta / 2)`` with ``d = input - target``, and ``d**2 / 2`` for ``|d| < delta``.

    A `delta` that is not positive raises a LossSettingError.

    >>> import lucid
    >>> lucid.nn.functional.huber_loss(lucid.tensor([0.5, 3.0]), lucid.tensor([0.0, 0.0]), reduction="none")
    tensor([0.1250, 2.5000])
    """
    delta = as_number(delta, "delta")
    if not delta > 0:
        raise LossSettingError(f"huber_loss does not support non-positive values for delta, got {delta}")
    check_reduction("huber_loss", reduction)
    x, y = paired("huber_loss", input, target)
    if math.isinf(delta):
        losses = mul(_squared_difference(x, y), 0.5)
    else:
        losses = mul(_smooth_difference(x, y, beta=float(delta)), float(delta))
    return reduced(losses, reduction, weight)
