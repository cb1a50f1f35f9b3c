"""What the sanitizer and the profiler leave is read, and their absence is said."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.gpu.facts import read
from benchmarks.gpu.stages import profile, sanitizer

TOOLS = [sanitizer, profile]


@pytest.fixture
def there(monkeypatch):
    """Say whether the tools are on the path."""
    return lambda whether: monkeypatch.setattr("shutil.which", lambda name: f"/{name}" if whether else None)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_missing_tool_is_a_failure_on_a_gpu_only(setting, facts, there, tool):
    """On a GPU nothing is run without it; a simulated device runs its rows without it, to rehearse them."""
    there(False)
    assert tool.groups(setting) == []
    tool.finish(setting, facts)
    simulated = dataclasses.replace(setting, simulated=True)
    assert [group.prefix for group in tool.groups(simulated)] == [()]
    tool.finish(simulated, facts)
    first, second = read(setting.folder)
    assert (first["row"], first["ok"], first["error"]) == (tool.TOOL, False, f"there is no {tool.TOOL} here")
    assert (second["row"], second["ok"], second["absent"]) == (
        tool.TOOL, None, f"{tool.TOOL} is not asked for beside a simulated device",
    )  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS)
def test_the_tool_starts_the_processes(setting, there, tool):
    """Each process of a group is the tool's child."""
    there(True)
    assert all(group.prefix[0] == tool.TOOL for group in tool.groups(setting))


def test_the_sanitizers_errors_are_failures(setting, facts, there):
    """Its count decides; a process that time ended has failed if something was found until then, else it is open."""
    there(True)
    logs = {
        "memcheck-1": "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n",
        "memcheck-2": "========= Invalid __global__ write of size 4 bytes\n========= ERROR SUMMARY: 3 errors\n",
        "racecheck-3": "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors)\n",
        "memcheck-4": "========= COMPUTE-SANITIZER\n",
        "memcheck-5": "========= COMPUTE-SANITIZER\n========= Error: Device not supported\n",
        "memcheck-6": "========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 bytes\n",
    }
    for name, text in logs.items():
        (setting.scratch / f"{name}.log").write_text(text, encoding="utf-8")
    sanitizer.finish(setting, facts)
    assert {fact["row"]: fact["ok"] for fact in read(setting.folder)} == {
        "memcheck-1": True, "memcheck-2": False, "racecheck-3": True, "memcheck-4": None, "memcheck-5": False,
        "memcheck-6": False,
    }  # fmt: skip
    assert "Invalid __global__ write" in (setting.folder / sanitizer.REPORT).read_text(encoding="utf-8")


LAUNCH = "  void lucid::binary<float>(Layout, float) (4096, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"


@pytest.mark.parametrize(("launches", "ok"), [(0, False), (6, False), (7, True), (24, True)])
def test_launches_that_were_profiled_are_counted(setting, facts, there, launches, ok):
    """Of seven families there is at least one each."""
    there(True)
    text = "==PROF== Connected\n" + launches * (LAUNCH + "    Section: GPU Speed Of Light Throughput\n")
    for name in profile.PROFILED:
        facts(row=name, ok=True)
    (setting.scratch / profile.REPORT).write_text(text, encoding="utf-8")
    profile.finish(setting, facts)
    fact = facts.rows()[profile.TOOL]
    assert (fact["launches"], fact["ok"]) == (launches, ok)


def test_launches_of_two_runs_are_counted_together(setting, facts, there):
    """A first run that time cut short has failed only until a second has profiled the rest."""
    there(True)
    names = [*profile.PROFILED]
    for launches, ok in ((3, False), (4, True)):
        for _ in range(launches):
            facts(row=names.pop(), ok=True)
        (setting.scratch / profile.REPORT).write_text(launches * LAUNCH, encoding="utf-8")
        profile.finish(setting, facts)
        assert facts.rows()[profile.TOOL]["ok"] is ok
    assert facts.rows()[profile.TOOL]["launches"] == 7


def test_what_the_sanitizer_said_in_two_runs_stays(setting, facts, there):
    """A second run writes behind the first."""
    there(True)
    for name in ("memcheck-1", "memcheck-2"):
        (setting.scratch / f"{name}.log").write_text("========= ERROR SUMMARY: 0 errors\n", encoding="utf-8")
        sanitizer.finish(setting, facts)
        (setting.scratch / f"{name}.log").unlink()
    text = (setting.folder / sanitizer.REPORT).read_text(encoding="utf-8")
    assert "==== memcheck-1" in text
    assert "==== memcheck-2" in text
