"""What is said in short, as a summary, a table and a page."""

from __future__ import annotations

import json

import pytest

from benchmarks.gpu import report
from benchmarks.gpu.facts import Facts, FolderError
from benchmarks.gpu.summary import FILE, digest, failed, text, write


@pytest.fixture
def folder(tmp_path, planted):
    """Return a folder with the facts of a rehearsal."""
    made = tmp_path / "facts"
    made.mkdir()
    planted(made)
    return made


def test_what_failed_is_said_first_with_its_reason(folder):
    """After stages, before any figure; a lost context and a restarted process are counted."""
    write(folder)
    lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "simulated device, no figure is one of a GPU: made up"
    assert lines[2] == "battery       1.5 s: 4 rows, 2 failed"
    at = lines.index("FAILED: 2")
    assert lines[at - 1 : at + 3] == [
        "contexts lost 1, processes restarted 2",
        "FAILED: 2",
        "  battery: sub float32: its process ended with -9",
        "  battery: mul float32: CUDA_ERROR_ILLEGAL_ADDRESS",
    ]
    assert "battery: 2 right, 2 failed, moving: ['div float32']" in lines
    assert "kernels: row of kernels: lucid 0.5" in lines


def test_skipped_tests_are_counted_by_reason_and_no_failure(tmp_path):
    """What a machine of one device cannot run is said, and does not decide."""
    facts, run = Facts(tmp_path, "tests"), Facts(tmp_path, "run")
    run(device={"name": "made up"}, machine={}, simulated=False, rehearsed=False)
    for name in "ab":
        facts(row=name, ok=None, skipped="needs two devices")
    facts(row="c", ok=True)
    run(ended="tests", seconds=1, box=2, left=4)
    made = digest(tmp_path)
    assert made["tests"] == {"passed": 1, "failed": 0, "skipped": {"needs two devices": 2}}
    assert not failed(made)
    assert "tests         1.0 s of    2: 3 rows, 0 failed, 4 left" in text(made)
    facts(row="d", ok=False, error="why")
    assert failed(digest(tmp_path))


def test_a_stage_without_a_row_has_failed(tmp_path):
    """What was not looked at is not right."""
    run = Facts(tmp_path, "run")
    run(device={"name": "made up"}, machine={}, simulated=False, rehearsed=False)
    assert failed(digest(tmp_path))
    run(ended="capture", seconds=1, box=2, left=0)
    assert failed(digest(tmp_path))
    Facts(tmp_path, "capture")(row="float32", ok=True)
    assert not failed(digest(tmp_path))
    run(skipped="steps", ok=False, error="no time was left for it")
    assert digest(tmp_path)["failures"] == [{"stage": "run", "what": "steps", "why": "no time was left for it"}]


def test_the_page_of_a_simulated_device_says_so_in_its_first_line(folder, tmp_path, capsys):
    """Table and page hold device, versions, date, what failed and the figures."""
    report.report(folder, tmp_path / "to")
    page = (tmp_path / "to" / report.PAGE).read_text(encoding="utf-8")
    assert page.splitlines()[0] == report.SIMULATED
    for words in (
        "made up, 2026-01-01", "| cupy | 14 |", "- battery, sub float32: its process ended with -9", "div float32",
        "| row of kernels |  | 0.5 |  |",
    ):  # fmt: skip
        assert words in page
    table = json.loads((tmp_path / "to" / report.TABLE).read_text(encoding="utf-8"))
    assert table == digest(folder)
    assert str(tmp_path / "to" / report.TABLE) in capsys.readouterr().out


def test_a_simulated_device_has_no_place_among_the_results(folder, monkeypatch, tmp_path):
    """Unless a place is named, only a GPU's facts are written, into the project."""
    results, docs = tmp_path / "results", tmp_path / "docs"
    monkeypatch.setattr(report, "RESULTS", results)
    monkeypatch.setattr(report, "DOCS", docs)
    with pytest.raises(FolderError, match="simulated device: name a place for them by --to"):
        report.report(folder, None)
    assert not results.exists()
    assert not docs.exists()
    facts = (folder / "facts.jsonl").read_text(encoding="utf-8").replace('"simulated": true', '"simulated": false')
    (folder / "facts.jsonl").write_text(facts, encoding="utf-8")
    report.report(folder, None)
    assert (docs / report.PAGE).read_text(encoding="utf-8").splitlines()[0] == "# On a GPU"
    assert (results / report.TABLE).exists()


def test_nothing_is_reported_of_a_folder_without_facts(tmp_path):
    """A wrong path makes no empty page."""
    with pytest.raises(FolderError, match="holds no facts"):
        report.report(tmp_path, tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_nothing_is_reported_of_two_devices(folder, tmp_path):
    """Facts of a GPU behind those of a rehearsal are of neither."""
    Facts(folder, "run")(device={"name": "another"}, machine={}, simulated=False, rehearsed=False)
    with pytest.raises(FolderError, match=r"holds facts of made up \(a rehearsal\) and of another: "):
        report.report(folder, tmp_path / "to")
    assert not (tmp_path / "to").exists()
