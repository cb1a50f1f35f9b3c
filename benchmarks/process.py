"""What only a fresh process can tell: peak memory over the import, and the time of the import itself.

`python -m benchmarks.process memory lucid cpu mlp` and `python -m benchmarks.process import lucid` print a number each.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Peer, Row

if TYPE_CHECKING:
    from benchmarks.measure import Sampler

GROWN = 1600
STEPS = 5  # the first steps make the gradients and the optimizer's state; nothing new is allocated after them


def peak_resident() -> float:
    """Return the most memory that this process has held so far, in MiB.

    Linux's own high-water mark is read where there is one: `ru_maxrss` also holds what the parent had before the exec.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def memory(name: str, device: str, model: str) -> float:
    """Return the peak memory of some training steps, in MiB: over the import on the CPU, allocated on a GPU."""
    from benchmarks.models import STEPS as MODELS

    peer = Peer(name, device)
    if name == "torch":
        peer.lib.set_num_threads(2)
    for part in ("nn", "optim"):  # lucid imports them when they are first asked for
        getattr(peer.lib, part)
    before = peak_resident()
    step = MODELS[model](peer)
    for _ in range(STEPS):
        step()
    peer.synchronize()
    return peak_resident() - before if device == "cpu" else peer.lib.cuda.max_memory_allocated() / 2**20


def growing(name: str) -> float:
    """Return what joining lists that grow by one, forward and backward, adds to the peak memory, in MiB."""
    peer = Peer(name)
    x = peer.lib.ones(1, requires_grad=True)

    def join(most: int) -> None:
        for n in range(1, most):
            peer.lib.cat([x] * n).sum().backward()

    join(GROWN // 10)
    before = peak_resident()
    join(GROWN)
    return peak_resident() - before


def import_time(name: str, *parts: str) -> float:
    """Return the time of the first import, of `parts` of the package too, in milliseconds."""
    start = time.perf_counter()
    for each in (name, *[f"{name}.{part}" for part in parts]):
        importlib.import_module(each)
    return (time.perf_counter() - start) * 1e3


def sampler(peer: Peer, *arguments: str) -> Sampler:
    """Return the sampler that asks a fresh process for its number."""
    command = [sys.executable, "-m", "benchmarks.process", *arguments]
    # an installed package has its bytecode beside it; so has a checkout, unless the environment forbids it
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def sample() -> float:
        child = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if child.returncode:
            reason = child.stderr.strip().splitlines()[-1:] or [f"exit status {child.returncode}"]
            message = f"{peer.name}: {reason[0]}"
            raise RuntimeError(message)
        return float(child.stdout)

    sample()  # the first run compiles bytecode and fills the file cache
    return sample


def memory_row(name: str, budget: float, model: str) -> Row:
    def build(peer: Peer) -> Sampler:
        return sampler(peer, "memory", peer.name, peer.device, model)

    return Row(name, budget, build, unit="MiB", most_rounds=5)


def growing_row() -> Row:
    def build(peer: Peer) -> Sampler:
        return sampler(peer, "growing", peer.name)

    return Row(f"peak memory of cat of 1, 2, ..., {GROWN} tensors", 10, build, unit="MiB", most_rounds=5)


def import_row(name: str, budget: float | None, *parts: str) -> Row:
    def build(peer: Peer) -> Sampler:
        return sampler(peer, "import", peer.name, *parts)

    return Row(name, budget, build, unit="ms", most_rounds=10)


ROWS = [
    memory_row("peak memory of the MLP step over the import", 0.4, "mlp"),
    memory_row("peak memory of the GPT step over the import", 0.5, "gpt"),
    growing_row(),
    import_row("import", 0.12),
    import_row("import, with nn and optim", None, "nn", "optim"),
]

if __name__ == "__main__":
    print({"memory": memory, "growing": growing, "import": import_time}[sys.argv[1]](*sys.argv[2:]))
