"""Arrays of other libraries as NumPy's or CuPy's own: the one place that reads their interfaces.

A tensor has elements and nothing else. So of a class that inherits from NumPy's array the elements are taken, on the
same memory, and the class is dropped; a mask says that some elements are none, which would be lost: it is refused.
"""

from __future__ import annotations

from array import array as python_array
from typing import Any, cast

import numpy as np

from lucid.base import gpu
from lucid.base.dtype import DTYPES
from lucid.base.foreign import dlpack
from lucid.base.memory import check_size
from lucid.errors import DtypeError

NUMPY = {d.numpy for d in DTYPES.values()}


def is_masked(value: Any) -> bool:
    """Return whether `value` is a masked array of NumPy; tensors have no mask."""
    return type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray)


def plain(value: Any) -> np.ndarray[Any, Any]:
    """Return a NumPy array or scalar as an array of NumPy's own class, on the same memory.

    Raises
    ------
    DtypeError
        If it has a mask.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.foreign.reading import plain
    >>> class Unit(np.ndarray): ...
    >>> plain(np.array([[1, 2]]).view(Unit))
    array([[1, 2]])
    """
    check_unmasked(value)
    return value if type(value) is np.ndarray else np.asarray(value)


def check_unmasked(value: Any) -> None:
    """Raise for an array with a mask.

    Raises
    ------
    DtypeError
        If it has one.
    """
    if is_masked(value):
        raise _masked(type(value).__name__)


def _masked(kind: str) -> DtypeError:
    return DtypeError(
        f"expected an array without a mask, got a {kind}: a tensor holds no mask; give what is to stand for masked "
        "elements by filled(value), or elements and mask as two tensors"
    )


def read(data: Any, *, copies: bool = True) -> Any:
    """Return a NumPy or CuPy array on the memory of an array or a lender of memory; None for anything else.

    Memory on a CUDA device that is to be read only is copied, or refused if nothing is to be (`copies`): CuPy has no
    flag that would keep others from writing.

    Raises
    ------
    DtypeError
        If there is a mask, or the dtype has no name in the interface that the object has.
    SettingError
        If a copy is needed and not wanted.
    """
    if isinstance(data, np.ndarray | np.generic):
        return plain(data)
    if gpu.is_gpu_array(data):
        return data
    if hasattr(data, "__cuda_array_interface__"):
        return _read_cuda(data, copies)
    if hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        _check_mask(data, getattr(data, "__array_interface__", None))
        try:
            array = np.asanyarray(data)
        except TypeError:
            # PyTorch gives NumPy no bfloat16
            if not hasattr(data, "__dlpack__"):
                raise
        else:
            return plain(array)
    if hasattr(data, "__dlpack__"):
        return dlpack.read(data, copies=copies)
    return np.asarray(data) if isinstance(data, memoryview | python_array) else None


class _Described:
    """Another library's array for CuPy, with its interface as it has been checked."""

    def __init__(self, lender: Any, interface: dict[str, Any]) -> None:
        self.lender = lender
        self.__cuda_array_interface__ = interface


def _read_cuda(data: Any, copies: bool) -> Any:
    interface = data.__cuda_array_interface__
    _check_mask(data, interface)
    dtype = np.dtype(interface["typestr"])
    if dtype not in NUMPY:
        if hasattr(data, "__dlpack__"):
            return dlpack.read(data, copies=copies)
        raise DtypeError(
            f"a __cuda_array_interface__ of {interface['typestr']!r} names no dtype of lucid, as it has no name for "
            "bfloat16: use lucid.from_dlpack, or convert the array"
        )
    check_size("__cuda_array_interface__", interface["shape"], dtype.itemsize)
    array = gpu.cupy().asarray(_Described(data, interface))
    return dlpack.writeable(array, copies=copies) if interface["data"][1] else array


def _check_mask(data: object, interface: Any) -> None:
    if isinstance(interface, dict) and cast("Any", interface).get("mask") is not None:
        raise _masked(f"{type(data).__name__} with a mask in its array interface")
