"""Random numbers of distributions given by tensors. Common rules: `lucid.ops.creation`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.functions import seen_as_one
from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.arrays import Array, astype
from lucid.base.device import Device, device_of
from lucid.base.dtype import dtype_of
from lucid.base.memory import check_size
from lucid.base.random import draws as draw
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.dims import common_shape
from lucid.ops.base.one_device import check_one_device, on_one_device
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.scalars import as_bool, as_int, as_number
from lucid.ops.creation import rejection
from lucid.ops.creation.data import plain
from lucid.ops.creation.filling import shape_of
from lucid.ops.creation.generators import drawn
from lucid.ops.creation.random import ProbabilityError, real_dtype
from lucid.ops.elementwise.selection import clamp
from lucid.ops.shape.broadcasting import broadcast_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.dtype import dtype as Dtype
    from lucid.base.random.generator import Generator
    from lucid.tensor import Tensor


@seen_as_one
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Return 1 with the probability that `input` holds, or with probability `p`, and 0 otherwise.

    With `p` only the shape, dtype and device of `input` count. What is not between 0 and 1 raises a ProbabilityError;
    elements of `input` are looked at on the CPU only.

    >>> import lucid
    >>> lucid.bernoulli(lucid.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    x = tensor_operand(input)
    array, wanted = x.array, dtype_of(x.array)
    if p is not None:
        chance: float = as_number(p, "p")
        if not 0 <= chance <= 1:
            raise ProbabilityError(f"bernoulli: expects p to be in [0, 1], but got p={chance}")
        return drawn(
            "bernoulli",
            lambda g, xp: astype(draw.bernoulli(g, chance, array.shape, xp), wanted),
            generator,
            device_of(array),
        )
    if not wanted.is_floating_point:
        raise DtypeError(f"bernoulli: expected probabilities of a real floating-point dtype, got {wanted}")
    if type(array) is np.ndarray and array.size and not (array.min() >= 0 and array.max() <= 1):
        raise ProbabilityError(f"bernoulli: expected probabilities between 0 and 1, got {array.min()} to {array.max()}")
    fine = np.dtype(np.float64 if array.dtype == np.float64 else np.float32)

    def make(stream: Generator, xp: ModuleType) -> Array:
        return astype(draw.uniform(stream, array.shape, fine, xp=xp) < array.astype(fine, copy=False), wanted)

    return drawn("bernoulli", make, generator, device_of(array))


@seen_as_one
def normal(
    mean: float | Tensor = 0.0,
    std: float | Tensor = 1.0,
    size: int | Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers of normal distributions: ``mean + std * z`` with z standard normal.

    `mean` and `std` are numbers, of a `size`; or one or both are tensors, which broadcast, and the result has the dtype
    of the first. A ShapeError says that size is missing, or given beside tensors; a ProbabilityError that `std` is
    below zero, looked at on the CPU only.

    >>> import lucid
    >>> lucid.normal(0.0, 1.0, (2, 3)).shape, lucid.normal(lucid.zeros(4), 0.1).shape
    (lucid.Size([2, 3]), lucid.Size([4]))
    """
    mean, std = (x if isinstance(x, TensorBase) else as_number(x, "mean") for x in (mean, std))
    tensors = [x for x in (mean, std) if isinstance(x, TensorBase)]
    if bool(tensors) == (size is not None):
        raise ShapeError("normal: expected either tensors, whose shape is taken, or numbers and a size")
    if tensors:
        check_one_device("normal", *tensors)
        shape = common_shape(*[t.array.shape for t in tensors])
        dtype, where = dtype_of(tensors[0].array), device_of(tensors[0].array)
    else:
        where, shape = device, ()
    wanted = real_dtype("normal", dtype)
    if not tensors:
        shape = shape_of((size,), "normal", wanted)
    middle, width = plain(mean), plain(std)
    if not gpu.is_gpu_array(width) and not np.all(np.greater_equal(width, 0)):
        raise ProbabilityError(f"normal: expects std >= 0.0, but found std {std}")

    def make(stream: Generator, xp: ModuleType) -> Array:
        if not tensors:
            return draw.normal(stream, shape, wanted, middle, width, xp)
        return astype(draw.normal(stream, shape, wanted, xp=xp) * width + middle, wanted)

    return drawn("normal", make, generator, where, requires_grad=requires_grad)


def _largest(xp: ModuleType, keys: Array, count: int) -> Array:
    """Return the indices of the largest numbers of each row, the largest first."""
    if xp is not np or count > keys.shape[1] // 2:
        return xp.argsort(-keys, 1, kind="stable")[:, :count]
    # all of a long row need not be sorted
    places = np.argpartition(-keys, count - 1, 1)[:, :count]
    order = np.take_along_axis(keys, places, 1).argsort(1)[:, ::-1]
    return np.take_along_axis(places, order, 1)


