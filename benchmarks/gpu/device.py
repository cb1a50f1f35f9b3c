"""What rows ask of the device: what it is, whether it is simulated or lost, how long it works."""

from __future__ import annotations

import gc
import re
import statistics
from functools import cache
from typing import TYPE_CHECKING, Any

from benchmarks.command import version
from benchmarks.gpu.facts import text_of
from benchmarks.measure import Peer

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGES = (
    "numpy", "cupy-cuda13x", "cupy-cuda12x", "torch", "ml_dtypes", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12",
    "nvidia-cudnn-frontend", "nvtx", "opt_einsum", "rich", "safetensors", "pytest", "hypothesis",
)  # fmt: skip

# What leaves a context of no more use: every later call of the process fails with it.
STICKY = re.compile(
    r"(CUDA_ERROR_|cudaError)"
    r"(ILLEGAL|Illegal|MISALIGNED|Misaligned|INVALID_PC|InvalidPc|INVALID_ADDRESS|InvalidAddress|LAUNCH_|Launch|"
    r"HARDWARE|Hardware|ASSERT|Assert|ECC|UNKNOWN|Unknown)"
)


NO_DEVICE = 2  # exit status of a command that found none


class NoDeviceError(RuntimeError):
    """There is no CUDA device to run on."""


def device() -> dict[str, object]:
    """Return the first device and the versions around it; NoDeviceError says what is missing."""
    try:
        import cupy
    except ImportError as error:
        message = f"CuPy cannot be imported ({error}); install lucid-cupy[cuda12] or lucid-cupy[cuda13]"
        raise NoDeviceError(message) from error
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        message = f"CuPy {cupy.__version__} finds no CUDA device: {error}"
        raise NoDeviceError(message) from error
    if count == 0:
        message = f"CuPy {cupy.__version__} counts 0 CUDA devices"
        raise NoDeviceError(message)
    properties = runtime.getDeviceProperties(0)
    return {
        "name": properties["name"].decode(),
        "count": count,
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "memory_bytes": properties["totalGlobalMem"],
        "cuda_runtime": runtime.runtimeGetVersion(),
        "cuda_driver": runtime.driverGetVersion(),
        "cupy": cupy.__version__,
        **{name: version(name) for name in PACKAGES},
    }


def synchronize() -> None:
    """Wait for all that the device was given."""
    import lucid  # noqa: F401, I001 - before CuPy: it may simulate the device
    import cupy

    cupy.cuda.runtime.deviceSynchronize()


def simulated() -> bool:
    """Return whether the device is simulated."""
    from lucid.base import gpu

    return gpu.is_simulated()


@cache
def torch() -> Any:
    """Return PyTorch, None where it is not installed or does not see the device."""
    if simulated():
        return None
    try:
        import torch as library
    except ImportError:
        return None
    return library if library.cuda.is_available() else None


def peers() -> list[Peer]:
    """Return lucid on the device, and PyTorch where it is there."""
    return [Peer("lucid", "cuda"), *([Peer("torch", "cuda")] if torch() else [])]


def lost(error: BaseException) -> str:
    """Return how the context was lost, if an error or the next wait says so; else nothing."""
    if STICKY.search(str(error)):
        return text_of(error)
    try:
        synchronize()
    except Exception as later:
        return text_of(later)
    return ""


def seconds(call: Callable[[], object], rounds: int = 10, warm: int = 3) -> float:
    """Return the median time of a call between two events on the stream that both libraries use by default."""
    import cupy

    for _ in range(warm):
        call()
    pairs = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(rounds)]
    stream = cupy.cuda.get_current_stream()
    for before, after in pairs:
        before.record(stream)
        call()
        after.record(stream)
    synchronize()
    return statistics.median(cupy.cuda.get_elapsed_time(*pair) for pair in pairs) / 1e3


@cache
def copy_bandwidth(mib: float) -> float:
    """Return GB/s of a copy of so many MiB within the device: what is read and what is written count."""
    import cupy

    source, target = (cupy.zeros(int(mib * 2**20), "uint8") for _ in range(2))
    return 2 * source.nbytes / seconds(lambda: cupy.copyto(target, source)) / 1e9


def free() -> None:
    """Give back what both libraries keep of the device's memory."""
    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    if torch():
        torch().cuda.empty_cache()
