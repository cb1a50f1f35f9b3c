"""A capture in progress, and the graph that it becomes."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, cast

from lucid.base import gpu
from lucid.base.capture import capture_of_this_thread, captures, check_device
from lucid.base.locks import new_lock
from lucid.cuda.launch import kernels
from lucid.cuda.launch.random import DeviceSeed
from lucid.cuda.memory import Pool
from lucid.errors import CaptureError

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable, Generator

    from lucid.base.random.generator import Generator as RandomGenerator


class Draws:
    """Numbers that a capture draws from one generator: their count, and the beginning of each replay's."""

    __slots__ = ("count", "generator", "most", "seed")

    def __init__(self, generator: RandomGenerator) -> None:
        self.generator = generator
        # how far it has gone from where it began; back, too, where checkpointing draws again what was drawn before
        self.count = self.most = 0
        self.seed = DeviceSeed()

    def advance(self) -> None:
        """Reserve a replay's numbers, and tell its kernels the beginning."""
        seed, offset = self.generator.reserve(self.count)
        self.seed.store(cast("int", seed), offset)


class Capture:
    """Record of a stream's work, from `begin` to `end`; then a graph, to be replayed.

    Parameters
    ----------
    pool : Pool, optional
        Where its arrays lie; new memory without it.

    Attributes
    ----------
    before : list of callable
        Called before each replay, on its device and stream: what a graph cannot know, such as numbers that the host
        counts, is written to where the graph reads it.
    after : list of callable
        Called behind each replay, there too.
    kept : list of object
        What lives for as long as the graph.
    addresses : set of int
        Those that its launches were given, and other numbers of their parameters.
    assigned : set of int
        By `id`, the tensors whose gradient was set or cleared.
    undo : list of callable
        Called, the last one first, where the captured work has failed and nothing of it is done.
    fired : dict of str to str
        The hooks that ran meanwhile, by name, and their kinds.
    places : dict of int to weakref
        By `id`, where hooks would have run.
    outside : callable or None
        ``outside(function, args, kwargs)`` calls a function between two parts of what is captured in parts.
    ahead : callable or None
        ``ahead(unit)`` gets what is missing compiled, meanwhile or later, of a capture that is only to find that out:
        it records no launches.
    """

    __slots__ = (
        "addresses", "after", "ahead", "assigned", "before", "device", "draws", "fired", "graph", "kept", "outside",
        "places", "pool", "stream", "undo",
    )  # fmt: skip

    def __init__(self, pool: Pool | None = None) -> None:
        self.pool = Pool() if pool is None else pool
        self.before: list[Callable[[], None]] = []
        self.after: list[Callable[[], None]] = []
        self.kept: list[object] = []
        self.addresses: set[int] = set()
        self.assigned: set[int] = set()
        self.undo: list[Callable[[], None]] = []
        self.draws: dict[RandomGenerator, Draws] = {}
        self.fired: dict[str, str] = {}
        self.places: dict[int, weakref.ref[Any]] = {}
        self.outside: Callable[..., Any] | None = None
        self.ahead: Callable[[kernels.Unit], object] | None = None
        self.device = gpu.current_device()
        self.stream: Any = None
        self.graph: Any = None

    def begin(self) -> None:
        """Have the current stream record the work that this thread queues on it; `abandon` it if that raises."""
        self.stream = gpu.current_stream()
        # before it begins, so that an interrupt between the two leaves nothing that `abandon` does not end
        captures[get_ident()] = self
        self.stream.begin_capture()

    def end(self) -> None:
        """End the recording, and make it a graph.

        Raises
        ------
        CaptureError
            If something that cannot be recorded was done in between.
        """
        self.kept.extend(self.pool.live())
        try:
            self.graph = self.stream.end_capture()
        except Exception as error:
            raise CaptureError(f"this cannot be captured in a CUDA graph: {error}") from error
        finally:
            captures.pop(get_ident(), None)

    def abandon(self) -> None:
        """End the recording of work that has failed, if it has not ended."""
        if captures.pop(get_ident(), None) is not None:
            with suppress(Exception):
                self.stream.end_capture()
        while self.undo:
            self.undo.pop()()

    def reserve(self, generator: RandomGenerator, count: int) -> tuple[DeviceSeed, int]:
        """Return the seed's place of a generator in replays, and the offset of `count` blocks from there."""
        if generator.device != f"cuda:{self.device}":
            raise CaptureError(
                f"drawing on {generator.device} cannot be part of a capture on cuda:{self.device}: a graph is of one "
                "device; draw before the capture"
            )
        draws = self.draws.get(generator)
        if draws is None:
            draws = self.draws[generator] = Draws(generator)
            self.before.append(draws.advance)
        offset = draws.count
        draws.count += count
        draws.most = max(draws.most, draws.count)
        return draws.seed, offset

    def drawn(self, generator: RandomGenerator) -> int:
        """Return how far a generator has gone since the capture began."""
        draws = self.draws.get(generator)
        return 0 if draws is None else draws.count

    def go_back(self, generator: RandomGenerator, count: int | None) -> None:
        """Let a generator go on at an offset from its place at the beginning of the capture; None is any other place.

        Raises
        ------
        CaptureError
            If that is not where it has been in the capture.
        """
        draws = self.draws.get(generator)
        if count is None or not 0 <= count <= (0 if draws is None else draws.most):
            raise CaptureError(
                f"seeding or setting the random numbers of {generator.device} cannot be captured in a CUDA graph, "
                "whose replays go on with those of then: do it before the capture, and before replays that need it"
            )
        if draws is not None:
            draws.count = count

    def call_outside(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a hook of each step, called between this part of a capture and the next.

        Raises
        ------
        CaptureError
            If this is captured in one part.
        """
        if self.outside is None:
            raise CaptureError(
                "a hook with every_step=True fires in this capture, which cannot stop for it: capture by "
                "lucid.cuda.graphed_step, which can, or register the hook without every_step"
            )
        return self.outside(function, args, kwargs)

    def replay(self, stream: Any) -> None:
        """Queue the graph on the current stream, `stream`, of its device."""
        for function in self.before:
            function()
        self.graph.launch(stream)
        for function in self.after:
            function()


class NotingDriver:
    """A driver that tells captures the arguments of their threads' launches, addresses among them."""

    def __init__(self, driver: kernels.Driver) -> None:
        self._driver = driver
        self.stream, self.whole_units = driver.stream, driver.whole_units
        self.compile, self.recovers, self.failure = driver.compile, driver.recovers, driver.failure

    def device(self) -> int:
        """Return the current device; of a capture that is ahead of its kernels one that has none, below zero."""
        index = self._driver.device()
        return index if _ahead_of_kernels() is None else -1 - index

    def load(self, unit: kernels.Unit) -> dict[str, int]:
        """Load as the driver does, or name the unit for compilation ahead."""
        ahead = _ahead_of_kernels()
        if ahead is None:
            return self._driver.load(unit)
        ahead(unit)
        return dict.fromkeys(unit.signatures, 0)

    def allow_shared(self, handle: int, nbytes: int) -> None:
        """Allow it as the driver does, if there is a kernel."""
        if _ahead_of_kernels() is None:
            self._driver.allow_shared(handle, nbytes)

    def launch(self, *launch: int) -> None:
        """Launch, or record, as the driver does."""
        capture = capture_of_this_thread()
        if capture is not None:
            check_device(self._driver.device())
            if capture.ahead is not None:
                return
            # as `lucid.cuda.launch.parameters.Parameters` lays them out
            _, values, _, size, *_ = (ctypes.c_uint64 * 4).from_address(launch[-1])
            words = ctypes.c_uint64.from_address(size).value // 8
            capture.addresses.update((ctypes.c_uint64 * words).from_address(values))
        self._driver.launch(*launch)


def _ahead_of_kernels() -> Callable[[kernels.Unit], object] | None:
    capture = capture_of_this_thread()
    return None if capture is None else capture.ahead


_lock = new_lock()
_drivers: dict[object, kernels.Driver] = {}
"""What ran kernels before captures began, for each that is in progress."""


@contextmanager
def noting() -> Generator[None]:
    """Let the launches of captures be noted inside; outside nothing asks whether they are."""
    entry = object()
    try:
        with _lock:
            plain = next(iter(_drivers.values())) if _drivers else kernels.driver()
            _drivers[entry] = plain
            kernels.drive(lambda: NotingDriver(plain))
        yield
    finally:
        with _lock:
            driver = _drivers.pop(entry, None)
            if driver is not None and not _drivers:
                kernels.drive(lambda: driver)
