"""The one door to CuPy: nothing else in lucid imports it.

CuPy is imported when a CUDA device is first asked for, never by ``import lucid``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from lucid.errors import CudaUnavailableError, OutOfMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

T = TypeVar("T")

__all__ = [
    "cupy",
    "current_device",
    "current_stream",
    "device_count",
    "device_index",
    "is_available",
    "is_gpu_array",
    "is_simulated",
    "on_this_threads_streams",
    "part",
    "stand_in",
    "transfer",
    "use_device",
]

_INSTALL = "install it with: pip install 'lucid-cupy[cuda12]' (or [cuda13], by the CUDA version of the driver)"

_module: Any = None
_stand_in: Callable[[str], Any] | None = None


def stand_in(load: Callable[[str], Any]) -> None:
    """Let ``load`` give the modules of CuPy, by their dotted names: the simulator's, in place of the real ones."""
    global _stand_in
    _stand_in = load


def is_simulated() -> bool:
    """Whether CUDA devices are the simulator's."""
    return _stand_in is not None


def part(name: str) -> Any:
    """Return a module of CuPy's distribution that `cupy` does not hold, by its dotted name, such as ``"cupyx"``."""
    return import_module(name) if _stand_in is None else _stand_in(name)


def cupy() -> Any:
    """``cupy`` itself, imported on the first call and found to have a device.

    Returns
    -------
    module

    Raises
    ------
    CudaUnavailableError
        If CuPy is not installed, does not load, or finds no CUDA device. The message says what to do.
    """
    global _module
    if _module is not None:
        return _module
    try:
        module = part("cupy")
    except ModuleNotFoundError as error:
        raise CudaUnavailableError(f"a CUDA device needs CuPy, which is not installed; {_INSTALL}") from error
    except Exception as error:
        raise CudaUnavailableError(f"CuPy is installed but does not load ({error}); {_INSTALL}") from error
    try:
        found = int(module.cuda.runtime.getDeviceCount())
    except Exception as error:
        raise CudaUnavailableError(
            f"CuPy found no CUDA device ({error}); check nvidia-smi, the driver and CUDA_VISIBLE_DEVICES, "
            "or use device='cpu'"
        ) from error
    if found == 0:
        raise CudaUnavailableError(
            "CuPy found no CUDA device; check nvidia-smi and CUDA_VISIBLE_DEVICES, or use device='cpu'"
        )
    _module = module
    return module


def device_count() -> int:
    """How many CUDA devices there are; 0 where CuPy is missing or finds none. Never raises."""
    try:
        return int(cupy().cuda.runtime.getDeviceCount())
    except Exception:  # noqa: BLE001 - whatever a broken driver raises, the answer is that no device can be used
        return 0


def is_available() -> bool:
    """Whether at least one CUDA device can be used. Never raises."""
    return device_count() > 0


def is_gpu_array(x: object) -> bool:
    """Whether ``x`` is a CuPy array, told without importing CuPy: where it is not loaded, nothing can be one."""
    module = _module or sys.modules.get("cupy")
    # A module that is still being imported has no ndarray yet, and then no array exists.
    kind = getattr(module, "ndarray", None)
    return kind is not None and isinstance(x, kind)


def device_index(array: Any) -> int:
    """Index of the CUDA device that holds a CuPy array."""
    return int(array.data.device_id)


class use_device:
    """Context in which CUDA device ``index`` is the current one; the previous one comes back, also after an exception.

    All work on CUDA devices is done inside of one, so that it is here that CuPy's lack of memory becomes lucid's.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    OutOfMemoryError
        On leaving, if the device had no room for what was done inside.
    """

    __slots__ = ("_before", "_index", "_runtime")

    def __init__(self, index: int) -> None:
        self._index = index
        self._runtime = cupy().cuda.runtime

    def __enter__(self) -> None:
        self._before = self._runtime.getDevice()
        if self._before != self._index:
            self._runtime.setDevice(self._index)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, MemoryError) and isinstance(error, cupy().cuda.memory.OutOfMemoryError):
                raise _out_of_memory(error) from error
        finally:
            if self._runtime.getDevice() != self._before:
                self._runtime.setDevice(self._before)
            # an error whose traceback holds it would keep the arrays of all its frames until the next collection
            del error, traceback


def _out_of_memory(error: BaseException) -> OutOfMemoryError:
    """Error of the current device, with what was asked for and what is held."""
    pool = cupy().get_default_memory_pool()
    used, total = pool.used_bytes(), pool.total_bytes()
    return OutOfMemoryError(
        f"cuda:{current_device()} has no room left: {error} Tensors hold {used:,} bytes, and {total - used:,} more are "
        "kept for reuse. Use smaller batches, free tensors and graphs that are no longer needed, or run parts of the "
        "model under lucid.no_grad()"
    )


def current_device() -> int:
    """Index of the current CUDA device of this thread.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    """
    return int(cupy().cuda.runtime.getDevice())


def current_stream(index: int | None = None) -> Any:
    """CuPy stream on which work for device ``index`` (the current device if None) is queued now.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    """
    module = cupy()
    return module.cuda.get_current_stream() if index is None else module.cuda.get_current_stream(index)


def on_this_threads_streams(function: Callable[[], T]) -> Callable[[], T]:
    """Return `function` for another thread to call: with the current device and streams of this one."""
    if _module is None:
        return function
    device, streams = current_device(), [current_stream(index) for index in range(device_count())]

    def run() -> T:
        for index, stream in enumerate(streams):
            with use_device(index):
                stream.use()
        with use_device(device):
            return function()

    return run


def transfer(array: Any, source: int | None, target: int | None, *, blocking: bool) -> Any:
    """Copy of an array on another device; None stands for the CPU.

    Parameters
    ----------
    array : Array
        NumPy array if ``source`` is None, else a CuPy array on that device.
    source, target : int or None
        Indices of CUDA devices that exist, not equal.
    blocking : bool
        Whether to return only when the values have arrived.

    Returns
    -------
    Array

    Raises
    ------
    OutOfMemoryError
        If the target has no room for the copy.
    """
    module = cupy()
    if target is None:
        with use_device(device_index(array)):
            return array.get(order="A", blocking=blocking)
    if source is None:
        with use_device(target):
            return module.asarray(array, blocking=blocking)
    return _between(module, array, source, target)


def _between(module: Any, array: Any, source: int, target: int) -> Any:
    """Copy of a CuPy array on another CUDA device, in order with the current streams of both."""
    with use_device(source):
        # CuPy gives an array of no dimension one
        array = module.ascontiguousarray(array).reshape(array.shape)
        giver = current_stream(source)
        written = giver.record(module.cuda.Event(disable_timing=True))
    with use_device(target):
        taker = current_stream(target)
        taker.wait_event(written)
        moved = array.copy()
        taken = taker.record(module.cuda.Event(disable_timing=True))
    with use_device(source):
        # Without this the source could be freed and overwritten while the copy still reads it.
        giver.wait_event(taken)
    return moved


def pinned_copy(array: Any) -> Any:
    """Copy of a CuPy array in page-locked host memory, complete when it is returned."""
    host: Any = part("cupyx").empty_pinned(array.shape, array.dtype)
    with use_device(device_index(array)):
        return array.get(out=host)
