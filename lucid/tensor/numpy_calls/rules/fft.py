"""`numpy.fft`: transforms of one dimension, of two and of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import is_list, is_tuple
from lucid.base.dtype import float32
from lucid.ops.base.promotion import cast_to
from lucid.ops.fft import one_dimension, several_dimensions, shifting
from lucid.tensor.numpy_calls.definition import enter

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def of_singles(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transform that takes half precision as single precision, as NumPy's do."""

    def transformed(a: Tensor, **settings: object) -> Any:
        return transform(cast_to(a, float32) if a.array.dtype.char == "e" else a, **settings)

    return transformed


def of_several(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transform over several axes that takes -1 for the size that an axis has, as NumPy's do."""
    transform = of_singles(transform)

    def transformed(a: Tensor, s: Any = None, dim: Any = None, **settings: object) -> Any:
        if is_tuple(s) or is_list(s):
            shape = a.array.shape
            dims = range(-len(s), 0) if dim is None else dim
            # of an axis that is not there the transform speaks
            own = {k: shape[d] for k, d in enumerate(dims) if isinstance(d, int) and -len(shape) <= d < len(shape)}
            s = [own.get(k, size) if isinstance(size, int) and size == -1 else size for k, size in enumerate(s)]
        return transform(a, s=s, **settings) if dim is None else transform(a, s=s, dim=dim, **settings)

    return transformed


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    enter(f"fft.{_name}", "*a n axis:dim norm", of_singles(getattr(one_dimension, _name)))
for _name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    enter(f"fft.{_name}", "*a s axes:dim norm", of_several(getattr(several_dimensions, _name)))
for _name in ("fftshift", "ifftshift"):
    enter(f"fft.{_name}", "*x:input axes:dim", getattr(shifting, _name))
