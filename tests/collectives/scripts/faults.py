"""A job in which one of two processes fails: how, says the command, and what each process notices goes into a file."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from pathlib import Path

import lucid
from lucid import distributed as dist
from lucid.collectives.engines.mpi import mpi
from lucid.utils.data import DataLoader, Dataset
from tests.waiting import until

STEPS, FAULT = 12, 6


class Samples(Dataset):
    """Samples of which one cannot be read."""

    def __len__(self):
        """Return their number."""
        return 4

    def __getitem__(self, index):
        """Raise where a file would be broken."""
        raise ValueError("bad sample")


def raises(*_):
    """Raise what is a mistake of the user's code."""
    raise ValueError("bad sample")


def by_raising():
    """Raise in the loop."""
    raises()


def by_sigkill():
    """Be killed, as by the system where memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def by_sigstop():
    """Be stopped."""
    os.kill(os.getpid(), signal.SIGSTOP)


def by_exit():
    """End the script with a status."""
    sys.exit(3)


def by_leaving():
    """Leave the loop, and come to the end of the script."""
    raise StopIteration


def by_one_more():
    """Call one collective more than the other, of another size."""
    dist.all_reduce(lucid.zeros(4))


def by_destroying():
    """Raise, and leave the groups in `finally`, as careful scripts do."""
    try:
        raises()
    finally:
        dist.destroy_process_group()


def in_a_thread():
    """Raise in a thread, which Python alone would only print, before this process goes on."""
    thread = threading.Thread(target=raises)
    thread.start()
    thread.join()


def in_a_hook():
    """Raise in a hook of a tensor, during backward."""
    x = lucid.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(raises)
    y.sum().backward()


def in_a_loader():
    """Raise in a worker of a data loader."""
    list(DataLoader(Samples(), num_workers=1))


def by_computing():
    """Compute for longer than the limit."""
    until((Path(sys.argv[1]) / "0.txt").exists)


def by_waiting_elsewhere():
    """Wait for what the other does not send."""
    dist.recv(lucid.ones(1), 0)


# What ends by the limit is given a short one, once all are there; the others have to come first on a busy machine, too.
BY_LIMIT = {"by_sigstop", "by_computing", "by_waiting_elsewhere", "caught", "alone"}
FAULTS = {name: function for name, function in list(globals().items()) if name.startswith(("by_", "in_a_"))}


def train(folder, fault, rank):
    """Take steps that all processes take, of which one process fails in one."""
    for step in range(STEPS):
        if step == FAULT and sys.argv[2] in BY_LIMIT:
            dist.set_timeout(2)
        try:
            if step == FAULT and rank == 1:
                (folder / "1.begin").touch()
                FAULTS[fault]()
            dist.all_reduce(lucid.ones(100))
        except StopIteration:
            return
        except BaseException as error:
            (folder / f"{rank}.part").write_text(f"{type(error).__name__}: {error}")
            print(f"last words of rank {rank}")  # into a buffer, as a script does
            (folder / f"{rank}.part").rename(folder / f"{rank}.txt")
            raise


if __name__ == "__main__":
    if sys.argv[2] == "before" and os.environ.get("PMI_RANK") == "1":
        raises()
    # of the script's own: it flushes nothing, unlike Python's
    sys.excepthook = lambda *error: sys.stderr.write("".join(traceback.format_exception(*error)))
    if sys.argv[2] == "apart":  # both have started MPI, and come together never
        if mpi().COMM_WORLD.rank == 1:
            by_sigstop()
        try:
            dist.init_process_group("mpi", timeout=1)
        except TimeoutError:
            sys.exit(0)
    dist.init_process_group("mpi", timeout=2 if sys.argv[3:] == ["soon"] else 100)
    if sys.argv[2] == "caught" and dist.get_rank() == 0:  # and goes on, to save what it has
        try:
            train(Path(sys.argv[1]), "by_sigstop", 0)
        except TimeoutError:
            sys.exit(0)
    if sys.argv[2] == "alone":  # at work for longer than the limit when the other has ended
        dist.set_timeout(2)
        if dist.get_rank() == 0:
            until(lambda: "has ended its script" in (Path(sys.argv[1]) / "1.err").read_text())
        else:
            sys.stderr = (Path(sys.argv[1]) / "1.err").open("w")
    elif sys.argv[2] != "before":
        train(Path(sys.argv[1]), {"caught": "by_sigstop"}.get(sys.argv[2], sys.argv[2]), dist.get_rank())
