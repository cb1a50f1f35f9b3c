"""The extension of Fourier transforms of the array API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from lucid.array_api.operands import checked_tensor, named
from lucid.ops.creation import frequencies
from lucid.ops.fft import shifting
from lucid.tensor.numpy_calls.rules.fft import LINES, of_several

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip

Norm = Literal["backward", "ortho", "forward"]


def _along_one(name: str) -> Callable[..., Tensor]:
    transform = LINES[name]

    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
        return transform(checked_tensor(x), n=n, dim=axis, norm=norm)

    return named(name, function, f"Return ``fft.{name}`` of the array API.")


def _along_several(name: str) -> Callable[..., Tensor]:
    transform = of_several(name)

    def function(
        x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Tensor:
        return transform(checked_tensor(x), s=s, dim=axes, norm=norm)

    return named(name, function, f"Return ``fft.{name}`` of the array API.")


fft = _along_one("fft")
ifft = _along_one("ifft")
rfft = _along_one("rfft")
irfft = _along_one("irfft")
hfft = _along_one("hfft")
ihfft = _along_one("ihfft")
fftn = _along_several("fftn")
ifftn = _along_several("ifftn")
rfftn = _along_several("rfftn")
irfftn = _along_several("irfftn")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: Device = None) -> Tensor:
    """Return ``fft.fftfreq`` of the array API."""
    return frequencies.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: Device = None) -> Tensor:
    """Return ``fft.rfftfreq`` of the array API."""
    return frequencies.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return ``fft.fftshift`` of the array API."""
    return shifting.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return ``fft.ifftshift`` of the array API."""
    return shifting.ifftshift(x, axes)
