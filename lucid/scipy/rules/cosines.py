"""The transforms of `scipy.fft`: those that NumPy has too, and cosine and sine transforms of types 1 to 4.

These are Fourier transforms of an array that is continued symmetrically, or beside factors of its places. Sine
transforms of types 2 and 3 are cosine transforms of the array with every second sign changed, or backwards.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.scipy.rules.images.filters import axes_of
from lucid.scipy.rules.rule import Array, PerAxis, at_least_single, counted, in_dtype, put, rule
from lucid.tensor.numpy_calls.operands import axis_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# ---- what NumPy has too ----


def several_sizes(s: PerAxis) -> list[int] | None:
    """Return sizes of some axes, given as one or a sequence, as a list."""
    return None if s is None else [operator.index(n) for n in (s if np.ndim(s) else [s])]


def _enter_of_one(name: str) -> None:
    def transform(x: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        return getattr(lnp.fft, name)(*at_least_single(x), n, axis=axis, norm=norm)

    rule(f"fft.{name}", "x n axis norm overwrite_x workers")(transform)


def _enter_of_several(name: str, usual: tuple[int, int] | None) -> None:
    def transform(x: Array, s: PerAxis = None, axes: PerAxis = usual, norm: str | None = None) -> Any:
        (x,) = at_least_single(x)
        s = several_sizes(s)
        along = axes_of(tuple(range(-len(s), 0)) if axes is None and s is not None else axes, x.ndim)
        return getattr(lnp.fft, name)(x, s, axes=along, norm=norm)

    rule(f"fft.{name}", "x s axes norm overwrite_x workers")(transform)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _enter_of_one(_name)
for _name in ("fft2", "ifft2", "rfft2", "irfft2"):
    _enter_of_several(_name, (-2, -1))
for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    _enter_of_several(_name, None)


rule("fft.fftshift")(lnp.fft.fftshift)
rule("fft.ifftshift")(lnp.fft.ifftshift)


# ---- cosines and sines ----


def turns(places: np.ndarray[Any, Any], like: Array) -> Any:
    """Return ``exp(-1j * pi * places)`` beside an array, in the complex dtype of its precision."""
    values = np.exp(-1j * math.pi * places)
    return put(values.astype(np.result_type(like.dtype, np.complex64)), like)


def cosines(x: Array, type: int) -> Any:
    """Return the cosine transform of a type along the last axis, as sums of doubled terms."""
    n = x.shape[-1]
    if type == 1:
        return lnp.real(lnp.fft.rfft(lnp.concatenate([x, lnp.flip(x[..., 1:-1], -1)], -1)))
    if type == 2:
        doubled = lnp.fft.rfft(lnp.concatenate([x, lnp.flip(x, -1)], -1))[..., :n]
        return lnp.real(doubled * turns(counted(n) / (2 * n), x))
    if type == 3:
        return lnp.fft.irfft(x * turns(-counted(n) / (2 * n), x), 2 * n)[..., :n] * (2 * n)
    return lnp.real(_odd(x)) * 2


def _odd(x: Array) -> Any:
    """Return the sums of ``exp(-1j * pi * (2 * k + 1) * (2 * m + 1) / (4 * n))`` times the elements."""
    n = x.shape[-1]
    places = counted(n)
    return lnp.fft.fft(x * turns(places / (2 * n), x), 2 * n)[..., :n] * turns((2 * places + 1) / (4 * n), x)


def sines(x: Array, type: int) -> Any:
    """Return the sine transform of a type along the last axis, as sums of doubled terms."""
    n = x.shape[-1]
    if type == 1:
        zero = x[..., :1] * 0
        line = lnp.concatenate([zero, x, zero, -lnp.flip(x, -1)], -1)
        return -lnp.imag(lnp.fft.rfft(line))[..., 1 : n + 1]
    if type == 4:
        return lnp.imag(_odd(x)) * -2
    signs = put((1 - 2 * (counted(n) % 2)).astype(x.dtype), x)
    if type == 2:
        return lnp.flip(cosines(x * signs, 2), -1)
    return cosines(lnp.flip(x, -1), 3) * signs


INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
"""The type that undoes a type."""


def transformed(
    kind: Callable[[Any, int], Any], x: Array, type: int, axis: int, norm: str | None, halved: bool, *, inverse: bool
) -> Any:
    """Return a transform along an axis, with SciPy's factors; `halved`, of ends so that it is orthogonal."""
    is_cosine = kind is cosines
    x = lnp.moveaxis(x, axis, -1)
    n = x.shape[-1]
    if n < 1 or (type == 1 and is_cosine and n < 2):
        raise ValueError(f"Invalid number of data points ({n}) specified")
    size = 2 * n if type != 1 else 2 * (n - 1 if is_cosine else n + 1)
    type = INVERSE[type] if inverse else type
    if halved and type in {1, 3} and (is_cosine or type == 3):
        x = x * _ends(n, type, math.sqrt(2), x, is_cosine=is_cosine)
    y = kind(x, type)
    if halved and type in {1, 2} and (is_cosine or type == 2):
        y = y * _ends(n, type, math.sqrt(0.5), x, is_cosine=is_cosine)
    if norm == "ortho":
        y = y * (1 / math.sqrt(size))
    elif (norm == "forward") != inverse:
        y = y * (1 / size)
    return lnp.moveaxis(y, -1, axis)


