"""Random numbers that are tried until they fit: gamma, Poisson, binomial and von Mises variates of given parameters.

Attempt k of element i has the Philox block ``offset + k * n + i`` of a draw of n elements, four words, so that neither
the order in which elements are done nor the others' luck can change one. An attempt is refused with a probability below
0.35, so that 64 of them are enough for any number of draws. NumPy and CuPy run the same code; the host waits for the
device, and it cannot be captured. All is in float64: on two devices decisions and numbers are the same but where a
logarithm or exponential of theirs is not, in the last place.

References
----------
Marsaglia, Tsang: A simple method for generating gamma variables. TOMS 2000.
Hörmann: The transformed rejection method for generating Poisson random variables. Insurance 1993.
Hörmann: The generation of binomial random variates. JSCS 1993.
Best, Fisher: Efficient simulation of the von Mises distribution. Applied Statistics 1979.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.arrays import Array, astype
from lucid.base.device import device_of
from lucid.base.dtype import dtype_of
from lucid.base.limits import finfo
from lucid.base.random import draws as draw
from lucid.base.random.inverse_normal import inverse_normal, minus_log
from lucid.base.random.philox import philox4x32_10
from lucid.errors import CaptureError, DtypeError
from lucid.ops.base.operands import tensor_operand
from lucid.ops.creation.generators import drawn
from lucid.ops.elementwise.special import lgamma_above

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from lucid.base.random.generator import Generator
    from lucid.tensor import Tensor

ATTEMPTS = 64
# Elements worked on at a time: on the CPU what stays in a core's cache, on a device what bounds memory.
CPU_CHUNK, DEVICE_CHUNK = 8192, 1 << 20
# From this mean on counts are tried, below they are summed up to.
MANY = 10


def _centred(xp: ModuleType, seed: int, blocks: Array) -> tuple[Array, Array]:
    """Return two numbers in (-1/2, 1/2), never 0, of each of some blocks of the stream."""
    counter = xp.zeros((4, blocks.size), np.uint64)
    counter[0], counter[1] = blocks & np.uint64(0xFFFFFFFF), blocks >> np.uint64(32)
    words = philox4x32_10(xp, counter, seed).view(np.uint64).reshape(-1, 2) >> np.uint64(12)
    first, second = ((words[:, i].astype(np.float64) + (0.5 - 2.0**51)) * 2.0**-52 for i in (0, 1))
    return first, second


def _tried(
    xp: ModuleType, generator: Generator, parameters: tuple[Array, ...], attempt: Callable[..., tuple[Array, Array]]
) -> Array:
    """Return for each element the first value that fits.

    ``attempt(xp, first, second, *parameters)`` gives values, and which of them fit, for two numbers in (-1/2, 1/2).
    """
    flat = [xp.ravel(each) for each in parameters]
    count = flat[0].size
    seed, offset = generator.reserve(count * ATTEMPTS)
    if not isinstance(seed, int):
        raise CaptureError("draws that are tried until they fit cannot be captured in a CUDA graph: draw them before")
    values = xp.empty(count, np.float64)
    chunk = CPU_CHUNK if xp is np else DEVICE_CHUNK
    with np.errstate(all="ignore"):
        for start in range(0, count, chunk):
            remaining = xp.arange(start, min(start + chunk, count))
            for k in range(ATTEMPTS):
                blocks = remaining.astype(np.uint64) + np.uint64((offset + k * count) % 2**64)
                tried, fits = attempt(xp, *_centred(xp, seed, blocks), *(each[remaining] for each in flat))
                values[remaining] = tried
                remaining = remaining[~fits]
                if not remaining.size:
                    break
    return values.reshape(parameters[0].shape)


# ---- attempts ----


def _gamma(xp: ModuleType, first: Array, second: Array, alpha: Array) -> tuple[Array, Array]:
    """Marsaglia's and Tsang's: ``d * (1 + c * n)**3`` with n standard normal; of alpha below 1 that of alpha + 1."""
    d = xp.where(alpha < 1, alpha + 1, alpha) - 1 / 3
    n = inverse_normal(xp, first)
    root = 1 + n / xp.sqrt(9 * d)
    cube = root * root * root
    fits = cube > 0
    log = -minus_log(xp, xp.where(fits, cube, 1.0))
    chance = minus_log(xp, second + 0.5)
    # NaN has no attempt that fits, and is done
    return d * cube, (fits & (chance + 0.5 * n * n + d * (1 - cube + log) > 0)) | ~(alpha > 0) | xp.isinf(alpha)


def _summed(xp: ModuleType, u: Array, chance: Array, following: Callable[[Array, int], Array], few: Array) -> Array:
    """Return the first count with a sum of chances of at least u, for small means."""
    count, total = xp.zeros_like(u), chance.copy()
    for k in range(1000):
        more = few & (u > total) & (chance > 0)
        if not more.any():
            break
        count += more
        chance = following(chance, k)
        total = total + chance
    return count


def _hat(xp: ModuleType, first: Array, second: Array, a: Array, b: Array, scale: Array) -> tuple[Array, Array]:
    """Return Hörmann's transformed number, and the logarithm to compare with that of its chance."""
    away = 0.5 - xp.abs(first)
    height = (second + 0.5) * scale / (a / (away * away) + b)
    return (2 * a / away + b) * first, -minus_log(xp, xp.where(height > 0, height, 1.0))


