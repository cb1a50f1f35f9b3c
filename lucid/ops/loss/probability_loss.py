"""Losses of probabilities: binary cross entropy and the Kullback-Leibler divergence.

What holds for all losses says `lucid.ops.loss`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch.elementwise import Elementwise
from lucid.cuda.switches import looked_at
from lucid.errors import ShapeError
from lucid.ops.base.blocks import in_blocks
from lucid.ops.base.declaration import fused
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import promote
from lucid.ops.base.scalars import as_bool
from lucid.ops.elementwise.division import div
from lucid.ops.loss.regression import (
    LossSettingError,
    ReductionError,
    check_reduction,
    floating,
    paired,
    reduced,
    truth,
)
from lucid.ops.reduction.sums import sum
from lucid.ops.shape.broadcasting import expand

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# The logarithms of binary_cross_entropy end here, and the divisor of its gradient there, as in PyTorch.
LOWEST_LOG = -100.0
LEAST_SPREAD = 1e-12


def _binary_into(xp: ModuleType, out: Array, x: Array, t: Array, other: Array) -> None:
    xp.log1p(xp.negative(x, out=out), out=out)
    xp.maximum(out, LOWEST_LOG, out=out)
    xp.log(x, out=other)
    xp.maximum(other, LOWEST_LOG, out=other)
    # -(t * log(x) + (1 - t) * log(1 - x))
    xp.subtract(out, other, out=other)
    xp.multiply(other, t, out=other)
    xp.subtract(other, out, out=out)


_binary_cross_entropy = fused("binary_cross_entropy", _binary_into, "loss.BinaryCrossEntropy", ("x", "t"))


@_binary_cross_entropy.vjp("x", cuda=Elementwise("loss", "BinaryCrossEntropyGradX", "TTT"))
def _binary_cross_entropy_x(m: Namespace, grad: Array, x: Array, t: Array) -> Any:
    spread = m.maximum(m.mul(m.sub(1.0, x), x), LEAST_SPREAD)
    return m.div(m.mul(grad, m.sub(x, t)), spread)


@_binary_cross_entropy.vjp("t", cuda=Elementwise("loss", "BinaryCrossEntropyGradT", "TT"))
def _binary_cross_entropy_t(m: Namespace, grad: Array, x: Array) -> Any:
    return m.mul(grad, m.sub(m.log1p(m.neg(x)), m.log(x)))


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return ``-(target * log(input) + (1 - target) * log(1 - input))``; the logarithms count as -100 at least.

    What is not between 0 and 1 raises a LossSettingError, on a GPU in debug mode only.

    >>> import lucid
    >>> lucid.nn.functional.binary_cross_entropy(lucid.tensor([0.5, 0.5]), lucid.tensor([0.0, 1.0]))
    tensor(0.6931)
    """
    check_reduction("binary_cross_entropy", reduction)
    x, t = _same_shape("binary_cross_entropy", input, target)
    check_probabilities(x.array, "input", "; for logits use binary_cross_entropy_with_logits")
    check_probabilities(t.array, "target", "")
    return reduced(_binary_cross_entropy(x, t), reduction, weight)


def check_probabilities(array: Array, which: str, advice: str) -> None:
    """Refuse numbers outside of 0 to 1; on a GPU, since that means waiting, in debug mode only."""
    if looked_at(array) and not (array.min() >= 0 and array.max() <= 1):
        raise LossSettingError(
            f"binary_cross_entropy: all elements of {which} should be between 0 and 1, got {array.min()} to "
            f"{array.max()}{advice}"
        )


