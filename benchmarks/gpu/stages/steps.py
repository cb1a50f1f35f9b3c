"""Steps of training, queued one by one and captured, in both libraries: the time of the host and of the whole."""

from __future__ import annotations

import itertools
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.gpu import device
from benchmarks.gpu.rows import Row, Stage, working
from benchmarks.gpu.stages.training import HALF_OF_GPT_2, SIMULATED, SMALL, training

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.gpu.rows import Scope
    from benchmarks.gpu.stages.training import Size, Training
    from benchmarks.measure import Peer

WARM, COUNTED = 5, 10


def captured_by_torch(torch: Any, made: Training) -> Callable[[], object]:
    """Return the replay of a step that PyTorch captured, after the warm-up on another stream that it asks for."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            made.step(*made.given)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made.step(*made.given)
    return graph.replay


def timed(peer: Peer, size: Size, dtype: str, *, captured: bool) -> dict[str, object]:
    """Return the milliseconds of a step, and those until it is queued."""
    try:
        made = training(peer, size, dtype, capturable=captured)
        call: Callable[[], object] = partial(made.step, *made.given)
        if captured and peer.name == "torch":
            call = captured_by_torch(peer.lib, made)
        elif captured:
            call = partial(peer.lib.cuda.graphed_step(made.step, *made.given), *made.given)
        warm, counted = (1, 2) if device.simulated() else (WARM, COUNTED)
        for _ in range(warm):
            call()
        device.synchronize()
        begun = time.perf_counter()
        for _ in range(counted):
            call()
        queued = time.perf_counter()
        device.synchronize()
        whole = time.perf_counter()
        ms = [round((end - begun) / counted * 1e3, 3) for end in (queued, whole)]
        return {"queued_ms": ms[0], "ms": ms[1]}
    finally:
        made = call = None
        device.free()


def rows(_: Scope) -> Sequence[Row]:
    sizes = {"small GPT": SMALL, "half of GPT-2 small": HALF_OF_GPT_2}
    if device.simulated():
        sizes = {"small GPT": SIMULATED}
    return [
        Row(
            f"{name}, {dtype}, {'captured' if captured else 'eager'}, {peer.name}",
            partial(timed, peer, size, dtype, captured=captured),
        )
        for (name, size), dtype, captured, peer in itertools.product(
            sizes.items(), ("float32", "bfloat16"), (False, True), device.peers()
        )
    ]


STAGE = Stage(working(rows), rehearsed=2)
