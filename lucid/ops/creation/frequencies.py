"""The frequencies of a transform's numbers. Common rules: `lucid.ops.creation`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base.arrays import astype
from lucid.base.dtype import as_dtype, get_default_dtype
from lucid.base.memory import check_size
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.scalars import as_int, as_number
from lucid.ops.creation.filling import on_device

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


def _frequencies(
    name: str, n: int, d: float, dtype: Dtype | None, device: Device, requires_grad: bool, *, half: bool
) -> Tensor:
    count, distance = as_int(n, "n"), as_number(d, "d")
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not (kind.is_floating_point or kind.is_complex):
        raise DtypeError(f"{name} requires a floating point or complex dtype, got {kind}")
    if count < 0:
        raise ShapeError(f"{name}: trying to create tensor with negative dimension {count}; expected n >= 0")
    check_size(name, (count,), 8)

    span = count * distance

    def make(xp: ModuleType) -> Any:
        places = xp.arange(count // 2 + 1 if half else count, dtype=xp.float64)
        if not half:
            places[(count + 1) // 2 :] -= count
        return astype(places * (1 / span if span else math.inf), kind)

    return on_device(make, device, requires_grad)


def fftfreq(
    n: int, d: float = 1.0, *, dtype: Dtype | None = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return the frequencies of a transform of `n` samples at a distance of `d`, those below zero last.

    >>> import lucid
    >>> lucid.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _frequencies("fftfreq", n, d, dtype, device, requires_grad, half=False)


def rfftfreq(
    n: int, d: float = 1.0, *, dtype: Dtype | None = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return the frequencies of the half of a transform of `n` real samples at a distance of `d`.

    >>> import lucid
    >>> lucid.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies("rfftfreq", n, d, dtype, device, requires_grad, half=True)
