"""Normalisation of channels on a CUDA device (batch norm), and the sums by channel of all normalisations."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.base import gpu
from lucid.cuda.launch.indexing import MAX_BLOCKS, REMEMBERED, launch_for
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, VECTOR_BYTES, Kernel, address_of
from lucid.cuda.launch.plans import empty
from lucid.cuda.launch.reduction import LONGEST, MOST_CHUNKS, power_of_two
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from lucid.base.arrays import Array

# Blocks that keep the largest devices busy; also how many parts a long sum is cut into.
BLOCKS = 264
# Numbers of Moments in normalisation.cuh.
_MOMENTS = 4

# Element, its bytes, and the types that weights beside it have.
TYPES = (
    ("float", 4, ("float",)),
    ("double", 8, ("double",)),
    ("__half", 2, ("__half", "float")),
    ("__nv_bfloat16", 2, ("__nv_bfloat16", "float")),
)
PACKED = tuple((t, str(vec)) for t, size, _ in TYPES for vec in (1, VECTOR_BYTES // size))
WEIGHTED = tuple((t, w, str(vec)) for t, size, weights in TYPES for w in weights for vec in (1, VECTOR_BYTES // size))

_channel_moments = Kernel("batch_normalisation", "lucid::channel_moments", PACKED)
_merge_moments = Kernel("batch_normalisation", "lucid::merge_moments", EACH_FLOAT)
_channel_apply = Kernel("batch_normalisation", "lucid::channel_apply", WEIGHTED)
_channel_sums = Kernel("batch_normalisation", "lucid::channel_sums", PACKED)
_merge_sums = Kernel("batch_normalisation", "lucid::merge_sums", EACH_FLOAT)
_channel_backward = Kernel("batch_normalisation", "lucid::channel_backward", WEIGHTED)
_follow = Kernel("batch_normalisation", "lucid::follow", EACH_FLOAT)


@lru_cache(REMEMBERED)
def sizes_of(shape: tuple[int, ...], cuts: tuple[int, int]) -> tuple[int, int, int]:
    """Return how many elements each of the three runs of dimensions between two cuts has."""
    return math.prod(shape[: cuts[0]]), math.prod(shape[cuts[0] : cuts[1]]), math.prod(shape[cuts[1] :])


@lru_cache(REMEMBERED)
def _strides_of(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, cuts: tuple[int, int]
) -> tuple[int, int, int] | None:
    """Return the strides of the three runs of dimensions, in elements; None if one of them has several."""
    runs: list[int] = []
    for start, stop in ((0, cuts[0]), cuts, (cuts[1], len(shape))):
        step: int | None = None
        extent = 0
        for size, stride in zip(reversed(shape[start:stop]), reversed(strides[start:stop]), strict=True):
            if size == 1:
                continue
            if step is None:
                step = extent = stride
            elif stride != extent:
                return None
            extent *= size
        runs.append((step or 0) // itemsize)
    return runs[0], runs[1], runs[2]


class Cut(NamedTuple):
    """An array and the strides of its three runs of dimensions, in elements."""

    array: Array
    strides: tuple[int, int, int]


def cut(x: Array, cuts: tuple[int, int]) -> Cut:
    """Return the array cut so; a contiguous copy of it if a run is not evenly spaced."""
    strides = _strides_of(x.shape, x.strides, x.dtype.itemsize, cuts)
    return cut(gpu.cupy().ascontiguousarray(x), cuts) if strides is None else Cut(x, strides)


def vec_of(elements: int, *parts: Cut, weights: tuple[Array | None, ...] = ()) -> int:
    """Return how many elements of the last run go together: 16 bytes of them, or one."""
    if any(address_of(array) % VECTOR_BYTES for array in (*[part.array for part in parts], *weights)):
        return 1
    return _vec_of(elements, parts[0].array.dtype.itemsize, *[part.strides for part in parts])


@lru_cache(REMEMBERED)
def _vec_of(elements: int, itemsize: int, *strides: tuple[int, int, int]) -> int:
    vec = VECTOR_BYTES // itemsize
    fits = all(s == 1 and n % vec == 0 and c % vec == 0 for n, c, s in strides)
    return vec if fits and elements % vec == 0 else 1


def names_of(x: Array, *weights: Array | None) -> tuple[str, str] | None:
    """Return the C types of elements and weights; None without a kernel for them."""
    return _names_of(x.dtype, *[None if weight is None else weight.dtype for weight in weights])


@lru_cache(REMEMBERED)
def _names_of(dtype: Any, *weights: Any) -> tuple[str, str] | None:
    element = C_TYPES.get(dtype)
    names = {C_TYPES.get(weight) for weight in weights if weight is not None} or {element}
    typed = [(known, weight) for known, _, weighted in TYPES for weight in weighted]
    return next((each for each in typed if each[0] == element and names == {each[1]}), None)


def side_by_side(weight: Array | None) -> Array | None:
    """Return weights that a kernel reads as one row."""
    return weight if weight is None or weight.flags.c_contiguous else gpu.cupy().ascontiguousarray(weight)


@lru_cache(REMEMBERED)
def _channel_launch(sizes: tuple[int, int, int], strides: tuple[int, int, int], vec: int) -> tuple[Any, Any]:
    """Return grid and block: neighbouring threads on neighbouring elements."""
    samples, channels, pixels = sizes
    positions = samples * pixels // vec
    side_by_side = strides[1] == 1 and (pixels == 1 or strides[2] != 1)
    across = min(32, power_of_two(channels)) if side_by_side or channels > MAX_BLOCKS else 1
    along = min(256 // across, max(power_of_two(positions), 32 // across))
    blocks = -(-channels // across)
    parts = min(-(-2 * BLOCKS // blocks), -(-positions // (4 * along)))
    parts = max(1, min(max(parts, -(-positions // (LONGEST * along))), MOST_CHUNKS))
    return (blocks, parts), (across, along)


def moments(name: str, part: Cut, sizes: tuple[int, int, int], mean: Array, variance: Array) -> None:
    """Write mean and variance of each channel."""
    samples, channels, pixels = sizes
    vec = vec_of(pixels, part)
    grid, block = _channel_launch(sizes, part.strides, vec)
    parts = empty((grid[1], channels, _MOMENTS), mean.dtype)
    size = _MOMENTS * mean.dtype.itemsize
    _channel_moments[name, str(vec)](
        grid, block, part.array.data.ptr, parts.data.ptr, samples, channels, pixels // vec, *part.strides,
        shared=block[0] * block[1] * size,
    )  # fmt: skip
    across, along = min(32, power_of_two(channels)), min(8, power_of_two(grid[1]))
    _merge_moments[name](
        -(-channels // across), (across, along), parts.data.ptr, mean.data.ptr, variance.data.ptr, channels, grid[1],
        shared=across * along * size,
    )  # fmt: skip


def apply(
    names: tuple[str, str], part: Cut, sizes: tuple[int, int, int], mean: Array | None, variance: Array,
    weight: Array | None, bias: Array | None, out: Array, eps: float,
) -> None:  # fmt: skip
    """Write channels normalised by given mean and variance; without a mean it is 0."""
    samples, channels, pixels = sizes
    vec = vec_of(pixels, part)
    shape = (samples, channels, pixels // vec)
    pointers = [address_of(a) for a in (part.array, mean, variance, weight, bias, out)]
    _channel_apply[(*names, str(vec))](*launch_for(math.prod(shape)), *pointers, *shape, *part.strides, eps)


def channel_sums(
    name: str, grad: Cut, x: Cut, sizes: tuple[int, int, int], stats: tuple[Array, Array], to_weight: Array,
    to_bias: Array, statistics: int, group: int, eps: float,
) -> None:  # fmt: skip
    """Write sums by channel; statistic ``n * statistics + c // group`` is that of sample n and channel c."""
    samples, channels, pixels = sizes
    vec = vec_of(pixels, grad, x)
    grid, block = _channel_launch(sizes, x.strides, vec)
    parts = empty((grid[1], channels, 2), to_bias.dtype)
    item = parts.dtype.itemsize
    _channel_sums[name, str(vec)](
        grid, block, grad.array.data.ptr, x.array.data.ptr, stats[0].data.ptr, stats[1].data.ptr, parts.data.ptr,
        samples, channels, pixels // vec, *grad.strides, *x.strides, statistics, group, eps,
        shared=block[0] * block[1] * 2 * item,
    )  # fmt: skip
    # a part holds the sum for the bias first
    merge_sums(name, (parts.data.ptr + item, parts.data.ptr), to_weight, to_bias, channels, grid[1], 2)


