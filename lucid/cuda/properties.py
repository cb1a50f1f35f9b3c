"""Properties and free memory of CUDA devices, for programs that choose their settings by them."""

from __future__ import annotations

from typing import Any, NamedTuple

from lucid.arguments import checked
from lucid.base import gpu
from lucid.cuda.devices import CudaDevice, cuda_index
from lucid.cuda.memory import max_memory_allocated, memory_allocated, memory_reserved

MIB = 2**20
BFLOAT16_IN_HARDWARE = (8, 0)


class DeviceProperties(NamedTuple):
    """Properties of a CUDA device, as the driver gives them; sizes in bytes.

    Attributes
    ----------
    name : str
        Such as ``"NVIDIA H200"``.
    major, minor : int
        The two numbers of the compute capability.
    total_memory, L2_cache_size : int
        Memory of the device, and of its second cache.
    multi_processor_count, warp_size, max_threads_per_multi_processor : int
        What works at once.
    shared_memory_per_block, shared_memory_per_block_optin, shared_memory_per_multiprocessor : int
        Memory that the threads of a block share: at first, at most, and of all blocks of one multiprocessor.
    is_integrated, is_multi_gpu_board : int
        1 if the device shares the host's memory, or its board with another.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_multi_processor: int
    L2_cache_size: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    is_integrated: int
    is_multi_gpu_board: int


def get_device_properties(device: CudaDevice = None) -> DeviceProperties:
    """Properties of a CUDA device, None for the current one.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    DeviceError
        If ``device`` is not a CUDA device, or no device of that index exists.
    """
    properties: dict[str, Any] = gpu.cupy().cuda.runtime.getDeviceProperties(cuda_index(device))
    return DeviceProperties(
        name=properties["name"].decode(),
        major=properties["major"],
        minor=properties["minor"],
        total_memory=properties["totalGlobalMem"],
        multi_processor_count=properties["multiProcessorCount"],
        warp_size=properties["warpSize"],
        max_threads_per_multi_processor=properties["maxThreadsPerMultiProcessor"],
        L2_cache_size=properties["l2CacheSize"],
        shared_memory_per_block=properties["sharedMemPerBlock"],
        shared_memory_per_block_optin=properties["sharedMemPerBlockOptin"],
        shared_memory_per_multiprocessor=properties["sharedMemPerMultiprocessor"],
        is_integrated=properties["integrated"],
        is_multi_gpu_board=properties["isMultiGpuBoard"],
    )


def get_device_capability(device: CudaDevice = None) -> tuple[int, int]:
    """Compute capability of a CUDA device, such as ``(9, 0)``; errors are those of `get_device_properties`."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


@checked
def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current CUDA device computes with bfloat16; False without a device.

    lucid's kernels do on every device, in float32 between reading and writing; with ``including_emulation=False`` the
    question is whether the hardware has it, which it does from capability 8.0 on.

    Examples
    --------
    >>> import lucid
    >>> lucid.cuda.is_bf16_supported() == lucid.cuda.is_available()
    True
    """
    return gpu.is_available() and (including_emulation or get_device_capability() >= BFLOAT16_IN_HARDWARE)


def mem_get_info(device: CudaDevice = None) -> tuple[int, int]:
    """Free and total bytes of a CUDA device, as the driver counts them: memory kept by lucid for reuse is not free.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    DeviceError
        If ``device`` is not a CUDA device, or no device of that index exists.
    """
    free, total = gpu.run_on(cuda_index(device), gpu.cupy().cuda.runtime.memGetInfo)
    return int(free), int(total)


@checked
def memory_summary(device: CudaDevice = None, abbreviated: bool = False) -> str:
    """Table of the memory that arrays hold, held at most, and that is kept for reuse.

    Parameters
    ----------
    device : device, int, str or None
        None means the current CUDA device.
    abbreviated : bool
        Whether to leave out what the driver says of all processes.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    DeviceError
        If ``device`` is not a CUDA device, or no device of that index exists.
    """
    index = cuda_index(device)
    rows = [
        ("held by arrays", memory_allocated(index)),
        ("held at most", max_memory_allocated(index)),
        ("held by lucid, in use or for reuse", memory_reserved(index)),
    ]
    if not abbreviated:
        rows += [*zip(("free on the device", "in all"), mem_get_info(index), strict=True)]
    lines = [f"  {text:<36}{count / MIB:>12,.1f} MiB" for text, count in rows]
    return "\n".join([f"memory of cuda:{index}", *lines])


def init() -> None:
    """Begin to use the current CUDA device; otherwise the first thing that needs it does.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    """
    cuda_index(None)


def is_initialized() -> bool:
    """Whether this process has begun to use CUDA.

    Examples
    --------
    >>> import lucid
    >>> lucid.cuda.is_initialized() <= lucid.cuda.is_available()
    True
    """
    return gpu.is_loaded() and gpu.is_available()


def ipc_collect() -> None:
    """Do nothing: tensors of CUDA devices are not shared between processes, so that none wait to be freed.

    Examples
    --------
    >>> import lucid
    >>> lucid.cuda.ipc_collect()
    """
