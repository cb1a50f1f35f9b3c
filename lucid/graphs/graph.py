"""CUDA graphs under PyTorch's names: work that is recorded once, and launched as a whole."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from pickle import PicklingError
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakValueDictionary, finalize

from lucid.arguments import shown
from lucid.base import gpu
from lucid.base.capture import capture_of_this_thread, waiting
from lucid.base.interrupts import uninterrupted
from lucid.cuda.devices import synchronize
from lucid.cuda.libraries.blas import prepare_capture
from lucid.cuda.memory import Pool
from lucid.cuda.streams import Stream, current_stream
from lucid.cuda.streams import stream as use_stream
from lucid.errors import ArgumentError, CaptureError, DeviceError
from lucid.graphs.capture import Capture, noting
from lucid.ops.base.scalars import as_bool

if TYPE_CHECKING:
    from collections.abc import Generator


def is_current_stream_capturing() -> bool:
    """Return whether work queued now is recorded for a CUDA graph, by lucid or by CuPy."""
    return gpu.is_capturing()


def graph_pool_handle() -> Pool:
    """Return new memory of the current device, to be shared by several graphs with ``graph(g, pool=...)``.

    Graphs that share memory have to be replayed in the order in which they were captured, and not at the same time.
    """
    return Pool()


class CUDAGraph:
    """Work that was recorded by `lucid.cuda.graph`, and is queued as a whole by `replay`.

    Its arrays have the addresses of the capture: inputs are changed in place, outputs are overwritten by each replay.
    Arrays that it made lie in memory of its own, which no other work is given while the graph or a tensor in it lives.
    Random numbers go on at each replay as they would without a graph.

    Parameters
    ----------
    keep_graph : bool
        Whether `raw_cuda_graph` gives the recorded work to libraries that change it, before `instantiate` or the first
        replay makes of it what replays launch.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.zeros(3, device="cuda")  # doctest: +SKIP
    >>> g = lucid.cuda.CUDAGraph()  # doctest: +SKIP
    >>> with lucid.cuda.graph(g):  # doctest: +SKIP
    ...     y = x + 1
    >>> x.fill_(2)  # doctest: +SKIP
    >>> g.replay()  # doctest: +SKIP
    >>> y  # doctest: +SKIP
    tensor([3., 3., 3.], device='cuda:0')
    """

    __slots__ = ("_capture", "_dot_flags", "_keep_graph", "_pool", "_recording")

    def __init__(self, keep_graph: bool = False) -> None:
        self._keep_graph = as_bool(keep_graph, "keep_graph")
        self._dot_flags = 0
        self._capture: Capture | None = None
        self._pool: Pool | None = None
        self._recording: ExitStack | None = None

    def capture_begin(self, pool: Pool | CUDAGraph | None = None, capture_error_mode: str = "relaxed") -> None:
        """Have the current stream, not the default one, record; `lucid.cuda.graph` does this and more.

        Raises
        ------
        CaptureError
            If this graph holds a capture already, this thread is in one, or the stream is the default one.
        """
        check_error_mode(capture_error_mode)
        if self._capture is not None:
            raise CaptureError(
                "capture_begin: this graph holds a capture: call reset() first, or use another CUDAGraph"
            )
        if capture_of_this_thread() is not None:
            raise CaptureError("capture_begin: this thread is in a capture: end it first, captures do not nest")
        if gpu.is_default(gpu.current_stream()):
            raise CaptureError(
                "capture_begin: the default stream cannot capture: use lucid.cuda.graph(), which takes another, or a "
                "lucid.cuda.stream() block"
            )
        memory = checked_pool(pool)
        capture = Capture(memory)
        with ExitStack() as stack:
            stack.enter_context(recording(memory))
            try:
                capture.begin()
                self._capture, self._pool, self._recording = capture, memory, stack.pop_all()
            except BaseException:
                capture.abandon()
                raise

    def capture_end(self) -> None:
        """End the recording.

        Raises
        ------
        CaptureError
            If none is in progress, or something was done that cannot be recorded; the graph is empty then.
        """
        recording = self._recording
        if self._capture is None or recording is None:
            raise CaptureError("capture_end: no capture is in progress: call capture_begin() first")
        self._recording = None
        try:
            with recording:
                self._capture.end()
        except BaseException:
            self.reset()
            raise

    def __del__(self) -> None:
        """Leave a capture in progress that nobody can end any more, in its own thread."""
        # one whose making has failed has no such attribute
        capture = getattr(self, "_capture", None)
        if capture is not None and self._recording is not None and capture_of_this_thread() is capture:
            self.abandon()

    def __reduce__(self) -> NoReturn:
        raise PicklingError("a CUDAGraph is of this process and its tensors, and cannot be copied or pickled")

    def abandon(self) -> None:
        """Leave a capture in progress after its work has failed."""
        if self._capture is not None and self._recording is not None:
            with self._recording:
                self._capture.abandon()
            self._recording = None
            self.reset()

    def replay(self) -> None:
        """Queue the recorded work on the current stream.

        Raises
        ------
        CaptureError
            If there is none, or this thread is in a capture.
        DeviceError
            If the current stream is of another device.
        """
        capture = self._captured("replay")
        check_replay("replay", capture.device)
        if self._keep_graph and not isinstance(capture.graph, Instance):
            capture.graph = Instance(capture.graph)
        capture.replay(gpu.current_stream())

    def _captured(self, name: str) -> Capture:
        """Return the capture that has ended, or raise in the name of a method."""
        if self._capture is None or self._capture.graph is None:
            raise CaptureError(f"{name}: expected a graph that was captured: use it in lucid.cuda.graph() first")
        return self._capture

    def raw_cuda_graph(self) -> int:
        """Return the address of the recorded work, a ``cudaGraph_t`` that lives until `reset`.

        Raises
        ------
        CaptureError
            If there is none, or the graph was made without ``keep_graph=True``.
        """
        return self._kept("raw_cuda_graph").graph.graph

    def instantiate(self) -> None:
        """Have replays launch the recorded work as it is now, after a change through `raw_cuda_graph`.

        Raises
        ------
        CaptureError
            If there is none, or the graph was made without ``keep_graph=True``.
        """
        capture = self._kept("instantiate")
        check_replay("instantiate", capture.device)
        capture.graph = Instance(capture.graph)

    def _kept(self, name: str) -> Capture:
        if not self._keep_graph:
            raise CaptureError(f"{name}: replays launch what was captured: make it by CUDAGraph(keep_graph=True)")
        return self._captured(name)

    def enable_debug_mode(self) -> None:
        """Let `debug_dump` write all that CUDA knows of each piece of work, not its name alone."""
        self._dot_flags = gpu.cupy().cuda.runtime.cudaGraphDebugDotFlagsVerbose

    def reset(self) -> None:
        """Forget the recorded work, and give its memory back as soon as no tensor lies in it.

        Raises
        ------
        CaptureError
            If the capture is in progress.
        """
        if self._recording is not None:
            raise CaptureError("reset: the capture is in progress: end it first")
        self._capture = self._pool = None

    def pool(self) -> Pool:
        """Return the graph's memory, for ``graph(g, pool=...)`` of another.

        Raises
        ------
        CaptureError
            If nothing was captured.
        """
        if self._pool is None:
            raise CaptureError("pool: expected a graph that was captured: it has no memory before")
        return self._pool

    def addresses(self) -> set[int]:
        """Return the addresses that the graph holds, and other numbers of its launches."""
        return self._capture.addresses if self._capture is not None else set()

    def fired(self) -> dict[str, str]:
        """Return the hooks that ran in the capture, by name, and their kinds."""
        return self._capture.fired if self._capture is not None else {}

    def debug_dump(self, debug_path: str) -> None:
        """Write the recorded work to a file, in the DOT language.

        Raises
        ------
        CaptureError
            If there is none.
        """
        text = self._captured("debug_dump").graph.debug_dot_str(self._dot_flags)
        Path(debug_path).write_text(text, encoding="utf-8")


class Instance:
    """Executable of a graph of CuPy's as it is now: the one made by CuPy at the end of the capture knows no changes."""

    def __init__(self, graph: Any) -> None:
        self.of = graph.of if isinstance(graph, Instance) else graph
        self.graph: int = self.of.graph
        self.debug_dot_str = self.of.debug_dot_str
        runtime = gpu.cupy().cuda.runtime
        self._launch = runtime.graphLaunch
        self._pointer: int = runtime.graphInstantiate(self.graph)
        finalize(self, runtime.graphExecDestroy, self._pointer).atexit = False

    def launch(self, stream: Any) -> None:
        """Queue the graph on a stream."""
        self._launch(self._pointer, stream.ptr)


