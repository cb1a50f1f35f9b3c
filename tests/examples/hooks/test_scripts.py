"""The examples of `lucid.hooks` print what their tools find, and leave no hook behind."""

from __future__ import annotations

import os
import re
import runpy
import sys
from pathlib import Path

import pytest

from lucid import hooks

FOLDER = Path(__file__).parents[3] / "examples" / "hooks"


def printed(monkeypatch, capsys, name, *arguments):
    """Return what a script prints."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert len(hooks.table()) == 0
    return capsys.readouterr().out


def test_toolbox(monkeypatch, capsys):
    text = printed(monkeypatch, capsys, "toolbox.py")
    assert "8 hooks; the first: forward hook" in text
    assert "left: 0\nmodule Sequential\n  no hooks" in text
    assert "inside: 8\nafter: 1 which is mine" in text
    assert "0 output 0 (2, 8)" in text
    assert "the tap's gradient: 1.0" in text
    assert "nothing passes a zero: 0.0\nno bias beyond 0.125: True" in text
    assert re.search(r"output of 2\.0 \(Linear\), made by LinearBackward0,\s+of shape \(2, 8\)", text)
    assert float(re.search(r"loss ([\d.]+); gradients in memory: 0", text)[1]) < 9
    assert "calls of each: [3, 3, 3, 3, 3, 3, 3, 3]" in text
    assert re.search(r"backward of call 1 of '0', whose mean was \S+\nbackward of call 0 of '0'", text)
    assert "0: 1 calls, keeps 32 bytes, makes 64" in text
    assert "6 spans of backward" in text
    assert "half of e: 1.35914" in text
    assert re.search(r"\d{3} operations in products, \d+ bytes of new arrays", text)
    assert "121 parameters, 121 trained" in text
    assert 'label="0.weight (8, 4)\\n1 tensor hook" shape=box style=bold' in text


@pytest.mark.cpu("a training")
def test_interpretability(monkeypatch, capsys):
    """It finds what such a model must do, which is to look back."""
    text = printed(monkeypatch, capsys, "interpret_gpt.py", "--steps", "150")
    shares = {path: int(share) for path, share in re.findall(r"last word in (h\.\d) carries +(-?\d+)%", text)}
    assert shares["h.1"] == 100
    chances = [int(chance) for chance in re.findall(r"tracing: .* has (\d+)%", text)]
    assert chances[0] < 50 < chances[1]
    right = {path: int(share) for path, share in re.findall(r"without (\S+) +(\d+)% are right", text)}
    assert len(right) == 4
    assert min(right.values()) < 50
    steered = [int(chance) for chance in re.findall(r"word 3 has +(\d+)%", text)]
    assert steered[0] < steered[1] < steered[2]
    assert len(re.findall(r"\d+:\d+%", text)) == 11


@pytest.mark.cpu("the words of the page are those of the CPU")
def test_the_walk_through(monkeypatch, capsys, tmp_path):
    """The example prints what docs/users/hooks-debugging.md shows, and writes a page and a graph."""
    text = printed(monkeypatch, capsys, "nan_at_step_57.py", "--out", str(tmp_path))
    page = (FOLDER.parents[1] / "docs" / "users" / "hooks-debugging.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n```\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    said = [line for block in blocks for line in block.splitlines()]
    printed_lines = text.replace(f"{FOLDER}{os.sep}", "").splitlines()
    assert len(said) == 6
    assert [line for line in said if line not in printed_lines] == []
    assert "the loss is NaN at step 57" in printed_lines
    assert "LogBackward0" in (tmp_path / "graph.dot").read_text(encoding="utf-8")
    assert "Trace of Task" in (tmp_path / "trace.html").read_text(encoding="utf-8")
