"""No failure of a process ends in a hang: each other one gets an error that says what happened, and the job ends."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from tests.collectives.jobs import job, run
from tests.collectives.scripts.faults import FAULTS

FAILED = "DistributedError", "rank 1 has failed while rank 0 of 2 waits in collective 7, all_reduce of shape (100,)"
BAD = (*FAILED, "ValueError: bad sample")
LEFT = "DistributedError", "rank 1 has left", "rank 0 of 2 waits in collective 7", "rank 1 had called 6"
LATE = "DistributedTimeoutError", "rank 0 of 2 waits in collective 7", "has waited 2 s", "collective 6, all_reduce"
MUTE = (*LATE, "Not arrived: rank 1, which does not answer")
OTHER = "DistributedError", "another process calls another collective"
# What the file of the other process says; None where the launcher ends it before it can notice.
NOTICED = {
    "by_raising": BAD,
    "by_sigkill": None,
    "by_sigstop": MUTE,
    "by_exit": LEFT,
    "by_leaving": LEFT,
    "by_one_more": OTHER,
    "by_destroying": BAD,
    "in_a_thread": ("DistributedError", "rank 1 has failed while rank 0 of 2 waits in", "ValueError: bad sample"),
    "in_a_hook": BAD,
    "in_a_loader": BAD,
    "by_computing": MUTE,
    "by_waiting_elsewhere": ("Distributed", "rank 0 of 2 waits in collective 7"),
}


def ended(fault, folder):
    """Return how a job with a fault ended, and what its first process noticed."""
    folder.mkdir()
    done = job(2, ["-m", "tests.collectives.scripts.faults", folder, fault], folder)
    path = folder / "0.txt"
    return done, path.read_text() if path.exists() else ""


def test_every_fault_ends_the_job_with_an_error(tmp_path):
    """The status is not zero, the surviving process has printed its own error, and that names the cause.

    Jobs are started two at a time, as most of their time is spent waiting.
    """
    assert FAULTS.keys() == NOTICED.keys()
    with ThreadPoolExecutor(2) as pool:
        jobs = {fault: pool.submit(ended, fault, tmp_path / fault) for fault in FAULTS}
    for fault, words in NOTICED.items():
        done, noticed = jobs[fault].result()
        assert done.status != 0, (fault, done)
        if words is None:
            continue
        missing = [each for each in words if each not in noticed]
        assert not missing, (fault, missing, noticed, done)
        assert "rank 0 of 2 ends by an exception:\nTraceback" in done.err, (fault, done)
        assert "last words of rank 0\n" in done.out, (fault, done)
        assert noticed.partition(": ")[2] in done.err, (fault, done)


def test_a_failure_that_is_caught(tmp_path):
    """Who catches the error and goes on to its end does not wait for the process that hangs."""
    done, noticed = ended("caught", tmp_path / "caught")
    assert done.status != 0
    assert all(words in noticed for words in MUTE), noticed
    assert "rank 0 of 2 has ended its script, and ranks [1] have not within 2 s: the job is ended" in done.err, done
    done, _ = ended("apart", tmp_path / "apart")
    assert done.status != 0
    assert "rank 0 of 2 has ended its script, and ranks [1] have not within 0 s: the job is ended" in done.err, done


def test_a_process_may_work_alone_for_long(tmp_path):
    """One that has ended waits for one that evaluates or saves alone, beyond the limit, and says so."""
    (tmp_path / "1.err").touch()
    done = job(2, ["-m", "tests.collectives.scripts.faults", tmp_path, "alone"], tmp_path)
    assert done.status == 0, done
    assert "ranks [0] have not within 2 s: it waits for them" in (tmp_path / "1.err").read_text()


def test_a_failure_before_all_have_come_together(tmp_path):
    """Who waits for one that has failed before is ended at the limit by mpiexec's way, at once by lucid's command."""
    module = ["tests.collectives.scripts.faults", tmp_path, "before"]
    done = job(2, ["-m", *module, "soon"], tmp_path)
    assert done.status != 0
    assert "rank 0 has waited 2 s in init_process_group for MPI to start" in done.err, done
    done = run([sys.executable, "-m", "lucid.distributed.run", "--nproc-per-node", "2", "-m", *module], tmp_path)
    assert done.status != 0
    assert "rank 0 of 2 waits for the others to make a group: rank 1 has failed: ValueError: bad sample" in done.err, (
        done
    )
