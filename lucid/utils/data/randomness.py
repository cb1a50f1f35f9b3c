"""Seeds of random numbers of orders and samples: a function of a seed, an epoch, and the index of the sample."""

from __future__ import annotations

import ctypes
import hashlib
import operator
import random
import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from lucid.arguments import shown, unfit
from lucid.base.random.generator import Generator, default_generator_for, use_generator
from lucid.errors import ArgumentError, DeviceError
from lucid.ops.creation import generators

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


T = TypeVar("T")

_MASK = 2**64 - 1


def mix(*numbers: int) -> int:
    """Return 64 bits that depend on each bit of some integers: the finaliser of SplitMix64 on each in turn.

    Steele, Lea, Flood: Fast splittable pseudorandom number generators. OOPSLA 2014.
    """
    state = 0
    for number in numbers:
        state = (state ^ number & _MASK) + 0x9E3779B97F4A7C15 & _MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state


# ---- orders ----


class Walk:
    """One pass over an order: the seed, the epoch, and the position that it has reached."""

    __slots__ = ("epoch", "position", "seed")

    def __init__(self, seed: int, epoch: int, position: int) -> None:
        self.seed = seed
        self.epoch = epoch
        self.position = position

    def state(self) -> dict[str, int]:
        """Return seed, epoch and position."""
        return {"seed": self.seed, "epoch": self.epoch, "position": self.position}


class Passes:
    """The passes over an order: a state dict holds the latest position, and each begins at the end of the one before.

    Each pass is the next epoch, also after one that was left early. A seed that is not given is drawn from `generator`
    (the CPU's default one if None) at the first pass, and at the first after the generator was given a seed again:
    epochs then count from 0. Where a state has given one it is drawn all the same, so that what else is drawn from the
    generator is the same.

    Attributes
    ----------
    latest : Walk
        The latest pass, or the next one if that is complete.
    """

    def __init__(self, generator: Generator | None = None, seed: int | None = None) -> None:
        if generator is not None and not isinstance(generator, Generator):
            raise unfit(generator, "a Generator or None", "generator")
        if generator is not None and generator.device != "cpu":
            raise DeviceError(f"expected a Generator of the CPU, got one of {generator.device}")
        self.generator = generator
        self._fixed = seed is not None
        self.latest = Walk(0 if seed is None else seed, 0, 0)
        self._underway = False
        self._restarts = -1  # of the generator when the seed was drawn
        self._seed_restored = False  # whether a state has given the seed
        self._offered: Walk | None = None

    @property
    def draws(self) -> bool:
        """Whether the seed is drawn from a generator."""
        return not self._fixed

    def begin(self) -> Walk:
        """Return the pass that begins, now the latest; or the offered one."""
        if self._offered is not None:
            walk, self._offered = self._offered, None
            return walk
        self.latest, self._underway = self.following(), True
        self._seed_restored = False
        return self.latest

    def following(self) -> Walk:
        """Return the pass that would begin next."""
        self._look_for_seed()
        return Walk(self.latest.seed, self.latest.epoch + 1, 0) if self._underway else self.latest

    def offered(self, walk: Walk, function: Callable[[], T]) -> tuple[T, bool]:
        """Return the result of ``function()``, with `walk` as the next pass to begin, and whether it has begun."""
        self._offered = walk
        try:
            result = function()
        finally:
            taken, self._offered = self._offered is None, None
        return result, taken

    def end(self, walk: Walk) -> None:
        """Note that a pass is complete: if it is the latest, the state is that of the next epoch's beginning."""
        if walk is self.latest:
            self._go_to(walk.seed, walk.epoch + 1)

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass be that of `epoch`, from its beginning; or from the position of a loaded state of it."""
        self._look_for_seed()
        number = operator.index(epoch)
        if self._underway or number != self.latest.epoch:
            self._go_to(self.latest.seed, number)

    def state(self) -> dict[str, int]:
        """Return seed, epoch and position of the latest pass."""
        self._look_for_seed()
        return self.latest.state()

    def load(self, state: Mapping[str, int]) -> None:
        """Let the next pass begin at the position of `state`."""
        names = ("seed", "epoch", "position")
        if not isinstance(state, dict) or not state.keys() >= {*names}:
            got = list(state) if isinstance(state, dict) else type(state).__name__
            raise ArgumentError(
                f"load_state_dict: expected a dict with the integers seed, epoch and position, got {got}; "
                "give what state_dict() returned"
            )
        seed, epoch = [integer(state[name], f"load_state_dict: {name}") for name in names[:2]]
        self._go_to(seed, epoch, natural(state["position"], "load_state_dict: position"))
        self._seed_restored = True

    def _go_to(self, seed: int, epoch: int, position: int = 0) -> None:
        self.latest, self._underway = Walk(seed, epoch, position), False

    def _stream(self) -> Generator:
        return default_generator_for("cpu") if self.generator is None else self.generator

    def _look_for_seed(self) -> None:
        stream = self._stream()
        if self._fixed or self._restarts == stream.restarts:
            return
        self._restarts = stream.restarts
        seed = mix(*stream.reserve(1))  # pyright: ignore[reportArgumentType]  numbers on the CPU
        if not self._seed_restored:
            self._go_to(seed, 0)


def integer(value: Any, name: str) -> int:
    """Return an integer, an entry of a state, or raise `ArgumentError`."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(
            f"{name}: expected an integer, got {shown(value)}; give what state_dict() returned"
        ) from None


def natural(value: Any, name: str) -> int:
    """Return an integer of at least 0, an entry of a state, or raise `ArgumentError`."""
    number = integer(value, name)
    if number < 0:
        raise ArgumentError(f"{name}: expected an integer of at least 0, got {number}; give what state_dict() returned")
    return number