def _poisson(xp: ModuleType, first: Array, second: Array, rate: Array) -> tuple[Array, Array]:
    few = ~(rate >= MANY)
    small = xp.where(few & (rate >= 0), rate, 0.0)
    summed = _summed(xp, first + 0.5, xp.exp(-small), lambda p, k: p * small / (k + 1), few)
    mu = xp.where(few | xp.isinf(rate), float(MANY), rate)
    b = 0.931 + 2.53 * xp.sqrt(mu)
    a = -0.059 + 0.02483 * b
    x, height = _hat(xp, first, second, a, b, 1.1239 + 1.1328 / (b - 3.4))
    k = xp.floor(x + mu + 0.43)
    fits = (k >= 0) & (height <= k * xp.log(mu) - mu - lgamma_above(xp, xp.maximum(k, 0) + 1))
    k = xp.where(few, xp.where(rate >= 0, summed, np.nan), xp.where(xp.isinf(rate), np.inf, k))
    return k, fits | few | xp.isinf(rate)


def _spread(xp: ModuleType, n: Array, k: Array) -> Array:
    """Return the logarithm of ``k! * (n - k)!``."""
    return lgamma_above(xp, k + 1) + lgamma_above(xp, n - k + 1)


def _binomial(xp: ModuleType, first: Array, second: Array, count: Array, chance: Array) -> tuple[Array, Array]:
    known = (count >= 0) & (chance >= 0) & (chance <= 1)
    n, high = xp.where(known, count, 0.0), chance > 0.5
    p = xp.where(known, xp.where(high, 1 - chance, chance), 0.0)
    few = n * p < MANY
    odds = p / (1 - p)
    summed = _summed(xp, first + 0.5, xp.exp(n * xp.log1p(-p)), lambda c, k: c * (n - k) / (k + 1) * odds, few)
    size, part = xp.where(few, 4.0 * MANY, n), xp.where(few, 0.5, p)
    spread = xp.sqrt(size * part * (1 - part))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * part
    x, height = _hat(xp, first, second, a, b, (2.83 + 5.1 / b) * spread)
    k, mode = xp.floor(x + size * part + 0.5), xp.floor((size + 1) * part)
    within = (k >= 0) & (k <= size)
    k = xp.where(within, k, 0.0)
    fits = within & (height <= _spread(xp, size, mode) - _spread(xp, size, k) + (k - mode) * xp.log(part / (1 - part)))
    k = xp.where(few, xp.minimum(summed, n), k)
    return xp.where(known, xp.where(high, n - k, k), np.nan), fits | few


def _von_mises(xp: ModuleType, first: Array, second: Array, kappa: Array) -> tuple[Array, Array]:
    tau = 1 + xp.sqrt(1 + 4 * kappa * kappa)
    rho = (tau - xp.sqrt(2 * tau)) / (2 * kappa)
    # where both nearly are 2 the difference has no digits left
    r = xp.where(kappa < 1e-4, 1 / kappa + kappa, (1 + rho * rho) / (2 * rho))
    z = xp.cos(2 * math.pi * first)
    f = xp.clip((1 + r * z) / (r + z), -1, 1)
    c = kappa * (r - f)
    u = second + 0.5
    fits = (c * (2 - c) - u > 0) | (xp.log(c / u) + 1 - c >= 0) | ~(kappa > 0) | xp.isinf(r)
    angle = xp.where(xp.isinf(r), 2 * math.pi * xp.abs(first), xp.arccos(f))
    return xp.where(kappa > 0, xp.copysign(angle, first), np.nan), fits


# ---- of tensors ----


def _of(name: str, attempt: Callable[..., Any], generator: Generator | None, *tensors: Tensor) -> Any:
    """Return draws for each element of tensors of one shape, in the dtype of the last."""
    arrays = [tensor_operand(each).array for each in tensors]
    wanted = dtype_of(arrays[-1])
    if not wanted.is_floating_point:
        raise DtypeError(f"{name}: expected parameters of a real floating-point dtype, got {wanted}")

    def make(stream: Generator, xp: ModuleType) -> Array:
        return astype(_tried(xp, stream, tuple(each.astype(np.float64) for each in arrays), attempt), wanted)

    return drawn(name, make, generator, device_of(arrays[-1]))


def standard_gamma(alpha: Tensor, generator: Generator | None = None, logs: bool = False) -> Tensor:
    """Return gamma variates of rate 1, above 0, for each alpha, or their logarithms, also of those that underflow."""
    array = tensor_operand(alpha).array
    wanted = dtype_of(array)

    def make(stream: Generator, xp: ModuleType) -> Array:
        shape = array.astype(np.float64)
        values = _tried(xp, stream, (shape,), _gamma)
        lift = draw.exponential(stream, array.shape, np.float64, xp=xp)
        with np.errstate(all="ignore"):
            lift = xp.where(shape < 1, lift / shape, 0.0)
            if logs:
                values = xp.maximum(xp.log(values) - lift, finfo(wanted).min)
            else:
                values = xp.maximum(values * xp.exp(-lift), finfo(wanted).tiny)
        return astype(xp.where(shape > 0, values, np.nan), wanted)

    return drawn("standard_gamma", make, generator, device_of(array))


def poisson(rate: Tensor, generator: Generator | None = None) -> Tensor:
    """Return Poisson counts for each rate, in its dtype."""
    return _of("poisson", _poisson, generator, rate)


def binomial(count: Tensor, chance: Tensor, generator: Generator | None = None) -> Tensor:
    """Return the number of successes in `count` trials with probability `chance`, in the dtype of the chances."""
    return _of("binomial", _binomial, generator, count, chance)


def von_mises(kappa: Tensor, generator: Generator | None = None) -> Tensor:
    """Return angles around 0 of the von Mises distribution for each concentration."""
    return _of("von_mises", _von_mises, generator, kappa)
