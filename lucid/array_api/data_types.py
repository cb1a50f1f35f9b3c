"""The dtypes of the array API, their limits and promotion, and the namespace's description of itself."""

from __future__ import annotations

import functools
from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.array_api.operands import checked_tensor
from lucid.autograd.base import TensorBase
from lucid.base import gpu, limits
from lucid.base.device import device as device_class
from lucid.base.device import get_default_device
from lucid.base.dtype import (
    DTYPES,
    as_dtype,
    bool_,
    complex64,
    complex128,
    dtype_of,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    uint8,
)
from lucid.base.dtype import dtype as dtype_class
from lucid.base.dtype import result_type as promoted
from lucid.errors import DtypeError, SettingError
from lucid.ops.shape.reshape import clone

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor

__all__ = [
    "__array_namespace_info__", "astype", "can_cast", "complex64", "complex128", "e", "finfo", "float32",
    "float64", "iinfo", "inf", "int8", "int16", "int32", "int64", "isdtype", "nan", "newaxis", "pi", "result_type",
    "uint8",
]  # fmt: skip

newaxis = None

KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8",),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
"""The standard's dtypes by their kind; it has no half types, which are real floating all the same."""
UNIONS = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


class FloatLimits(NamedTuple):
    """Limits of a floating dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Dtype


class IntegerLimits(NamedTuple):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Dtype


def finfo(type: Dtype | Tensor, /) -> FloatLimits:
    """Return ``finfo`` of the array API, with one of its dtypes as `dtype`."""
    info = limits.finfo(_dtype_of(type))
    return FloatLimits(info.bits, info.eps, info.max, info.min, info.smallest_normal, as_dtype(info.dtype))


def iinfo(type: Dtype | Tensor, /) -> IntegerLimits:
    """Return ``iinfo`` of the array API, with one of its dtypes as `dtype`."""
    info = limits.iinfo(_dtype_of(type))
    return IntegerLimits(info.bits, info.max, info.min, as_dtype(info.dtype))


def _dtype_of(value: object) -> Dtype:
    return dtype_of(value.array) if isinstance(value, TensorBase) else as_dtype(value)


def _kind_of(dtype: Dtype) -> str:
    if dtype.is_complex or dtype.is_floating_point:
        return "complex floating" if dtype.is_complex else "real floating"
    return "bool" if dtype is bool_ else "signed integer" if dtype.is_signed else "unsigned integer"


def isdtype(dtype: Dtype, kind: Dtype | str | tuple[Dtype | str, ...]) -> bool:
    """Return ``isdtype`` of the array API.

    Raises
    ------
    SettingError
        If there is no such kind.
    """
    own = _kind_of(as_dtype(dtype))
    for each in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(each, str):
            if each not in KINDS and each not in UNIONS:
                raise SettingError(f"isdtype: kind: expected one of {', '.join([*KINDS, *UNIONS])}, got {each!r}")
            if own in UNIONS.get(each, (each,)):
                return True
        elif as_dtype(each) is as_dtype(dtype):
            return True
    return False


def astype(x: Tensor, dtype: Dtype, /, *, copy: bool = True, device: Device = None) -> Tensor:
    """Return ``astype`` of the array API.

    Raises
    ------
    DtypeError
        If complex numbers would lose their imaginary parts: `real` leaves them out.
    """
    tensor: Any = checked_tensor(x)
    wanted, own = as_dtype(dtype), _dtype_of(x)
    if own.is_complex and not (wanted.is_complex or wanted is bool_):
        raise DtypeError(f"astype: {own} to {wanted} would lose the imaginary parts: use real() or imag()")
    made = tensor.to(dtype=wanted) if device is None else tensor.to(device=device, dtype=wanted)
    return clone(made) if copy and made is x else made


def can_cast(from_: Dtype | Tensor, to: Dtype, /) -> bool:
    """Return ``can_cast`` of the array API: whether the one promotes to the other."""
    return promote_types(_dtype_of(from_), to) is as_dtype(to)


def result_type(*arrays_and_dtypes: Any) -> Dtype:
    """Return ``result_type`` of the array API: a tensor without dimensions counts as any other.

    Raises
    ------
    SettingError
        If there is neither an array nor a dtype among them.
    """
    strong = [_dtype_of(each) for each in arrays_and_dtypes if isinstance(each, TensorBase | dtype_class)]
    weak = [each for each in arrays_and_dtypes if not isinstance(each, TensorBase | dtype_class)]
    if not strong:
        raise SettingError("result_type: expected at least one array or dtype, got none")
    common = functools.reduce(promote_types, strong)
    for each in weak:
        kind = promoted(each)
        if kind.category > common.category:
            common = promote_types(common, kind)
    return common


class __array_namespace_info__:
    """Description of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Return the optional features that are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> device_class:
        """Return the default device of new arrays."""
        wanted = get_default_device()
        return next(each for each in self.devices() if (each.type, each.index or 0) == (wanted.type, wanted.index or 0))

    def devices(self) -> list[device_class]:
        """Return the devices that there are."""
        count = gpu.device_count() if gpu.is_available() else 0
        return [device_class("cpu"), *[device_class("cuda", k) for k in range(count)]]

    def default_dtypes(self, *, device: Device = None) -> dict[str, Dtype]:
        """Return the dtypes of arrays made of Python's numbers."""
        del device
        real = get_default_dtype()
        return {"real floating": real, "complex floating": real.to_complex(), "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Device = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Dtype]:
        """Return the standard's dtypes that there are, of a kind or of several."""
        del device
        names = [name for each in KINDS.values() for name in each]
        return {name: DTYPES[name] for name in names if kind is None or isdtype(DTYPES[name], kind)}
