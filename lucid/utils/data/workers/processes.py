"""Worker processes, as the training process sees them: started, asked, heard, and ended."""

from __future__ import annotations

import mmap
import operator
import os
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base import gpu
from lucid.base.interrupts import in_destructor, uninterrupted
from lucid.errors import ArgumentError, SettingError, WorkerError
from lucid.utils.data.reading import Failure, Outcome, failed, while_reading, worker_error
from lucid.utils.data.workers import worker_process
from lucid.utils.data.workers.sharing import Lease, Writer, lend, pin, unpack, why_not_picklable
from lucid.utils.data.workers.worker_process import Reply, Request, Setup

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from lucid.utils.data.reading import Job, Pass

# Seconds in which workers that are no longer needed end by themselves, together; then they are ended.
_GRACE = 0.5
# As many requests as a worker may have in its pipe: their answers, a thousand bytes each, fit into it.
_IN_PIPE = 32
# Seconds that a worker has to write down its stack, or to be found dead.
_LOOK = 0.5


class _CtrlCIgnored:
    """A pickle that makes the process that loads it ignore Ctrl-C, by means of Python alone."""

    def __reduce__(self) -> Any:
        return signal.signal, (int(signal.SIGINT), int(signal.SIG_IGN))


class _Name(str):
    """The name of a process: loaded first, before the slow import of the script."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return operator.getitem, ((str(self), _CtrlCIgnored()), 0)


class _Worker:
    """One worker process and its jobs under way."""

    def __init__(self, process: Any, pipe: Connection[Any, Any], stacks: Connection[Any, Any]) -> None:
        self.process = process
        self.pipe = pipe
        self.stacks = stacks
        self.jobs: dict[int, Job] = {}
        # jobs that it has not been asked for yet, and how many it was asked for and has not answered
        self.waiting: deque[Job] = deque()
        self.asked = 0
        self.blocks: dict[int, mmap.mmap] = {}
        self.free: list[int] = []
        self.lent: dict[int, Lease] = {}
        self.returned: deque[Lease] = deque()
        self.slots = 0
        self.peak = 0


class ProcessWorkers:
    """Worker processes of one loader.

    Parameters
    ----------
    setup : Setup
        What each works with.
    seeds : list of int
        Of the random streams of each.
    context : multiprocessing context
        How they start.
    ahead : int
        How many batches each may have under way.
    pin : bool
        Whether the memory of batches is page-locked.
    """

    def __init__(self, setup: Setup, seeds: list[int], context: Any, ahead: int, *, pin: bool) -> None:
        self._ahead = ahead
        self._pin = pin
        self._pass = 0
        self._workers: list[_Worker] = []
        self._owner = os.getpid()
        self._ended = False
        try:
            self._start(setup, seeds, context)
        except BaseException:
            self.close()
            raise

    def _start(self, setup: Setup, seeds: list[int], context: Any) -> None:
        from multiprocessing.reduction import send_handle  # noqa: PLC0415

        forked = context.get_start_method() == "fork"
        if forked and gpu.is_loaded():
            raise SettingError(
                "DataLoader: expected workers that start by 'forkserver' or 'spawn', got 'fork' after a CUDA device "
                "was used: a forked process inherits a device that it cannot use; leave multiprocessing_context out"
            )
        writer, message = Writer(), None
        shared: list[int] = []
        if not forked:
            _check_script()
            message = _packed(writer, setup, shared)
            preload(context)
        for number, seed in enumerate(seeds):
            pipe, its_pipe = context.Pipe()
            stacks, its_stacks = context.Pipe(duplex=False)
            pipes = [pipe, stacks, *(end for other in self._workers for end in (other.pipe, other.stacks))]
            inherited = (setup, pipes) if forked else (None, ())
            process = context.Process(
                target=worker_process.run,
                args=(its_pipe, its_stacks, number, len(seeds), seed, *inherited),
                name=f"lucid worker {number}" if forked else _Name(f"lucid worker {number}"),
                daemon=True,
            )
            self._workers.append(_Worker(process, pipe, stacks))
            try:
                uninterrupted(process.start)  # one that has started half would end with a traceback
            finally:
                process.name = str(process.name)  # nobody else is to read it from a pickle
                its_pipe.close()
                its_stacks.close()
            if message is not None:
                own = [] if writer.block is None else [writer.block.descriptor]
                sent = _sent(pipe.send, (message, bool(own), len(shared)))
                if not sent or not all(_sent(send_handle, pipe, file, process.pid) for file in own + shared):
                    raise self._death(number)

    def __len__(self) -> int:
        return len(self._workers)

    def begin(self, this: Pass) -> None:
        """Begin a pass: results of an earlier one are dropped on arrival."""
        self._pass += 1
        for number, worker in enumerate(self._workers):
            worker.jobs.clear()
            worker.waiting.clear()
            self._tell(number, this)

    def load(self, number: int) -> int:
        """Return how many jobs of this pass a worker has."""
        return len(self._workers[number].jobs)

    def send(self, number: int, job: Job) -> None:
        """Give a worker a job."""
        worker = self._workers[number]
        worker.jobs[job.number] = job
        worker.waiting.append(job)
        self._ask(number)

    def _ask(self, number: int) -> None:
        """Send a worker its jobs, as far as its answers fit into the pipe, so that it never waits to send."""
        worker = self._workers[number]
        while worker.waiting and worker.asked < _IN_PIPE:
            worker.asked += 1
            self._request(number, worker.waiting.popleft())

    def _request(self, number: int, job: Job) -> None:
        worker = self._workers[number]
        while worker.returned:
            slot = worker.returned.popleft().slot
            del worker.lent[slot]
            worker.free.append(slot)
        dropped: list[int] = []
        while len(worker.free) > 2 * self._ahead:
            dropped.append(worker.free.pop(0))
            worker.blocks.pop(dropped[-1], None)
        if worker.free:
            slot = worker.free.pop()
        else:
            slot = worker.slots
            worker.slots += 1
        self._tell(number, Request(self._pass, job, slot, dropped))

    def _tell(self, number: int, what: Any) -> None:
        if not _sent(self._workers[number].pipe.send, what):
            raise self._failure(number)

    def receive(self, worker: int, timeout: float) -> Outcome:
        """Return the next outcome of any worker, while waiting for a batch of `worker`.

        Raises
        ------
        WorkerError
            If a worker has ended, or nothing came for `timeout` seconds; 0 waits for ever.
        """
        from multiprocessing.connection import wait  # noqa: PLC0415

        pipes: dict[Any, int] = {other.pipe: number for number, other in enumerate(self._workers)}
        ends: dict[Any, int] = {other.process.sentinel: number for number, other in enumerate(self._workers)}
        deadline = time.monotonic() + timeout
        while True:
            remaining = deadline - time.monotonic() if timeout else None
            ready = wait([*pipes, *ends], remaining) if remaining is None or remaining > 0 else []
            if not ready:
                raise self._silence(worker, timeout)
            # a worker that has ended may have sent a batch before
            heard = [pipes[one] for one in ready if one in pipes]
            if not heard:
                raise self._death(ends[ready[0]])
            for number in heard:
                outcome = self._heard(number)
                if outcome is not None:
                    return outcome

    def _heard(self, number: int) -> Outcome | None:
        """Return the answer of a worker; None if it is of an earlier pass."""
        from multiprocessing.reduction import recv_handle  # noqa: PLC0415

        worker = self._workers[number]
        try:
            reply: Reply = worker.pipe.recv()
            block = _mapped(recv_handle(worker.pipe)) if reply.fresh else None
        except (EOFError, ConnectionResetError):
            raise self._death(number) from None
        worker.peak = reply.peak
        if reply.number < 0:
            lent = None if block is None else np.frombuffer(block, np.uint8)
            raise failed(self._named(number), number, None, unpack(reply.message, lent))
        if block is not None:
            if self._pin:
                pin(block)
            worker.blocks[reply.slot] = block
        worker.asked -= 1
        known = worker.blocks.get(reply.slot)
        if reply.pass_number != self._pass:
            worker.free.append(reply.slot)
            self._ask(number)
            return None
        job = worker.jobs.pop(reply.number)
        if known is None:
            result = unpack(reply.message, None)
            worker.free.append(reply.slot)
        else:
            lent, worker.lent[reply.slot] = lend(known, reply.slot, worker.returned)
            result = unpack(reply.message, lent)
            del lent
        self._ask(number)
        if isinstance(result, Failure):
            return Outcome(job.number, failed(self._named(number), number, job, result))
        return Outcome(job.number, result)

    # ---- what goes wrong ----

    def _named(self, number: int) -> str:
        return f"worker {number} of {len(self._workers)} (process {self._workers[number].process.pid})"

    def _failure(self, number: int) -> WorkerError:
        """Return the error of a worker with a closed pipe: its own last error, or its exit."""
        worker = self._workers[number]
        try:
            while worker.pipe.poll(0):
                self._heard(number)
        except WorkerError as error:
            return error
        return self._death(number)

    def _death(self, number: int) -> WorkerError:
        """Return the error of a worker that has ended."""
        worker = self._workers[number]
        if worker.process.pid is None:
            return worker_error(f"worker {number} of {len(self._workers)} did not start", number, None)
        worker.process.join(_LOOK)
        code: int | None = worker.process.exitcode
        if code is None:
            how = "closed its pipe"
        elif code < 0:
            how = f"was ended by signal {_signal_name(-code)}"
            if -code == signal.SIGKILL:
                how += ", perhaps by the system for want of memory"
        else:
            how = f"ended with exit code {code}"
        if worker.peak:
            how += f"; it had had up to {worker.peak / 2**20:,.0f} MiB of memory by its last batch"
        job = next(iter(worker.jobs.values()), None)
        message = f"{self._named(number)} {how}{while_reading(job)}"
        if not worker.peak and code and code > 0:
            message += (
                "; what it wrote stands above. Workers import the script that started them: everything that it does "
                "belongs below `if __name__ == '__main__':`"
            )
        return worker_error(message, number, job)

    def _silence(self, number: int, timeout: float) -> WorkerError:
        """Return the error of a worker that sent nothing in time, with its stack."""
        worker = self._workers[number]
        job = next(iter(worker.jobs.values()), None)
        begin = f"DataLoader timed out after {timeout:g} seconds: {self._named(number)} was silent{while_reading(job)}"
        if _is_stopped(worker.process.pid):
            return worker_error(f"{begin}; the process is stopped (SIGSTOP or SIGTSTP)", number, job)
        text = ""
        try:
            os.kill(worker.process.pid, signal.SIGUSR1)
            while worker.stacks.poll(_LOOK if not text else 0.05):
                text += os.read(worker.stacks.fileno(), 1 << 16).decode(errors="replace")
        except (OSError, EOFError):
            return self._death(number)
        return worker_error(f"{begin}; it is here:\n\n{text or '(it did not say)'}", number, job)

    # ---- the end ----

    def __del__(self) -> None:
        if hasattr(self, "_ended"):
            in_destructor(self.close)

    def close(self) -> None:
        """End all workers, forcibly after half a second, and forget their memory."""
        if self._ended or os.getpid() != self._owner:  # a forked process has copies of what is not its own
            return
        self._ended = True
        workers = self._workers
        started = [worker.process for worker in workers if worker.process.pid is not None]
        deadline = time.monotonic() + _GRACE
        try:
            uninterrupted(self._hang_up)
            for process in started:
                process.join(max(0.0, deadline - time.monotonic()))
        finally:  # a Ctrl-C ends the wait, not the ending
            for process in started:
                if process.exitcode is None:
                    process.kill()
            for process in started:
                process.join()
                process.close()
            for worker in workers:
                worker.blocks.clear()

    def _hang_up(self) -> None:
        for worker in self._workers:
            worker.pipe.close()
            worker.stacks.close()


def _sent(send: Callable[..., None], *what: Any) -> bool:
    """Return whether a pipe took the arguments; false if the other end is closed.

    The system's error ends here: its frames hold the buffer of a pickle, of which Python complains where the garbage
    collector meets both in a cycle.
    """
    try:
        send(*what)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _packed(writer: Writer, setup: Setup, shared: list[int]) -> Any:
    """Return the message of a setup for processes that do not inherit it; files that they share go to `shared`."""
    try:
        return writer.pack(setup, shared)
    except Exception as error:
        named = (
            ("dataset", setup.parts.dataset),
            ("collate_fn", setup.parts.collate_fn),
            ("worker_init_fn", setup.worker_init_fn),
        )
        reason = next(filter(None, (why_not_picklable(value, name) for name, value in named)), str(error))
        raise ArgumentError(
            f"DataLoader: worker processes get a pickled copy of the dataset, and this cannot be pickled: {reason}. "
            "Use functions and classes that can be imported by their names, open files and connections in "
            "worker_init_fn or at the first read, or choose worker='thread', or multiprocessing_context='fork' before "
            "a CUDA device is used"
        ) from error


def _check_script() -> None:
    """Raise if no other process could import the running script, as Python's workers must."""
    main: Any = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file is not None and getattr(main, "__spec__", None) is None and not Path(file).exists():
        raise ArgumentError(
            f"DataLoader: worker processes import the script that started them, and {file!r} is no file: save the "
            "script, or use worker='thread', or multiprocessing_context='fork' before a CUDA device is used"
        )


def preload(context: Any) -> None:
    """Start Python's fork server, if workers come from it, and import their common modules there once.

    Not the script that runs: it may be one that begins its work when it is imported.
    """
    if context.get_start_method() != "forkserver":
        return
    from multiprocessing import forkserver, process  # noqa: PLC0415

    server: Any = forkserver._forkserver  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if getattr(server, "_preload_modules", None) == ["__main__"]:  # not where the user has chosen others
        context.set_forkserver_preload([worker_process.__name__])
    if not getattr(process.current_process(), "_inheriting", False):  # not while a worker imports the script
        forkserver.ensure_running()


def _mapped(descriptor: int) -> mmap.mmap:
    """Return the memory of a file, closing the file: no finalizer, as that could lose a Ctrl-C."""
    try:
        return mmap.mmap(descriptor, 0)
    finally:
        os.close(descriptor)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _is_stopped(process: int) -> bool:
    """Return whether a process is stopped, as far as the system tells."""
    if sys.platform != "linux":
        return False
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in {"T", "t"}
    except OSError:
        return False
