"""State of the random streams: generators, one default generator per device, and their states for checkpoints."""

from __future__ import annotations

import operator
import os
import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from lucid.base.capture import capture_of_this_thread, captures, check_not_capturing
from lucid.base.locks import new_lock
from lucid.errors import ArgumentError, SettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Generator as Yielding

    from numpy.typing import NDArray

    from lucid.base.arrays import Array
    from lucid.cuda.launch.random import DeviceSeed


_STATE_TAG = b"philox10"
_STATE_BYTES = 24


class Generator:
    """Stream of random numbers on one device: a 64-bit seed and a 64-bit offset, counted in blocks of four words.

    Two generators with equal seed and offset give equal numbers, whatever their devices. Every method is safe to call
    from several threads.

    Parameters
    ----------
    device : str
        ``"cpu"``, ``"cuda"`` (the same as ``"cuda:0"``) or ``"cuda:N"``.
    seed : int, optional
        Any integer in [-2**63, 2**64); fresh entropy if left out.

    Attributes
    ----------
    restarts : int
        How often it was given a seed since it was made.

    Raises
    ------
    ValueError
        If ``device`` is none of these, or ``seed`` is out of range.
    TypeError
        If ``seed`` is not an integer.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.random.generator import Generator
    >>> from lucid.base.random.draws import uniform
    >>> generator = Generator("cpu", seed=7)
    >>> before = generator.get_state()
    >>> first = uniform(generator, (3,), np.float32)
    >>> generator.set_state(before)
    >>> bool((uniform(generator, (3,), np.float32) == first).all())
    True
    """

    __slots__ = ("_lock", "_offset", "_seed", "device", "restarts")

    device: str
    restarts: int

    def __init__(self, device: str = "cpu", seed: int | None = None) -> None:
        self.device = _canonical_device(device)
        self._seed = int.from_bytes(os.urandom(8), "little") if seed is None else _as_seed(seed)
        self._offset = 0
        self.restarts = 0
        self._lock = new_lock()

    def manual_seed(self, seed: int) -> Generator:
        """Itself, restarted at offset 0 of the stream of ``seed``, an integer in [-2**63, 2**64)."""
        self._restore(_as_seed(seed), 0)
        self.restarts += 1
        return self

    def seed(self) -> int:
        """Restart the generator with a fresh 64-bit seed from the operating system, and return the seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self._restore(seed, 0)
        self.restarts += 1
        return seed

    def initial_seed(self) -> int:
        """Seed of the stream, in [0, 2**64); a negative seed reads as seed + 2**64."""
        return self._seed

    def get_state(self) -> NDArray[np.uint8]:
        """State as a uint8 array of 24 bytes: an 8-byte tag, then seed and offset, little-endian."""
        drawn = 0
        if captures and self.device != "cpu" and (capture := capture_of_this_thread()) is not None:
            drawn = capture.drawn(self)
        with self._lock:
            return _pack_state(self._seed, (self._offset + drawn) % 2**64)

    def set_state(self, state: Array) -> None:
        """Continue from a state that ``get_state`` returned, of this or of any other generator.

        Raises
        ------
        TypeError
            If ``state`` is not an array of uint8.
        ValueError
            If ``state`` has another shape than (24,), or was not written by a lucid generator.
        """
        self._restore(*_unpack_state(state))

    def reserve(self, count: int) -> tuple[int | DeviceSeed, int]:
        """Seed and starting offset of ``count`` blocks of four words that no other draw will get.

        Read together, so that a draw never mixes the seed of one state with the offset of another. In a capture each
        replay reserves them, and leaves seed and offset on the device: what is returned then is where, and how far
        from that offset.

        Raises
        ------
        ValueError
            If ``count`` is negative.
        """
        if count < 0:
            raise SettingError(f"reserve: expected a count of blocks >= 0, got {count}")
        if _chosen.watcher is not None:
            _chosen.watcher(self)
        if captures and self.device != "cpu" and (capture := capture_of_this_thread()) is not None:
            return capture.reserve(self, count)
        with self._lock:
            seed, offset = self._seed, self._offset
            self._offset = (offset + count) % 2**64
        return seed, offset

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            return _rebuild, (type(self), self.device, self._seed, self._offset, self.restarts)

    def _restore(self, seed: int, offset: int) -> None:
        if captures and self.device != "cpu" and (capture := capture_of_this_thread()) is not None:
            capture.go_back(self, (offset - self._offset) % 2**64 if seed == self._seed else None)
            return
        with self._lock:
            self._seed, self._offset = seed, offset

    def __repr__(self) -> str:
        with self._lock:
            return f"Generator(device={self.device!r}, seed={self._seed}, offset={self._offset})"


def _rebuild(kind: type[Generator], device: str, seed: int, offset: int, restarts: int) -> Generator:
    """Return a generator with the state of one that was copied or pickled."""
    generator = kind(device)
    generator._restore(seed, offset)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    generator.restarts = restarts
    return generator


def _canonical_device(device: str) -> str:
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise SettingError(f"expected a device 'cpu', 'cuda' or 'cuda:N', got {device!r}")
    return "cuda:0" if device == "cuda" else device


def _as_seed(seed: SupportsIndex) -> int:
    try:
        value = operator.index(seed)
    except TypeError:
        raise ArgumentError(f"expected the seed to be an integer, got {type(seed).__name__}: {seed!r}") from None
    if not -(2**63) <= value < 2**64:
        raise SettingError(f"expected a seed in [-2**63, 2**64), got {value}")
    return value % 2**64


def _pack_state(seed: int, offset: int) -> NDArray[np.uint8]:
    packed = _STATE_TAG + seed.to_bytes(8, "little") + offset.to_bytes(8, "little")
    return np.frombuffer(packed, np.uint8).copy()


def _unpack_state(state: Array) -> tuple[int, int]:
    dtype = getattr(state, "dtype", None)
    if dtype != np.uint8:
        got = type(state).__name__ if dtype is None else f"dtype {dtype}"
        raise ArgumentError(f"expected a generator state as a uint8 array from get_state(), got {got}")
    if state.shape != (_STATE_BYTES,):
        raise SettingError(f"expected a generator state of shape ({_STATE_BYTES},), got {tuple(state.shape)}")
    packed = np.asarray(state).tobytes()
    if packed[:8] != _STATE_TAG:
        raise SettingError(
            f"expected a generator state that begins with the tag {_STATE_TAG!r}, got {packed[:8]!r}; "
            "pass an array that get_state() of a lucid generator returned"
        )
    return int.from_bytes(packed[8:16], "little"), int.from_bytes(packed[16:], "little")


# ---- the process's generators: one per device, all started from one seed ----

_registry_lock = new_lock()
default_generator = Generator("cpu")
_generators: dict[str, Generator] = {"cpu": default_generator}
_process_seed = default_generator.initial_seed()


class _Chosen(threading.local):
    generator: Callable[[], Generator] | None = None
    watcher: Callable[[Generator], None] | None = None


_chosen = _Chosen()


@contextmanager
def use_generator(generator: Callable[[], Generator]) -> Yielding[None]:
    """Context with the result of ``generator()``, called at each use, as the CPU's default generator of this thread."""
    before, _chosen.generator = _chosen.generator, generator
    try:
        yield
    finally:
        _chosen.generator = before


