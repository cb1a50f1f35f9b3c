"""Losses that want a margin between numbers, vectors or classes. Common rules of losses: `lucid.ops.loss`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import unfit
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.base.device import device_of
from lucid.base.dtype import dtype_of
from lucid.cuda.switches import looked_at
from lucid.errors import DtypeError, IndexOutOfRangeError, ShapeError
from lucid.ops.activation.relu import relu
from lucid.ops.activation.sigmoid import logsigmoid, softplus
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import array_of, cast_to, tensor_dtype
from lucid.ops.base.scalars import as_bool, as_int, as_number
from lucid.ops.creation.filling import zeros
from lucid.ops.creation.ranges import arange
from lucid.ops.elementwise.arithmetic import add, mul, neg, rsub, sub
from lucid.ops.elementwise.comparison import eq, lt, minimum, ne
from lucid.ops.elementwise.power import square
from lucid.ops.elementwise.selection import clamp_min, where
from lucid.ops.index.gather import gather
from lucid.ops.index.index_select import index_select
from lucid.ops.index.scatter import scatter_add
from lucid.ops.linalg.distances import pairwise_distance
from lucid.ops.loss.likelihood import check_weight
from lucid.ops.loss.regression import LossSettingError, check_reduction, floating, paired, reduced, truth
from lucid.ops.reduction.cumulative import cumsum
from lucid.ops.reduction.norms import cosine_similarity
from lucid.ops.reduction.sums import mean, sum
from lucid.ops.shape.reshape import reshape, unsqueeze

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """Return `input` for a `target` of 1, and ``max(margin - input, 0)`` for one of -1; they broadcast.

    The input is a distance: that of what belongs together counts as it is, any other up to the `margin`.

    >>> import lucid
    >>> F = lucid.nn.functional
    >>> F.hinge_embedding_loss(lucid.tensor([0.5, 0.25]), lucid.tensor([1.0, -1.0]), reduction="none")
    tensor([0.5000, 0.7500])
    """
    check_reduction("hinge_embedding_loss", reduction)
    x = floating("hinge_embedding_loss", wide_in_autocast(input, cpu=True))
    apart = clamp_min(rsub(x, as_number(margin, "margin")), 0)
    # what is neither counts as both
    losses = add(where(ne(target, 1), apart, 0.0), where(ne(target, -1), x, 0.0))
    return reduced(losses, reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Return ``max(-target * (input1 - input2) + margin, 0)``; all three have as many dimensions, and broadcast.

    `target` is 1 where `input1` should be larger than `input2` by `margin`, and -1 the other way round.

    >>> import lucid
    >>> F = lucid.nn.functional
    >>> F.margin_ranking_loss(lucid.tensor([1.0]), lucid.tensor([3.0]), lucid.tensor([1.0]))
    tensor(2.)
    """
    check_reduction("margin_ranking_loss", reduction)
    margin = as_number(margin, "margin")
    input1, input2, target = [wide_in_autocast(x, cpu=True) for x in (input1, input2, target)]
    sizes = [array_of(x).shape for x in (input1, input2, target)]
    if len({len(size) for size in sizes}) > 1:
        raise ShapeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {list(sizes[0])}, input2: {list(sizes[1])}, target: {list(sizes[2])}"
        )
    return reduced(clamp_min(add(mul(neg(target), sub(input1, input2)), margin), 0), reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return ``log(1 + exp(-target * input))``, without overflow; the classes in `target` are 1 and -1.

    >>> import lucid
    >>> lucid.nn.functional.soft_margin_loss(lucid.tensor([0.0]), lucid.tensor([1.0]))
    tensor(0.6931)
    """
    check_reduction("soft_margin_loss", reduction)
    x, y = paired("soft_margin_loss", *[wide_in_autocast(x, cpu=True) for x in (input, target)])
    return reduced(softplus(mul(neg(y), x), 1.0, float("inf")), reduction)


def _one_shape(name: str, input: Tensor, target: Tensor) -> tuple[Any, Any]:
    """Return both as tensors; a ShapeError if their shapes differ."""
    x, y = floating(name, input), truth(name, target)
    if x.array.shape != y.array.shape:
        raise ShapeError(
            f"{name}: expected a target of the shape of the input, {list(x.array.shape)}, got {list(y.array.shape)}"
        )
    return x, y


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return the binary cross entropy of ``sigmoid(input)``, averaged over the classes, its last dimension.

    `target` is 1 for each class that an example has, else 0; `weight` is a factor for each class.

    >>> import lucid
    >>> F = lucid.nn.functional
    >>> F.multilabel_soft_margin_loss(lucid.tensor([[0.0, 0.0]]), lucid.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """
    check_reduction("multilabel_soft_margin_loss", reduction)
    x, y = floating("multilabel_soft_margin_loss", input), truth("multilabel_soft_margin_loss", target)
    losses = neg(add(mul(y, logsigmoid(x)), mul(rsub(y, 1), logsigmoid(neg(x)))))
    return reduced(mean(losses if weight is None else mul(losses, weight), -1), reduction)


def _as_examples(name: str, input: Tensor, target: Tensor) -> tuple[Any, Any, bool]:
    """Return scores as (N, C) with at least one class, the integer target with its N, and whether there was an N."""
    x, y = floating(name, input), tensor_operand(target)
    if dtype_of(y.array).category != 1:
        raise DtypeError(f"{name}: expected a target of integers (int64), got {dtype_of(y.array)}")
    shape = x.array.shape
    if len(shape) > 2 or (shape and not shape[-1]):
        raise ShapeError(f"{name}: expected an input of shape (C,) or (N, C) with C > 0, got {list(shape)}")
    batched = len(shape) == 2
    return (x if batched else reshape(x, (1, -1))), (y if batched else reshape(y, (1, -1))), batched


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``sum over c of max(margin - input[target] + input[c], 0)**p / C`` over the classes c but the target's.

    `input` has shape (N, C) or (C,), `target` (N,) or (); `p` is 1 or 2, or a LossSettingError is raised. An
    example counts as often as `weight` says for its target. Other than 1, `margin` is what the target is to be ahead.

    >>> import lucid
    >>> lucid.nn.functional.multi_margin_loss(lucid.tensor([[0.0, 0.5, 0.0]]), lucid.tensor([0]))
    tensor(0.8333)
    """
    name = "multi_margin_loss"
    check_reduction(name, reduction)
    power, margin = as_int(p, "p"), as_number(margin, "margin")
    if power not in {1, 2}:
        raise LossSettingError(f"{name}: only p == 1 and p == 2 supported, got {p}")
    input, weight = [wide_in_autocast(x, cpu=True) for x in (input, weight)]
    x, y, batched = _as_examples(name, input, target)
    rows, classes = x.array.shape
    if y.array.size != rows or tensor_operand(target).array.ndim > 1:
        wanted, got = [rows] if batched else [], list(array_of(target).shape)
        raise ShapeError(f"{name}: inconsistent target size, expected {wanted}, got {got}")
    check_weight(name, x, weight, classes)
    index = reshape(y, (rows, 1))
    _check_classes(name, index, 0, classes)
    losses = relu(add(sub(x, gather(x, 1, index)), margin))
    if weight is not None:
        factor = reshape(index_select(weight, 0, reshape(index, (rows,))), (rows, 1))
        losses = mul(losses, mul(factor, losses) if power == 2 else factor)
    elif power == 2:
        losses = square(losses)
    own = eq(arange(classes, device=device_of(x.array)), index)
    each = mean(where(own, 0.0, losses), 1)
    return reduced(reshape(each, array_of(target).shape), reduction)


def _check_classes(name: str, target: Any, least: int, classes: int) -> None:
    """Refuse targets that are no class; on a GPU, since that means waiting, in debug mode only."""
    array = target.array
    if looked_at(array) and (int(array.min()) < least or int(array.max()) >= classes):
        raise IndexOutOfRangeError(
            f"{name}: Target out of range: expected classes from {least} to {classes - 1}, got from {int(array.min())} "
            f"to {int(array.max())}"
        )


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return ``sum over t, c of max(1 - input[t] + input[c], 0) / C``, t the targets and c the classes that are none.

    `input` and `target` have the shape (N, C) or (C,); the targets of an example are those before the first -1.

    >>> import lucid
    >>> F = lucid.nn.functional
    >>> F.multilabel_margin_loss(lucid.tensor([0.1, 0.2, 0.4, 0.8]), lucid.tensor([3, 0, -1, 1]))
    tensor(0.8500)
    """
    name = "multilabel_margin_loss"
    check_reduction(name, reduction)
    input = wide_in_autocast(input, cpu=True)
    _one_shape(name, input, target)
    x, y, batched = _as_examples(name, input, target)
    rows, classes = x.array.shape
    _check_classes(name, y, -1, classes)
    # before the first -1
    counted = eq(cumsum(lt(y, 0), 1), 0)
    index = where(counted, y, 0)
    known = zeros(rows, classes, dtype=y.dtype, device=device_of(x.array))
    own = ne(scatter_add(known, 1, index, cast_to(counted, tensor_dtype(y))), 0)
    aim = unsqueeze(gather(x, 1, index), 2)
    losses = relu(add(sub(unsqueeze(x, 1), aim), 1))
    count = where(unsqueeze(own, 1), False, unsqueeze(counted, 2))
    each = mean(sum(where(count, losses, 0.0), 1), 1)
    return reduced(each if batched else reshape(each, ()), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Return ``1 - cos`` of the angle for a `target` of 1, and ``max(cos - margin, 0)`` for one of -1.

    `input1` and `input2` are vectors (D,) with a target of no dimension, or (N, D) with one of (N,). Up to `margin` a
    cosine costs nothing.

    >>> import lucid
    >>> F = lucid.nn.functional
    >>> F.cosine_embedding_loss(lucid.tensor([1.0, 0.0]), lucid.tensor([0.0, 2.0]), lucid.tensor(1))
    tensor(1.)
    """
    name = "cosine_embedding_loss"
    check_reduction(name, reduction)
    margin = as_number(margin, "margin")
    input1, input2 = [wide_in_autocast(x, cpu=True) for x in (input1, input2)]
    a, b, y = (array_of(x).shape for x in (input1, input2, target))
    if len(y) > 1 or len(a) != len(y) + 1 or len(b) != len(y) + 1:
        raise ShapeError(
            f"{name}: expected a target of shape () with inputs (D,), or (N,) with (N, D), got {list(y)} with "
            f"{list(a)} and {list(b)}"
        )
    cosine = cosine_similarity(input1, input2, -1)
    near = where(eq(target, 1), rsub(cosine, 1), 0.0)
    return reduced(add(near, where(eq(target, -1), clamp_min(sub(cosine, margin), 0), 0.0)), reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(d(anchor, positive) - d(anchor, negative) + margin, 0)``, d the `pairwise_distance` of order `p`.

    `anchor`, `positive` and `negative` have as many dimensions, and broadcast. With `swap` the distance from `positive`
    to `negative` counts where it is smaller than that from `anchor`. `eps` is as for `pairwise_distance`; a `margin`
    that is not positive raises a LossSettingError.

    >>> import lucid
    >>> a, b = lucid.tensor([[1.0, 0.0]]), lucid.tensor([[0.0, 0.0]])
    >>> lucid.nn.functional.triplet_margin_loss(a, a, b, margin=1.5)
    tensor(0.5000)
    """
    order, eps = as_number(p, "p"), as_number(eps, "eps")
    anchor, positive, negative = [wide_in_autocast(x, cpu=True) for x in (anchor, positive, negative)]

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, order, eps)

    return triplet("triplet_margin_loss", (anchor, positive, negative), distance, margin, swap, reduction)


def as_distance(distance_function: Any) -> Any:
    """Return a distance; an ArgumentError if it cannot be called."""
    if not callable(distance_function):
        raise unfit(distance_function, "a function of two tensors", "distance_function")
    return distance_function


def triplet(
    name: str,
    vectors: tuple[Tensor, Tensor, Tensor],
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Any:
    """Return the loss of anchor, positive and negative under a distance."""
    check_reduction(name, reduction)
    margin = as_number(margin, "margin")
    if not margin > 0:
        raise LossSettingError(f"{name}: expected margin to be greater than 0, got {margin}")
    anchor, positive, negative = vectors
    sizes = [array_of(x).shape for x in vectors]
    if len({len(size) for size in sizes}) > 1:
        raise ShapeError(
            f"{name}: The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            f"but got shapes {', '.join(str(list(size)) for size in sizes)}"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if as_bool(swap, "swap"):
        far = minimum(far, distance(positive, negative))
    return reduced(clamp_min(add(sub(near, far), margin), 0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return `triplet_margin_loss` under any distance: `distance_function` of two tensors.

    None stands for `pairwise_distance`; `anchor`, `positive`, `negative`, `margin` and `swap` are as there.

    >>> import lucid
    >>> a, b = lucid.tensor([[1.0, 0.0]]), lucid.tensor([[0.0, 0.0]])
    >>> F = lucid.nn.functional
    >>> F.triplet_margin_with_distance_loss(a, a, b, distance_function=lambda x, y: (x - y).abs().amax(-1), margin=1.5)
    tensor(0.5000)
    """
    distance = pairwise_distance if distance_function is None else as_distance(distance_function)
    return triplet("triplet_margin_with_distance_loss", (anchor, positive, negative), distance, margin, swap, reduction)
