"""DLPack both ways: the fields of a capsule are read here, since NumPy has no bfloat16 and CuPy no flags.

NumPy carries bfloat16 as integers of 16 bits: the name of the dtype in the capsule is exchanged, not the memory.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from lucid.base import gpu
from lucid.base.device import device_of
from lucid.base.dtype import bfloat16, dtype_of
from lucid.base.memory import check_size, forwards
from lucid.errors import DeviceError, DtypeError, LucidError, SettingError

# DLPack's numbers of devices: the CPU and page-locked memory of the host; CUDA and memory that CUDA manages.
CPU, HOSTS, CUDA = 1, {1, 3}, {2, 13}
_UNSIGNED, _BFLOAT = 1, 4
# by DLPack's number of each kind, the bits that lucid has
_BITS = {0: {8, 16, 32, 64}, _UNSIGNED: {8}, 2: {16, 32, 64}, _BFLOAT: {16}, 5: {64, 128}, 6: {8}}
_READ_ONLY = 1


class StepsError(LucidError, BufferError):
    """Elements lie in memory backwards; other libraries would read the memory before the first one."""


class CopyNeededError(SettingError, BufferError):
    """Memory of a CUDA device was to be handed to the CPU without a copy."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _look_in(capsule: Any) -> tuple[_Tensor, int]:
    """Return the description of memory in a capsule, as it lies there, and its flags."""
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        return versioned.tensor, versioned.flags
    return _Tensor.from_address(_pointer(capsule, b"dltensor")), 0


class _Lender:
    """Another library's array; its capsules are read here before NumPy or CuPy takes them."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.read_only = self.is_bfloat16 = False

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._array.__dlpack__(**options)
        tensor, flags = _look_in(capsule)
        if tensor.lanes != 1 or tensor.bits not in _BITS.get(tensor.code, ()):
            raise DtypeError(
                f"from_dlpack: lucid holds no elements of DLPack's kind {tensor.code} of {tensor.bits} bits and "
                f"{tensor.lanes} lanes; convert the array to a dtype that lucid has"
            )
        check_size("from_dlpack", tensor.shape[: tensor.ndim], tensor.bits // 8)
        self.read_only = bool(flags & _READ_ONLY)
        self.is_bfloat16 = tensor.code == _BFLOAT
        if self.is_bfloat16 and tensor.device_type in HOSTS:
            tensor.code = _UNSIGNED
        return capsule


def writeable(array: Any, *, copies: bool) -> Any:
    """Return a copy of a CuPy array on read-only memory: CuPy has no notion of such.

    Raises
    ------
    SettingError
        If nothing is to be copied.
    """
    if not copies:
        raise SettingError("this memory of a CUDA device is read only, and a tensor's is not: it has to be copied")
    with gpu.use_device(gpu.device_index(array)):
        return array.copy()


def read(array: Any, *, copies: bool = True) -> Any:
    """Return a NumPy or CuPy array on the memory of an object with ``__dlpack__``.

    CUDA memory that is to be read only is copied, or refused if nothing is to be (`copies`).

    Raises
    ------
    DtypeError
        If lucid has no such dtype.
    DeviceError
        If it is on a device that is neither the CPU nor CUDA.
    CudaUnavailableError
        If it is on a CUDA device that lucid cannot use.
    SettingError
        If a copy is needed and not wanted.
    """
    kind, index = array.__dlpack_device__()
    lender = _Lender(array)
    if int(kind) in HOSTS:
        taken: Any = np.from_dlpack(lender)
        return taken.view(bfloat16.numpy) if lender.is_bfloat16 else taken
    if int(kind) not in CUDA:
        raise DeviceError(
            f"from_dlpack: expected memory of the CPU or of a CUDA device, got DLPack's kind of device {int(kind)}: "
            "copy the array to the CPU first"
        )
    with gpu.use_device(int(index)):
        taken = gpu.cupy().from_dlpack(lender)
    return writeable(taken, copies=copies) if lender.read_only else taken


def capsule_of(array: Any, options: dict[str, Any]) -> Any:
    """Return the DLPack capsule of an array's memory.

    Raises
    ------
    StepsError
        If elements lie backwards and no copy is asked for.
    DtypeError
        If the array library cannot export the dtype.
    CopyNeededError
        If an array on a CUDA device is wanted on the CPU, and no copy.
    """
    target = options.get("dl_device")
    if options.get("copy") is False and target is not None and target[0] == CPU and gpu.is_gpu_array(array):
        raise CopyNeededError(
            f"__dlpack__: a copy is needed to give a tensor on {device_of(array)} to the CPU, got copy=False"
        )
    if options.get("copy") and gpu.is_gpu_array(array):
        # CuPy itself copies only on the way to the CPU
        with gpu.use_device(gpu.device_index(array)):
            array = array.copy(order="C")
        options = {key: value for key, value in options.items() if key != "copy"}
    elif options.get("copy") and array is not forwards(array):
        array = array.copy(order="C")
    if any(size > 1 and step < 0 for size, step in zip(array.shape, array.strides, strict=True)):
        raise StepsError(
            f"__dlpack__: elements of shape {tuple(array.shape)}, {dtype_of(array).name}, lie backwards in memory "
            f"(strides of {tuple(array.strides)} bytes), which ends processes of other libraries: hand over "
            "tensor.contiguous()"
        )
    # of sizes 0 and 1 a stride says nothing
    array = forwards(array)
    if array.dtype != bfloat16.numpy:
        return array.__dlpack__(**options)
    if gpu.is_gpu_array(array):
        if (target or array.__dlpack_device__())[0] in CUDA:
            return array.__dlpack__(**options)
        array, options = array.get(), {**options, "stream": None}
    capsule = array.view(np.uint16).__dlpack__(**options)
    _look_in(capsule)[0].code = _BFLOAT
    return capsule
