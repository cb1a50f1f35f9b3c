"""A process of a stage may fall; its row is noted, and another goes on behind it."""

from __future__ import annotations

import fcntl
import math

import pytest

from benchmarks.gpu import processes
from benchmarks.gpu.facts import read
from benchmarks.gpu.rows import LOST, Group

NEVER = math.inf


def told(setting, *fields):
    """Return these fields of each row, in order."""
    return [tuple(fact.get(name) for name in fields) for fact in read(setting.folder) if "row" in fact]


def test_every_row_is_done_once_by_the_processes_of_a_group(setting, workers):
    """Two processes share the rows; none is done twice or left."""
    workers("a b c d", [Group(processes=2)]).wait(NEVER)
    assert sorted(told(setting, "row", "ok")) == [(name, True) for name in "abcd"]
    assert len({pid for (pid,) in told(setting, "pid")}) == 2


@pytest.mark.parametrize(("name", "code"), [("falls", -9), ("loses", LOST)])
def test_another_process_goes_on_behind_the_row(setting, workers, name, code):
    """Killed from outside, or without a context: the row has failed, once, and those behind it are done."""
    workers(f"a {name} b").wait(NEVER)
    assert told(setting, "row", "ok") == [("a", True), (name, False), ("b", True)]
    (restart,) = [fact for fact in read(setting.folder) if "restarted" in fact]
    assert (restart["ended"], restart["behind"]) == (code, name)
    assert [how for (how,) in told(setting, "lost") if how] == (
        ["RuntimeError: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"] if code == LOST else []
    )


def test_a_row_that_fails_costs_no_process(setting, workers):
    """An ordinary error is the row's own: the same process does the next one."""
    workers("fails a").wait(NEVER)
    assert told(setting, "row", "ok", "error") == [("fails", False, "ValueError: no such kernel"), ("a", True, None)]
    assert not [fact for fact in read(setting.folder) if "restarted" in fact]


def test_a_process_that_falls_before_its_first_row_is_not_started_again(setting, workers):
    """Whatever keeps it from beginning would keep the next one too: the stage failed, and a later run takes it up."""
    workers("no_rows_at_all").wait(NEVER)
    (fact,) = read(setting.folder)
    assert (fact["ok"], fact["left"]) == (False, 1)
    assert fact["error"] == "its process ended with 1 before its first row; see the log"
    assert "ImportError: no rows at all" in (setting.folder / "log.txt").read_text(encoding="utf-8")


def test_a_row_of_an_earlier_process_is_not_the_next_ones(setting, workers):
    """One that falls before its first row has begun none, whatever the process before it was at."""
    (setting.scratch / "stage--0").write_text("2 a", encoding="utf-8")
    workers("no_rows_at_all").wait(NEVER)
    (fact,) = read(setting.folder)
    assert "row" not in fact
    assert fact["error"] == "its process ended with 1 before its first row; see the log"


def test_what_is_known_is_not_done_again(setting, facts, workers):
    """Where a run is resumed, or one process follows another; a row that was only stopped is open."""
    facts(row="a", ok=True)
    facts(row="b", ok=False, error="why")
    facts(row="c", ok=False, stopped=True)
    workers("a b c d").wait(NEVER)
    assert [row for row, pid in told(setting, "row", "pid") if pid] == ["c", "d"]


def test_time_that_is_over_ends_a_process_and_what_it_started(setting, workers):
    """The whole group is ended, and the row that was under way is one that was stopped."""
    made = workers("a hangs b")
    (worker,) = made.running
    while not (setting.scratch / "hanging").exists():
        assert worker.process.poll() is None
    made.wait(0)
    with (setting.scratch / "lock").open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    assert not (setting.scratch / "survived").exists()
    assert told(setting, "row", "ok", "stopped", "left") == [("a", True, None, None), ("hangs", False, True, 2)]


def test_rows_that_no_other_process_comes_to_are_left(setting, workers, monkeypatch):
    """A device that loses context after context is not asked for ever."""
    monkeypatch.setattr(processes, "MOST_RESTARTS", 1)
    workers("a falls b loses c d").wait(NEVER)
    assert [row for (row,) in told(setting, "row")] == ["a", "falls", "b", "loses"]
    assert [fact["left"] for fact in read(setting.folder) if "left" in fact] == [2]


def test_nothing_is_begun_shortly_before_the_end(setting, workers):
    """A process stops by itself, and says how many rows it left."""
    workers("a b c", until=0.0).wait(NEVER)
    assert [fact["left"] for fact in read(setting.folder)] == [3]


def test_a_limit_takes_rows_evenly(setting, workers):
    """Of six rows three are every other one."""
    workers("a b c d e f", rows=3, until=math.inf).wait(NEVER)
    assert [row for (row,) in told(setting, "row")] == ["a", "c", "e"]