@contextmanager
def watch_draws(watcher: Callable[[Generator], None]) -> Yielding[None]:
    """Let ``watcher(generator)`` be called before each draw of this thread, after the watchers of blocks around."""
    before = _chosen.watcher

    def both(generator: Generator) -> None:
        if before is not None:
            before(generator)
        watcher(generator)

    _chosen.watcher = both
    try:
        yield
    finally:
        _chosen.watcher = before


def _of_cpu() -> Generator:
    return default_generator if _chosen.generator is None else _chosen.generator()


def default_generator_for(device: str) -> Generator:
    """Default generator of ``device``: the source of every draw that is given no generator.

    Every device has its own, started from the same seed, so that a program gives the same numbers on whichever one
    device it runs.

    Examples
    --------
    >>> from lucid.base.random.generator import default_generator, default_generator_for
    >>> default_generator_for("cpu") is default_generator
    True
    """
    name = _canonical_device(device)
    if name == "cpu":
        return _of_cpu()
    with _registry_lock:
        if name not in _generators:
            _generators[name] = type(default_generator)(name, _process_seed)
        return _generators[name]


def manual_seed(seed: int) -> Generator:
    """CPU default generator, after the default generators of all devices were restarted with ``seed``.

    Devices that are first used later start from ``seed`` too. Inside of `use_generator` that generator alone is
    restarted. Forked processes all go on with the numbers of their parent: seed each with a number of its own.

    Raises
    ------
    TypeError
        If ``seed`` is not an integer.
    ValueError
        If ``seed`` is outside [-2**63, 2**64).
    """
    global _process_seed
    checked = _as_seed(seed)
    check_not_capturing("manual_seed()")
    if _chosen.generator is not None:
        return _chosen.generator().manual_seed(checked)
    with _registry_lock:
        _process_seed = checked
        for generator in _generators.values():
            generator.manual_seed(checked)
    return default_generator


def get_rng_state() -> NDArray[np.uint8]:
    """State of the CPU default generator, see ``Generator.get_state``."""
    return Generator.get_state(_of_cpu())


def set_rng_state(state: Array) -> None:
    """Continue the CPU default generator from ``state``, see ``Generator.set_state``."""
    Generator.set_state(_of_cpu(), state)


def get_rng_states() -> dict[str, NDArray[np.uint8]]:
    """States of the default generators of all devices used so far, by device, for a checkpoint."""
    with _registry_lock:
        return {device: Generator.get_state(generator) for device, generator in _generators.items()}


def set_rng_states(states: Mapping[str, Array]) -> None:
    """Continue all default generators from states returned by ``get_rng_states``.

    A device without an entry had drawn nothing by then, and restarts at offset 0 with the CPU generator's seed.

    Raises
    ------
    ValueError
        If a key is not a device, ``"cpu"`` is missing, or a state is malformed. Nothing has been changed then.
    TypeError
        If a state is not a uint8 array. Nothing has been changed then.
    """
    global _process_seed
    unpacked = {_canonical_device(device): _unpack_state(state) for device, state in states.items()}
    if "cpu" not in unpacked:
        raise SettingError(f"expected the states to hold the device 'cpu', got {sorted(unpacked)}")
    with _registry_lock:
        _process_seed = unpacked["cpu"][0]
        for device in sorted({*_generators, *unpacked}):
            generator = _generators.setdefault(device, type(default_generator)(device))
            generator._restore(*unpacked.get(device, (_process_seed, 0)))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
