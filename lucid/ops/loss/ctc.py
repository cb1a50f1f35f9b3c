"""Connectionist temporal classification: the likelihood of labels at unknown places in time.

What holds for all losses says `lucid.ops.loss`. Sums over paths are taken as logarithms, in float32 for half types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.arrays import Array, namespace
from lucid.base.capture import check_not_capturing
from lucid.base.dtype import dtype_of
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, Kernel
from lucid.cuda.launch.plans import empty
from lucid.cuda.launch.reduction import block_of
from lucid.cuda.switches import looked_at
from lucid.errors import DtypeError, IndexOutOfRangeError, NotDifferentiableError, ShapeError
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.scalars import as_bool, as_int
from lucid.ops.elementwise.division import div
from lucid.ops.loss.regression import LossSettingError, check_reduction, floating, reduced
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.tensor import Tensor

_ALPHA = Kernel("ctc", "lucid::ctc_alpha", EACH_FLOAT)
_BETA = Kernel("ctc", "lucid::ctc_beta", EACH_FLOAT)
_GRAD = Kernel("ctc", "lucid::ctc_grad", EACH_FLOAT)


def _states(xp: ModuleType, target: Array, offset: Array, length: Array, blank: int, longest: int) -> tuple[Any, Any]:
    """Return the label of each state (n, l), and whether a path may jump to it over the blank before."""
    place = xp.arange(longest)
    known = place < length[:, None]
    labels = xp.full((len(length), 2 * longest + 1), blank, np.int64)
    if longest and len(target):
        labels[:, 1::2] = xp.where(known, target[xp.where(known, offset[:, None] + place, 0)], blank)
    jumps = xp.zeros(labels.shape, bool)
    jumps[:, 2:] = labels[:, 2:] != labels[:, :-2]
    return labels, jumps


class Steps:
    """Steps of the recursion over time: from the logarithms of paths to each state, those one step further on.

    Parameters
    ----------
    xp : module
    jumps : Array
        Whether a path may come over the blank between, for each example and state.
    by : int
        1 where paths come from states before, -1 from states behind.
    work : dtype
    """

    def __init__(self, xp: ModuleType, jumps: Array, by: int, work: np.dtype[Any]) -> None:
        self.xp, self.barred = xp, ~jumps
        batch, states = jumps.shape
        # two places more, that no path comes from
        room = xp.full((batch, states + 2), -np.inf, work)
        self.last = room[:, 2:] if by > 0 else room[:, :-2]
        # as many states, and those one and two places away
        self.sources = xp.lib.stride_tricks.sliding_window_view(room, states, 1).swapaxes(0, 1)[::-by]
        self.terms = xp.empty(self.sources.shape, work)
        self.lowest = np.finfo(work).min

    def sums(self) -> Array:
        """Return the logarithm of the sum over the paths that come to each state from `last`."""
        xp, terms = self.xp, self.terms
        xp.copyto(terms, self.sources)
        xp.copyto(terms[2], -np.inf, where=self.barred)
        # where there is no path, minus infinity stays what it is
        peak = xp.maximum(terms.max(0), self.lowest)
        xp.subtract(terms, peak, out=terms)
        xp.exp(terms, out=terms)
        total = xp.log(terms.sum(0))
        total += peak
        return total


@primitive(outputs=("loss", "nll", "alpha"))
def _ctc_loss(
    xp: ModuleType,
    x: Array,
    target: Array,
    offset: Array,
    time: Array,
    length: Array,
    *,
    blank: int,
    longest: int,
    zero_infinity: bool,
) -> tuple[Array, Array, Array]:
    """Return the losses, minus the logarithms of all paths, and those of the paths from the beginning (n, t, l)."""
    steps, batch, _ = x.shape
    work: Any = accumulation_dtype(x.dtype)
    labels, jumps = _states(xp, target, offset, length, blank, longest)
    alpha = xp.full((batch, steps, labels.shape[1]), -np.inf, work)
    at = xp.arange(batch)
    chances = x[:, at[:, None], labels].astype(work, copy=False)
    paths = Steps(xp, jumps, 1, work)
    for t in range(steps):
        if t:
            xp.add(paths.sums(), chances[t], out=paths.last)
        else:
            paths.last[:, :2] = chances[0, :, :2]
        alpha[:, t] = paths.last
    end = xp.maximum(time - 1, 0)
    ends = [alpha[at, end, xp.maximum(2 * length - k, 0)] for k in (0, 1)] if steps else [xp.zeros(batch, work)] * 2
    total = xp.logaddexp(ends[0], xp.where(length > 0, ends[1], -np.inf))
    total = xp.where(time > 0, total, xp.where(length > 0, -np.inf, 0.0)).astype(work)
    loss = xp.where(xp.isneginf(total), work.type(0), -total) if zero_infinity else -total
    return loss.astype(x.dtype), -total, alpha


@_ctc_loss.cuda
def _ctc_loss_cuda(
    x: Array, target: Array, offset: Array, time: Array, length: Array, *, blank: int, longest: int, zero_infinity: bool
) -> Any:
    steps, batch, classes = x.shape
    states, work = 2 * longest + 1, accumulation_dtype(x.dtype)
    nll, loss, alpha = empty(batch, work), empty(batch, x.dtype), empty((batch, steps, states), work)
    if batch:
        x = gpu.cupy().ascontiguousarray(x)
        _ALPHA[C_TYPES[x.dtype]](
            batch, block_of(states), x.data.ptr, target.data.ptr, offset.data.ptr, time.data.ptr, length.data.ptr,
            alpha.data.ptr, nll.data.ptr, loss.data.ptr, steps, classes, states, blank, int(zero_infinity),
        )  # fmt: skip
    return loss, nll, alpha


@_ctc_loss.vjp("x")
def _ctc_loss_vjp(
    m: Namespace,
    grad: Array,
    x: Array,
    target: Array,
    offset: Array,
    time: Array,
    length: Array,
    nll: Array,
    alpha: Array,
    blank: int,
    zero_infinity: bool,
) -> Any:
    return m.ctc_loss_grad(
        grad[0], x, target, offset, time, length, nll, alpha, blank=blank, zero_infinity=zero_infinity
    )


@primitive
def _ctc_loss_grad(
    xp: ModuleType,
    grad: Array,
    x: Array,
    target: Array,
    offset: Array,
    time: Array,
    length: Array,
    nll: Array,
    alpha: Array,
    *,
    blank: int,
    zero_infinity: bool,
) -> Array:
    """Return ``exp(x)`` less the share of paths that are in a class at a time: the gradient before log_softmax."""
    steps, batch, _ = x.shape
    work: Any = alpha.dtype
    labels, jumps = _states(xp, target, offset, length, blank, alpha.shape[2] // 2)
    ahead = xp.zeros(jumps.shape, bool)
    ahead[:, :-2] = jumps[:, 2:]
    lost = xp.isposinf(nll)
    factor = xp.where(lost & zero_infinity, 0, grad.astype(work))
    state = xp.arange(labels.shape[1])
    ends = xp.where((state <= 2 * length[:, None]) & (state >= 2 * length[:, None] - 1), work.type(0), -np.inf)
    at = xp.arange(batch)[:, None]
    chances = x[:, at, labels].astype(work, copy=False)
    paths = Steps(xp, ahead, -1, work)
    beta = xp.empty(chances.shape, work)
    for t in range(steps - 1, -1, -1):
        beta[t] = paths.sums()
        xp.copyto(beta[t], ends, where=(time == t + 1)[:, None])
        xp.add(beta[t], chances[t], out=paths.last)
    shares = xp.exp(alpha.swapaxes(0, 1) + beta + xp.where(lost, 0, nll)[:, None])
    # in C order: what it is added to is a view
    slope = xp.exp(xp.array(x, work, order="C"))
    places = (xp.arange(steps * batch).reshape(steps, batch, 1) * x.shape[2] + labels).reshape(-1)
    xp.add.at(slope.reshape(-1), places, -shares.reshape(-1))
    slope = xp.where(lost[:, None], work.type(0 if zero_infinity else np.nan), slope * factor[:, None])
    steps_left = (xp.arange(steps)[:, None] < time)[..., None]
    return xp.where(steps_left, slope, work.type(0)).astype(x.dtype)


@_ctc_loss_grad.cuda
def _ctc_loss_grad_cuda(
    grad: Array, x: Array, target: Array, offset: Array, time: Array, length: Array, nll: Array, alpha: Array, *,
    blank: int, zero_infinity: bool,
) -> Any:  # fmt: skip
    steps, batch, classes = x.shape
    out, beta = empty(x.shape, x.dtype), empty(alpha.shape, alpha.dtype)
    if out.size:
        states = alpha.shape[2]
        grad, x = gpu.cupy().ascontiguousarray(grad), gpu.cupy().ascontiguousarray(x)
        example = target.data.ptr, offset.data.ptr, time.data.ptr, length.data.ptr
        name = C_TYPES[x.dtype]
        _BETA[name](batch, block_of(states), x.data.ptr, *example, beta.data.ptr, steps, classes, states, blank)
        _GRAD[name](
            steps * batch, block_of(classes), grad.data.ptr, x.data.ptr, *example, alpha.data.ptr, beta.data.ptr,
            nll.data.ptr, out.data.ptr, steps, batch, classes, states, blank, int(zero_infinity),
        )  # fmt: skip
    return out


@_ctc_loss_grad.vjp("grad")
def _ctc_loss_grad_grad(
    m: Namespace,
    upper: Array,
    grad: Array,
    x: Array,
    target: Array,
    offset: Array,
    time: Array,
    length: Array,
    nll: Array,
    alpha: Array,
    blank: int,
    zero_infinity: bool,
) -> Any:
    ones = m.exp(m.zeros_like(grad))
    slope = m.ctc_loss_grad(ones, x, target, offset, time, length, nll, alpha, blank=blank, zero_infinity=zero_infinity)
    return m.reshape(m.sum_to(m.mul(upper, slope), shape=(1, *grad.shape, 1)), shape=grad.shape)


@_ctc_loss_grad.vjp("x", "nll", "alpha")
def _ctc_loss_bend(m: Namespace, upper: Array) -> Any:
    raise NotDifferentiableError("ctc_loss: its gradient has no derivative with respect to log_probs; detach() it")


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return ``-log`` of the probability that a sequence reads as labels: without repeats, then without `blank`.

    `log_probs` (T, N, C) or (T, C) come from `log_softmax`; the gradient is that of what went in there, and has no
    derivative. `targets` is (N, S), or all labels in one dimension; lengths on a GPU are waited for. The mean divides
    by `target_lengths` first. With `zero_infinity` labels too long for `input_lengths` cost nothing, else infinity.

    >>> import lucid
    >>> even = lucid.full((3, 1, 2), 0.5).log()
    >>> lucid.nn.functional.ctc_loss(even, lucid.tensor([[1]]), (3,), (1,)).exp()
    tensor(1.3333)
    """
    check_reduction("ctc_loss", reduction)
    number, zero_infinity = as_int(blank, "blank"), as_bool(zero_infinity, "zero_infinity")
    x = floating("ctc_loss", wide_in_autocast(log_probs, cpu=True, cuda=False))
    labels = tensor_operand(targets)
    batched = x.array.ndim == 3
    if x.array.ndim not in {2, 3}:
        raise ShapeError(f"ctc_loss: expected log_probs of shape (T, N, C) or (T, C), got {list(x.array.shape)}")
    if not batched:
        x = reshape(x, (x.array.shape[0], 1, x.array.shape[1]))
    steps, batch, classes = x.array.shape
    if not 0 <= number < classes:
        raise LossSettingError(f"ctc_loss: blank must be in label range: expected 0 to {classes - 1}, got {number}")
    if dtype_of(labels.array).category != 1:
        raise DtypeError(f"ctc_loss: expected targets of integers (int64), got {dtype_of(labels.array)}")
    time = _lengths("input_lengths", input_lengths, batch)
    length = _lengths("target_lengths", target_lengths, batch)
    if batch and not (time.min() >= 0 and time.max() <= steps):
        raise ShapeError(f"ctc_loss: expected input_lengths from 0 to {steps}, the first size of log_probs, got {time}")
    flat, offset = _offsets(labels.array, length, batch)
    if looked_at(flat) and length.sum():
        _check_labels(on_host(flat), offset, length, classes)
    xp = namespace(x.array)
    arrays = [xp.asarray(array) for array in (offset, time, length)]
    longest = int(length.max(initial=0))
    loss = _ctc_loss(x, wrap(flat), *map(wrap, arrays), blank=number, longest=longest, zero_infinity=zero_infinity)[0]
    if reduction == "mean":
        loss = div(loss, wrap(arrays[2].clip(1).astype(x.array.dtype)))
    return reduced(loss if batched else reshape(loss, ()), reduction)


