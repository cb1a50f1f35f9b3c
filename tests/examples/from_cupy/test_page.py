"""The programs in `docs/users/from-cupy.md` are those of the examples, and run as they were."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import run
from tests.examples.from_cupy import page
from tests.examples.from_cupy.programs import NAMES

TEXT = page.PAGE.read_text(encoding="utf-8")


def test_the_programs_are_those_of_the_examples():
    """Both the program as it was and its changes are what the example says."""
    assert page.written(TEXT) == TEXT, "python -m tests.examples.from_cupy.page writes them"


@pytest.mark.cpu("as programs of NumPy's")
@pytest.mark.parametrize("name", NAMES)
def test_a_plain_program(name):
    """What is shown of it stands by itself: its functions are there when it has run."""
    names, printed = run(page.plain(name).replace("import cupy as cp", "import numpy as cp"))
    assert callable(names["misfit"])
    assert not printed


def test_pictures_are_small():
    """Each program has one that is there, of less than 60 kB."""
    pictures = re.findall(r"^!\[.+\]\((.+)\)$", TEXT, re.MULTILINE)
    assert pictures == [f"from-cupy-{name}.png" for name in NAMES]
    assert all(2_000 < (page.PAGE.parent / picture).stat().st_size < 60_000 for picture in pictures)
