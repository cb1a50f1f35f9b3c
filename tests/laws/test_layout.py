"""Where files lie: a folder is a family that is seen at a glance, and a test lies where what it tests does."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_FILES = 15
SOURCES = {".py", ".cu", ".cuh", ".cpp", ".h"}
TOPS = ("lucid", "kernels", "tests", "benchmarks", "examples", "docs")
MIRRORED = (
    "autograd",
    "base",
    "collectives",
    "cuda",
    "nn",
    "ops",
    "optim",
    "serialization",
    "settings",
    "tensor",
    "utils",
    "kernels",
)


def sources(folder):
    """Return the files of a folder and of those below it, relative to it."""
    return [path.relative_to(folder) for path in folder.rglob("*") if path.suffix in SOURCES]


@pytest.mark.parametrize("top", TOPS)
def test_a_folder_is_seen_at_a_glance(top):
    """No folder holds more files than an eye takes in, or it is two families."""
    counts = Counter(path.parent for path in sources(ROOT / top))
    full = {f"{top}/{folder}".removesuffix("/."): n for folder, n in counts.items() if n > MOST_FILES}
    assert not full, (
        f"more than {MOST_FILES} files in a folder: {full}: move those of one kind, with their tests, into one below "
        "it, in a commit before this one, and give that a row in docs/dev/design.md"
    )


def test_rooms_are_told_apart_by_their_names():
    """No two files or folders beside each other differ by the ending of a plural alone."""
    alike = set()
    for folder in [ROOT / "lucid", *(path for path in (ROOT / "lucid").rglob("*") if path.is_dir())]:
        names = {path.stem for path in folder.iterdir() if path.is_dir() or path.suffix == ".py"}
        alike |= {f"{folder.relative_to(ROOT)}/{name}s" for name in names if f"{name}s" in names}
    assert not alike, f"differ from another name beside them by an s alone: {sorted(alike)}: rename one of the two"


def test_a_kernel_file_is_found_by_its_name():
    """Sources and headers include each other without folders: of two of one name, one would be taken in silence."""
    counts = Counter(path.name for path in sources(ROOT / "kernels"))
    twice = sorted(name for name, n in counts.items() if n > 1)
    assert not twice, f"several files below kernels are called {twice}: rename all of them but one"


@pytest.mark.parametrize("part", MIRRORED)
def test_a_test_lies_where_its_file_does(part):
    """The test of ``x.py`` is ``test_x.py`` in the folder of the same name, so that each is found from the other."""
    tested = ROOT / part if part == "kernels" else ROOT / "lucid" / part
    folders = {}
    for path in sources(tested):
        if path.suffix != ".h":
            folders.setdefault(path.stem, set()).add(path.parent)
    lost = {
        str(path): sorted(map(str, folders[stem]))
        for path in sources(ROOT / "tests" / part)
        if (stem := path.stem.removeprefix("test_")) != path.stem
        and stem in folders
        and path.parent not in folders[stem]
    }
    assert not lost, f"tests that lie elsewhere than what they test: move each to the folder behind it: {lost}"


# Examples of names.
NOT_THERE = {"kernels/mine.cu", "kernels/more.cuh"}
TEXTS = {*SOURCES, ".md", ".toml"}


@pytest.mark.parametrize("top", [*TOPS, "."])
def test_what_a_text_names_is_there(top):
    """A file that a document, a comment or a docstring names by a path from the root exists."""
    found = (ROOT / top).glob("*") if top == "." else (ROOT / top).rglob("*")
    lost = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in found
        if path.suffix in TEXTS
        for name in re.findall(
            rf"(?<![\w./:-])(?:{'|'.join(TOPS)})/[\w./-]*\.(?:py|md|cuh?|cpp|h|svg)\b", path.read_text(encoding="utf-8")
        )
        if name not in NOT_THERE and not (ROOT / name).exists()
    }
    assert not lost, f"files that are named and not there: mend the name, or add it to NOT_THERE: {sorted(lost)}"