def generator_of(seed: int, epoch: int) -> Generator:
    """Return the generator of the order of an epoch."""
    return generators.Generator("cpu", mix(seed, epoch))


# ---- samples ----


class _Reading(threading.local):
    streams: SampleStreams | None = None


_reading = _Reading()


def sample_seed() -> int:
    """Return 63 random bits for the sample that is being read: a function of seed, epoch, and the sample's index.

    While a `DataLoader` reads a sample, `lucid`'s draws on the CPU come from a generator with this seed; so do those of
    `random` and of ``numpy.random``, but not in worker threads, which share these two. For other generators: where a
    dataset reads a whole batch at once, the index is that of the first sample; where it is a stream, the worker and
    the number of the sample stand for it. Where no loader reads it is drawn from the CPU's default generator.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.utils.data import DataLoader, Dataset, sample_seed
    >>> class Noisy(Dataset):
    ...     def __len__(self):
    ...         return 3
    ...
    ...     def __getitem__(self, index):
    ...         return index + np.random.default_rng(sample_seed()).normal()
    >>> next(iter(DataLoader(Noisy(), batch_size=3))).shape
    lucid.Size([3])
    """
    if _reading.streams is None:
        return mix(*default_generator_for("cpu").reserve(1)) >> 1  # pyright: ignore[reportArgumentType]  numbers on the CPU
    return _reading.streams.seed()


def number_of(index: Any) -> int:
    """Return an integer that stands for an index of a dataset, whatever that is."""
    try:
        return operator.index(index)
    except (TypeError, ValueError):  # a tensor of several elements
        return int.from_bytes(hashlib.blake2b(repr(index).encode(), digest_size=8).digest(), "little")


_numpy_random: Any = np.random  # its types leave out two functions
# Of NumPy's MT19937 at its state_address: 624 words and a position.
_STATE_BYTES = 2500


class _NumpyStream:
    """Puts another generator in the place of that of ``numpy.random`` and back; copying its state takes 50 us.

    NumPy forgets then the second of a pair of normal numbers that it keeps outside of the generator. Whether there is
    one is looked for only if somebody has drawn since the last time.
    """

    def __init__(self) -> None:
        self._own = np.random.MT19937(0)
        self._users: Any = None
        self._seen = b""

    def take(self) -> None:
        """Put another generator in the place of the one that is there."""
        self._users = _numpy_random.get_bit_generator()
        now = b""
        if type(self._users) is np.random.MT19937:
            now = ctypes.string_at(self._users.ctypes.state_address, _STATE_BYTES)
        self._state: Any = None
        if not now or now != self._seen:
            state: Any = np.random.get_state(legacy=False)  # noqa: NPY002  the stream that users draw from
            self._state = state if state["has_gauss"] else None
        self._seen = b"" if self._state is not None else now
        _numpy_random.set_bit_generator(self._own)

    def give_back(self) -> None:
        """Put it back."""
        _numpy_random.set_bit_generator(self._users)
        if self._state is not None:
            np.random.set_state(self._state)  # noqa: NPY002  as above


# What the generators of Python and NumPy give first after they were seeded with 0.
_FIRST = random.Random(0).getrandbits(53), np.random.RandomState(0).random_sample()  # noqa: S311  as users draw


class SampleStreams:
    """The random streams of this thread while samples are read: each sample's own; afterwards they are as before.

    lucid's is started when a sample draws from it. `random` and ``numpy.random`` cannot tell when that is, and starting
    them takes longer than reading a small sample: `watched` says whether anything was drawn from them.

    Parameters
    ----------
    python : bool
        Whether `random` and ``numpy.random`` are the sample's, too: not where other threads read meanwhile.
    restored : bool
        Whether they are as before afterwards; it takes longer, and a worker process has no other use of them.
    """

    def __init__(self, *, python: bool = True, restored: bool = True) -> None:
        self.python = python
        self._restored = python and restored
        self._numpy = _NumpyStream()
        self._generator = generators.Generator("cpu", 0)
        self._numbers: tuple[int, ...] = ()
        self._stale = False

    def __enter__(self) -> Self:
        self._before, _reading.streams = _reading.streams, self
        if self._restored:
            self._state = random.getstate()
            self._numpy.take()
        self._used = use_generator(self._started)
        self._used.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._used.__exit__(None, None, None)
        _reading.streams = self._before
        if self._restored:
            random.setstate(self._state)
            self._numpy.give_back()

    def start(self, *numbers: int) -> None:
        """Start the streams, but those of Python and NumPy, for the sample that some numbers name."""
        self._numbers = numbers
        self._stale = True

    def start_all(self, *numbers: int) -> None:
        """Start all streams for the sample that some numbers name."""
        self.start(*numbers)
        if self.python:
            seed = self.seed()
            random.seed(seed)
            np.random.seed(seed & 0xFFFFFFFF)  # noqa: NPY002  as above

    def watched(self, function: Callable[[], T]) -> tuple[T | None, bool]:
        """Return ``function()``, and whether it has drawn from `random` or ``numpy.random``; None if it has."""
        if not self.python:
            return function(), False
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002  as above
        try:
            result = function()
        except Exception:
            if self._drawn():
                return None, True
            raise
        return (None, True) if self._drawn() else (result, False)

    def _drawn(self) -> bool:
        return (random.getrandbits(53), np.random.random_sample()) != _FIRST  # noqa: NPY002  as above

    def seed(self) -> int:
        """Return the seed of the sample that is being read."""
        return mix(*self._numbers) >> 1  # an int64, as PyTorch's are

    def _started(self) -> Generator:
        if self._stale:
            self._stale = False
            self._generator.manual_seed(self.seed())
        return self._generator
