"""`python -m tests.stress.forks --forks 1000`: children forked while other threads run lucid all come to their end.

Threads run passes, register and remove hooks, draw numbers, save and load; the main thread forks, and each child does
the same once. A child that has not ended after `PATIENCE` seconds of `tests.waiting` counts as hanging.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import lucid
from lucid import nn
from lucid.autograd.graph import register_multi_grad_hook
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS = 3


def work(model: nn.Module, x: lucid.Tensor, path: Path) -> None:
    """Take every lock that lucid has on the CPU."""
    handles = [
        model.register_forward_hook(lambda *_: None),
        model.register_full_backward_hook(lambda *_: None),
        x.register_hook(lambda grad: None),
        register_multi_grad_hook([x], lambda grads: None),
    ]
    (model(x) * lucid.rand(1)).sum().backward()
    with lucid.no_grad():
        lucid.manual_seed(int(lucid.randint(9, (1,)).item()))
    lucid.save(model.state_dict(), path)
    model.load_state_dict(lucid.load(path))
    for handle in handles:
        handle.remove()


def child(act: Callable[[], None]) -> int:
    """Return the number of a forked child that does `act` and ends with status 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 says of each such fork that it may hang
        number = os.fork()
    if number:
        return number
    status = 1
    try:
        act()
        status = 0
    finally:
        os._exit(status)


def ended(number: int) -> str:
    """Return how a child ended: "well", "badly", or "not at all"."""
    status = 0

    def has_ended() -> bool:
        nonlocal status
        done, status = os.waitpid(number, os.WNOHANG)
        return bool(done)

    if until(has_ended):
        return "well" if status == 0 else "badly"
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)
    return "not at all"


def run(forks: int) -> dict[str, int]:
    """Return how many children ended well, badly, and not at all."""
    counts = {"well": 0, "badly": 0, "not at all": 0}
    x = lucid.ones(2, 4, requires_grad=True)
    models = [nn.Linear(4, 4) for _ in range(THREADS + 1)]
    stop = threading.Event()
    failed: list[str] = []
    interval = sys.getswitchinterval()
    with tempfile.TemporaryDirectory() as folder:

        def busy(number: int) -> None:
            try:
                while not stop.is_set():
                    work(models[number], x, Path(folder) / f"{number}.st")
            except Exception:
                failed.append(traceback.format_exc())
                raise

        # what is imported first: a child that is forked meanwhile finds Python's lock of that module closed for ever
        work(models[-1], x, Path(folder) / "first.st")
        threads = [threading.Thread(target=busy, args=(number,)) for number in range(THREADS)]
        sys.setswitchinterval(1e-6)  # so that many a fork finds a thread that holds a lock
        for thread in threads:
            thread.start()
        try:
            for _ in range(forks):
                counts[ended(child(lambda: work(models[-1], x, Path(folder) / "child.st")))] += 1
        finally:
            sys.setswitchinterval(interval)
            stop.set()
            for thread in threads:
                thread.join()
    if failed:
        raise RuntimeError("a thread has failed:\n" + failed[0])
    return counts


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress.forks", description=__doc__)
    parser.add_argument("--forks", type=int, default=1000)
    counts = run(parser.parse_args().forks)
    print(f"{sum(counts.values())} children: " + ", ".join(f"{count} ended {how}" for how, count in counts.items()))
    return 0 if counts["well"] == sum(counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
