"""The script for machines with a GPU must tell the truth on machines without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def python():
    """Return a maker of stages that run a line of Python."""

    def make(line, **fields):
        return gpu.Stage("stage", (sys.executable, "-c", line), **fields)

    return make


def junit(path, *cases):
    """Write what pytest would: one test case for each given body."""
    body = "".join(
        f'<testcase classname="tests.test_x" name="test_{i}">{case}</testcase>' for i, case in enumerate(cases)
    )
    skipped = sum("<skipped" in case for case in cases)
    head = f'<testsuite tests="{len(cases)}" failures="0" errors="0" skipped="{skipped}">'
    path.write_text(f"<testsuites>{head}{body}</testsuite></testsuites>", encoding="utf-8")
    return path


def test_without_a_device_nothing_runs_and_the_status_is_2(tmp_path):
    """A machine with no CUDA device: status 2, a reason on standard error, and no file that looks like a result."""
    target = tmp_path / "gpu.json"
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", "--json", str(target)],
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == gpu.NO_DEVICE == 2, child.stderr
    assert "nothing was run: CuPy" in child.stderr
    assert not target.exists()


def test_a_skipped_test_is_a_complaint(tmp_path):
    """A test that skips on the device is named with its reason; passing ones are counted and not named."""
    counts, complaints = gpu.read_tests(junit(tmp_path / "r.xml", "", '<skipped message="no device"/>'))
    assert counts == {"tests": 2, "failures": 0, "errors": 0, "skipped": 1}
    assert complaints == ["skipped: tests.test_x.test_1: no device"]


def test_a_run_of_no_test_is_a_complaint(tmp_path):
    """A selection that matches nothing proves nothing."""
    assert gpu.read_tests(junit(tmp_path / "r.xml"))[1] == ["no test was run"]


def test_a_row_that_was_not_run_is_a_complaint(tmp_path):
    """The benchmarks' stage fails when a row is missing a feature, and says which and why."""
    report = tmp_path / "benchmarks.json"
    rows = [{"name": "a", "not_run": None}, {"name": "b", "not_run": "ValueError: x"}]
    report.write_text(json.dumps({"rows": rows}), encoding="utf-8")
    assert gpu.read_rows(report) == (rows, ["b: not run: ValueError: x"])


def test_a_stage_passes_on_status_zero_and_keeps_its_output(python):
    """A command that succeeds and leaves nothing to complain about has passed."""
    outcome = gpu.run(python("print('hello')"), timeout=60)
    assert (outcome.status, outcome.complaints, outcome.output) == ("passed", [], "hello\n")


def test_a_stage_fails_on_another_status(python):
    """The exit status is the complaint."""
    outcome = gpu.run(python("raise SystemExit(5)"), timeout=60)
    assert (outcome.status, outcome.complaints) == ("failed", ["exit status 5"])


def test_a_stage_that_succeeds_with_skips_has_failed(python, tmp_path):
    """The status of pytest itself is 0 when tests skip; the stage's is not."""
    report = junit(tmp_path / "r.xml", '<skipped message="why"/>')
    outcome = gpu.run(python("", report=report, read=gpu.read_tests), timeout=60)
    assert (outcome.status, outcome.content["skipped"]) == ("failed", 1)


def test_a_stage_without_its_report_has_failed(python, tmp_path):
    """A command that promises a report and leaves none has not been judged."""
    outcome = gpu.run(python("", report=tmp_path / "r.xml", read=gpu.read_tests), timeout=60)
    assert (outcome.status, outcome.complaints) == ("failed", ["left no r.xml"])


def test_a_stage_that_hangs_is_stopped_and_failed(python):
    """After its time a stage is ended; what it had printed is kept."""
    line = "import time; print('begun', flush=True); time.sleep(60)"
    outcome = gpu.run(python(line), timeout=2)
    assert (outcome.status, outcome.complaints, outcome.output) == ("failed", ["stopped after 2 s"], "begun\n")


def test_a_stage_with_missing_packages_is_not_run(python):
    """A missing package is named, the command is not started, and that is neither passed nor failed."""
    outcome = gpu.run(python("raise SystemExit(1)", needs=("sys", "no_such_module")), timeout=60)
    assert (outcome.status, outcome.complaints) == ("not run", ["not installed: no_such_module"])


def test_the_stages_require_the_real_device(monkeypatch):
    """A simulator asked for outside does not stand in for the device, and a test may not skip for want of one."""
    monkeypatch.setenv("LUCID_CUDA_SIMULATOR", "1")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    variables = gpu.environment()
    assert "LUCID_CUDA_SIMULATOR" not in variables
    assert variables["LUCID_REQUIRE_GPU"] == "1"
    assert variables["PYTHONPATH"] == os.pathsep.join((str(ROOT), "elsewhere"))


@pytest.mark.parametrize(("exit_with", "expected"), [(0, gpu.PASSED), (1, gpu.FAILED)])
def test_every_outcome_is_written_and_decides_the_status(monkeypatch, tmp_path, python, exit_with, expected):
    """One JSON file holds device, machine and every outcome; a failed stage does not keep the next from running."""
    monkeypatch.setattr(gpu, "device", lambda: {"name": "made up"})
    made = [python(f"raise SystemExit({exit_with})"), python("", needs=("no_such_module",)), python("print(1)")]
    monkeypatch.setattr(gpu, "stages", lambda *_: made)
    target = tmp_path / "deep" / "gpu.json"
    assert gpu.main(["--json", str(target)]) == expected
    content = json.loads(target.read_text(encoding="utf-8"))
    assert content["device"] == {"name": "made up"}
    assert content["machine"]["python"]
    first = "failed" if exit_with else "passed"
    assert [stage["status"] for stage in content["stages"]] == [first, "not run", "passed"]
