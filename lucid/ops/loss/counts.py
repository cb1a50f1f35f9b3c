"""Likelihoods of counts and of noisy numbers. Common rules of losses: `lucid.ops.loss`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.cuda.switches import looked_at
from lucid.errors import ShapeError
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import promote
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.creation.filling import full_like
from lucid.ops.elementwise.arithmetic import add, mul, sub
from lucid.ops.elementwise.comparison import gt, lt
from lucid.ops.elementwise.division import div
from lucid.ops.elementwise.exponential import exp, log
from lucid.ops.elementwise.power import square
from lucid.ops.elementwise.selection import where
from lucid.ops.loss.regression import LossSettingError, check_reduction, paired, reduced
from lucid.ops.shape.reshape import unsqueeze

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Return ``exp(input) - target * input``: minus the log-likelihood of counts, up to a part without `input`.

    Without `log_input` the input is the rate itself, ``input - target * log(input + eps)``, with a small `eps`. With
    `full` that part is added where the target t is above 1, as ``t * log(t) - t + log(2 * pi * t) / 2`` (Stirling).

    >>> import lucid
    >>> lucid.nn.functional.poisson_nll_loss(lucid.tensor([0.0, 1.0]), lucid.tensor([1.0, 2.0]), reduction="none")
    tensor([1.0000, 0.7183])
    """
    check_reduction("poisson_nll_loss", reduction)
    eps = as_number(eps, "eps")
    log_input, full = as_bool(log_input, "log_input"), as_bool(full, "full")
    x, t = paired("poisson_nll_loss", *[wide_in_autocast(x, cpu=True) for x in (input, target)])
    losses = sub(exp(x), mul(t, x)) if log_input else sub(x, mul(t, log(add(x, eps))))
    if full:
        # where it does not count, of what has no infinite slope
        large = where(gt(t, 1), t, 2.0)
        rest = add(sub(mul(large, log(large)), large), mul(log(mul(large, 2 * math.pi)), 0.5))
        losses = add(losses, where(gt(t, 1), rest, 0.0))
    return reduced(losses, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return ``(log(var) + (input - target)**2 / var) / 2``: minus the log-likelihood of normal numbers.

    `var`, the variance, is a number, or a tensor of the shape of the input, sizes of which may be 1, or the last
    left out. It
    counts as `eps` at least, which has no gradient of its own. With `full`, ``log(2 * pi) / 2`` is added. A negative
    variance raises a LossSettingError, on a GPU, which would have to wait, in debug mode only.

    >>> import lucid
    >>> F = lucid.nn.functional
    >>> F.gaussian_nll_loss(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 4.0]), lucid.tensor([1.0, 1.0]))
    tensor(1.)
    """
    name = "gaussian_nll_loss"
    check_reduction(name, reduction)
    eps, full = as_number(eps, "eps"), as_bool(full, "full")
    if not eps >= 0:
        raise LossSettingError(f"{name}: expected eps >= 0, got {eps}")
    x, t = paired(name, input, target)
    spread = _variance(name, x, var)
    # the bound is part of the value and not of the gradient
    known = spread.detach()
    bounded = where(lt(known, eps), add(sub(spread, known), eps), spread)
    losses = mul(add(log(bounded), div(square(sub(x, t)), bounded)), 0.5)
    return reduced(add(losses, 0.5 * math.log(2 * math.pi)) if full else losses, reduction)


def _variance(name: str, x: Any, var: Tensor | float) -> Any:
    """Return the variance as a tensor that broadcasts to the input."""
    if not isinstance(var, TensorBase):
        number = as_number(var, "var")
        if number < 0:
            raise LossSettingError(f"{name}: var has negative entry/entries: {number}")
        return full_like(x, number)
    spread, _ = promote(tensor_operand(var), x)
    shape, wanted = spread.array.shape, x.array.shape
    if shape == wanted[:-1] and wanted:
        spread = unsqueeze(spread, -1)
    elif len(shape) != len(wanted) or any(a not in {1, b} for a, b in zip(shape, wanted, strict=True)):
        raise ShapeError(
            f"{name}: var is of incorrect size: expected {list(wanted)}, sizes being 1, or the last left out, "
            f"got {list(shape)}"
        )
    if looked_at(spread.array) and bool((spread.array < 0).any()):
        raise LossSettingError(f"{name}: var has negative entry/entries")
    return spread
