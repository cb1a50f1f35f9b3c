"""The rows of `benchmarks.host` with both libraries on the device: PyTorch's dispatch on CUDA is the yardstick."""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import host
from benchmarks.gpu import device
from benchmarks.gpu.facts import text_of
from benchmarks.gpu.rows import Group, Row, Stage, working

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.gpu.rows import Scope, Setting

ROUNDS, WARM = 12, 2
# Calls of a round: the queue of launches, of 1,024, must not fill, for then the host would wait for the device.
CALLS = {"AdamW": 12, "clip_grad_norm_": 12, "GPT block": 6, "step of": 3}
OTHERWISE = 150


def microseconds(work: host.Work, calls: int, rounds: int) -> float:
    """Return the median time in which the host queues a call, or one of the items that a call works through."""
    taken: list[float] = []
    calls = max(1, calls // work.per)
    for _ in range(rounds + WARM):
        arguments = [() if work.prepare is None else (work.prepare(),) for _ in range(calls)]
        device.synchronize()
        begun = time.perf_counter()
        for each in arguments:
            work.call(*each)
        taken.append((time.perf_counter() - begun) / (calls * work.per) * 1e6)
        device.synchronize()
    return statistics.median(taken[WARM:])


def compared(case: host.Case) -> dict[str, object]:
    """Return the host's time of a call in both libraries."""
    calls = next((count for key, count in CALLS.items() if key in case.name), OTHERWISE)
    told: dict[str, object] = {"goal": case.goal}
    for peer in device.peers():
        if peer.name == "torch" and "captured" in case.name:
            continue  # its text is lucid's
        try:
            told[peer.name] = round(microseconds(case.make(peer), calls, 2 if device.simulated() else ROUNDS), 3)
        except Exception as error:
            if peer.name == "lucid":
                raise
            told["torch_error"] = text_of(error)
    if "torch" in told:
        told["ratio"] = round(told["lucid"] / told["torch"], 2)
    return told


def rows(_: Scope) -> Sequence[Row]:
    return [Row(case.name, partial(compared, case)) for case in host.CASES]


def groups(setting: Setting) -> Sequence[Group]:
    # a simulated device that worked would be the host's own time
    return [Group(environment={"LUCID_SIMULATOR_EXECUTE": "0"} if setting.simulated else {})]


STAGE = Stage(working(rows), rehearsed=4, groups=groups)
