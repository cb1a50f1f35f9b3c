"""Random numbers written into a tensor."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import checked
from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.hooks.functions import seen
from lucid.autograd.modes.state import intercepted, thread
from lucid.base.arrays import Array, namespace, on
from lucid.base.device import device_of
from lucid.base.dtype import dtype_of
from lucid.base.random.draws import bernoulli, exponential, normal, randint, uniform
from lucid.errors import DtypeError, SettingError
from lucid.ops.base.one_device import check_one_device
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.scalars import as_int
from lucid.ops.creation.generators import stream_for
from lucid.tensor.inplace import check_target, copy_

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.random.generator import Generator
    from lucid.tensor import Tensor

# The integers from 0 to here are all exact in a floating-point dtype.
WHOLE = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53}


def filled(name: str, self: Tensor, generator: Generator | None, draw: Callable[..., Array]) -> Tensor:
    """Return the tensor after ``draw(generator, shape, dtype, xp=xp)`` has made its new values.

    A generator of another kind of device raises a DeviceError.
    """
    if intercepted and thread.state.function_hooks:
        return seen(name, functools.partial(filled, name, generator=generator, draw=draw), (self,), {})
    check_target(self)
    array = self.array
    chosen = stream_for(name, generator, device_of(array))
    with on(array):
        return copy_(self, wrap(thread.state.quiet(draw, chosen, array.shape, array.dtype, xp=namespace(array))))


def check_float(self: Tensor, name: str) -> None:
    """Raise `DtypeError` unless the tensor holds real floating-point numbers."""
    if not dtype_of(self.array).is_floating_point:
        raise DtypeError(f"{name}: expected a tensor of a floating-point dtype, got {dtype_of(self.array)}")


@checked
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Return this tensor after drawing its elements from the normal distribution.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation.
    generator : Generator, optional
        The device's default one if left out.

    Raises
    ------
    DtypeError
        If the dtype is not floating-point.
    ValueError
        If `std` is below zero.
    InplaceError
        If the tensor may not be changed.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 3).normal_(std=0.02).shape
    lucid.Size([2, 3])
    """
    check_float(self, "normal_")
    return filled("normal_", self, generator, functools.partial(normal, mean=mean, std=std))


