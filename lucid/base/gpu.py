"""The one door to CuPy: nothing else in lucid imports it.

CuPy is imported when a CUDA device is first asked for, never by ``import lucid``.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import ExitStack, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from lucid.base.capture import REMEDY, capture_of_this_thread, captures, check_not_capturing, note_arrays
from lucid.base.reports import logger
from lucid.base.trust import distrusted
from lucid.errors import CaptureError, CudaUnavailableError, LucidError, OutOfMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from lucid.base.arrays import Array

T = TypeVar("T")


_INSTALL = "install it with: pip install 'lucid-cupy[cuda12]' (or [cuda13], by the CUDA version of the driver)"

# CUDA's names for the default stream of all threads and for that of whichever thread asks; CuPy reads the same setting.
_LEGACY, _PER_THREAD = 0, 2
_DEFAULT = _LEGACY if os.environ.get("CUPY_CUDA_PER_THREAD_DEFAULT_STREAM", "0") in {"", "0"} else _PER_THREAD


_module: Any = None
_simulated = False


def simulate() -> None:
    """Take note that CUDA devices are the simulator's."""
    global _simulated
    _simulated = True


def is_simulated() -> bool:
    """Whether CUDA devices are the simulator's."""
    return _simulated


def part(name: str) -> Any:
    """Return a module of CuPy's distribution that `cupy` does not hold, by its dotted name, such as ``"cupyx"``."""
    if (loaded := sys.modules.get(name)) is not None:
        return loaded
    with warnings.catch_warnings():
        # CuPy says it of what its own modules use
        warnings.filterwarnings("ignore", "cupyx.jit.rawkernel is experimental", FutureWarning)
        return import_module(name)


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
        count = int(module.cuda.runtime.getDeviceCount())
    except Exception as error:
        raise CudaUnavailableError(
            f"CuPy found no CUDA device ({error}); check nvidia-smi, the driver and CUDA_VISIBLE_DEVICES, "
            "or use device='cpu'"
        ) from error
    if count == 0:
        raise CudaUnavailableError(
            "CuPy found no CUDA device; check nvidia-smi and CUDA_VISIBLE_DEVICES, or use device='cpu'"
        )
    if not _simulated:
        _distrust_cache()
    _module = module
    return module


def _distrust_cache() -> None:
    """Have CuPy keep kernels in memory if another user could have written into the folder of its cache."""
    from pathlib import Path  # noqa: PLC0415  it takes a twentieth of the time of `import lucid`

    path = Path(os.environ.get("CUPY_CACHE_DIR", "~/.cupy/kernel_cache"))
    with suppress(RuntimeError):  # a user without a home
        path = path.expanduser().absolute()
    if path.is_dir() and (reason := distrusted(path, ours=False)):
        os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
        logger().warning(
            "CuPy's compiled kernels are neither taken from %s nor kept there: %s; each process compiles its own. "
            "Delete that folder, or name one of your own in CUPY_CACHE_DIR",
            path,
            reason,
        )


def device_count() -> int:
    """Return the number of CUDA devices; 0 without CuPy or without any device. Never raises."""
    try:
        return int(cupy().cuda.runtime.getDeviceCount())
    except Exception:  # noqa: BLE001 - whatever a broken driver raises, the answer is that no device can be used
        return 0


def is_available() -> bool:
    """Whether at least one CUDA device can be used. Never raises."""
    return device_count() > 0


def is_loaded() -> bool:
    """Whether a CUDA device has been asked for, so that CuPy is imported."""
    return _module is not None


def is_gpu_array(x: object) -> bool:
    """Whether ``x`` is a CuPy array, told without importing CuPy: until it is loaded, nothing can be one."""
    if _module is not None:
        return isinstance(x, _module.ndarray)
    # A module that is still being imported has no ndarray yet, and then no array exists.
    kind = getattr(sys.modules.get("cupy"), "ndarray", None)
    return kind is not None and isinstance(x, kind)


def array_type() -> type[Any] | None:
    """Return the class of CuPy's arrays; None while no CUDA device has been asked for."""
    return None if _module is None else _module.ndarray


def array_maker() -> Callable[[Any, Any], Any]:
    """Return a constructor of CUDA arrays without values: ``cupy.ndarray``, in three quarters of its time."""
    kind = cupy().ndarray
    base = kind.__mro__[1]
    if not hasattr(base, "_init"):
        return kind
    # what CuPy's own class calls, without the handling of arguments for classes that inherit from it
    new = base.__new__

    def make(shape: Any, dtype: Any) -> Any:
        array = new(kind)
        array._init(shape, dtype)  # noqa: SLF001
        return array

    return make


def device_index(array: Array) -> int:
    """Index of the CUDA device that holds a CuPy array."""
    return int(array.data.device_id)


class use_device:
    """Context with CUDA device ``index`` as the current one; the previous one comes back, also after an exception.

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
            if isinstance(error, Exception):
                raise_for(error)
        finally:
            if self._runtime.getDevice() != self._before:
                self._runtime.setDevice(self._before)
            # an error whose traceback holds it would keep the arrays of all its frames until the next collection
            del error, traceback


def run_on(index: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``, run as inside of ``use_device(index)``: less for the current device."""
    runtime = (_module or cupy()).cuda.runtime
    if captures:
        note_arrays(arguments)
    if runtime.getDevice() != index:
        with use_device(index):
            return function(*arguments)
    try:
        return function(*arguments)
    except Exception as error:
        raise_for(error)
        raise
    finally:
        if runtime.getDevice() != index:
            runtime.setDevice(index)


