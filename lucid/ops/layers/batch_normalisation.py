"""Normalisation of each channel over a batch or over one instance, with running statistics.

What holds for all normalisation says `lucid.ops.layers.normalisation`. Running statistics, one number for each channel,
move in place by ``running = (1 - momentum) * running + momentum * batch``, the variance divided by ``n - 1``; of no
values they stay as they are. Means of single values raise a ShapeError.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import INFERENCE, version_of, wrap
from lucid.autograd.modes.reading import recomputing
from lucid.autograd.modes.state import no_grad
from lucid.autograd.recording.mutation import keep_saved
from lucid.autograd.recording.primitive import primitive
from lucid.autograd.recording.views import change_in_place, check_change
from lucid.base import gpu
from lucid.base.arrays import astype
from lucid.errors import ShapeError
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.rows import array_sum
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.layers.normalisation import channels_of, check_affine, real_operand
from lucid.ops.layers.norms import batch_cuda as kernels
from lucid.ops.layers.norms.cpu import rescaled
from lucid.ops.layers.norms.primitives import normalise

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


@primitive
def _rescale(
    xp: ModuleType,
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None,
    bias: Array | None,
    *,
    eps: float,
    broadcast: Ints,
) -> Array:
    """Return ``(x - mean) / sqrt(variance + eps) * weight + bias`` with given mean and variance."""
    work = accumulation_dtype(x.dtype)
    scale = 1 / xp.sqrt(variance.astype(work) + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    made = rescaled(x, scale, shift) if xp is np else None
    if made is not None:
        return made
    out = xp.multiply(x, scale.astype(work, copy=False).reshape(broadcast))
    xp.add(out, shift.astype(work, copy=False).reshape(broadcast), out=out)
    return astype(out, x.dtype)


_rescale.cuda(kernels.rescale)


def _rescale_factor(m: Namespace, variance: Array, weight: Array, eps: float, broadcast: Ints) -> Any:
    scale = m.pow(m.add(variance, eps), -0.5)
    return m.reshape(scale if weight is None else m.mul(scale, weight), shape=broadcast)


@_rescale.vjp("x", cuda=kernels.rescale_grad)
def _rescale_x(m: Namespace, grad: Array, variance: Array, weight: Array, eps: float, broadcast: Ints) -> Any:
    return m.mul(grad, _rescale_factor(m, variance, weight, eps, broadcast))


@_rescale.vjp("weight", cuda=kernels.rescale_weight_grad)
def _rescale_weight(
    m: Namespace, grad: Array, x: Array, mean: Array, variance: Array, weight_shape: Ints, eps: float, broadcast: Ints
) -> Any:
    centred = m.sub(x, m.reshape(mean, shape=broadcast))
    total = m.sum_to(m.mul(grad, centred), shape=broadcast)
    return m.reshape(m.mul(total, _rescale_factor(m, variance, None, eps, broadcast)), shape=weight_shape)


@_rescale.vjp("bias")
def _rescale_bias(m: Namespace, grad: Array, bias_shape: Ints, broadcast: Ints) -> Any:
    return m.reshape(m.sum_to(grad, shape=broadcast), shape=bias_shape)


class MeanOfBatches(NamedTuple):
    """The momentum that makes running statistics the mean over all batches; on CUDA the device computes it."""

    before: Tensor
    """How many there were before, an integer."""

    def number(self) -> float:
        """Return the momentum, after waiting for the device."""
        return 1.0 / (float(self.before) + 1)

    def on_device(self, index: int) -> Array | None:
        """Return the kernel's operand on a CUDA device; None if it is elsewhere, or no int64."""
        array = self.before.array
        fits = type(array) is not np.ndarray and gpu.device_index(array) == index and array.dtype == np.int64
        return array if fits else None


def _follow(running: Tensor, value: Array, momentum: float) -> None:
    """Move a running statistic towards `value` in place; no graph sees it but its version counter does."""
    old = running.array
    work = accumulation_dtype(old.dtype)
    moved = old.astype(work, copy=False) * (1 - momentum)
    moved += value.astype(work, copy=False) * momentum
    change_in_place(running, wrap(moved if work is old.dtype else astype(moved, old.dtype)))


def _mean_of_instances(statistic: Array, running: Tensor) -> Any:
    if statistic.size == running.array.size:
        return statistic.reshape(running.array.shape)
    by_instance = statistic.reshape(-1, *running.array.shape)
    return array_sum(by_instance, (0,)) / len(by_instance) if type(statistic) is np.ndarray else by_instance.mean(0)


