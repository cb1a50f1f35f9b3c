"""The extension of Fourier transforms of the array API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from lucid.array_api.operands import checked_tensor, named
from lucid.ops.creation import frequencies
from lucid.ops.fft import one_dimension, several_dimensions, shifting
from lucid.tensor.numpy_calls.rules.fft import of_several, of_singles

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


def _along_one(name: str, transform: Callable[..., Any]) -> Callable[..., Tensor]:
    transform = of_singles(transform)

    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
        return transform(checked_tensor(x), n=n, dim=axis, norm=norm)

    return named(name, function, f"Return ``fft.{name}`` of the array API.")


def _along_several(name: str, transform: Callable[..., Any]) -> Callable[..., Tensor]:
    transform = of_several(transform)

    def function(
        x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Tensor:
        return transform(checked_tensor(x), s=s, dim=axes, norm=norm)

    return named(name, function, f"Return ``fft.{name}`` of the array API.")


fft = _along_one("fft", one_dimension.fft)
ifft = _along_one("ifft", one_dimension.ifft)
rfft = _along_one("rfft", one_dimension.rfft)
irfft = _along_one("irfft", one_dimension.irfft)
hfft = _along_one("hfft", one_dimension.hfft)
ihfft = _along_one("ihfft", one_dimension.ihfft)
fftn = _along_several("fftn", several_dimensions.fftn)
ifftn = _along_several("ifftn", several_dimensions.ifftn)
rfftn = _along_several("rfftn", several_dimensions.rfftn)
irfftn = _along_several("irfftn", several_dimensions.irfftn)


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
