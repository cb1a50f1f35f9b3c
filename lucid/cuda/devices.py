"""The CUDA devices of this machine, and the current one."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeAlias

from lucid.base import device as devices
from lucid.base import gpu
from lucid.base.capture import waiting
from lucid.cuda.held import release
from lucid.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Generator


CudaDevice: TypeAlias = "devices.device | int | str | None"
"""A CUDA device, its index or its name; None for the current one."""


def cuda_index(device: CudaDevice) -> int:
    """Index of an existing CUDA device.

    Parameters
    ----------
    device : device, int, str or None
        None means the current CUDA device.

    Returns
    -------
    int

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    DeviceError
        If ``device`` is not a CUDA device, or no device of that index exists.
    """
    chosen = devices.as_device("cuda" if device is None else device)
    if chosen.index is None:
        raise DeviceError(f"expected a CUDA device such as 'cuda:0' or 0, got {device!r}")
    return chosen.index


def set_device(device: CudaDevice) -> None:
    """Make a CUDA device the current one of this thread; prefer the context manager `device`.

    Parameters
    ----------
    device : device, int, str or None
        None and negative indices change nothing, as in PyTorch.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    DeviceError
        If ``device`` is not a CUDA device, or no device of that index exists. The current device then stays.
    """
    if not _means_nothing(device):
        gpu.cupy().cuda.runtime.setDevice(cuda_index(device))


@contextmanager
def device(device: CudaDevice) -> Generator[None]:
    """Context manager that makes a CUDA device current in this thread, and restores the previous one.

    Parameters
    ----------
    device : device, int, str or None
        None and negative indices change nothing, as in PyTorch.

    Raises
    ------
    CudaUnavailableError
        On entry, if there is no CUDA device.
    DeviceError
        On entry, if ``device`` is not a CUDA device, or no device of that index exists.
    """
    with nullcontext() if _means_nothing(device) else gpu.use_device(cuda_index(device)):
        yield


def _means_nothing(device: CudaDevice) -> bool:
    return device is None or (isinstance(device, int) and device < 0)


def get_device_name(device: CudaDevice = None) -> str:
    """Name that the driver gives a CUDA device, such as ``"NVIDIA H200"``.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    DeviceError
        If ``device`` is not a CUDA device, or no device of that index exists.
    """
    return gpu.cupy().cuda.runtime.getDeviceProperties(cuda_index(device))["name"].decode()


def synchronize(device: CudaDevice = None) -> None:
    """Wait until a CUDA device has done everything that was queued on it, on all streams.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    DeviceError
        If ``device`` is not a CUDA device, or no device of that index exists.
    """
    with gpu.use_device(cuda_index(device)), waiting:
        gpu.cupy().cuda.runtime.deviceSynchronize()
    release()
