"""The order of stages, their boxes, and what is not done twice."""

from __future__ import annotations

import argparse
import dataclasses
import os
from pathlib import Path

import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import prepare, run
from benchmarks.gpu.device import NoDeviceError
from benchmarks.gpu.facts import FILE, Facts, read
from benchmarks.gpu.processes import ROOT
from benchmarks.gpu.rows import Stage
from benchmarks.gpu.stages import BOXES, stage
from benchmarks.gpu.summary import digest, text
from tests.pieces import raising
from tests.pieces.children import python


def test_the_boxes_are_the_budget():
    """Eleven stages in 450 s: what a machine that is held for ten minutes has beside its start."""
    assert list(BOXES) == [
        "hello", "battery", "large", "capture", "nccl", "host", "steps", "kernels", "tests", "sanitizer", "profile",
    ]  # fmt: skip
    assert sum(run.boxes(list(BOXES), None).values()) == 450


def test_a_budget_is_shared_as_the_boxes_are():
    """Of some stages too; without one they keep their own."""
    assert run.boxes(["hello", "battery"], 50) == {"hello": 20, "battery": 30}
    assert run.boxes(["hello", "battery"], None) == {"hello": 40, "battery": 60}
    assert run.boxes([], 50) == {}


def test_every_stage_is_a_module():
    """Each name has its file, with work to do."""
    assert all(callable(stage(name).work) for name in BOXES)


def test_a_stage_that_came_to_its_end_is_not_run_again(tmp_path):
    """One that left rows is, behind those it has done."""
    told = Facts(tmp_path, run.RUN)
    told(ended="hello", seconds=1, box=2, left=0)
    told(ended="battery", seconds=1, box=2, left=3)
    assert run.left_to_do(tmp_path, ["hello", "battery", "large"]) == ["battery", "large"]
    told(ended="battery", seconds=1, box=2, left=0)
    assert run.left_to_do(tmp_path, ["hello", "battery", "large"]) == ["large"]


def test_what_a_stage_left_is_counted(tmp_path):
    """Rows that no process came to, and those that time stopped, since the stage was begun."""
    facts = Facts(tmp_path, "large")
    facts(left=5)
    since = read(tmp_path)[0]["at"] + 1
    assert run.left_in(tmp_path, "large", 0) == 5
    facts(row="a", ok=False, stopped=True, left=2)
    assert run.left_in(tmp_path, "large", 0) == 7
    assert run.left_in(tmp_path, "large", since) == 0


def test_a_stage_that_cannot_be_run_costs_no_other(setting, monkeypatch):
    """Its failure is a fact with its reason, and it has ended."""
    monkeypatch.setattr(run, "stage", raising(ImportError("no module named pytest")))
    with (setting.folder / run.LOG).open("ab") as log:
        run.one("tests", setting, 10, log)
    first, second = read(setting.folder)
    assert (first["stage"], first["ok"]) == ("tests", False)
    assert first["error"] == "the stage could not be run: ImportError: no module named pytest"
    assert (second["ended"], second["left"]) == ("tests", 0)


@pytest.mark.parametrize("rehearsed", [True, False])
def test_a_rehearsal_has_no_boxes(setting, monkeypatch, rehearsed):
    """Its stages end by their rows, and what would end one that hangs is no measure of it."""
    monkeypatch.setattr(run, "stage", lambda _: Stage(lambda _: None, 1, groups=lambda _: []))
    with (setting.folder / run.LOG).open("ab") as log:
        run.one("host", dataclasses.replace(setting, rehearsed=rehearsed), 10, log)
    (ended,) = read(setting.folder)
    assert ended.get("box") == (None if rehearsed else 10)
    (line,) = [line for line in text(digest(setting.folder)) if line.startswith("host ")]
    assert (" s of   10: 0 rows" in line) is not rehearsed


def test_processes_find_the_checkout_and_no_setting_from_outside(monkeypatch, tmp_path):
    """Nothing need be installed of lucid; a simulator asked for outside does not stand in for the device."""
    monkeypatch.setenv("LUCID_CUDA_SIMULATOR", "2")
    monkeypatch.setenv("LUCID_SIMULATOR_SEED", "1")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    (tmp_path / "site").mkdir()
    variables = run.environment(tmp_path, tmp_path / "prepared", simulated=False)
    assert variables["PYTHONPATH"] == os.pathsep.join((str(ROOT), str(tmp_path / "site"), "elsewhere"))
    assert [name for name in variables if name.startswith("LUCID_")] == ["LUCID_CACHE_DIR"]
    assert Path(variables["LUCID_CACHE_DIR"]).stat().st_mode & 0o777 == 0o700
    assert run.environment(tmp_path, tmp_path, simulated=True)["LUCID_CUDA_SIMULATOR"] == "1"


def test_built_kernels_are_taken_from_what_was_prepared(tmp_path):
    """A copy with this user's rights, since those of a folder that travelled are any."""
    (tmp_path / "prepared" / "built").mkdir(parents=True)
    (tmp_path / "prepared" / "built" / "sm_90.zip").write_bytes(b"kernels")
    variables = run.environment(tmp_path, tmp_path / "prepared", simulated=False)
    assert Path(variables["LUCID_BUILT_KERNELS"], "sm_90.zip").read_bytes() == b"kernels"


def test_wheels_and_kernels_are_prepared_for_the_other_machine(tmp_path):
    """For its Python and its GPU, from the index here, without what the wheels depend on."""
    download, build = prepare.commands(tmp_path)
    assert [download[download.index("--python-version") + 1], *download[-len(prepare.WHEELS) :]] == [
        "3.12",
        *prepare.WHEELS,
    ]
    assert "--no-deps" in download
    assert build[2:] == ["lucid.cuda.build", "--arch", "sm_90", "--out", str(tmp_path / "built")]


def script(*arguments, **variables):
    """Run the script and return what came of it."""
    return python("-m", "benchmarks.gpu", *arguments, settings={"cwd": ROOT}, **variables)


def test_without_a_device_nothing_runs_and_the_status_is_2(tmp_path):
    """A machine with no CUDA device: status 2, a reason on standard error, and no file that looks like a result."""
    child = script("--out", tmp_path / "out", CUDA_VISIBLE_DEVICES="-1")
    assert child.returncode == 2, child.stderr
    assert "nothing was run: CuPy" in child.stderr
    assert not (tmp_path / "out").exists()


def test_a_device_that_does_not_answer_is_none():
    """Its time is not waited away."""
    with pytest.raises(NoDeviceError, match=r"the device has not answered within 0\.01 s"):
        run.described({**os.environ, "PYTHONPATH": str(ROOT)}, 0.01)


def test_facts_are_not_mixed_with_those_of_another_run(tmp_path):
    """A folder that holds some is gone on with, or refused."""
    (tmp_path / FILE).touch()
    child = script("--out", tmp_path)
    assert child.returncode == 2
    assert "holds the facts of another run: --resume goes on behind them" in child.stderr


def test_stages_are_chosen_by_name():
    """In their order, and no other."""
    assert command.names("large,hello") == ["hello", "large"]
    with pytest.raises(argparse.ArgumentTypeError, match=r"no stage 'larg'; the stages are hello,battery,large,"):
        command.names("larg")