def merge_sums(
    name: str, sums: tuple[int, int], to_weight: Array, to_bias: Array, channels: int, parts: int, step: int
) -> None:
    """Add up the parts of the sums into arrays with elements; `sums` are the addresses of their first parts."""
    across, along = min(32, power_of_two(channels)), min(8, power_of_two(parts))
    outs = [out.data.ptr if out.size else 0 for out in (to_weight, to_bias)]
    _merge_sums[name](
        (-(-channels // across), 2), (across, along), *sums, *outs, channels, parts, step,
        shared=across * along * to_bias.dtype.itemsize,
    )  # fmt: skip


def channels_grad(
    names: tuple[str, str], grads: Cut, values: Cut, whole: tuple[int, int, int], weight: Array | None,
    stats: tuple[Array, Array], outs: tuple[Array, Array, Array], eps: float, center: bool,
) -> None:  # fmt: skip
    """Write the wanted gradients, those with elements in their arrays, of arrays of three sizes `whole`."""
    to_x, to_weight, to_bias = outs
    samples, channels, pixels = whole
    if to_x.size:
        # that of x needs both sums
        to_weight = to_weight if to_weight.size else empty(channels, to_weight.dtype)
        to_bias = to_bias if to_bias.size else empty(channels, to_bias.dtype)
    channel_sums(names[0], grads, values, whole, stats, to_weight, to_bias, 0, 1, eps)
    if to_x.size:
        vec = vec_of(pixels, grads, values)
        arrays = (grads.array, values.array, *stats, weight, to_weight, to_bias, to_x)
        shape = (samples, channels, pixels // vec)
        _channel_backward[(*names, str(vec))](
            *launch_for(math.prod(shape)), *[address_of(a) for a in arrays], *shape, *grads.strides, *values.strides,
            eps, float(samples * pixels), int(center),
        )  # fmt: skip


def _forms_by_channel(x: Array, broadcast: tuple[int, ...], *stats: Array, weights: tuple[Array | None, ...]) -> Any:
    """Return the C types and the cuts of an array with statistics given for each channel; or None."""
    names, real = names_of(x, *weights), accumulation_dtype(x.dtype)
    if names is None or not x.size or any(s.dtype != real or not s.flags.c_contiguous for s in stats):
        return None
    channel = 1 if len(broadcast) > 1 else 0
    return names, (channel, channel + 1)


def rescale(
    x: Array, mean: Array | None, variance: Array, weight: Array | None, bias: Array | None, *, eps: float,
    broadcast: tuple[int, ...],
) -> Any:  # fmt: skip
    """Return the array normalised by given statistics: the kernel of `lucid.ops.layers.batch_normalisation`."""
    stats = (variance,) if mean is None else (mean, variance)
    known = _forms_by_channel(x, broadcast, *stats, weights=(weight, bias))
    if known is None:
        return NotImplemented
    names, cuts = known
    out = empty(x.shape, x.dtype)
    weight, bias = side_by_side(weight), side_by_side(bias)
    apply(names, cut(x, cuts), sizes_of(x.shape, cuts), mean, variance, weight, bias, out, eps)
    return out


def rescale_grad(grad: Array, variance: Array, weight: Array | None, eps: float, broadcast: tuple[int, ...]) -> Any:
    """Return the gradient of the array that was normalised by given statistics: the same map without mean and bias."""
    return rescale(grad, None, variance, weight, None, eps=eps, broadcast=broadcast)


def rescale_weight_grad(
    grad: Array, x: Array, mean: Array, variance: Array, weight_shape: tuple[int, ...], eps: float,
    broadcast: tuple[int, ...],
) -> Any:  # fmt: skip
    """Return the gradient of the weight of channels that were normalised by given statistics."""
    known = _forms_by_channel(x, broadcast, mean, variance, weights=())
    if known is None or grad.dtype != x.dtype:
        return NotImplemented
    names, cuts = known
    out, unused = empty(weight_shape, accumulation_dtype(x.dtype)), empty(0, accumulation_dtype(x.dtype))
    sizes, stats = sizes_of(x.shape, cuts), (mean, variance)
    channel_sums(names[0], cut(grad, cuts), cut(x, cuts), sizes, stats, out, unused, 0, 1, eps)
    return out


def follow(
    running_mean: Array | None, running_variance: Array | None, mean: Array, variance: Array,
    momentum: float | Array, correction: float,
) -> bool:  # fmt: skip
    """Move running statistics in place towards those of a batch, averaged over its instances, in one launch.

    Parameters
    ----------
    running_mean, running_variance : Array or None
        Of one dtype, contiguous.
    mean, variance : Array
        As `normalise` returns them: in the dtype that the running ones accumulate in.
    momentum : float or Array
        The weight of the batch; or how many batches there were before, an int64, so that they stay the mean of all.
    correction : float
        What makes the variance unbiased.

    Returns
    -------
    bool
        Whether it was done; there is no kernel for some dtypes and layouts.
    """
    running = [r for r in (running_mean, running_variance) if r is not None]
    names = {C_TYPES.get(r.dtype) for r in running}
    if len(names) != 1 or any(not r.flags.c_contiguous or accumulation_dtype(r.dtype) != mean.dtype for r in running):
        return False
    name = str(names.pop())
    channels = running[0].size
    if name not in FLOATS or not channels:
        return False
    number, batches = (momentum, None) if isinstance(momentum, float) else (0.0, momentum)
    pointers = [address_of(a) for a in (running_mean, running_variance, mean, variance, batches)]
    _follow[name](*launch_for(channels), *pointers, mean.size // channels, channels, number, correction)
    return True