def track(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    correction: float,
    momentum: float | MeanOfBatches,
) -> None:
    """Update running statistics with those of a batch, averaged over instances, the variance times `correction`.

    In a forward that checkpointing takes again they stay as they are.
    """
    if not mean.array.size or recomputing():
        return
    targets = [running for running in (running_mean, running_var) if running is not None]
    if targets and type(mean.array) is not np.ndarray:
        for target in targets:
            check_change(target, recording=False)
            keep_saved(version_of(target))
        centre, spread = [None if running is None else running.array for running in (running_mean, running_var)]
        index = gpu.device_index(mean.array)
        share = momentum.on_device(index) if isinstance(momentum, MeanOfBatches) else float(momentum)
        with gpu.use_device(index):
            moved = share is not None and kernels.follow(centre, spread, mean.array, variance.array, share, correction)
        if moved:
            for target in targets:
                if target.version is not INFERENCE:
                    target.version[0] += 1
            return
    if isinstance(momentum, MeanOfBatches):
        momentum = momentum.number()
    with no_grad():
        if running_mean is not None:
            _follow(running_mean, _mean_of_instances(mean.array, running_mean), momentum)
        if running_var is not None:
            _follow(running_var, _mean_of_instances(variance.array, running_var) * correction, momentum)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | MeanOfBatches = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Return `input` normalised by mean and variance of each channel (Ioffe and Szegedy, 2015).

    In `training` they are those of the batch, and `running_mean` and `running_var`, or None, follow them with the
    weight `momentum`; else these two are taken instead, and missing ones raise a ShapeError.

    >>> import lucid
    >>> lucid.nn.functional.batch_norm(lucid.tensor([[1.0, 0.0], [3.0, 4.0]]), None, None, training=True)
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """
    training = as_bool(training, "training")
    x = real_operand("batch_norm", input)
    share = momentum if isinstance(momentum, MeanOfBatches) else as_number(momentum, "momentum")
    eps = as_number(eps, "eps")
    channels, broadcast = channels_of("batch_norm", x, {"running_mean": running_mean, "running_var": running_var})
    check_affine("batch_norm", x, (channels,), "one for each channel", weight=weight, bias=bias)
    if not training:
        if running_mean is None or running_var is None:
            raise ShapeError("batch_norm: Expected running_mean and running_var to be defined when training=False")
        return _rescale(x, running_mean, running_var, weight, bias, eps=eps, broadcast=broadcast)
    shape = x.array.shape
    count = math.prod(shape) // max(channels, 1)
    if count == 1:
        raise ShapeError(
            f"batch_norm: Expected more than 1 value per channel when training, got input size {list(shape)}"
        )
    dim = (0, *range(2, len(shape)))
    out, mean, variance = normalise(x, weight, bias, dim=dim, eps=eps, center=True, broadcast=broadcast)
    if count:
        track(running_mean, running_var, mean, variance, count / (count - 1), share)
    return out


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Return `input` normalised by mean and variance of each sample and channel (Ulyanov, Vedaldi and Lempitsky, 2016).

    With `use_input_stats` they are those of `input`, and `running_mean` and `running_var`, or None, follow their means
    over the samples with the weight `momentum`; else these two are taken instead.

    >>> import lucid
    >>> lucid.nn.functional.instance_norm(lucid.tensor([[[1.0, 3.0], [0.0, 4.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    if not as_bool(use_input_stats, "use_input_stats"):
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    x = real_operand("instance_norm", input)
    momentum, eps = as_number(momentum, "momentum"), as_number(eps, "eps")
    channels, broadcast = channels_of("instance_norm", x, {"running_mean": running_mean, "running_var": running_var})
    check_affine("instance_norm", x, (channels,), "one for each channel", weight=weight, bias=bias)
    shape = x.array.shape
    count = math.prod(shape[2:])
    if count == 1:
        raise ShapeError(
            f"instance_norm: Expected more than 1 spatial element when training, got input size {list(shape)}"
        )
    dim = tuple(range(2, len(shape)))
    out, mean, variance = normalise(x, weight, bias, dim=dim, eps=eps, center=True, broadcast=broadcast)
    if count:
        track(running_mean, running_var, mean, variance, count / (count - 1), momentum)
    return out
