"""`numpy.fft`: transforms of one dimension, of two and of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.ops.fft import one_dimension, several_dimensions, shifting
from lucid.tensor.numpy_calls.rules import enter

if TYPE_CHECKING:
    from types import ModuleType

NAMES: list[tuple[ModuleType, str, str]] = [
    (one_dimension, "fft ifft rfft irfft hfft ihfft", "*a:input n axis:dim norm"),
    (several_dimensions, "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn", "*a:input s axes:dim norm"),
    (shifting, "fftshift ifftshift", "*x:input axes:dim"),
]

for _module, _names, _takes in NAMES:
    for _name in _names.split():
        _function: Any = getattr(_module, _name)
        enter(f"fft.{_name}", _takes, _function)