def raise_for(error: Exception) -> None:
    """Raise the error of lucid's for one of CuPy's that is about memory, or about a capture; else return."""
    if isinstance(error, MemoryError) and isinstance(error, cupy().cuda.memory.OutOfMemoryError):
        raise _out_of_memory(error) from error
    if captures and capture_of_this_thread() is not None and not isinstance(error, LucidError):
        # CuPy refuses with errors of several types what a capture cannot record
        if "captur" in str(error).lower():
            raise CaptureError(f"this cannot be captured in a CUDA graph ({error}): {REMEDY}") from error


def _out_of_memory(error: BaseException) -> OutOfMemoryError:
    """Error of the current device, with the size asked for and the bytes in use."""
    pool = cupy().get_default_memory_pool()
    used, total = pool.used_bytes(), pool.total_bytes()
    return OutOfMemoryError(
        f"CUDA out of memory: cuda:{current_device()} has no room left: {error} Tensors hold {used:,} bytes, and "
        f"{total - used:,} more lie in pieces between them, too small or of other streams. Use smaller batches, free "
        "tensors and graphs that are no longer needed, or run parts of the model under lucid.no_grad()"
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
    """CuPy stream of this thread's work for device ``index`` (the current device if None).

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    """
    module = _module or cupy()
    return module.cuda.get_current_stream() if index is None else module.cuda.get_current_stream(index)


def default_stream() -> Any:
    """CuPy stream of this thread's work for any device, unless another is chosen."""
    kinds = cupy().cuda.Stream
    return kinds.null if _DEFAULT == _LEGACY else kinds.ptds


def is_default(stream: Any) -> bool:
    """Whether a CuPy stream is `default_stream`."""
    return stream.ptr == _DEFAULT


def is_capturing() -> bool:
    """Whether work that this thread queues on the current device is recorded, whatever began the capture."""
    if _module is None:
        return False
    stream = _module.cuda.get_current_stream()
    # CuPy captures no default stream
    return stream.ptr > _PER_THREAD and stream.is_capturing()


def mark(stream: Any) -> Any:
    """CuPy event at the end of the work queued so far on a stream of the current device."""
    return stream.record(cupy().cuda.Event(disable_timing=True))


class use_stream:
    """Context with a CuPy stream for this thread's work on CUDA device ``index``, current or not.

    It is the one way to change streams.
    """

    __slots__ = ("_before", "_index", "_stream")

    def __init__(self, stream: Any, index: int) -> None:
        self._stream = stream
        self._index = index

    def __enter__(self) -> None:
        self._before = current_stream(self._index)
        with use_device(self._index):
            # a block of CuPy's inside of this one ends on the stream that was entered last, whatever `use` has chosen
            self._stream.__enter__()

    def __exit__(self, *_: object) -> None:
        with use_device(self._index):
            self._stream.__exit__()
            # for the same reason: the stream before may be one that `use` has chosen
            self._before.use()


def on_this_threads_streams(function: Callable[[], T]) -> Callable[[], T]:
    """Return `function` for another thread to call: with the current device and streams of this one."""
    if _module is None:
        return function
    device, streams = current_device(), [current_stream(index) for index in range(device_count())]
    # what goes by one name is another stream there: neither can be told to wait for the other
    own = [stream for stream in streams if stream.ptr == _PER_THREAD]

    def wait() -> None:
        for stream in own:
            stream.synchronize()

    def run() -> T:
        with ExitStack() as stack:
            stack.callback(wait)
            for index, stream in enumerate(streams):
                stack.enter_context(use_stream(stream, index))
            stack.enter_context(use_device(device))
            return function()

    wait()
    return run


def transfer(array: Array, source: int | None, target: int | None, *, blocking: bool) -> Any:
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
    if source is None and not array.ndim and array.itemsize <= 8:
        # by its bits, in a kernel's parameter: no copy, which a capture could not record; of dtypes that CuPy has not
        bits = np.dtype(f"u{array.itemsize}")
        with use_device(cast("int", target)):
            return module.full((), array.view(bits).item(), bits).view(array.dtype)
    check_not_capturing("a copy to the host" if target is None else "a copy from the host or another device")
    if target is None:
        with use_device(device_index(array)):
            return array.get(order="A", blocking=blocking)
    if source is None:
        with use_device(target):
            if not array.ndim and not array:
                # CuPy fills an array of no dimension, and writes 0 for -0
                return module.asarray(array.reshape(1), blocking=blocking).reshape(())
            return module.asarray(array, blocking=blocking)
    return _between(module, array, source, target)


def _between(module: Any, array: Any, source: int, target: int) -> Any:
    """Copy of a CuPy array on another CUDA device, in order with the current streams of both."""
    with use_device(source):
        # CuPy gives an array of no dimension one
        array = module.ascontiguousarray(array).reshape(array.shape)
        giver = current_stream(source)
        written = mark(giver)
    with use_device(target):
        taker = current_stream(target)
        taker.wait_event(written)
        moved = array.copy()
        taken = mark(taker)
    with use_device(source):
        # Without this the source could be freed and overwritten while the copy still reads it.
        giver.wait_event(taken)
    return moved


def is_pinned(array: Array) -> bool:
    """Whether the first byte of a NumPy array is in memory that the driver has page-locked."""
    if _module is None:
        return False
    # 0: memory that the driver does not know
    return _module.cuda.runtime.pointerGetAttributes(array.__array_interface__["data"][0]).type != 0


def pinned_empty(nbytes: int) -> Any:
    """Return bytes of page-locked host memory, as a NumPy array."""
    return part("cupyx").empty_pinned((nbytes,), np.uint8)


def pinned_copy(array: Array) -> Any:
    """Copy of a CuPy array in page-locked host memory, complete when it is returned."""
    host: Any = part("cupyx").empty_pinned(array.shape, array.dtype)
    with use_device(device_index(array)):
        return array.get(out=host)
