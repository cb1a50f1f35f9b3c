"""The stage of tests: each test a row, shared by processes, with what is skipped counted and no failure."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.gpu.facts import Facts, read, rows
from benchmarks.gpu.processes import ROOT
from benchmarks.gpu.rows import LOST, Scope
from benchmarks.gpu.stages import tests

FILE = """
import pytest
def test_passes(): pass
def test_fails(): assert 1 == 2
def test_skips(): pytest.skip("needs a second device")
def test_is_skipped_by_its_mark(): ...
test_is_skipped_by_its_mark = pytest.mark.skipif(True, reason="simulated")(test_is_skipped_by_its_mark)
def test_loses(): raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access")
def test_last(): pass
"""
CHILD = """
import json, sys
from benchmarks.gpu import device
from benchmarks.gpu.rows import Scope
from benchmarks.gpu.stages import tests

device.synchronize = lambda: None
tests.SELECTED["group"] = ("-c", "/dev/null", "--rootdir", sys.argv[2], sys.argv[2])
tests.work(Scope(**json.loads(sys.argv[1])))
"""


@pytest.fixture
def run(tmp_path):
    """Run a process of the stage on the file above; return its exit status and the rows known since."""
    folder, where = tmp_path / "out", tmp_path / "t"
    folder.mkdir()
    where.mkdir()
    (where / "test_it.py").write_text(FILE, encoding="utf-8")

    def child(**fields):
        scope = Scope(str(folder), "tests", "group", note=str(tmp_path / "note"), **fields)
        command = [sys.executable, "-c", CHILD, json.dumps(scope.words()), str(where)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        known = {name.split("::")[-1]: fact for name, fact in rows(read(folder), "tests").items()}
        return done.returncode, known, (tmp_path / "note").read_text(encoding="utf-8").split("::")[-1]

    return child


def test_a_lost_context_costs_one_test(run):
    """The process ends at that test, whose fact is written; the next one goes on behind it, and repeats none."""
    code, known, note = run()
    assert (code, note) == (LOST, "test_loses")
    assert known["test_loses"]["lost"].startswith("RuntimeError: CUDA_ERROR_ILLEGAL_ADDRESS")
    assert "test_last" not in known
    before = known["test_passes"]["at"]
    code, known, note = run()
    assert (code, note) == (0, "test_last")
    assert known["test_passes"]["at"] == before
    assert {name: fact["ok"] for name, fact in known.items()} == {
        "test_passes": True, "test_fails": False, "test_skips": None, "test_is_skipped_by_its_mark": None,
        "test_loses": False, "test_last": True,
    }  # fmt: skip
    assert known["test_skips"]["skipped"] == "needs a second device"
    assert known["test_is_skipped_by_its_mark"]["skipped"] == "simulated"
    assert "assert 1 == 2" in known["test_fails"]["error"]


def test_time_that_is_over_leaves_tests(run, tmp_path):
    """Nothing more is begun, and how many were left is a fact."""
    (tmp_path / "note").touch()
    code, known, _ = run(until=0.0)
    assert (code, known) == (0, {})
    assert [fact["left"] for fact in read(tmp_path / "out")] == [6]


def test_what_is_known_is_not_run_again(run, tmp_path):
    """As where a run is resumed."""
    Facts(tmp_path / "out", "tests")(row="group: test_it.py::test_loses", ok=False)
    assert run()[0] == 0


def test_files_take_turns(run, tmp_path):
    """What time cuts off is the end of long files, and no file."""
    (tmp_path / "t" / "test_other.py").write_text("def test_x(): pass\ndef test_y(): pass\n", encoding="utf-8")
    run()
    run()
    order = [fact["row"].split("::")[-1] for fact in read(tmp_path / "out") if "row" in fact]
    assert order[:5] == ["test_passes", "test_x", "test_fails", "test_y", "test_skips"]


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_processes_share_the_files(parts):
    """Each file is collected by one of them, the table of ops by all, and folders by all."""
    reporters = [
        tests.Reporter(Scope("", "tests", part=part, parts=parts), Facts(ROOT, "none")) for part in range(parts)
    ]
    files = [path for path in (ROOT / "tests" / "ops").rglob("*.py") if path.name.startswith("test_")]
    for path in files:
        takers = sum(reporter.pytest_ignore_collect(path) is None for reporter in reporters)
        assert takers == (parts if path == ROOT / tests.SHARED else 1), path
    assert all(reporter.pytest_ignore_collect(ROOT / "tests" / "ops") is None for reporter in reporters)


def test_what_is_selected_is_there():
    """A folder that was moved would be an error of pytest on the machine."""
    for selected in (*tests.SELECTED.values(), *tests.REHEARSED.values()):
        paths = [word.removeprefix("--ignore=") for word in selected if "tests/" in word]
        assert [path for path in paths if not (ROOT / path).exists()] == []
    assert (ROOT / tests.SHARED).exists()
