"""The scripts in docs/data.md run as they are printed, and print what the comments beside their prints say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DATA = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
SCRIPTS = re.findall(r"^```python\n(.*?)^```$", DATA, re.DOTALL | re.MULTILINE)


def printed(source, folder):
    """Run a script from a file of its own in `folder`, and return the lines that it prints."""
    (folder / "script.py").write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("source", SCRIPTS, ids=range(1, len(SCRIPTS) + 1))
def test_script(source, tmp_path, monkeypatch):
    """A script of the document does what it says there."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    said = re.findall(r"^ *print\(.*\)  # (.*)$", source, re.MULTILINE)
    assert said, "a script of the document prints something, with what it prints in a comment beside it"
    assert printed(source, tmp_path) == said