def check_error_mode(mode: object) -> None:
    """Raise `ArgumentError` unless this is one of PyTorch's modes of captures."""
    if mode not in ("global", "thread_local", "relaxed"):
        raise ArgumentError(f"capture_error_mode: expected 'global', 'thread_local' or 'relaxed', got {shown(mode)}")


def check_replay(name: str, device: int) -> None:
    """Raise, in the name of a function, unless a graph of this device can be launched here."""
    if capture_of_this_thread() is not None:
        raise CaptureError(f"{name}: this thread is in a capture, and a graph cannot be part of another one")
    if gpu.current_device() != device:
        raise DeviceError(
            f"{name}: expected cuda:{device} as the current device, where the graph is, got "
            f"cuda:{gpu.current_device()}: call it inside of lucid.cuda.device({device})"
        )


def no_pool(value: object) -> ArgumentError:
    """Return the error for a `pool` that is no memory of a graph."""
    return ArgumentError(
        f"pool: expected what graph_pool_handle() or CUDAGraph.pool() returned, or a CUDAGraph, got {shown(value)}"
    )


def checked_pool(pool: object) -> Pool:
    """Return memory for a graph of the current device: `pool`, or new.

    Raises
    ------
    ArgumentError
        If what is given is no memory.
    DeviceError
        If it is another device's.
    """
    if pool is None:
        return Pool()
    if isinstance(pool, CUDAGraph):
        pool = pool.pool()
    if not isinstance(pool, Pool):
        raise no_pool(pool)
    if pool.device != gpu.current_device():
        raise DeviceError(f"pool: expected memory of cuda:{gpu.current_device()}, got that of cuda:{pool.device}")
    return pool