def _reached(xp: ModuleType, sums: Array, drawn: Array) -> Array:
    """Return the first index of each row's sums above each of its numbers, by halving for all rows at once."""
    low = xp.zeros(drawn.shape, np.int64)
    high = xp.full(drawn.shape, sums.shape[1], np.int64)
    for _ in range(sums.shape[1].bit_length()):
        middle = (low + high) // 2
        below = (low < high) & (xp.take_along_axis(sums, xp.minimum(middle, sums.shape[1] - 1), 1) <= drawn)
        low, high = xp.where(below, middle + 1, low), xp.where(below, high, middle)
    return low


@primitive
def _poisson(xp: ModuleType, counts: Array, rate: Array) -> Array:
    return counts


@_poisson.vjp("rate")
def _poisson_vjp(m: Namespace, grad: Array) -> Any:
    return m.zeros_like(grad)


@seen_as_one
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return a count for each rate in `input`, of the Poisson distribution with that mean; its gradient is zero.

    Rates are 0 or more. A ProbabilityError says that one is not, on the CPU only: on CUDA its count is NaN.

    >>> import lucid
    >>> lucid.poisson(lucid.zeros(2))
    tensor([0., 0.])
    """
    x = tensor_operand(input)
    array = x.array
    if type(array) is np.ndarray and dtype_of(array).is_floating_point and not (array >= 0).all():
        raise ProbabilityError(f"poisson: invalid Poisson rate, expected rate to be non-negative, got {array.min()}")
    return _poisson(rejection.poisson(x, generator), x)


@seen_as_one
@on_one_device
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Return the number of successes in `count` trials with probability `prob` each; both are tensors that broadcast.

    They are of one floating-point dtype, or a DtypeError is raised. What is no number of trials or no probability
    counts as the nearest that is one, and NaN gives NaN. Nothing is recorded.

    >>> import lucid
    >>> lucid.binomial(lucid.tensor([3.0, 4.0]), lucid.tensor([0.0, 1.0]))
    tensor([0., 4.])
    """
    trials, chance = tensor_operand(count), tensor_operand(prob)
    kinds = dtype_of(trials.array), dtype_of(chance.array)
    if kinds[0] is not kinds[1] or not kinds[0].is_floating_point:
        raise DtypeError(
            f"binomial: expected count and prob of one floating-point dtype, got {kinds[0]} and {kinds[1]}"
        )
    trials, chance = clamp(trials.detach(), min=0), clamp(chance.detach(), 0, 1)
    trials, chance = broadcast_tensors(trials, chance)
    return rejection.binomial(trials, chance, generator)


@seen_as_one
@on_one_device
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Return `num_samples` indices of each row of `input`, drawn with probabilities proportional to it; int64.

    `input`, of shape (C,) or (N, C), holds weights of 0 or more. Elements that are 0 cannot be drawn, others again only
    with `replacement`; a ShapeError says that too few are left, and a ProbabilityError that a row has no weight, or one
    below zero, infinite or NaN. The host waits for that, as in PyTorch; weights are not looked at in a capture. Without
    replacement by Efraimidis and Spirakis (2006): the largest of weight / exponential variate.

    >>> import lucid
    >>> lucid.multinomial(lucid.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    replacement = as_bool(replacement, "replacement")
    x = tensor_operand(input)
    array = x.array
    if not dtype_of(array).is_floating_point:
        raise DtypeError(f"multinomial: expected weights of a real floating-point dtype, got {dtype_of(array)}")
    if array.ndim not in {1, 2} or not array.shape[-1]:
        raise ShapeError(f"multinomial: expected weights of shape (C,) or (N, C), got {list(array.shape)}")
    num_samples = as_int(num_samples, "num_samples")
    if num_samples < 1:
        raise ShapeError(f"multinomial: cannot sample n_sample <= 0 samples, got {num_samples}")
    possible = array.shape[-1]
    weights = array.astype(np.float64).reshape(-1, possible)
    if not gpu.is_capturing():
        weighted = np.isfinite(weights) & (weights > 0)
        if not (weighted | (weights == 0)).all():
            raise ProbabilityError("multinomial: probability tensor contains either `inf`, `nan` or element < 0")
        possible = int(weighted.sum(-1).min()) if len(weights) else possible
        if not possible:
            raise ProbabilityError("multinomial: invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement and num_samples > possible:
        raise ShapeError(
            f"multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement: {num_samples} "
            f"asked for, {possible} that can be drawn"
        )
    check_size("multinomial", (*array.shape[:-1], num_samples), 8)

    def make(stream: Generator, xp: ModuleType) -> Array:
        if not len(weights):
            return xp.empty((0, num_samples), np.int64)
        if replacement:
            sums = xp.cumsum(weights, 1)
            drawn = draw.uniform(stream, (len(weights), num_samples), np.float64, xp=xp) * sums[:, -1:]
            # rounding can draw the total itself; the last element that can be drawn is where it is reached
            indices = xp.minimum(_reached(xp, sums, drawn), xp.argmax(sums, 1)[:, None])
        else:
            keys = weights / draw.exponential(stream, weights.shape, np.float64, xp=xp)
            indices = _largest(xp, keys, num_samples)
        return indices.astype(np.int64, copy=False).reshape(*array.shape[:-1], num_samples)

    return drawn("multinomial", make, generator, device_of(array))
