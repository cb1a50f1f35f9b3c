"""The benchmark of kernels: what it counts, what it writes, and that every family of it runs."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from benchmarks import families, kernels
from benchmarks.measure import Peer
from tests.pieces.children import ROOT, python

every_family = pytest.mark.parametrize("family", families.FAMILIES, ids=lambda family: family.name)


def nothing(peer, dtype, rows):
    return lambda: None


def broken(peer, dtype, rows):
    raise ValueError("no such kernel")


def shown(*tables):
    """Return what a wide terminal would show."""
    console = Console(file=io.StringIO(), width=200)
    console.print(*tables)
    return console.file.getvalue()


def row(**fields):
    """Return a row of the table, half a copy fast unless said otherwise."""
    return kernels.Bandwidth(**{"family": "f", "dtype": "float32", "mib": 64.0, "bytes": 1, "copy": 100.0, **fields})


def test_without_a_device_nothing_runs_and_the_status_is_2(tmp_path):
    """A machine with no CUDA device: status 2, a reason on standard error, and no file that looks like a result."""
    target = tmp_path / "kernels.json"
    hidden = {"CUDA_VISIBLE_DEVICES": "-1", "LUCID_CUDA_SIMULATOR": "0"}
    child = python("-m", "benchmarks.kernels", "--json", target, settings={"cwd": ROOT}, **hidden)
    assert child.returncode == kernels.NO_DEVICE == 2, child.stderr
    assert "nothing was run: CuPy" in child.stderr
    assert not target.exists()


def test_bytes_are_counted_per_element():
    """What is read and written in the dtype, and what belongs to each element beside it."""
    assert families.Family("add", 3, nothing).bytes(1000, 4) == 12_000
    assert families.Family("masked fill", 2, nothing, extra=1).bytes(1000, 2) == 5_000
    assert families.Family("max pooling", 1.25, nothing).bytes(1000, 2) == 2_500


def test_names_are_unique_and_sizes_come_in_whole_rows():
    """A row is found again by its name."""
    names = [family.name for family in families.FAMILIES]
    assert len({*names}) == len(names)
    assert int(min(kernels.SIZES) * kernels.MIB) // max(kernels.DTYPES.values()) % families.WIDTH == 0


@every_family
@pytest.mark.parametrize("library", ["lucid", "torch"])
@pytest.mark.parametrize("dtype", kernels.DTYPES)
def test_every_family_is_one_text_for_both_libraries(family, library, dtype):
    """Each builds and runs on the CPU in lucid and in PyTorch."""
    pytest.importorskip(library)
    family.build(Peer(library), dtype, 16)()


@pytest.mark.gpu
@every_family
def test_every_family_is_measured(family, monkeypatch):
    """At a tiny size each gives a bandwidth and its share of a copy, in every dtype."""
    monkeypatch.setattr(kernels, "SHORTEST", 0.0)
    for made in kernels.measure([family], [1 / 16], rounds=1):
        assert made.not_run is None
        assert made.lucid > 0
        assert made.share == made.lucid / made.copy
        assert made.reached is None, "goals are for large arrays"
        if family.cupy is not None and made.dtype == "float32":
            assert made.cupy > 0


@pytest.mark.gpu
def test_launches_are_timed():
    """A bare launch has a goal and is judged by it."""
    rows = kernels.launches(calls=3, rounds=2)
    assert rows[0].goal == kernels.LAUNCH_GOAL
    assert rows[0].reached is (rows[0].us <= rows[0].goal)
    assert all(each.us > 0 for each in rows)
    assert rows[0].name in shown(kernels.launch_table(rows))


@pytest.mark.gpu
def test_what_cannot_run_says_why():
    """A family that fails with lucid becomes a row with the reason, and the next one is measured."""
    given = [families.Family("broken", 1, broken), families.Family("nothing", 1, nothing)]
    rows = kernels.measure(given, [1 / 64], rounds=1)
    assert [each.not_run for each in rows] == ["ValueError: no such kernel"] * 2 + [None] * 2
    assert rows[2].share > 0


def test_the_clock_runs_for_calls_and_what_they_left_behind(monkeypatch):
    """The time of a call is the median over rounds of the time of many, from one synchronisation to the next."""
    now, log = [0.0], []

    def call():
        log.append("call")
        now[0] += 1e-4

    def synchronize():
        log.append("wait")
        now[0] += 1e-3

    monkeypatch.setattr(kernels.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(kernels, "SHORTEST", 2.2e-2)
    seconds = kernels.seconds_per_call(call, synchronize, rounds=3)
    # one call with its wait took 1.1 ms, so that 20 fill the time
    assert log.count("call") == 2 + 3 * 20
    assert seconds == pytest.approx(1e-4 + 1e-3 / 20)


def test_goals_are_judged_from_64_mib_up(monkeypatch):
    """Below no row has a goal; from there on 0.9 of the copy is the goal."""
    monkeypatch.setattr(kernels, "seconds_per_call", lambda *_: 1e-3)
    family, peers = families.Family("f", 1, nothing), [Peer("lucid", "cuda")]

    def judged(mib, copy):
        made = kernels.bandwidth(family, "float32", mib, copy, 1, peers)
        return made.goal, made.reached

    gbs = 64 * kernels.MIB / 1e-3 / 1e9
    assert judged(16.0, gbs) == (None, None)
    assert judged(64.0, gbs / 0.91) == (0.9, True)
    assert judged(64.0, gbs / 0.89) == (0.9, False)


def test_the_table_shows_figures_verdicts_and_reasons():
    """A reader sees what was reached, what was missed, and what did not run."""
    text = shown(
        kernels.bandwidth_table(
            [
                row(lucid=95.0, share=0.95, goal=0.9, reached=True, torch=91.25, cupy=1234.5),
                row(lucid=50.0, share=0.5, goal=0.9, reached=False),
                row(not_run="ValueError: x"),
            ]
        )
    )
    for words in ("0.95", "91.2", "1,234.5", "reached", "missed", "not run: ValueError: x", "goal: 0.9 of a copy"):
        assert words in text


def test_the_script_writes_what_it_measured(monkeypatch, tmp_path, capsys):
    """With a device: a table on the terminal, one JSON file with machine and device, and a status that tells."""
    monkeypatch.setattr(kernels, "device", lambda: {"name": "made up"})
    monkeypatch.setattr(kernels, "launches", lambda: [kernels.Launch("bare", 3.0, 5.0, True)])
    target = tmp_path / "deep" / "kernels.json"
    for rows, status in (([row(lucid=1.0, share=0.01)], 0), ([row(not_run="why")], 1)):
        monkeypatch.setattr(kernels, "measure", lambda *_, rows=rows: rows)
        assert kernels.main(["--json", str(target), "--sizes", "64"]) == status
        content = json.loads(target.read_text(encoding="utf-8"))
        assert content["device"] == {"name": "made up"}
        assert content["machine"]["python"]
        assert [each["family"] for each in content["rows"]] == ["f"]
        assert content["launches"][0]["us"] == 3.0
    assert "written to" in capsys.readouterr().out
