"""The time that ops take."""

from __future__ import annotations

from collections import Counter
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, ClassVar

from lucid.autograd.base import TensorBase, is_numpy
from lucid.base.capture import capture_of_this_thread
from lucid.cuda.streams import Event
from lucid.hooks.functions.sums import Sums

if TYPE_CHECKING:
    from lucid.autograd.hooks.functions import Call


def device_mark() -> Event | None:
    """Return a mark in the current stream, to measure the device's time to another mark; None in a capture."""
    if capture_of_this_thread() is not None:
        return None  # such a mark is one of each replay, and cannot be waited for
    event = Event(enable_timing=True)
    event.record()
    return event


class TimerHook(Sums):
    """A block that takes the time of each op of this thread, forward and backward; printed, a table.

    Attributes
    ----------
    calls : Counter of str
        How often each op has run, those that raised included.
    host : Counter of str
        Microseconds of the host's clock by the name of the op, less those of ops that it ran itself. On a CUDA device
        an op ends there when its work is queued.
    device : Counter of str
        Microseconds between two marks in the device's stream around each op with a CUDA tensor, also less inner ones;
        they are read when `device` is, which waits for the device.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks
    >>> x = lucid.ones(100, requires_grad=True)
    >>> with hooks.TimerHook() as timer:
    ...     (x * x).sum().backward()
    >>> timer.calls["mul"], timer.calls["MulBackward0"], timer.host["mul"] > 0
    (1, 1, True)
    """

    columns: ClassVar[tuple[str, ...]] = ("host us", "device us")

    def __init__(self) -> None:
        super().__init__()
        self.host: Counter[str] = Counter()
        self._device: Counter[str] = Counter()
        self._marks: list[tuple[str, Any, Any, list[tuple[Any, Any]]]] = []

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, after reading the marks in a stream."""
        _ = self.device
        return super().__getstate__()

    @property
    def device(self) -> Counter[str]:
        """Microseconds by the name of the op."""
        while self._marks:
            name, begin, end, inner = self._marks.pop()
            end.synchronize()
            took = begin.elapsed_time(end) - sum(first.elapsed_time(last) for first, last in inner)
            self._device[name] += took * 1e3
        return self._device

    def before(self, call: Call) -> None:
        """Take the time."""
        mark = None
        if any(isinstance(x, TensorBase) and not is_numpy(x.array) for x in call.inputs):
            mark = device_mark()
        call.data[self] = [perf_counter_ns(), 0, mark, []]  # begin, time of inner ones, mark, inner marks

    def after(self, call: Call, output: Any) -> None:
        """Add the time."""
        end = perf_counter_ns()
        begin, inner, mark, inner_marks = call.data.pop(self)
        self.calls[call.name] += 1
        self.host[call.name] += (end - begin - inner) / 1e3
        outer = call.around
        while outer is not None and self not in outer.data:
            outer = outer.around  # of another phase, or begun before the block
        around = None if outer is None else outer.data[self]
        if mark is not None:
            last = device_mark()
            self._marks.append((call.name, mark, last, inner_marks))
            if around is not None:
                around[3].append((mark, last))
        if around is not None:
            around[1] += end - begin

    def failed(self, call: Call, error: BaseException) -> None:
        """Add the time until the error."""
        self.after(call, None)

    def values(self, name: str) -> tuple[float | None, ...]:
        """Return host and device time."""
        return self.host[name], self.device.get(name)
