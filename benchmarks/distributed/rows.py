"""The rows: a process alone in `DistributedDataParallel`, and two that put their gradients together."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Row, added, looped

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.measure import Peer, Sampler

PARAMETERS = 150
JOB = "benchmarks.distributed.job"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def alone(peer: Peer) -> Sampler:
    """Return what `DistributedDataParallel` adds to a step of one process."""
    lib: Any = peer.lib
    parallel = importlib.import_module(f"{peer.name}.nn.parallel")
    if peer.name == "torch":
        dist = importlib.import_module("torch.distributed")
        if not dist.is_initialized():
            store = Path(tempfile.mkdtemp()) / "store"
            dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)

    def step(wrap: Callable[[Any], Any]) -> Sampler:
        model = wrap(lib.nn.Sequential(*[lib.nn.Linear(64, 64) for _ in range(PARAMETERS // 2)]))
        x = lib.ones(16, 64)

        def run() -> None:
            model.zero_grad()
            model(x).sum().backward()

        return looped(peer, run)

    return added(step(parallel.DistributedDataParallel), step(lambda module: module))


def together(way: str, mib: float) -> Callable[[Peer], Sampler]:
    """Return a builder of what two processes take to put gradients together."""

    def build(peer: Peer) -> Sampler:
        # PyTorch has no order of its own choice: beside the tree stands what it does
        return lambda: float(_lucid(way, mib) if peer.name == "lucid" else _torch(way.replace("tree", "during"), mib))

    return build


def _lucid(way: str, mib: float) -> str:
    command = [
        sys.executable,
        "-m",
        "lucid.distributed.run",
        "--nproc-per-node",
        "2",
        "-m",
        JOB,
        "lucid",
        way,
        str(mib),
    ]
    return _output(
        subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **ONE_THREAD})
    )


def _torch(way: str, mib: float) -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    places = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **ONE_THREAD}
    command = [sys.executable, "-m", JOB, "torch", way, str(mib)]
    other = subprocess.Popen(command, env={**os.environ, **places, "RANK": "1"}, stderr=subprocess.DEVNULL)
    first = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **places, "RANK": "0"}
    )
    other.wait()
    return _output(first)


def _output(ended: subprocess.CompletedProcess[str]) -> str:
    if ended.returncode:
        message = (ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"])[-1]
        raise RuntimeError(message)
    return ended.stdout.split()[-1]


ROWS = [
    Row(f"distributed: one process, {PARAMETERS} parameters", None, alone, difference=True),
    Row("distributed: two processes, 8 buckets during backward", None, together("during", 1), "ms", most_rounds=5),
    Row("distributed: two processes, one bucket", None, together("during", 25), "ms", most_rounds=5),
    Row("distributed: two processes, after backward", None, together("after", 1), "ms", most_rounds=5),
    Row("distributed: two processes, 8 buckets as a tree", None, together("tree", 1), "ms", most_rounds=5),
]