def _same_shape(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return prediction and target in one dtype; a ShapeError if their shapes differ."""
    x, t = promote(floating(name, input), truth(name, target), at_least_float=True)
    if x.array.shape != t.array.shape:
        raise ShapeError(
            f"{name}: Target size ({list(t.array.shape)}) must be the same as input size ({list(x.array.shape)})"
        )
    return x, t


def _softplus_of_minus(xp: ModuleType, out: Array, x: Array, other: Array) -> None:
    """Write ``log(1 + exp(-x))`` to `out`."""
    xp.absolute(x, out=out)
    xp.negative(out, out=out)
    xp.exp(out, out=out)
    xp.log1p(out, out=out)
    xp.minimum(x, 0, out=other)
    xp.subtract(out, other, out=out)


def _logits_into(xp: ModuleType, out: Array, t: Array, x: Array, other: Array) -> None:
    # (1 - t) * x + log(1 + exp(-x))
    _softplus_of_minus(xp, out, x, other)
    xp.subtract(1, t, out=other)
    xp.multiply(other, x, out=other)
    xp.add(out, other, out=out)


def _weighed_logits_into(xp: ModuleType, out: Array, positive: Array, t: Array, x: Array, other: Array) -> None:
    # (1 - t) * x + (1 + (positive - 1) * t) * log(1 + exp(-x))
    _softplus_of_minus(xp, out, x, other)
    xp.subtract(positive, 1, out=other)
    xp.multiply(other, t, out=other)
    xp.add(other, 1, out=other)
    xp.multiply(out, other, out=out)
    xp.subtract(1, t, out=other)
    xp.multiply(other, x, out=other)
    xp.add(out, other, out=out)


@primitive
def _logits_cross_entropy(xp: ModuleType, x: Array, t: Array, positive: Array | None) -> Array:
    if positive is None:
        return in_blocks(xp, _logits_into, 1, t, x)
    return in_blocks(xp, _weighed_logits_into, 1, positive, t, x)


def _with_or_without(last: int, plain: Elementwise, weighed: Elementwise) -> Any:
    """Return the kernel of one of two functions: of all operands, or of those before the last if that is None."""

    def run(*operands: Any) -> Any:
        return plain(*operands[:last]) if operands[last] is None else weighed(*operands)

    return run


_logits_cross_entropy.cuda(
    _with_or_without(
        2, Elementwise("loss", "LogitsCrossEntropy", "TT"), Elementwise("loss", "WeighedCrossEntropy", "TTT")
    )
)
_LOGITS_GRAD_X = _with_or_without(
    3, Elementwise("loss", "LogitsCrossEntropyGradX", "TTT"), Elementwise("loss", "WeighedCrossEntropyGradX", "TTTT")
)
_LOGITS_GRAD_T = _with_or_without(
    2, Elementwise("loss", "LogitsCrossEntropyGradT", "TT"), Elementwise("loss", "WeighedCrossEntropyGradT", "TTT")
)


@_logits_cross_entropy.vjp("x", cuda=_LOGITS_GRAD_X)
def _logits_cross_entropy_x(m: Namespace, grad: Array, x: Array, t: Array, positive: Array | None) -> Any:
    chance = m.sigmoid(x)
    if positive is None:
        return m.mul(grad, m.sub(chance, t))
    hit = m.mul(positive, t)
    return m.mul(grad, m.sub(m.mul(m.sub(m.add(hit, 1.0), t), chance), hit))


@_logits_cross_entropy.vjp("t", cuda=_LOGITS_GRAD_T)
def _logits_cross_entropy_t(m: Namespace, grad: Array, x: Array, positive: Array | None) -> Any:
    if positive is None:
        return m.neg(m.mul(grad, x))
    return m.mul(grad, m.sub(m.logsigmoid(m.neg(x)), m.mul(positive, m.logsigmoid(x))))


@_logits_cross_entropy.vjp("positive", cuda=Elementwise("loss", "WeighedCrossEntropyGradPositive", "TTT"))
def _logits_cross_entropy_positive(m: Namespace, grad: Array, x: Array, t: Array) -> Any:
    return m.neg(m.mul(grad, m.mul(t, m.logsigmoid(x))))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the binary cross entropy of ``sigmoid(input)``, of any real numbers, without its overflow.

    `pos_weight` is the factor of the part with ``target``, so of positive examples; it broadcasts against `target`.

    >>> import lucid
    >>> F = lucid.nn.functional
    >>> F.binary_cross_entropy_with_logits(lucid.tensor([0.0, 2.0]), lucid.tensor([1.0, 1.0]), reduction="none")
    tensor([0.6931, 0.1269])
    """
    check_reduction("binary_cross_entropy_with_logits", reduction)
    x, t = _same_shape("binary_cross_entropy_with_logits", input, target)
    if pos_weight is not None:
        pos_weight = expand(promote(pos_weight, x)[0], x.array.shape)
    return reduced(_logits_cross_entropy(x, t, pos_weight), reduction, weight)


def _divergence_into(xp: ModuleType, out: Array, x: Array, t: Array, *, log_target: bool) -> None:
    if log_target:
        # exp(t) * (t - x)
        xp.subtract(t, x, out=out)
        xp.multiply(out, xp.exp(t), out=out)
        return
    # t * (log(t) - x), where 0 * log(0) is 0
    xp.log(xp.where(t == 0, t.dtype.type(1), t), out=out)
    xp.subtract(out, x, out=out)
    xp.multiply(out, t, out=out)


_DIVERGENCE = Elementwise("loss", "Divergence", "TT"), Elementwise("loss", "LogDivergence", "TT")
_DIVERGENCE_X = Elementwise("loss", "DivergenceGradX", "TT"), Elementwise("loss", "LogDivergenceGradX", "TT")
_DIVERGENCE_T = Elementwise("loss", "DivergenceGradT", "TTT"), Elementwise("loss", "LogDivergenceGradT", "TTT")


def _divergence_cuda(x: Array, t: Array, *, log_target: bool) -> Any:
    return _DIVERGENCE[log_target](x, t)


_divergence = fused("divergence", _divergence_into, _divergence_cuda, ("x", "t"))


def _divergence_x_cuda(grad: Array, t: Array, log_target: bool) -> Any:
    return _DIVERGENCE_X[log_target](grad, t)


def _divergence_t_cuda(grad: Array, x: Array, t: Array, log_target: bool) -> Any:
    return _DIVERGENCE_T[log_target](grad, x, t)


@_divergence.vjp("x", cuda=_divergence_x_cuda)
def _divergence_x(m: Namespace, grad: Array, t: Array, log_target: bool) -> Any:
    return m.neg(m.mul(grad, m.exp(t) if log_target else t))


@_divergence.vjp("t", cuda=_divergence_t_cuda)
def _divergence_t(m: Namespace, grad: Array, x: Array, t: Array, log_target: bool) -> Any:
    if log_target:
        return m.mul(grad, m.mul(m.exp(t), m.add(m.sub(t, x), 1.0)))
    return m.mul(grad, m.add(m.sub(m.log(t), x), 1.0))


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return the Kullback-Leibler divergence ``target * (log(target) - input)`` of log-probabilities `input`.

    With `log_target` the target holds logarithms too. The `reduction` ``"batchmean"`` divides the sum by the size of
    the first dimension, as the divergence is defined, where ``"mean"`` divides by the number of elements.

    >>> import lucid
    >>> even = lucid.tensor([[0.5, 0.5]])
    >>> lucid.nn.functional.kl_div(lucid.log(even), lucid.tensor([[1.0, 0.0]]), reduction="batchmean")
    tensor(0.6931)
    """
    if not among(reduction, {"none", "batchmean", "mean", "sum"}):
        raise ReductionError(
            f"kl_div: {reduction!r} is not a valid value for reduction: expected 'none', 'batchmean', 'mean' or 'sum'"
        )
    x, t = paired("kl_div", input, target)
    losses = _divergence(x, t, log_target=as_bool(log_target, "log_target"))
    if reduction == "batchmean":
        batch = tensor_operand(input).array.shape
        return div(sum(losses), batch[0] if batch else 1)
    return reduced(losses, reduction)
