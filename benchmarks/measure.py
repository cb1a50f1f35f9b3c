"""Two libraries measured against each other in one process, under the same conditions.

A row of the table is one function of a peer, run once for lucid and once for PyTorch: the code under the clock is the
same line of text for both. Rounds alternate between the peers and swap who goes first, so that a slow second on the
machine meets both. The ratio is the median over the rounds, which a few disturbed rounds cannot move.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import math
import statistics
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Sampler = Callable[[], float]

SHORTEST = 2e-3  # seconds: below it the clock's own resolution and the loop around the calls would show


@dataclass(frozen=True)
class Peer:
    """One of the two libraries on one device; both speak PyTorch's names, so rows are written once."""

    name: str
    device: str = "cpu"

    @cached_property
    def lib(self) -> Any:
        return importlib.import_module(self.name)

    def tensor(self, array: Any, *, requires_grad: bool = False) -> Any:
        return self.lib.tensor(array, device=self.device, requires_grad=requires_grad)

    def synchronize(self) -> None:
        """Wait for the device, so that the clock stops after the work and not after its launch."""
        if self.device != "cpu":
            self.lib.cuda.synchronize()


@dataclass(frozen=True)
class Row:
    """One line of the table.

    `build(peer)` sets everything up and returns a sampler, which takes one sample per call. `budget` is the ratio lucid
    must reach, None where a row is only for information. A row with `difference=True` samples a small difference of two
    times, whose ratio per round would be noise over noise: there the ratio is that of the two medians.
    """

    name: str
    budget: float | None
    build: Callable[[Peer], Sampler]
    unit: str = "us"
    difference: bool = False
    most_rounds: int | None = None


@dataclass
class Result:
    """What was measured for a row; `not_run` holds the reason where nothing was."""

    name: str
    budget: float | None
    unit: str
    lucid_median: float | None = None
    lucid_min: float | None = None
    torch_median: float | None = None
    torch_min: float | None = None
    ratio: float | None = None
    rounds: int = 0
    not_run: str | None = None
    reached: bool | None = field(default=None)


def looped(
    peer: Peer,
    call: Callable[..., object],
    *,
    prepare: Callable[[], object] | None = None,
    per: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Sampler:
    """Microseconds per item of `call`, where one call works through `per` items.

    The loop is sized here, once, so that every timed piece lasts at least `SHORTEST`. With `prepare`, each call gets
    an argument that was made before the clock started. The garbage collector runs before a piece and not within it.
    """

    def piece(count: int) -> float:
        arguments = None if prepare is None else [prepare() for _ in range(count + 1)]
        gc.collect()
        gc.disable()
        try:
            # The first call, untimed, brings code and data back into the caches that the other peer has just filled.
            call() if arguments is None else call(arguments.pop())
            peer.synchronize()
            start = clock()
            if arguments is None:
                for _ in itertools.repeat(None, count):
                    call()
            else:
                for argument in arguments:
                    call(argument)
            peer.synchronize()
            return clock() - start
        finally:
            gc.enable()

    count = 1
    while (seconds := piece(count)) < SHORTEST:
        count = max(2 * count, math.ceil(1.2 * count * SHORTEST / seconds))

    def sample() -> float:
        return piece(count) / (count * per) * 1e6

    return sample


def added(with_it: Sampler, without_it: Sampler) -> Sampler:
    """Return the sampler of what `with_it` costs more than `without_it`, timed one right after the other."""

    def sample() -> float:
        before = without_it()
        return with_it() - before

    return sample


def set_aside() -> None:
    """Let what is alive now, which stays, out of the garbage collection before each piece."""
    gc.collect()
    gc.freeze()


def measure(row: Row, peers: tuple[Peer, Peer], rounds: int) -> Result:
    """Measure one row; whatever goes wrong becomes the reason why it was not run."""
    result = Result(row.name, row.budget, row.unit)
    rounds = min(rounds, row.most_rounds or rounds)
    try:
        set_aside()
        samplers = [row.build(peer) for peer in peers]
        set_aside()
        taken: list[list[float]] = [[], []]
        for index in range(rounds):
            for who in (0, 1) if index % 2 == 0 else (1, 0):
                taken[who].append(samplers[who]())
    except Exception as error:
        result.not_run = f"{type(error).__name__}: {error}"
        return result
    finally:
        gc.unfreeze()
    ours, theirs = taken
    result.lucid_median, result.torch_median = statistics.median(ours), statistics.median(theirs)
    result.lucid_min, result.torch_min = min(ours), min(theirs)
    if row.difference:
        result.ratio = result.lucid_median / result.torch_median
    else:
        result.ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    result.rounds = rounds
    result.reached = row.budget is None or result.ratio <= row.budget
    return result