def _ends(n: int, type: int, factor: float, like: Array, *, is_cosine: bool) -> Any:
    """Return the factor of the element of frequency zero, or of both ends of type 1; of others one."""
    factors = np.ones(n, like.dtype)
    factors[[0, -1] if type == 1 else 0 if is_cosine else -1] = factor
    return put(factors, like)


def in_length(x: Array, n: int | None, axis: int) -> Any:
    """Return an array cut, or with zeros behind, along an axis."""
    if n is None or n == x.shape[axis]:
        return x
    if n < 1:
        raise ValueError(f"invalid number of data points ({n}) specified")
    if n < x.shape[axis]:
        return x[(slice(None),) * axis + (slice(n),)]
    shape = [n - size if k == axis else size for k, size in enumerate(x.shape)]
    return lnp.concatenate([x, put(np.zeros(shape, x.dtype), x)], axis)


def several(
    kind: Callable[[Any, int], Any],
    x: Array,
    type: int,
    s: PerAxis,
    axes: Sequence[int],
    norm: str | None,
    orthogonalize: bool | None,
    *,
    inverse: bool,
) -> Any:
    """Return a transform along some axes."""
    if type not in INVERSE:
        raise ValueError(f"invalid type: expected 1, 2, 3 or 4, got {type}")
    if norm not in {None, "backward", "ortho", "forward"}:
        raise ValueError(f"Invalid norm value {norm!r}, should be 'backward', 'ortho' or 'forward'")
    (x,) = at_least_single(x)
    if x.dtype.kind not in "fc":
        x = in_dtype(x, np.float64)
    if x.dtype.kind == "c":
        # SciPy reads no `orthogonalize` of complex numbers
        settings = (type, s, axes, norm, None)
        parts = [several(kind, part, *settings, inverse=inverse) for part in (lnp.real(x), lnp.imag(x))]
        return parts[0] + 1j * parts[1]
    halved = norm == "ortho" if orthogonalize is None else orthogonalize
    for axis, n in zip(axes, [None] * len(axes) if s is None else s, strict=True):
        x = transformed(kind, in_length(x, n, axis), type, axis, norm, halved, inverse=inverse)
    return x


def _enter_cosines(name: str, kind: Callable[[Any, int], Any], *, inverse: bool) -> None:
    def transform(
        x: Array,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        orthogonalize: bool | None = None,
    ) -> Any:
        sizes = None if n is None else [n]
        return several(kind, x, type, sizes, [axis_in(axis, lnp.ndim(x))], norm, orthogonalize, inverse=inverse)

    def transforms(
        x: Array,
        type: int = 2,
        s: PerAxis = None,
        axes: PerAxis = None,
        norm: str | None = None,
        *,
        orthogonalize: bool | None = None,
    ) -> Any:
        ndim = lnp.ndim(x)
        # of a size of -1 the axis is as long as it is
        sizes: Any = None if s is None else [None if n == -1 else n for n in several_sizes(s) or ()]
        if axes is None and sizes is not None:
            axes = tuple(range(ndim - len(sizes), ndim))
        return several(kind, x, type, sizes, axes_of(axes, ndim), norm, orthogonalize, inverse=inverse)

    rule(f"fft.{name}", "x type n axis norm overwrite_x workers orthogonalize")(transform)
    rule(f"fft.{name}n", "x type s axes norm overwrite_x workers orthogonalize")(transforms)


_enter_cosines("dct", cosines, inverse=False)
_enter_cosines("idct", cosines, inverse=True)
_enter_cosines("dst", sines, inverse=False)
_enter_cosines("idst", sines, inverse=True)