def on_host(array: Array) -> Any:
    """Return an array in NumPy; on CUDA it is waited for."""
    if not gpu.is_gpu_array(array):
        return array
    check_not_capturing("ctc_loss of lengths on a device")
    return array.get()


def _lengths(name: str, lengths: Any, batch: int) -> Any:
    """Return one length for each example, in NumPy."""
    array = on_host(lengths.array) if isinstance(lengths, TensorBase) else _listed(name, lengths)
    if array.dtype.kind not in "iu" and array.size:
        raise DtypeError(f"ctc_loss: expected {name} of integers, got {array.dtype}")
    if array.size != batch or array.ndim > 1:
        raise ShapeError(
            f"ctc_loss: {name} must be of size batch_size: expected {batch} of them, got {list(array.shape)}"
        )
    return array.reshape(-1).astype(np.int64)


def _listed(name: str, lengths: Any) -> Any:
    try:
        return np.array([as_int(length, name) for length in cast("Sequence[Any]", lengths)], np.int64)
    except TypeError as error:
        raise unfit(lengths, "a Tensor or a sequence of ints", name) from error


def _offsets(labels: Array, length: Any, batch: int) -> tuple[Any, Any]:
    """Return all labels in one dimension, as int64, and the beginning of each example's."""
    if batch and length.min() < 0:
        raise ShapeError(f"ctc_loss: expected target_lengths from 0 on, got {length}")
    xp = namespace(labels)
    flat = xp.ascontiguousarray(labels.astype(np.int64, copy=False)).reshape(-1)
    # labels in one dimension, also of a batch of one
    if labels.ndim == 1:
        if length.sum() != labels.size:
            raise ShapeError(f"ctc_loss: expected targets of {int(length.sum())} labels in all, got {labels.size}")
        return flat, np.cumsum(length) - length
    if labels.ndim != 2 or len(labels) != batch or (batch and length.max() > labels.shape[1]):
        raise ShapeError(
            f"ctc_loss: expected targets of shape ({batch}, S), S at least {int(length.max(initial=0))}, or of one "
            f"dimension, got {list(labels.shape)}"
        )
    return flat, np.arange(batch) * labels.shape[1]


def _check_labels(flat: Any, offset: Any, length: Any, classes: int) -> None:
    """Refuse labels that are no class."""
    for first, count in zip(offset, length, strict=True):
        own = flat[first : first + count]
        if own.size and (own.min() < 0 or own.max() >= classes):
            raise IndexOutOfRangeError(
                f"ctc_loss: expected targets from 0 to {classes - 1}, got labels from {own.min()} to {own.max()}"
            )
