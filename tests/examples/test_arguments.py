"""Every example refuses arguments that it does not know."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted([*FOLDER.glob("*.py"), *FOLDER.glob("from_cupy/*.py")])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_unknown_arguments_are_refused(example, monkeypatch, capsys):
    """A misspelled option ends the script with its name, before anything is done."""
    monkeypatch.setattr(sys, "argv", [str(example), "--no-such-option"])
    monkeypatch.syspath_prepend(str(example.parent))
    # an example may set what lucid reads of it, for itself
    monkeypatch.setattr(os, "environ", os.environ.copy())
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr()
    assert "unrecognized arguments: --no-such-option" in printed.err
    assert not printed.out
