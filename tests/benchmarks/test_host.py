"""The benchmark of host time: its rows, what it counts for them, and what it writes. Times are not looked at."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec

import pytest

from benchmarks import host
from tests.pieces.children import ROOT, python

GOALS = {
    "add, recorded": 2.0, "add, no grad": 3.0, "add_ in place, no grad": 3.0, "softmax": 2.5, "layer norm": 2.5,
    "sum": 2.5, "matmul": 2.5, "linear with bias": 2.5, "GPT block, forward": 1.5,
    "GPT block, forward and backward": 1.5, "AdamW of 150 parameters, foreach": 0.06,
    "clip_grad_norm_ of 150 parameters, foreach": 0.5,
}  # fmt: skip

needs_peers = pytest.mark.skipif(
    find_spec("cupy") is None or find_spec("torch") is None, reason="needs CuPy and PyTorch"
)


def run(*arguments, **variables):
    """Run the command in an environment that asks for nothing that it needs."""
    quiet = {"LUCID_CUDA_SIMULATOR": "0", "OMP_NUM_THREADS": "2", **variables}
    return python("-m", "benchmarks.host", *arguments, settings={"cwd": ROOT}, **quiet)


def test_names_are_unique_and_every_goal_has_its_row():
    """A row is found again by its name; each kind of node has the same goal."""
    goals = {case.name: case.goal for case in host.CASES}
    assert len(goals) == len(host.CASES)
    assert GOALS.items() <= goals.items()
    nodes = {goal for name, goal in goals.items() if name.startswith("backward per node") and goal is not None}
    assert nodes == {1.0}


@needs_peers
def test_every_row_is_measured_and_counted(tmp_path):
    """One command sets its own environment, runs every row for both, and says what each asks of the device."""
    target = tmp_path / "deep" / "host.json"
    ran = run("--rounds", "1", "--json", str(target))
    assert ran.returncode == 0, ran.stderr
    content = json.loads(target.read_text(encoding="utf-8"))
    assert content["device"] == "simulated, nothing executed"
    assert content["threads"] == 1
    assert content["machine"]["cpu"]
    assert all(content["parts"][name] > 0 for name in ("launches", "library", "allocations"))
    rows = {row["name"]: row for row in content["rows"]}
    assert [*rows] == [case.name for case in host.CASES]
    for row in rows.values():
        assert row["not_run"] is None, row
        assert row["rounds"] == 1
        assert row["floor"] >= 0
    for name, launches, library, allocations in (
        ("add, recorded", 1, 0, 1), ("add, no grad", 1, 0, 1), ("matmul", 0, 1, 1),
        ("backward per node: times a constant", 1, 0, 1), ("backward per node: matmul", 0, 2, 2),
        ("module call, forward hook", 0, 0, 0), ("reshape", 0, 0, 0), ("empty", 0, 0, 1),
    ):  # fmt: skip
        assert [rows[name][count] for count in ("launches", "library", "allocations")] == [
            launches, library, allocations
        ], name  # fmt: skip
    assert rows["GPT block, forward and backward"]["library"] >= 3 * rows["GPT block, forward"]["library"]
    assert 1 <= rows["AdamW of 150 parameters, foreach"]["launches"] <= 2
    for words in ("add, recorded", "<= 2 ", "<= 0.06 ", "launches", "floor: a launch ", "written to"):
        assert words in ran.stdout, ran.stdout


@needs_peers
def test_a_part_of_the_rows(tmp_path):
    """--rows picks by name and writes no file by itself; a name of no row lists them all, with status 2."""
    ran = run("--rows", "module call", "--rounds", "1")
    assert ran.returncode == 0, ran.stderr
    assert len(re.findall(r"│ module call", ran.stdout)) == 3
    assert "written to" not in ran.stdout
    ran = run("--rows", "no such")
    assert ran.returncode == 2
    assert "no row's name contains 'no such'" in ran.stdout
    assert "  linear with bias" in ran.stdout
