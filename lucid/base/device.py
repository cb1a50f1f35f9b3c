"""Devices of tensors: the CPU (NumPy) and CUDA devices (CuPy)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lucid.arguments import unfit
from lucid.base import gpu
from lucid.errors import DeviceError

if TYPE_CHECKING:
    from lucid.base.arrays import Array


_SPELLING = re.compile(r"(cpu|cuda)(?::(0|[1-9][0-9]*))?")


class device:
    """A device for tensors: a type, ``"cpu"`` or ``"cuda"``, and an index or None.

    Naming a device does not need it to exist; putting a tensor there does. Devices are immutable, hashable and equal
    if type and index are equal, so ``device("cuda")`` (the current one) is not equal to ``device("cuda:0")``.

    Parameters
    ----------
    type : str, int or device
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; an index, meaning that CUDA device; or another device.
    index : int, optional
        Index from 0, if ``type`` does not hold one.

    Raises
    ------
    DeviceError
        If the spelling is wrong, the index is negative, or the index is given twice.

    Examples
    --------
    >>> from lucid.base.device import device
    >>> device("cuda", 1), str(device("cuda:1")), device("cpu")
    (device(type='cuda', index=1), 'cuda:1', device(type='cpu'))
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | int | device, index: int | None = None) -> None:
        if isinstance(type, device):
            kind, own = type.type, type.index
        elif isinstance(type, str):
            match = _SPELLING.fullmatch(type)
            if match is None:
                error = unfit(type, "a device such as 'cpu', 'cuda' or 'cuda:1'", "device", DeviceError)
                if type.partition(":")[0] not in {"cpu", "cuda"}:
                    # PyTorch's words, of which code for several libraries reads which kinds of devices there are
                    words = f"{error}: Expected one of cpu, cuda device type at start of device string: {type}"
                    error = DeviceError(words)
                raise error
            kind, own = match[1], None if match[2] is None else int(match[2])
        elif isinstance(type, int) and not isinstance(type, bool):
            kind, own = "cuda", type
        else:
            raise unfit(type, "a device, its name or a CUDA index", "device", DeviceError)
        if index is not None and own is not None:
            raise DeviceError(f"device: the index is given twice, in {type!r} and as index={index}; leave one out")
        if index is not None and not isinstance(index, int):
            raise unfit(index, "an int or None", "index", DeviceError)
        number = own if index is None else index
        if number is not None and number < 0:
            raise DeviceError(f"device: expected an index of 0 or more, got {number}")
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", number)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"device.{name} cannot be set: devices are immutable, make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"device.{name} cannot be deleted: devices are immutable")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, device):
            return self.type == other.type and self.index == other.index
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type={self.type!r})"
        return f"device(type={self.type!r}, index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[type[device], tuple[str, int | None]]:
        return device, (self.type, self.index)


Device: TypeAlias = device | int | str | None
"""What names a device: one, the index of a CUDA device, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``; None is the default."""

CPU = device("cpu")
"""The device of every NumPy array."""

_default = CPU
_cuda_devices: dict[int, device] = {}


def _cuda(index: int) -> device:
    """Device object of one CUDA index, the same each time."""
    known = _cuda_devices.get(index)
    if known is None:
        known = _cuda_devices.setdefault(index, device("cuda", index))
    return known


def get_default_device() -> device:
    """Device of tensors made from Python data; the CPU until `set_default_device` is called."""
    return as_device(None)


def set_default_device(spec: Device) -> None:
    """Make ``spec`` the device of tensors that are made without one, in the whole process; None means the CPU.

    ``"cuda"`` without an index follows the current CUDA device from call to call.

    Raises
    ------
    DeviceError
        If the device is misspelled or does not exist. The default then stays what it was.

    Examples
    --------
    >>> from lucid.base.device import get_default_device, set_default_device
    >>> set_default_device("cpu")
    >>> get_default_device()
    device(type='cpu')
    """
    global _default
    chosen = CPU if spec is None else device(spec)
    as_device(chosen)
    _default = chosen


def as_device(spec: Device) -> device:
    """Device that exists and that ``spec`` names, its index filled in.

    Parameters
    ----------
    spec : str, int, device or None
        ``"cpu"``, ``"cuda"`` (the current CUDA device), ``"cuda:1"``; an index, meaning that CUDA device; None for the
        default device.

    Returns
    -------
    device
        `CPU` itself, or a CUDA device with its index.

    Raises
    ------
    DeviceError
        If the spelling is wrong, or no device of that index exists; the message lists those that do.
    CudaUnavailableError
        If a CUDA device is named and there is none at all. It is a `DeviceError` too.

    Examples
    --------
    >>> from lucid.base.device import as_device
    >>> as_device(None), as_device("cpu")
    (device(type='cpu'), device(type='cpu'))
    """
    named = _default if spec is None else spec if isinstance(spec, device) else device(spec)
    if named.type == "cpu":
        if named.index:
            raise DeviceError(f"no device {named}: there is one CPU, named 'cpu'")
        return CPU
    # Every device that was handed out exists, so one that is known needs no second look at the driver.
    known = None if named.index is None else _cuda_devices.get(named.index)
    if known is not None:
        return known
    gpu.cupy()
    if named.index is None:
        return _cuda(gpu.current_device())
    count = gpu.device_count()
    if named.index >= count:
        existing = ", ".join(f"cuda:{i}" for i in range(count))
        raise DeviceError(f"no device {named}; the devices here are cpu, {existing}")
    return _cuda(named.index)


def device_of(array: Array) -> device:
    """Device that holds a NumPy or CuPy array.

    Parameters
    ----------
    array : Array
        Array or NumPy scalar.

    Returns
    -------
    device
        `CPU` itself for NumPy's.

    Raises
    ------
    DeviceError
        If ``array`` is neither NumPy's nor CuPy's.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.device import CPU, device_of
    >>> device_of(np.zeros(3)) is CPU
    True
    """
    if type(array) is np.ndarray or isinstance(array, (np.ndarray, np.generic)):
        return CPU
    if gpu.is_gpu_array(array):
        return _cuda(gpu.device_index(array))
    raise DeviceError(f"expected a NumPy or CuPy array, got {type(array).__name__}")


def beside(a: Array, b: Array) -> bool:
    """Return whether two arrays lie on one device.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.device import beside
    >>> beside(np.zeros(3), np.zeros(3))
    True
    """
    if type(a) is not type(b):
        return device_of(a) is device_of(b)
    return not gpu.is_gpu_array(a) or gpu.device_index(a) == gpu.device_index(b)
