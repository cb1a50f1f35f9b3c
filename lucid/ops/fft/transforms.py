"""The three transforms that all are made of, and their helpers. Common rules: `lucid.ops.fft`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import among
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.primitive import primitive
from lucid.base.memory import check_size
from lucid.cuda.libraries.cufft import in_turn
from lucid.errors import DtypeError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.ops.base.dims import Dims, Sizes, along, dims_in
from lucid.ops.base.promotion import array_of, float_operand, tensor_dtype
from lucid.ops.base.scalars import as_int
from lucid.ops.index.select import narrow
from lucid.ops.shape.padding import pad

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor

ADJOINT = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
"""By the norm of a transform that of its adjoint, which goes the other way and is scaled as it is."""


# ---- on arrays ----


def _complex_of(dtype: Any) -> Any:
    return np.result_type(dtype, np.complex64)


@primitive(holomorphic=False)
def _fft_c2c(xp: ModuleType, x: Array, *, dims: Ints, norm: str, inverse: bool) -> Array:
    if not x.size:
        return xp.zeros(x.shape, _complex_of(x.dtype))
    return (xp.fft.ifftn if inverse else xp.fft.fftn)(x, axes=dims, norm=norm)


@_fft_c2c.vjp
def _fft_c2c_vjp(m: Namespace, grad: Array, x_dtype: Any, dims: Ints, norm: str, inverse: bool) -> Any:
    out = m.fft_c2c(grad, dims=dims, norm=ADJOINT[norm], inverse=not inverse)
    return out if x_dtype.kind == "c" else m.real(out)


@primitive(holomorphic=False)
def _fft_r2c(xp: ModuleType, x: Array, *, dims: Ints, norm: str) -> Array:
    if not x.size:
        shape = [size // 2 + 1 if dim == dims[-1] else size for dim, size in enumerate(x.shape)]
        return xp.zeros(shape, _complex_of(x.dtype))
    return xp.fft.rfftn(x, axes=dims, norm=norm)


@_fft_r2c.vjp
def _fft_r2c_vjp(m: Namespace, grad: Array, x_shape: Ints, dims: Ints, norm: str) -> Any:
    # each number of the half stands in the transform once, and in the one back twice, but for its own conjugates
    size = x_shape[dims[-1]]
    once = m.fft_mirrored(grad, dim=dims[-1], size=size, factor=0.5)
    return m.fft_c2r(once, dims=dims, size=size, norm=ADJOINT[norm])


@primitive(holomorphic=False)
def _fft_c2r(xp: ModuleType, x: Array, *, dims: Ints, size: int, norm: str) -> Array:
    *others, last = dims
    if not x.size:
        return xp.zeros([*x.shape[:last], size, *x.shape[last + 1 :]], x.real.dtype)
    # the last one by itself: cuFFT's of several dimensions are not defined where planes are not conjugate in themselves
    half = xp.fft.ifftn(x, axes=others, norm=norm) if others else x
    return xp.fft.irfft(half, size, last, norm)


@_fft_c2r.vjp
def _fft_c2r_vjp(m: Namespace, grad: Array, dims: Ints, size: int, norm: str) -> Any:
    half = m.fft_r2c(grad, dims=dims, norm=ADJOINT[norm])
    return m.fft_mirrored(half, dim=dims[-1], size=size, factor=2.0)


@primitive(holomorphic=False)
def _fft_mirrored(xp: ModuleType, x: Array, *, dim: int, size: int, factor: float) -> Array:
    """Return half a spectrum of `size` real numbers, times `factor` but for elements that mirror themselves."""
    out = xp.array(x)
    out[along(dim, slice(1, (size + 1) // 2))] *= factor
    return out


@_fft_mirrored.vjp
def _fft_mirrored_vjp(m: Namespace, grad: Array, dim: int, size: int, factor: float) -> Any:
    return m.fft_mirrored(grad, dim=dim, size=size, factor=factor)


for _transform in (_fft_c2c, _fft_r2c, _fft_c2r):
    _transform.cuda(functools.partial(in_turn, _transform.reference))


# ---- on tensors ----


def line(name: str, input: Tensor, n: int | None, dim: int) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """Return the one dimension of a transform, counted from the left, and its size, None for that of `input`.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.
    """
    ndim = array_of(input).ndim
    dims = dims_in(as_int(dim, "dim"), ndim)
    if not ndim:
        raise IndexOutOfRangeError(f"{name}: Dimension specified as {dim} but tensor has no dimensions")
    return dims, (None if n is None else _positive(name, as_int(n, "n")),)


def planes(name: str, input: Tensor, s: Sizes | None, dim: Dims) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """Return the dimensions of a transform, counted from the left, and their sizes, None for those of `input`.

    Raises
    ------
    ShapeError
        If there are not as many sizes as dimensions, or a dimension is named twice.
    """
    ndim = array_of(input).ndim
    sizes = None if s is None else [as_int(size, "s") for size in _listed(s)]
    if dim is not None:
        wanted = [as_int(d, "dim") for d in _listed(dim)]
        if wanted and not ndim:
            raise IndexOutOfRangeError(f"{name}: Dimension specified as {wanted[0]} but tensor has no dimensions")
        dims = dims_in(wanted, ndim)
    else:
        count = ndim if sizes is None else len(sizes)
        if count > ndim:
            raise ShapeError(f"{name}: got s with {count} sizes but input only has {ndim} dimensions")
        dims = tuple(range(ndim - count, ndim))
    if sizes is None:
        return dims, (None,) * len(dims)
    if len(sizes) != len(dims):
        raise ShapeError(
            f"{name}: expected as many sizes as dimensions, got s={sizes} for {len(dims)} dimension"
            f"{'' if len(dims) == 1 else 's'}"
        )
    return dims, tuple([None if size == -1 else _positive(name, size) for size in sizes])


def _listed(value: Sizes) -> Sequence[int]:
    return value if isinstance(value, tuple | list) else (value,)  # pyright: ignore[reportReturnType]


def _positive(name: str, size: int) -> int:
    if size < 1:
        raise ShapeError(f"{name}: Invalid number of data points ({size}) specified: expected 1 or more")
    return size


def norm_of(name: str, norm: str | None) -> str:
    """Return the norm that is meant.

    Raises
    ------
    SettingError
        If it is none of the three.
    """
    known = "backward" if norm is None else norm
    if not among(known, ADJOINT):
        raise SettingError(
            f'{name}: norm: Invalid normalization mode: {norm!r}, expected "backward", "ortho" or "forward"'
        )
    return known


def operand_of(name: str, input: Tensor, *, real: bool = False) -> Any:
    """Return an operand of float32, float64 or their complex dtypes.

    Raises
    ------
    DtypeError
        If it is of a half type, or complex where it must be `real`.
    """
    x = float_operand(wide_in_autocast(input, cpu=True, cuda=False))
    if x.array.dtype.itemsize == 2:
        raise DtypeError(f"{name}: Unsupported dtype {tensor_dtype(x)}; convert to float32 first")
    if real and x.array.dtype.kind == "c":
        raise DtypeError(f"{name} expects a real input tensor, but got one of {tensor_dtype(x)}")
    return x


def fitted(name: str, x: Any, dims: tuple[int, ...], sizes: tuple[int | None, ...]) -> Any:
    """Return `x` cut or filled up with zeros to these sizes."""
    whole = list(x.array.shape)
    for dim, size in zip(dims, sizes, strict=True):
        whole[dim] = whole[dim] if size is None else size
    check_size(name, whole, 16)
    for dim, size in zip(dims, sizes, strict=True):
        have = x.array.shape[dim]
        if size is None:
            _positive(name, have)
        elif size < have:
            x = narrow(x, dim, 0, size)
        elif size > have:
            x = pad(x, (*(0, 0) * (x.array.ndim - 1 - dim), 0, size - have))
    return x


def from_any(name: str, input: Tensor, place: Any, norm: str | None, *, inverse: bool = False) -> Any:
    """Return a transform of complex or real numbers over the dimensions and sizes that `line` or `planes` gave."""
    dims, sizes = place
    scale, x = norm_of(name, norm), operand_of(name, input)
    if not dims:
        return GRAPH.clone(x) if x.array.dtype.kind == "c" else _as_complex(x)
    return _fft_c2c(fitted(name, x, dims, sizes), dims=dims, norm=scale, inverse=inverse)


def from_real(name: str, input: Tensor, place: Any, norm: str | None) -> Any:
    """Return the half of a transform of real numbers."""
    dims, sizes = place
    scale, x = norm_of(name, norm), operand_of(name, input, real=True)
    _some(name, dims)
    return _fft_r2c(fitted(name, x, dims, sizes), dims=dims, norm=scale)


def to_real(name: str, input: Tensor, place: Any, norm: str | None) -> Any:
    """Return the real numbers with `input` as one half of their transform."""
    dims, sizes = place
    scale, x = norm_of(name, norm), operand_of(name, input)
    _some(name, dims)
    size = 2 * (x.array.shape[dims[-1]] - 1) if sizes[-1] is None else sizes[-1]
    half = _positive(name, size) // 2 + 1
    x = fitted(name, _as_complex(x), dims, (*sizes[:-1], half))
    return _fft_c2r(x, dims=dims, size=size, norm=scale)


def _as_complex(x: Any) -> Any:
    return x if x.array.dtype.kind == "c" else GRAPH.cast(x, dtype=_complex_of(x.array.dtype))


def _some(name: str, dims: tuple[int, ...]) -> None:
    if not dims:
        raise ShapeError(f"{name} must transform at least one axis, got none")
