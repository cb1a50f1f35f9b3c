"""DLPack for the stand-in's arrays: capsules that say CUDA, on the simulated device's memory."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from lucid.cuda.simulator.arrays import around, described, ndarray, used
from lucid.cuda.simulator.places import current_device
from lucid.cuda.simulator.pool import Memory, pool

__all__ = ["add_interchange", "from_dlpack"]

CPU_KIND, CUDA_KIND = 1, 2
UNSIGNED, BFLOAT = 1, 4
BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)


class Tensor(ctypes.Structure):
    """The beginning of DLPack's DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("kind", ctypes.c_int32),
        ("index", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
    )


_pointer: Any = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


class Handed:
    """A capsule in the form in which NumPy takes it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU_KIND, 0


def described_in(capsule: Any) -> Tensor:
    """Return what a capsule of NumPy's or of this module says of its memory."""
    return Tensor.from_address(_pointer(capsule, b"dltensor"))


def dlpack(
    self: ndarray, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """Return a capsule with the array: on its device, or, if `dl_device` asks for it, a copy on the CPU."""
    if dl_device is not None and next(iter(dl_device)) == CPU_KIND:
        values = self.get()
        return (values.view(np.uint16) if values.dtype == BFLOAT16 else values).__dlpack__()
    values = used(self.copy() if copy else self)
    capsule = (values.view(np.uint16) if values.dtype == BFLOAT16 else values).__dlpack__()
    told = described_in(capsule)
    told.kind, told.index = CUDA_KIND, self.memory.device_id
    if values.dtype == BFLOAT16:
        told.code = BFLOAT
    return capsule


def dlpack_device(self: ndarray) -> tuple[int, int]:
    """Return DLPack's number of CUDA, and the index of the device."""
    return CUDA_KIND, self.memory.device_id


def from_dlpack(array: Any, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """Return an array on the memory of what another library, or this one, hands over."""
    kind, index = array.__dlpack_device__()
    if int(kind) != CUDA_KIND:
        raise TypeError("CPU arrays cannot be directly imported to CuPy. Use `cupy.array(numpy.from_dlpack(input))`.")
    capsule = array.__dlpack__()
    told = described_in(capsule)
    told.kind, told.index = CPU_KIND, 0
    half = told.code == BFLOAT
    if half:
        told.code = UNSIGNED
    values: Any = np.from_dlpack(Handed(capsule))
    values = values.view(BFLOAT16) if half else values
    memory = pool.holding(told.data or 0)
    if memory is None:
        low, high = np.lib.array_utils.byte_bounds(values)
        whole = described({"shape": (high - low,), "typestr": "|u1", "data": (low, False)})
        memory = Memory(pool, whole, int(index), 0, owner=values)
    elif memory.device_id != current_device():
        raise ValueError(f"from_dlpack: the array is on device {index}, the current one is {current_device()}")
    made = around(values, memory, None)
    return made.copy() if copy else made


def add_interchange() -> None:
    """Give the array class DLPack's two methods."""
    setattr(ndarray, "__dlpack__", dlpack)  # noqa: B010
    setattr(ndarray, "__dlpack_device__", dlpack_device)  # noqa: B010