@checked
def uniform_(self: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Return this tensor after drawing its elements evenly from `low` to below `high`.

    Parameters
    ----------
    low, high : float
        The bounds.
    generator : Generator, optional
        The device's default one if left out.

    Raises
    ------
    DtypeError
        If the dtype is not floating-point.
    ValueError
        If `low` is above `high`.
    InplaceError
        If the tensor may not be changed.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.zeros(100).uniform_(-1, 1)
    >>> bool((x >= -1).all()), bool((x < 1).all())
    (True, True)
    """
    check_float(self, "uniform_")
    return filled("uniform_", self, generator, functools.partial(uniform, low=low, high=high))


@checked
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Return this tensor after drawing its elements from the exponential distribution of rate `lambd`.

    Parameters
    ----------
    lambd : float
        The rate, above zero.
    generator : Generator, optional
        The device's default one if left out.

    Raises
    ------
    DtypeError
        If the dtype is not floating-point.
    ValueError
        If the rate is not above zero.
    InplaceError
        If the tensor may not be changed.

    Examples
    --------
    >>> import lucid
    >>> bool((lucid.zeros(100).exponential_() >= 0).all())
    True
    """
    check_float(self, "exponential_")
    return filled("exponential_", self, generator, functools.partial(exponential, rate=lambd))


@checked
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Return this tensor after drawing its elements from the log-normal distribution.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation, above zero, of the logarithm.
    generator : Generator, optional
        The device's default one if left out.

    Raises
    ------
    DtypeError
        If the dtype is not floating-point.
    ValueError
        If `std` is not above zero.
    InplaceError
        If the tensor may not be changed.

    Examples
    --------
    >>> import lucid
    >>> bool((lucid.zeros(100).log_normal_() > 0).all())
    True
    """
    check_float(self, "log_normal_")
    if not std > 0:
        raise SettingError(f"log_normal_: expected std > 0, got {std}")

    def draw(chosen: Generator, shape: tuple[int, ...], dtype: Any, *, xp: Any) -> Array:
        return xp.exp(normal(chosen, shape, accumulation_dtype(dtype), mean, std, xp))

    return filled("log_normal_", self, generator, draw)


@checked
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Return this tensor after drawing its elements from the Cauchy distribution.

    Parameters
    ----------
    median, sigma : float
        The middle, and half of the width at half of the height, above zero.
    generator : Generator, optional
        The device's default one if left out.

    Raises
    ------
    DtypeError
        If the dtype is not floating-point.
    ValueError
        If `sigma` is not above zero.
    InplaceError
        If the tensor may not be changed.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 3).cauchy_().shape
    lucid.Size([2, 3])
    """
    check_float(self, "cauchy_")
    if not sigma > 0:
        raise SettingError(f"cauchy_: expected sigma > 0, got {sigma}")

    def draw(chosen: Generator, shape: tuple[int, ...], dtype: Any, *, xp: Any) -> Array:
        # a tangent of an angle between -pi / 2 and pi / 2
        return median + sigma * xp.tan(uniform(chosen, shape, accumulation_dtype(dtype), -math.pi / 2, math.pi / 2, xp))

    return filled("cauchy_", self, generator, draw)


@checked
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Return this tensor after drawing for each element how many trials it takes up to the first success.

    Parameters
    ----------
    p : float
        The probability of success, above 0 and below 1.
    generator : Generator, optional
        The device's default one if left out.

    Raises
    ------
    DtypeError
        If the dtype is bool or complex.
    ValueError
        If `p` is not between 0 and 1.
    InplaceError
        If the tensor may not be changed.

    Examples
    --------
    >>> import lucid
    >>> bool((lucid.zeros(100).geometric_(0.25) >= 1).all())
    True
    """
    kind = dtype_of(self.array)
    if kind.is_complex or kind.name == "bool":
        raise DtypeError(f"geometric_: expected a tensor of real numbers, got {kind}")
    if not 0 < p < 1:
        raise SettingError(f"geometric_: expected 0 < p < 1, got {p}")
    rate = -math.log1p(-p)

    def draw(chosen: Generator, shape: tuple[int, ...], dtype: Any, *, xp: Any) -> Array:
        wide = accumulation_dtype(dtype) if kind.is_floating_point else np.dtype(np.float64)
        trials = xp.maximum(xp.ceil(exponential(chosen, shape, wide, rate, xp)), 1)
        return trials if kind.is_floating_point else xp.minimum(trials, np.iinfo(dtype).max).astype(dtype)

    return filled("geometric_", self, generator, draw)


@checked
def bernoulli_(self: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Return this tensor after setting each element to 1 with probability `p`, else to 0.

    Parameters
    ----------
    p : float or Tensor
        The probability; a tensor broadcasts to the shape of this one.
    generator : Generator, optional
        The device's default one if left out.

    Raises
    ------
    ValueError
        If a number `p` is not within 0 and 1.
    InplaceError
        If the tensor may not be changed.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(3).bernoulli_(1.0)
    tensor([1., 1., 1.])
    """
    if isinstance(p, TensorBase):
        check_one_device("bernoulli_", self, p)

    def draw(chosen: Generator, shape: tuple[int, ...], _: object, *, xp: Any) -> Array:
        if isinstance(p, TensorBase):
            return uniform(chosen, shape, np.float32, xp=xp) < p.array
        return bernoulli(chosen, p, shape, xp)

    return filled("bernoulli_", self, generator, draw)


@checked
def random_(self: Tensor, *bounds: int | None, generator: Generator | None = None) -> Tensor:
    """Return this tensor after drawing whole numbers for its elements, all equally likely.

    Parameters
    ----------
    *bounds : int
        ``random_(to)`` draws from 0 to below `to`, ``random_(from, to)`` from `from`; ``random_()`` from 0 to the
        largest whole number of the dtype, for floating-point dtypes up to which all are exact.
    generator : Generator, optional
        The device's default one if left out.

    Raises
    ------
    DtypeError
        If the dtype is complex.
    ValueError
        If there is no number between the bounds, or the dtype cannot hold one.
    InplaceError
        If the tensor may not be changed.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.zeros(100, dtype=lucid.int64).random_(1, 7)
    >>> int(x.min()) >= 1, int(x.max()) <= 6
    (True, True)
    """
    dtype = dtype_of(self.array)
    if dtype.is_complex:
        raise DtypeError(f"random_: expected a real dtype, got {dtype}")
    if len(bounds) > 2:
        raise SettingError(f"random_: expected at most two bounds, got {len(bounds)}")
    if (largest := WHOLE.get(dtype.name)) is not None:
        least = -largest
    elif dtype.name == "bool":
        least, largest = 0, 1
    else:
        limits = np.iinfo(self.array.dtype)
        least, largest = int(limits.min), int(limits.max)
    low = as_int(bounds[0], "bounds") if len(bounds) == 2 and bounds[0] is not None else 0
    high = as_int(bounds[-1], "bounds") if bounds and bounds[-1] is not None else largest + 1
    if not (least <= low < high <= largest + 1):
        raise SettingError(
            f"random_: expected bounds low < high that {dtype} holds exactly, got {low} and {high}; its least is "
            f"{least} and its largest {largest}"
        )

    def draw(chosen: Generator, shape: tuple[int, ...], _: object, *, xp: Any) -> Array:
        return randint(chosen, low, high, shape, np.int64, xp)

    return filled("random_", self, generator, draw)
