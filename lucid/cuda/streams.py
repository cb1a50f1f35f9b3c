"""Queues of device work, and marks in them."""

from __future__ import annotations

from contextlib import contextmanager
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, NoReturn, Self

from lucid.arguments import checked
from lucid.base import gpu
from lucid.base.device import as_device, device
from lucid.cuda.devices import cuda_index
from lucid.errors import DeviceError, SettingError

if TYPE_CHECKING:
    from collections.abc import Generator

    from lucid.cuda.devices import CudaDevice

__all__ = ["Event", "Stream", "current_stream", "default_stream", "stream"]


class OfProcess:
    """The base of names for objects of this process on its device: a copy is the object itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise PicklingError(f"a {type(self).__name__} is of this process: make one in the other")


class Stream(OfProcess):
    """A queue of work on one CUDA device: its work runs in order, and beside the work of other streams.

    A new stream does not wait for the default stream; order the two with `wait_stream` or events. CuPy gives freed
    memory to the stream on which it was allocated: keep a tensor that another stream uses until that is done, or call
    `Tensor.record_stream`.

    Parameters
    ----------
    device : device, int, str or None
        None means the current CUDA device.
    priority : int
        Lower numbers go first; 0 is normal, negative numbers are high.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    DeviceError
        If ``device`` is not a CUDA device, or no device of that index exists.
    """

    __slots__ = ("device", "raw")

    device: device
    raw: Any

    @checked
    def __init__(self, device: CudaDevice = None, priority: int = 0) -> None:
        index = cuda_index(device)
        with gpu.use_device(index):
            self.raw = gpu.cupy().cuda.Stream(non_blocking=True, priority=priority)
        self.device = as_device(index)

    @classmethod
    def of(cls, raw: Any, index: int) -> Stream:
        """Stream that stands for a CuPy stream of device ``index``."""
        made = cls.__new__(cls)
        made.raw = raw
        made.device = as_device(index)
        return made

    @property
    def cuda_stream(self) -> int:
        """Address of the ``cudaStream_t``."""
        return int(self.raw.ptr)

    @property
    def priority(self) -> int:
        """Priority that the driver gave it."""
        return int(self.raw.priority)

    def query(self) -> bool:
        """Whether everything queued so far is done."""
        with gpu.use_device(cuda_index(self.device)):  # whose default stream it is, the address does not say
            return bool(self.raw.done)

    def synchronize(self) -> None:
        """Wait until everything queued so far is done."""
        gpu.run_on(cuda_index(self.device), self.raw.synchronize)

    def record_event(self, event: Event | None = None) -> Event:
        """Event, a new one if None, that is reached when everything queued here so far is done."""
        mark = Event() if event is None else event
        mark.record(self)
        return mark

    def wait_event(self, event: Event) -> None:
        """Let work queued here from now on start only when ``event`` is reached; the host does not wait."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let work queued here from now on start only when all work queued so far on ``stream`` is done."""
        self.wait_event(stream.record_event())

    def __cuda_stream__(self) -> tuple[int, int]:
        # The protocol by which libraries take each other's streams: its version and the address.
        return 0, self.cuda_stream

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Stream):
            return self.device == other.device and self.cuda_stream == other.cuda_stream
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream))

    def __repr__(self) -> str:
        return f"lucid.cuda.Stream(device={self.device}, cuda_stream={self.cuda_stream:#x})"


