"""The code of the pages, and how it is run.

The Python blocks of a page are one program: each goes on with the names of those above it, and prints what the comments
behind its ``print(...)`` say. A comment in the line above a block says otherwise:

- ``<!-- program -->``: a script of its own, in a process of its own
- ``<!-- recipe: NAME -->``: it follows the blocks without a comment alone, not the other recipes
- ``<!-- needs a CUDA device -->``
- ``<!-- run by FILE -->``, or ``FILE: NAME``: another test runs it, with what it needs
- ``<!-- not run: REASON -->``
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
MARKS = re.compile(r"|program|recipe: \S+|needs a CUDA device|run by [^:]+(?:: \S+)?|not run: .+")


class Block(NamedTuple):
    """A block of Python in a page: the line of its first statement, the comment above it, and the code."""

    line: int
    mark: str
    code: str


def pages():
    """Return all pages that people write, by their path from the root."""
    made = {"_build", "reference"}  # by `make docs`
    texts = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if made.isdisjoint(path.parts))]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in texts}


def blocks(text):
    """Return the blocks of Python of a page."""
    found = re.finditer(r"^(?:<!-- ([^\n]*) -->\n)?```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [Block(text[: each.start(2)].count("\n") + 1, each[1] or "", each[2]) for each in found]


def run(source, names=None):
    """Return (the names that a piece of code defines, the lines that it prints), given those that are defined."""
    names = {} if names is None else names
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        # anomaly detection warns that it is on, and of what it finds
        warnings.simplefilter("ignore", UserWarning)
        exec(textwrap.dedent(source), names)
    return names, printed.getvalue().splitlines()


def said(code):
    """Return what the comments behind the prints of a block say, in one line."""
    return " ".join(" ".join(re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)).split())


def check(code, names=None):
    """Run a block, and fail unless it prints what its comments say; the spaces of arrays do not count."""
    names, lines = run(code, names)
    printed = " ".join(" ".join(lines).split())
    assert printed == said(code), f"expected {said(code)!r}, as the page says, got {printed!r}"
    return names


def printed_by_script(source, folder):
    """Run a script from a file of its own in `folder`, and return the lines that it prints."""
    (folder / "script.py").write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
