"""Losses of probabilities: binary cross entropy and the Kullback-Leibler divergence.

What holds for all losses says `lucid.ops.loss`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.autograd.recording.primitive import primitive
from lucid.cuda.switches import looked_at
from lucid.errors import ShapeError
from lucid.ops.base.declaration import Formula, Fused, fused, of_formula
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
    from collections.abc import Callable
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# The logarithms of binary_cross_entropy end here, and the divisor of its gradient there, as in PyTorch.
LOWEST_LOG = -100.0
LEAST_SPREAD = 1e-12


def _binary(m: Namespace, x: Any, t: Any) -> Any:
    # -(t * log(x) + (1 - t) * log(1 - x))
    one, other = m.maximum(m.log(x), LOWEST_LOG), m.maximum(m.log1p(-x), LOWEST_LOG)
    return (other - one) * t - other


def _binary_cross_entropy_x(m: Namespace, grad: Array, x: Array, t: Array) -> Any:
    spread = m.maximum(m.mul(m.sub(1.0, x), x), LEAST_SPREAD)
    return m.div(m.mul(grad, m.sub(x, t)), spread)


def _binary_cross_entropy_t(m: Namespace, grad: Array, x: Array) -> Any:
    return m.mul(grad, m.sub(m.log1p(m.neg(x)), m.log(x)))


_binary_cross_entropy = fused(
    "binary_cross_entropy", _binary, Fused(_binary_cross_entropy_x), Fused(_binary_cross_entropy_t)
)


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


def _logits(m: Namespace, x: Any, t: Any, positive: Any) -> Any:
    # log(1 + exp(-x))
    entropy: Any = m.log1p(m.exp(-abs(x))) - m.minimum(x, 0)
    if positive is not None:
        entropy *= (positive - 1) * t + 1
    return entropy + (1 - t) * x


_LOGITS, _WEIGHED_LOGITS = Formula(_logits, positive=None), Formula(_logits)


@primitive
def _logits_cross_entropy(xp: ModuleType, x: Array, t: Array, positive: Array | None) -> Array:
    if positive is None:
        return _LOGITS.apply(xp, x, t)
    return _WEIGHED_LOGITS.apply(xp, x, t, positive)


def _with_or_without(function: Callable[..., Any], name: str) -> Any:
    """Return the launcher of a formula, or of a rule, with a last operand that may be None."""
    without = of_formula(Formula(function, positive=None), f"Logits{name}")
    with_all = of_formula(function, f"Weighed{name}")

    def run(*operands: Any) -> Any:
        return without(*operands[:-1]) if operands[-1] is None else with_all(*operands)

    return run


def _logits_cross_entropy_x(m: Namespace, grad: Array, x: Array, t: Array, positive: Array | None) -> Any:
    chance = m.sigmoid(x)
    if positive is None:
        return m.mul(grad, m.sub(chance, t))
    hit = m.mul(positive, t)
    return m.mul(grad, m.sub(m.mul(m.sub(m.add(hit, 1.0), t), chance), hit))


def _logits_cross_entropy_t(m: Namespace, grad: Array, x: Array, positive: Array | None) -> Any:
    if positive is None:
        return m.neg(m.mul(grad, x))
    return m.mul(grad, m.sub(m.logsigmoid(m.neg(x)), m.mul(positive, m.logsigmoid(x))))


def _logits_cross_entropy_positive(m: Namespace, grad: Array, x: Array, t: Array) -> Any:
    return m.neg(m.mul(grad, m.mul(t, m.logsigmoid(x))))


_logits_cross_entropy.cuda(_with_or_without(_logits, "CrossEntropy"))
for _operand, _rule in (("x", _logits_cross_entropy_x), ("t", _logits_cross_entropy_t)):
    _logits_cross_entropy.vjp(_operand, cuda=_with_or_without(_rule, f"CrossEntropyGrad{_operand.upper()}"))(_rule)
_logits_cross_entropy.vjp(
    "positive", cuda=of_formula(_logits_cross_entropy_positive, "WeighedCrossEntropyGradPositive")
)(_logits_cross_entropy_positive)


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


def _true_or_logarithm(m: Namespace, x: Any, t: Any, *, log_target: bool) -> Any:
    if log_target:
        return (t - x) * m.exp(t)
    # 0 * log(0) is 0
    return (m.log(m.where(m.eq(t, 0), 1, t)) - x) * t


_DIVERGENCE = [Formula(_true_or_logarithm, log_target=kind) for kind in (False, True)]


@primitive
def _divergence(xp: ModuleType, x: Array, t: Array, *, log_target: bool) -> Array:
    return _DIVERGENCE[log_target].apply(xp, x, t)


def _of_either_kind(function: Callable[..., Any], name: str) -> Any:
    """Return the launcher of a formula, or of a rule, of true numbers or, by its last argument, their logarithms.

    An op gives this by name, a rule in its place.
    """
    kinds = {kind: of_formula(Formula(function, log_target=kind), ("", "Log")[kind] + name) for kind in (False, True)}

    def run(*operands: Any, **settings: Any) -> Any:
        *arrays, log_target = *operands, *settings.values()
        return kinds[log_target](*arrays)

    return run


_divergence.cuda(_of_either_kind(_true_or_logarithm, "Divergence"))


def _divergence_x(m: Namespace, grad: Array, t: Array, log_target: bool) -> Any:
    return m.neg(m.mul(grad, m.exp(t) if log_target else t))


def _divergence_t(m: Namespace, grad: Array, x: Array, t: Array, log_target: bool) -> Any:
    if log_target:
        return m.mul(grad, m.mul(m.exp(t), m.add(m.sub(t, x), 1.0)))
    return m.mul(grad, m.add(m.sub(m.log(t), x), 1.0))


Fused(_divergence_x, _of_either_kind(_divergence_x, "DivergenceGradX")).attach(_divergence, "x")
Fused(_divergence_t, _of_either_kind(_divergence_t, "DivergenceGradT")).attach(_divergence, "t")


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
