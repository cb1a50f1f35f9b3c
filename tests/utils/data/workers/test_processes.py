"""Worker processes: what fails in them, how they end, and that nothing is left behind."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, SettingError, WorkerError
from lucid.utils.data import DataLoader, get_worker_info
from tests.pieces.children import ROOT, python
from tests.utils.data.datasets import Failing, Numbers, OfSize, Samples, Slow, Stream, as_they_are, broken_start
from tests.utils.data.readers import nothing_left
from tests.waiting import until


class Odd(Exception):
    """Cannot be pickled: its attribute cannot."""

    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


class Demanding(Exception):
    """Can be pickled, and not be read again: its constructor wants more than it keeps."""

    def __init__(self, text, other):
        super().__init__(text)


def fail(kind, *arguments):
    raise kind(*arguments)


def kill(number):
    os.kill(os.getpid(), number)
    time.sleep(10)


def leave(code):
    os._exit(code)


FAULTS = {
    "raises": (functools.partial(fail, ValueError, "a bad sample"), ValueError, "ValueError in worker .*a bad sample"),
    "odd": (functools.partial(fail, Odd, "a lock"), Odd, "Odd in worker .*a lock"),
    "demanding": (functools.partial(fail, Demanding, "two", 2), (Demanding, RuntimeError), "two"),
    "exit": (functools.partial(sys.exit, 3), SystemExit, "SystemExit in worker .*3"),
    "interrupt": (functools.partial(fail, KeyboardInterrupt), KeyboardInterrupt, "KeyboardInterrupt in worker"),
    "kill": (functools.partial(kill, signal.SIGKILL), type(None), "signal SIGKILL, perhaps .* want of memory; .* MiB"),
    "segfault": (functools.partial(kill, signal.SIGSEGV), type(None), "signal SIGSEGV"),
    "leave": (functools.partial(leave, 5), type(None), "exit code 5"),
    "leave well": (functools.partial(leave, 0), type(None), "exit code 0"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault):
    """The batches before come; then an error, without a time-out, with worker, batch, indices, and its cause."""
    with nothing_left():
        check_fault(*FAULTS[fault])


def check_fault(act, cause, match):
    given = 0
    with pytest.raises(WorkerError, match=f"(?s){match}") as caught:
        for _ in DataLoader(Failing(act), batch_size=10, num_workers=2):
            given += 1
    error = caught.value
    assert isinstance(error.__cause__, cause)
    assert error.batch == 3
    assert error.indices == list(range(30, 40))
    assert "of indices [30, 31, 32" in str(error)
    if error.__cause__ is not None:
        assert given == 3
        assert "sample 37" in str(error)
        assert "datasets.py" in str(error)


def test_the_loader_goes_on_after_a_fault():
    """A pass that failed leaves nothing that would make the next one fail."""
    loader = DataLoader(Failing(functools.partial(fail, ValueError), size=40), batch_size=10, num_workers=2)
    for _ in range(3):
        with pytest.raises(WorkerError):
            list(loader)


def test_persistent_workers_after_a_fault():
    """They are made anew; those of a pass that was left stay."""
    with nothing_left():
        loader = DataLoader(Slow(0.001), batch_size=10, num_workers=2, persistent_workers=True)
        list(loader)
        workers = loader._workers
        next(iter(loader))
        assert loader._workers is workers
        assert [batch.tolist() for batch in loader] == np.arange(200).reshape(20, 10).tolist()
        os.kill(workers._workers[1].process.pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match="SIGKILL"):
            list(loader)
        assert len(list(loader)) == 20
        del loader, workers


def test_an_error_of_a_worker_that_cannot_be_asked_in_a_cycle(monkeypatch):
    """It holds no buffer of a message that was under way, of which Python would complain as it collects the cycle."""
    complaints = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    loader = DataLoader(Slow(0.001), batch_size=10, num_workers=1, persistent_workers=True)
    for _ in range(3):
        list(loader)
        process = loader._workers._workers[0].process
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with pytest.raises(WorkerError, match="SIGKILL") as caught:
            list(loader)
        caught.value.itself = caught.value
        del caught
        gc.collect()
    assert not complaints


@pytest.mark.parametrize("timeout", [0.3, 1])
def test_a_worker_that_is_silent(timeout):
    """After `timeout` seconds its stack is shown; of one that is stopped, that it is."""
    with nothing_left():
        with pytest.raises(WorkerError, match=r"(?s)timed out after .* silent while .* batch 0.*in __getitem__"):
            next(iter(DataLoader(Slow(30), batch_size=2, num_workers=1, timeout=timeout)))
        loader = DataLoader(Slow(0.01), batch_size=2, num_workers=1)
        iterator = iter(loader)
        next(iterator)
        loader.timeout = timeout
        os.kill(iterator._workers._workers[0].process.pid, signal.SIGSTOP)
        with pytest.raises(WorkerError, match="the process is stopped"):
            list(iterator)
        del iterator


def test_threads_do_not_stop_a_worker():
    """A worker whose dataset has started threads ends all the same."""
    with nothing_left():
        next(iter(DataLoader(Failing(_start_a_thread, at=0), batch_size=4, num_workers=2)))


def _start_a_thread():
    threading.Thread(target=time.sleep, args=(60,)).start()


def test_leaving_the_loop():
    """A `break` after one batch, twenty times, and an exception in the loop leave nothing."""
    with nothing_left():
        for _ in range(20):
            _left_early()
        with pytest.raises(ZeroDivisionError):
            _left_by_an_error()
        iter(DataLoader(Slow(0.001), batch_size=2, num_workers=2))


def _left_early():
    for _ in DataLoader(Slow(0.001), batch_size=2, num_workers=2):
        break


def _left_by_an_error():
    for _ in DataLoader(Slow(0.001), batch_size=2, num_workers=2):
        1 / 0


def test_a_loader_that_goes_away():
    """Workers that stayed for it end with it."""
    with nothing_left():
        loader = DataLoader(Numbers(), num_workers=2, persistent_workers=True)
        list(loader)
        del loader


def test_a_worker_that_cannot_start():
    """What `worker_init_fn` raises is an error that says so."""
    with (
        nothing_left(),
        pytest.raises(WorkerError, match=r"ValueError in worker . of 2 .* while it was starting: worker"),
    ):
        list(DataLoader(Numbers(), num_workers=2, worker_init_fn=broken_start))


class Unpicklable(Numbers):
    """Holds what cannot be pickled, two levels down."""

    def __init__(self):
        super().__init__()
        self.settings = {"transform": [abs, lambda x: x]}


def test_a_dataset_that_cannot_be_sent():
    """The error says which part cannot be pickled; threads and forked processes need not."""
    with nothing_left():
        loader = DataLoader(Unpicklable(), num_workers=1)
        with pytest.raises(ArgumentError, match=r"dataset.settings\['transform'\]\[1\], of type function"):
            iter(loader)
        assert len(list(DataLoader(Unpicklable(), num_workers=1, worker="thread"))) == 77
        with pytest.raises(ArgumentError, match="collate_fn, of type function"):
            iter(DataLoader(Numbers(), num_workers=1, collate_fn=lambda samples: samples))


def unsendable(samples):
    return {"lock": threading.Lock(), "samples": samples}


def test_a_batch_that_cannot_be_sent():
    """The error says what of it cannot be pickled."""
    with nothing_left(), pytest.raises(WorkerError, match=r"batch\['lock'\], of type lock") as caught:
        list(DataLoader(Numbers(), num_workers=1, collate_fn=unsendable))
    assert isinstance(caught.value.__cause__, ArgumentError)


def test_no_room_for_a_batch():
    """A lack of shared memory is an error of the worker, and not its end."""
    import resource

    with nothing_left(), pytest.raises(WorkerError, match=r"no room for [\d,]+ bytes .* smaller batches") as caught:
        list(DataLoader(Failing(int), batch_size=64, num_workers=1, worker_init_fn=_little_room))
    assert isinstance(caught.value.__cause__, MemoryError)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def _little_room(number):
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))


# ---- starting ----


@pytest.mark.parametrize(
    "method", [pytest.param("fork", marks=pytest.mark.cpu("a device was used by then")), "spawn", "forkserver"]
)
def test_ways_to_start(method):
    """Each way gives the same batches; what a worker writes into its dataset is its own."""
    dataset = Counting()
    assert len(list(DataLoader(dataset, num_workers=2, multiprocessing_context=method))) == 20
    assert dataset.counts.sum() == 0


def test_a_way_to_start_that_is_set_later():
    """Workers start as the loader was told last, and as lucid chooses where that is None again."""
    loader = DataLoader(Numbers(), num_workers=1)
    usual = loader.multiprocessing_context.get_start_method()
    for given, method in (("spawn", "spawn"), (None, usual)):
        loader.multiprocessing_context = given
        assert len(list(loader)) == len(loader)
        assert loader.multiprocessing_context.get_start_method() == method
    assert usual != "spawn"


def test_only_processes_have_a_way_to_start():
    """There is none of threads, and none where the loader reads itself."""
    for settings in ({}, {"worker": "thread"}, {"num_workers": 1, "worker": "thread"}):
        assert DataLoader(Numbers(), **settings).multiprocessing_context is None


class Counting(OfSize):
    """Counts, in an array, how often each sample was read."""

    size = 20

    def __init__(self):
        self.counts = np.zeros(20, np.int64)

    def __getitem__(self, index):
        self.counts[index] += 1
        return self.counts[index]


class Shared(Counting):
    """Counts in a tensor that processes share."""

    def __init__(self):
        self.counts = lucid.zeros(20, dtype=lucid.int64, device="cpu").share_memory_()


def test_shared_tensors_stay_shared():
    """What the user put into shared memory is there for all, and not copied."""
    dataset = Shared()
    assert all(int(batch[0]) == 1 for batch in DataLoader(dataset, num_workers=2))
    assert dataset.counts.tolist() == [1] * 20


@pytest.mark.gpu
def test_fork_after_a_device():
    """A forked process has no use of a device, so this way to start is refused once one was used."""
    lucid.zeros(1, device="cuda")
    with nothing_left(), pytest.raises(SettingError, match="'fork' after a CUDA device was used"):
        iter(DataLoader(Numbers(), num_workers=1, multiprocessing_context="fork"))


@pytest.mark.gpu
def test_a_dataset_on_a_device():
    """Tensors on a device are not sent to a worker: the error says what to do."""
    dataset = [lucid.zeros(1, device="cuda")]
    with pytest.raises(ArgumentError, match=r"(?s)dataset\[0\].* on a CUDA device: .* num_workers=0"):
        iter(DataLoader(dataset, num_workers=1))


def told(index):
    """Say which worker read a sample."""
    info = get_worker_info()
    return info.id, info.num_workers, info.seed, len(info.dataset)


def test_worker_info():
    """A worker knows its number, that of all, and its seed; the loop is none."""
    rows = {tuple(int(part) for part in batch) for batch in DataLoader(Samples(8, told), num_workers=2)}
    assert {row[:2] for row in rows} == {(0, 2), (1, 2)}
    assert len({row[2] for row in rows}) == 2
    assert {row[3] for row in rows} == {8}
    assert get_worker_info() is None


# ---- batches ----


def sized(index):
    """Return a sample of a size that grows and shrinks, with text beside it."""
    return np.full((index * 7919 % 5000, 3), index, np.float32), "x" * (index * 1009 % 9000), {"empty": np.zeros(0)}


def test_batches_of_any_size():
    """Memory grows with the batches; long texts and empty arrays come along."""
    loader = DataLoader(Samples(30, sized), batch_size=3, num_workers=2, collate_fn=as_they_are)
    for index, (array, text, rest) in enumerate(sample for batch in loader for sample in batch):
        expected = sized(index)
        np.testing.assert_array_equal(array, expected[0])
        assert text == expected[1]
        assert rest["empty"].shape == (0,)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_batch_that_is_held_is_not_overwritten(persistent):
    """Batches and parts of them may be kept and written to, also after the loader is gone."""
    loader = DataLoader(Failing(int), batch_size=10, num_workers=2, persistent_workers=persistent)
    kept = [batch[3:, 1] for batch in loader] + [batch[3:, 1] for batch in loader]
    kept[0].add_(1)
    del loader
    for index, part in enumerate(kept[1:], 1):
        assert part.tolist() == list(range(index % 20 * 10 + 3, index % 20 * 10 + 10))
    assert kept[0].tolist() == [float(n + 1) for n in range(3, 10)]


DTYPES = [lucid.float16, lucid.bfloat16, lucid.float32, lucid.float64, lucid.complex64, lucid.int8, lucid.bool]


def of_each_dtype(index):
    """Return a tensor of each dtype."""
    return [lucid.tensor([index, 1], device="cpu").to(dtype) for dtype in DTYPES]


def test_dtypes():
    """Tensors of each dtype cross with their bits."""
    (batch,) = DataLoader(Samples(4, of_each_dtype), batch_size=4, num_workers=1)
    for part, dtype in zip(batch, DTYPES, strict=True):
        assert part.dtype == dtype
        assert lucid.equal(part, lucid.tensor([[0, 1], [1, 1], [2, 1], [3, 1]], device="cpu").to(dtype))


def test_memory_stays():
    """Ten thousand batches need no more memory than a hundred, and slots are used again."""
    loader = DataLoader(Failing(int, size=100_000), batch_size=10, num_workers=2, persistent_workers=True)
    iterator = iter(loader)
    for _ in range(100):
        next(iterator)
    workers = iterator._workers._workers
    slots = [worker.slots for worker in workers]
    before = sum(_resident(worker.process.pid) for worker in workers) + _resident("self")
    for _ in iterator:
        pass
    assert sum(_resident(worker.process.pid) for worker in workers) + _resident("self") < before + 5 * 2**20
    assert max(worker.slots for worker in workers) <= max(*slots, 6)


def _resident(process):
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096


# ---- Ctrl-C ----

SCRIPT = """
{mark}
import gc, multiprocessing, os, signal, sys, threading, time
import lucid
from lucid.utils.data import DataLoader
from tests.utils.data.datasets import Numbers, Slow
from tests.waiting import until

