"""Long reads and writes move a bar on a terminal, and change nothing else."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import lucid
from lucid.serialization import progress
from tests.pieces import Terminal, raising, terminal


def small(monkeypatch):
    """Return a terminal, where files of some bytes are long and written in small pieces."""
    monkeypatch.setattr(progress, "LEAST", 100)
    monkeypatch.setattr(progress, "PIECE", 64)
    return terminal(monkeypatch)


def test_a_bar_is_shown_and_the_file_is_the_same(tmp_path, rng, monkeypatch):
    """Both directions name the file; what is written, and read, does not depend on the bar."""
    output = small(monkeypatch)
    state = {"weight": lucid.tensor(rng.standard_normal((50, 3))), "epoch": 3}
    path = tmp_path / "model.safetensors"
    lucid.save(state, path)
    assert "save " in output.getvalue()
    before = len(output.getvalue())
    loaded = lucid.load(path)
    assert "load " in output.getvalue()[before:]
    assert loaded["epoch"] == 3
    np.testing.assert_array_equal(loaded["weight"].tolist(), state["weight"].tolist())
    content = path.read_bytes()
    monkeypatch.setattr(progress, "LEAST", 1 << 40)
    lucid.save(state, path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("output", [None, io.StringIO()])
def test_nothing_is_shown_elsewhere(output, tmp_path, monkeypatch):
    """No bar where the output of errors is no terminal, or is not there; nor for a short file on one."""
    path = tmp_path / "model.safetensors"
    monkeypatch.setattr(progress, "LEAST", 1)
    monkeypatch.setattr(sys, "stderr", output)
    lucid.save([lucid.ones(100)], path)
    assert lucid.load(path)[0].sum().item() == 100
    assert output is None or not output.getvalue()
    monkeypatch.setattr(progress, "LEAST", 1 << 30)
    monkeypatch.setattr(sys, "stderr", short := Terminal())
    lucid.load(path)
    assert not short.getvalue()


def test_a_failure_below_the_bar_is_the_callers(tmp_path, monkeypatch):
    """A full disk while a bar is shown is an OSError, and what was there stays."""
    path = tmp_path / "model.safetensors"
    lucid.save([lucid.ones(10)], path)
    small(monkeypatch)
    monkeypatch.setattr("rich.progress.Progress.advance", raising(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        lucid.save([lucid.zeros(100)], path)
    monkeypatch.undo()
    assert lucid.load(path)[0].tolist() == [1.0] * 10