@contextmanager
def recording(pool: Pool) -> Generator[None]:
    """Context for captures of this thread: their needs are prepared, and new arrays lie in `pool`."""
    prepare_capture()
    with noting(), pool.used():
        yield


@contextmanager
def beside(side: Stream) -> Generator[None]:
    """Context for work on another stream: behind that queued here before, and ahead of that queued here later."""
    before = current_stream()
    side.wait_stream(before)
    try:
        with use_stream(side):
            yield
    finally:
        # a Ctrl-C here would leave what is queued there unordered with what comes
        uninterrupted(partial(before.wait_stream, side))


_streams: WeakValueDictionary[tuple[int, int], Any] = WeakValueDictionary()


def _stream_of_thread(index: int) -> Stream:
    """Return the stream of this thread's captures for a device: that of a living graph, or a new one.

    CuPy keeps memory apart by stream, so that graphs of several would share none.
    """
    key = index, get_ident()
    raw = _streams.get(key)
    if raw is None:
        raw = _streams[key] = Stream(index).raw
    return Stream.of(raw, index)


class graph:
    """Context that has `cuda_graph` record its work on the current device instead of doing it.

    It waits for the device, and enters a stream. Nothing inside may read values on the host, copy from it, or make
    shapes that depend on values: that raises where it stands, and leaves graph, stream, device and memory as they were.
    What has state on the host needs its own care: optimizers ask for ``capturable=True``, hooks run once, at the
    capture. `lucid.cuda.graphed_step` cares for a whole training step. See docs/users/speed.md.

    Parameters
    ----------
    cuda_graph : CUDAGraph
        One that holds no capture.
    pool : Pool or CUDAGraph, optional
        Whose memory it shares; new memory without it.
    stream : Stream, optional
        One of the current device, not the default one.
    capture_error_mode : {"relaxed", "thread_local", "global"}
        All are "relaxed" for CUDA, which in the others refuses allocations, as a capture makes them. What cannot be
        captured raises in each.

    Raises
    ------
    CaptureError
        If `cuda_graph` holds a capture, this thread is in one, or something inside cannot be recorded.

    Examples
    --------
    >>> import lucid
    >>> weight = lucid.ones(3, device="cuda")  # doctest: +SKIP
    >>> g = lucid.cuda.CUDAGraph()  # doctest: +SKIP
    >>> with lucid.cuda.graph(g):  # doctest: +SKIP
    ...     doubled = weight * 2
    """

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Pool | CUDAGraph | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "relaxed",
    ) -> None:
        if not isinstance(cuda_graph, CUDAGraph):
            raise ArgumentError(f"graph: expected cuda_graph as a CUDAGraph, got {shown(cuda_graph)}")
        if stream is not None and not isinstance(stream, Stream):
            raise ArgumentError(f"graph: expected stream as a Stream, got {shown(stream)}")
        if pool is not None and not isinstance(pool, Pool | CUDAGraph):
            raise no_pool(pool)
        check_error_mode(capture_error_mode)
        self.cuda_graph = cuda_graph
        self._pool, self._stream = pool, stream
        self._leaving: ExitStack | None = None

    def __enter__(self) -> None:
        if capture_of_this_thread() is not None:
            raise CaptureError("graph: this thread is in a capture: end it first, captures do not nest")
        index = gpu.current_device()
        side = self._stream or _stream_of_thread(index)
        if side.device.index != index:
            raise DeviceError(f"graph: expected a stream of cuda:{index}, the current device, got one of {side.device}")
        with waiting, ExitStack() as stack:
            synchronize()
            # in the end, what is queued there waits for what has been queued here
            stack.callback(side.wait_stream, current_stream())
            stack.enter_context(use_stream(side))
            # what has begun ends also where this is interrupted
            stack.callback(self.cuda_graph.abandon)
            self.cuda_graph.capture_begin(self._pool)
            self._leaving = stack.pop_all()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        leaving, self._leaving = self._leaving, None
        with leaving or ExitStack():
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph.abandon()