def group(after):
    threading.Timer(after, lambda: os.killpg(os.getpgrp(), signal.SIGINT)).start()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    list(DataLoader(Numbers(), num_workers=2))  # the fork server is under way
    try:
        {body}
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    gc.collect()
    until(lambda: not multiprocessing.active_children())
    print("left:", multiprocessing.active_children(), flush=True)
"""
BODIES = {
    "in the loop": "group(0.3)\nfor _ in DataLoader(Slow(0.001), num_workers=2): time.sleep(0.02)",
    "while waiting": "group(0.3)\nfor _ in DataLoader(Slow(60), num_workers=2): pass",
    "while starting": "group(0.01)\nfor _ in range(1000): iter(DataLoader(Numbers(), num_workers=4))",
    "twice": "group(0.3); group(0.35)\nfor _ in DataLoader(Slow(60), num_workers=2): pass",
}


def named(words):
    """Return the processes whose command has these words."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += [process.name] * (words.encode() in (process / "cmdline").read_bytes())
    return found


@pytest.mark.parametrize("moment", BODIES)
def test_ctrl_c(moment, tmp_path):
    """The whole group gets the signal, as from a terminal: the loop ends at once, without a word of the workers."""
    script = SCRIPT.format(mark=f"# {tmp_path}", body=BODIES[moment].replace("\n", "\n        "))
    done = python("-c", script, settings={"start_new_session": True})
    if moment != "twice":  # a second one may come at any place
        assert done.stdout == "interrupted\nleft: []\n", done.stderr
        # a worker that is starting may not have come to the line from which on it ignores the signal
        assert "Traceback" not in done.stderr or moment == "while starting"
    assert until(lambda: not named(str(tmp_path)))


