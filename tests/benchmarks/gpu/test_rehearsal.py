"""A rehearsal is checked by what it leaves."""

from __future__ import annotations

import json

import pytest

from benchmarks.gpu.facts import FILE, RUN, Facts, read, rows
from benchmarks.gpu.processes import ROOT
from benchmarks.gpu.rehearsal import complaints
from benchmarks.gpu.stages import BOXES
from lucid.base import gpu
from tests.pieces.children import python


def test_nothing_is_to_be_said_of_one_that_went_as_planned(tmp_path, planted):
    """Eleven stages, one process killed, one context lost, both followed by another."""
    planted(tmp_path)
    assert complaints(tmp_path, BOXES) == []


@pytest.mark.parametrize(
    ("without", "words"),
    [
        ('"ended": "steps"', "steps: has not come to its end"),
        ('"row": "row of host"', "host: has no row"),
        ('"ended": -9', "battery: one process was to be killed"),
        ('"lost"', "battery: one process was to be lost"),
        ('"restarted": 1', "battery: processes were started again behind ['sub float32']"),
    ],
)
def test_what_is_missing_is_said(tmp_path, planted, without, words):
    """A stage, a row, each of the planted faults, and the process behind it."""
    planted(tmp_path)
    lines = (tmp_path / FILE).read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / FILE).write_text("".join(line for line in lines if without not in line), encoding="utf-8")
    assert any(words in complaint for complaint in complaints(tmp_path, BOXES))


@pytest.mark.parametrize(
    "fact", [{"row": "exp float32", "ok": False, "error": "why"}, {"ok": False, "error": "why", "ended": -9}]
)
@pytest.mark.parametrize("stage", ["battery", "large"])
def test_what_failed_and_was_not_planted_is_said(tmp_path, planted, stage, fact):
    """A row, or a process that fell before it had one, in any stage."""
    planted(tmp_path)
    Facts(tmp_path, stage)(**fact)
    assert complaints(tmp_path, BOXES) == [f"{stage}: {fact.get('row', 'process')}: why"]


def test_what_a_second_half_did_is_not_said(tmp_path, planted):
    """A stage that had no time or left rows in the first half is judged by the second."""
    told, battery = Facts(tmp_path, RUN), Facts(tmp_path, "battery")
    told(device={"name": "made up"}, machine={}, simulated=True, rehearsed=True)
    told(skipped="large", ok=False, error="no time was left for it")
    battery(row="add float32", ok=False, stopped=True, error="stopped", left=2)
    told(ended="battery", seconds=1.5, left=2)
    planted(tmp_path)
    assert complaints(tmp_path, BOXES) == []


def test_files_that_do_not_belong_are_said(tmp_path, planted):
    """A run leaves five files at most, since few come back from a machine."""
    planted(tmp_path)
    (tmp_path / "more.txt").touch()
    assert complaints(tmp_path, BOXES) == ["files that are not a run's: ['more.txt']"]


@pytest.mark.gpu
@pytest.mark.skipif(not gpu.is_simulated(), reason="a rehearsal is for simulated devices")
def test_a_rehearsal_and_its_second_half(tmp_path):
    """The script itself, for two stages: a killed process and a lost context, and nothing done again on `--resume`."""

    def rehearse(*more):
        command = ("-m", "benchmarks.gpu", "--rehearse", "--out", tmp_path / "out", *more)
        return python(*command, settings={"cwd": ROOT, "timeout": None})

    child = rehearse("--only", "battery")
    assert child.returncode == 0, child.stdout + child.stderr
    assert "the rehearsal left what it should" in child.stdout
    battery = rows(read(tmp_path / "out"), "battery")
    assert sorted(str(fact["ok"]) for fact in battery.values()) == ["False"] * 2 + ["True"] * (len(battery) - 2)
    child = rehearse("--only", "battery,profile", "--resume")
    assert child.returncode == 0, child.stdout + child.stderr
    assert rows(read(tmp_path / "out"), "battery") == battery
    assert {"add, float32", "ncu"} <= rows(read(tmp_path / "out"), "profile").keys()
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {FILE, "summary.txt", "log.txt"}
    assert json.loads((tmp_path / "out" / FILE).read_text(encoding="utf-8").splitlines()[0])["simulated"] is True
