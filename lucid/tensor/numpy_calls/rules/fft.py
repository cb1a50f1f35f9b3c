"""`numpy.fft`: transforms of one dimension, of two and of several."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.dtype import float16, float32
from lucid.ops.base.promotion import cast_to
from lucid.ops.elementwise import arithmetic
from lucid.ops.fft import one_dimension, several_dimensions, shifting
from lucid.ops.shape.reshape import clone
from lucid.tensor.numpy_calls.definition import enter
from lucid.tensor.numpy_calls.operands import NumpyCallError
from lucid.tensor.numpy_calls.rules.places import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Axis

INVERSE = frozenset(("ifft", "ihfft", "irfft"))
"""The transforms which divide by the length if no `norm` is given."""

TO_REAL = frozenset(("hfft", "irfft"))


def of_halves(name: str) -> Callable[..., Any]:
    """Return a transform of one dimension, with NumPy's dtypes and factors of half precision.

    It computes in single precision, but for the number that it multiplies by, and real results have half again.
    """
    transform = getattr(one_dimension, name)

    def transformed(a: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
        if a.array.dtype.char != "e":
            return transform(a, n=n, dim=dim, norm=norm)
        result = transform(cast_to(a, float32), n=n, dim=dim, norm=norm)
        if norm == "ortho" or (norm == "forward") != (name in INVERSE):
            length = n if n is not None else result.array.shape[dim] if name in TO_REAL else a.array.shape[dim]
            divisor: Any = np.sqrt(length, dtype="e") if norm == "ortho" else length
            exact = math.sqrt(length) if norm == "ortho" else length
            result = arithmetic.mul(result, float(np.reciprocal(divisor, dtype="e")) * exact)
        return cast_to(result, float16) if name in TO_REAL else result

    return transformed


LINES = {name: of_halves(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")}


def of_several(name: str) -> Callable[..., Any]:
    """Return a transform over several axes: -1 is the size that an axis has, and over no axes it is the array.

    Of half precision, and over an axis that is named twice, it is that of one axis after another, as NumPy's is.
    """
    transform = getattr(several_dimensions, name)
    kind = name.rstrip("2n")
    usual = (-2, -1) if name.endswith("2") else None

    def in_turn(a: Tensor, sizes: list[int | None], dims: list[int], norm: str | None) -> Any:
        lines = [*zip(sizes, dims, strict=True)]
        if kind == "irfft":
            for n, dim in lines[:-1]:
                a = LINES["ifft"](a, n, dim, norm)
            return LINES["irfft"](a, *lines[-1], norm)
        for k, (n, dim) in enumerate(reversed(lines)):
            a = LINES["fft" if kind == "rfft" and k else kind](a, n, dim, norm)
        return a

    def transformed(a: Tensor, s: Any = None, dim: Any = usual, norm: str | None = None) -> Any:
        shape = a.array.shape
        if dim is not None and not np.ndim(dim):
            raise NumpyCallError(f"numpy.fft.{name}: axes: expected a sequence of axes, got {dim!r}: ({dim},)")
        dims = [*range(-len(shape if s is None else s), 0)] if dim is None else [*map(operator.index, plain(dim))]
        # of an axis that is not there the transform speaks
        own = {k: shape[d] for k, d in enumerate(dims) if -len(shape) <= d < len(shape)}
        if s is None:
            sizes = [own.get(k) for k in range(len(dims))]
            if kind == "irfft" and sizes and sizes[-1] is not None:
                sizes[-1] = 2 * (sizes[-1] - 1)
        else:
            sizes = [
                own.get(k, size) if size == -1 else size for k, size in enumerate(np.atleast_1d(plain(s)).tolist())
            ]
        is_odd = a.array.dtype.char == "e" or len({d % len(shape) for d in dims if shape}) < len(dims)
        if len(sizes) == len(dims) and (is_odd if dims else kind in {"fft", "ifft"}):
            return in_turn(a, sizes, dims, norm)
        return transform(a, s=None if s is None else sizes, dim=dims, norm=norm)

    return transformed


def shifted(name: str) -> Callable[..., Any]:
    """Return ``numpy.fft.fftshift`` or its inverse: over no axes it is a copy."""
    shift = getattr(shifting, name)

    def moved(input: Tensor, dim: Axis = None) -> Any:
        if dim is None:
            return shift(input)
        several: Any = (dim,) if isinstance(dim, int | np.integer) else plain(dim)
        dims = [*map(operator.index, several)]
        return shift(input, dim=dims) if dims else clone(input)

    return moved


for _name, _transform in LINES.items():
    enter(f"fft.{_name}", "*a n axis:dim norm", _transform)
for _name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    enter(f"fft.{_name}", "*a s axes:dim norm", of_several(_name))
for _name in ("fftshift", "ifftshift"):
    enter(f"fft.{_name}", "*x:input axes:dim", shifted(_name))