UNGUARDED = """
import lucid
from lucid.utils.data import DataLoader
from tests.utils.data.datasets import Numbers

print(len(list(DataLoader(Numbers(), num_workers=1))))
"""


def test_a_script_without_a_guard(tmp_path):
    """A script that begins its work when it is imported gets an error that says so, and ends."""
    script = tmp_path / "train.py"
    script.write_text(UNGUARDED)
    done = python(script)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("belongs below `if __name__ == '__main__':`")


def test_a_dataset_of_the_prompt():
    """What no file defines a worker cannot import; the error says what can be done."""
    script = """
from lucid.utils.data import DataLoader, Dataset
class Mine(Dataset):
    def __len__(self):
        return 3
list(DataLoader(Mine(), num_workers=1))
"""
    done = python("-c", script)
    assert done.returncode == 1
    assert "a worker cannot import what the dataset is made of: Can't get attribute 'Mine'" in done.stderr


def test_a_training_that_is_killed():
    """Workers end when the process that started them is gone."""
    script = textwrap.dedent("""
        import os, time
        from lucid.utils.data import DataLoader
        from tests.utils.data.datasets import Slow
        if __name__ == "__main__":
            iterator = iter(DataLoader(Slow(0.05), num_workers=2, multiprocessing_context={method!r}))
            next(iterator)
            print(*[worker.process.pid for worker in iterator._workers._workers], flush=True)
            time.sleep(60)
    """)
    for method in ("forkserver", "fork"):
        with subprocess.Popen(
            [sys.executable, "-c", script.format(method=method)],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        ) as process:  # fmt: skip
            pids = process.stdout.readline().split()
            process.kill()
        assert len(pids) == 2
        assert until(lambda pids=pids: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_a_forked_process_leaves_the_workers_alone():
    """What ends in a child that the user forks is a copy: the loop of the parent goes on."""
    iterator = iter(DataLoader(Slow(0.001, size=40), batch_size=4, num_workers=2))
    next(iterator)
    child = os.fork()
    if not child:
        try:
            iterator.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert len(list(iterator)) == 9


def test_streams_that_fail():
    """A stream has no indices: the number of the sample stands for them."""
    with pytest.raises(
        WorkerError, match=r"ValueError in worker 0 of 1 .* while it was reading batch 2, sample 9: nine"
    ):
        list(DataLoader(FailingStream(), batch_size=4, num_workers=1))


class FailingStream(Stream):
    """Fails at the tenth sample."""

    def __iter__(self):
        for number in range(20):
            if number == 9:
                raise ValueError("nine")
            yield number


def test_ctrl_c_while_workers_end(monkeypatch):
    """It comes when their pipes are closed: none is left."""
    with nothing_left():
        iterator = iter(DataLoader(Slow(0.001), num_workers=2))
        next(iterator)
        workers = iterator._workers._workers
        close = type(workers[0].pipe).close

        def interrupted(pipe):
            if pipe is workers[0].pipe:
                os.kill(os.getpid(), signal.SIGINT)
            close(pipe)

        monkeypatch.setattr(type(workers[0].pipe), "close", interrupted)
        usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
        try:
            with pytest.raises(KeyboardInterrupt):
                iterator.close()
        finally:
            signal.signal(signal.SIGINT, usual)
            monkeypatch.undo()
        assert [end.closed for worker in workers for end in (worker.pipe, worker.stacks)] == [True] * 4


def test_a_script_that_is_no_file():
    """What comes through a pipe no worker can import: the error says what can be done."""
    script = "from lucid.utils.data import DataLoader\nlist(DataLoader(range(3), num_workers=1))"
    done = python("-", settings={"input": script})
    assert done.returncode == 1
    assert "'<stdin>' is no file: save the script, or use worker='thread'" in done.stderr
