"""`numpy.fft`: transforms of one dimension, of two and of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.backend.dtype import float32
from lucid.ops.base.promotion import cast_to
from lucid.ops.fft import one_dimension, several_dimensions, shifting
from lucid.tensor.numpy_calls.rule import enter

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def of_singles(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transform that takes half precision as single precision, as NumPy's do."""

    def transformed(a: Tensor, **settings: object) -> Any:
        return transform(cast_to(a, float32) if a.array.dtype.char == "e" else a, **settings)

    return transformed


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    enter(f"fft.{_name}", "*a n axis:dim norm", of_singles(getattr(one_dimension, _name)))
for _name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    enter(f"fft.{_name}", "*a s axes:dim norm", of_singles(getattr(several_dimensions, _name)))
for _name in ("fftshift", "ifftshift"):
    enter(f"fft.{_name}", "*x:input axes:dim", getattr(shifting, _name))