class Event(OfProcess):
    """A mark in a stream, to wait for or to take times with.

    It belongs to the device of the stream on which it is first recorded. An event that was never recorded counts as
    reached.

    Parameters
    ----------
    enable_timing : bool
        Whether `elapsed_time` will be asked; events without are cheaper.
    blocking : bool
        Whether `synchronize` lets the processor sleep instead of spinning.
    interprocess : bool
        Whether other processes may open it; excludes ``enable_timing``.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    ValueError
        If both ``enable_timing`` and ``interprocess`` are asked for.
    """

    __slots__ = ("_settings", "device", "raw", "timing")

    device: device | None
    raw: Any
    timing: bool

    @checked
    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if enable_timing and interprocess:
            raise SettingError(
                "Event: an event for other processes takes no times; leave out enable_timing or interprocess"
            )
        gpu.cupy()
        self.timing = enable_timing
        self._settings = {"block": blocking, "disable_timing": not enable_timing, "interprocess": interprocess}
        self.device = None
        self.raw = None

    def record(self, stream: Stream | None = None) -> None:
        """Move the mark to the end of the work queued on ``stream``, the current one if None.

        Raises
        ------
        DeviceError
            If the event was recorded on another device before.
        """
        target = current_stream() if stream is None else stream
        if self.device is not None and self.device != target.device:
            raise DeviceError(f"Event: recorded on {self.device} before, so not on {target.device}; make a new event")
        with gpu.use_device(cuda_index(target.device)):
            if self.raw is None:
                self.raw = gpu.cupy().cuda.Event(**self._settings)
                self.device = target.device
            self.raw.record(target.raw)

    def wait(self, stream: Stream | None = None) -> None:
        """Let work queued from now on on ``stream``, the current one if None, start only when this event is reached."""
        if self.raw is not None:
            target = current_stream() if stream is None else stream
            gpu.run_on(cuda_index(target.device), target.raw.wait_event, self.raw)

    def query(self) -> bool:
        """Whether the mark is reached."""
        return self.raw is None or bool(self.raw.done)

    def synchronize(self) -> None:
        """Wait until the mark is reached."""
        if self.raw is not None:
            self.raw.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to ``end_event``, after both were reached.

        Raises
        ------
        RuntimeError
            If either was made without ``enable_timing``, was not recorded, or is not reached yet.
        DeviceError
            If they were recorded on two devices.
        """
        for event, name in ((self, "this event"), (end_event, "end_event")):
            if not event.timing:
                raise RuntimeError(f"elapsed_time: {name} takes no times; make it with Event(enable_timing=True)")
            if event.raw is None:
                raise RuntimeError(f"elapsed_time: {name} was never recorded; call record() first")
            if not event.query():
                raise RuntimeError(f"elapsed_time: {name} is not reached yet; call synchronize() on it first")
        if self.device != end_event.device:
            raise DeviceError(
                f"elapsed_time: this event is of {self.device}, end_event of {end_event.device}; each device has a "
                "clock of its own: record both on one"
            )
        return float(gpu.cupy().cuda.get_elapsed_time(self.raw, end_event.raw))


def current_stream(device: CudaDevice = None) -> Stream:
    """Return the current stream of this thread on a CUDA device.

    Parameters
    ----------
    device : device, int, str or None
        None means the current CUDA device.

    Returns
    -------
    Stream

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    DeviceError
        If ``device`` is not a CUDA device, or no device of that index exists.
    """
    index = cuda_index(device)
    return Stream.of(gpu.current_stream(index), index)


def default_stream(device: CudaDevice = None) -> Stream:
    """Return the default stream of a CUDA device, current unless another is chosen.

    It is CUDA's legacy default stream or, under CUPY_CUDA_PER_THREAD_DEFAULT_STREAM=1, a stream of each thread's own:
    synchronise it before another thread goes on with what is queued there, be it by backward.

    Parameters
    ----------
    device : device, int, str or None
        None means the current CUDA device.

    Returns
    -------
    Stream

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    DeviceError
        If ``device`` is not a CUDA device, or no device of that index exists.
    """
    index = cuda_index(device)
    return Stream.of(gpu.default_stream(), index)


@contextmanager
def stream(stream: Stream | None) -> Generator[None]:
    """Context manager that makes ``stream`` and its device current, and restores the previous ones.

    Parameters
    ----------
    stream : Stream or None
        None changes nothing.
    """
    if stream is None:
        yield
        return
    index = cuda_index(stream.device)
    with gpu.use_device(index), gpu.use_stream(stream.raw, index):
        yield
