"""A wrong call is refused in one line, with status 2, before anything is run or written."""

from __future__ import annotations

import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import prepare, report, run, summary
from benchmarks.gpu.facts import FILE, Facts

GPU = {"device": {"name": "a GPU"}, "machine": {}, "simulated": False, "rehearsed": False}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a folder with a file, a folder of facts and one of a run that is done, on a machine with a GPU."""
    monkeypatch.setattr(run, "described", lambda *_: {name: GPU[name] for name in ("device", "machine")})
    monkeypatch.setattr(run, "one", lambda *_: pytest.fail("a stage was run"))
    monkeypatch.setattr(prepare, "prepare", lambda _: pytest.fail("something was prepared"))
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(report, "DOCS", tmp_path / "docs")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    told = Facts(tmp_path / "done", run.RUN)
    (tmp_path / "done").mkdir()
    told(**GPU)
    for name in command.BOXES:
        Facts(tmp_path / "done", name)(row="a", ok=True)
        told(ended=name, seconds=1.0, box=2.0, left=0)
    return tmp_path


def contents(place):
    return {path: path.read_bytes() if path.is_file() else b"" for path in place.rglob("*")}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        *((f"--out new {more} --budget {value}", f"'{value}' is no positive number of seconds")
          for more in ("", "--rehearse", "--resume") for value in ("0", "-5", "nan", "inf", "x")),
        ("--out new --rehearse --budget 5", "--rehearse takes no --budget"),
        ("--out file", "file is no folder"),
        ("--out file/under/it", "file is no folder"),
        ("--report done --to file", "file is no folder"),
        ("--report done --to file/under", "file is no folder"),
        ("--report file", "file is no folder"),
        ("--report new --to to", "new is no folder"),
        ("--prepare file", "file is no folder"),
        ("--out new --prepared nothing", "nothing is no folder"),
        ("--out new --to to", "there is no --report"),
        ("--prepare new --to to", "there is no --report"),
        ("--out new --report done", "not allowed with argument"),
        ("--out done", "--resume goes on behind them"),
        ("--report . --to to", "holds no facts of a run"),
        ("", "one of the arguments --out --prepare --report is required"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_refused(place, capsys, call, words):
    """Whatever is wrong about it."""
    before = contents(place)
    with pytest.raises(SystemExit) as left:
        command.main(call.split())
    out, err = capsys.readouterr()
    assert (left.value.code, out, err.count("\n")) == (2, "", 1), err
    assert words in err
    assert contents(place) == before


@pytest.mark.parametrize(
    ("others", "call", "words"),
    [
        ({"simulated": True, "rehearsed": True}, "", "facts of a GPU (a rehearsal), but this is a GPU"),
        ({"simulated": True}, "", "facts of a GPU (simulated), but this is a GPU"),
        ({"device": {"name": "another"}}, "", "facts of another, but this is a GPU"),
        ({}, "--simulate", "facts of a GPU, but this is a GPU (simulated)"),
        ({"simulated": True}, "--rehearse", "facts of a GPU (simulated), but this is a GPU (a rehearsal)"),
    ],
)
def test_a_run_goes_on_where_it_began(place, capsys, others, call, words):
    """Facts of another kind of device, of another GPU or of a rehearsal are not gone on with."""
    (place / "begun").mkdir()
    Facts(place / "begun", run.RUN)(**{**GPU, **others})
    before = contents(place)
    with pytest.raises(SystemExit) as left:
        command.main(["--out", "begun", "--resume", *call.split()])
    err = capsys.readouterr().err
    assert (left.value.code, err.count("\n")) == (2, 1), err
    assert words in err
    assert contents(place) == before


def test_a_summary_is_written_in_any_case(place, capsys):
    """Also where nothing was left to do and somebody has removed it."""
    assert command.main(["--out", "done", "--resume"]) == 0
    assert (place / "done" / summary.FILE).read_text(encoding="utf-8") in capsys.readouterr().out
    assert FILE in {path.name for path in (place / "done").iterdir()}
