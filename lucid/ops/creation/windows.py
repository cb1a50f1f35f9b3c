"""Windows: weights of samples that fall to both sides. Common rules: `lucid.ops.creation`.

A periodic window is one of a sample more without its last one, as spectra take it; otherwise it is symmetric. It has
`window_length` samples, none or more, and the default dtype where None is given; an integer dtype raises a DtypeError.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.arrays import asarray
from lucid.base.dtype import as_dtype
from lucid.base.memory import check_size
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.scalars import as_bool, as_int, as_number
from lucid.ops.creation.filling import dtype_for, on_device

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


def _window(
    name: str,
    length: int,
    periodic: bool,
    values: Callable[[Any, int], Any],
    dtype: Dtype | None,
    device: Device,
    requires_grad: bool,
) -> Any:
    """Return ``values(k, last)`` of the samples k; `last` is the number of the last sample."""
    count, extra = as_int(length, "window_length"), as_bool(periodic, "periodic")
    if count < 0:
        raise ShapeError(f"{name} requires non-negative window_length, got window_length={count}")
    if dtype is not None and not as_dtype(dtype).is_floating_point:
        raise DtypeError(f"{name} expects floating point dtypes, got {as_dtype(dtype)}")
    check_size(name, (count,), 8)
    last = count if extra else count - 1
    # some samples, once, on the host
    made = np.ones(count) if count < 2 else np.asarray(values(np.arange(count, dtype=np.float64), last))
    kind = dtype_for(dtype)
    return on_device(lambda xp: asarray(made.astype(kind), device=None if xp is np else device), device, requires_grad)


def _cosines(*weights: float) -> Callable[[Any, int], Any]:
    """Return the sum of cosines of whole numbers of turns from end to end, with signs that change."""

    def values(k: Any, last: int) -> Any:
        turns = [(-1) ** n * weight * np.cos(2 * math.pi * n * k / last) for n, weight in enumerate(weights)]
        return np.sum(turns, axis=0)

    return values


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Hann's window of `window_length` samples, `periodic` or symmetric.

    It is ``(1 - cos(2 pi k / N)) / 2``.

    >>> import lucid
    >>> lucid.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", window_length, periodic, _cosines(0.5, 0.5), dtype, device, requires_grad)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Hamming's window of `window_length` samples, `periodic` or symmetric.

    It is ``alpha - beta cos(2 pi k / N)``, of weights `alpha` and `beta`.

    >>> import lucid
    >>> lucid.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    form = _cosines(as_number(alpha, "alpha"), as_number(beta, "beta"))
    return _window("hamming_window", window_length, periodic, form, dtype, device, requires_grad)


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Blackman's window of `window_length` samples, `periodic` or symmetric.

    It is ``0.42 - 0.5 cos(2 pi k / N) + 0.08 cos(4 pi k / N)``.

    >>> import lucid
    >>> lucid.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """
    return _window("blackman_window", window_length, periodic, _cosines(0.42, 0.5, 0.08), dtype, device, requires_grad)


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Bartlett's window of `window_length` samples, `periodic` or symmetric.

    It is a triangle, ``1 - |2 k / N - 1|``.

    >>> import lucid
    >>> lucid.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """

    def triangle(k: Any, last: int) -> Any:
        return 1 - np.abs(2 * k / last - 1)

    return _window("bartlett_window", window_length, periodic, triangle, dtype, device, requires_grad)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Kaiser's window of `window_length` samples, `periodic` or symmetric.

    It is ``I0(beta sqrt(1 - (2 k / N - 1)^2)) / I0(beta)``, narrower with a larger `beta`.

    >>> import lucid
    >>> lucid.kaiser_window(3, periodic=False, beta=1.0)
    tensor([0.7898, 1.0000, 0.7898])
    """
    width = as_number(beta, "beta")

    def bell(k: Any, last: int) -> Any:
        return np.i0(width * np.sqrt(np.maximum(1 - (2 * k / last - 1) ** 2, 0))) / np.i0(width)

    return _window("kaiser_window", window_length, periodic, bell, dtype, device, requires_grad)
