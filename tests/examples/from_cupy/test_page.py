"""Every block of code in `docs/from-cupy.md` runs and prints what it says; programs are those of the examples."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from tests.examples.from_cupy import page
from tests.examples.from_cupy.programs import NAMES
from tests.laws.test_documents import run

TEXT = page.PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^(<!-- needs a CUDA device -->\n)?```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
RUN = [
    pytest.param(code, marks=pytest.mark.gpu if needs else pytest.mark.cpu("on the CPU by default"))
    for needs, code in BLOCKS
    if "import cupy as cp" not in code.partition("\n")[0]
]


def test_the_programs_are_those_of_the_examples():
    """Both the program as it was and its changes are what the example says."""
    assert page.written(TEXT) == TEXT, "python -m tests.examples.from_cupy.page writes them"
    assert len(BLOCKS) == len(RUN) + len(NAMES)


@pytest.mark.parametrize("code", RUN)
def test_a_block(code):
    """It prints what the comments beside its prints say."""
    if "scipy" in code and find_spec("scipy") is None:
        pytest.skip("needs SciPy: pip install '.[examples]'")
    _, printed = run(code)
    expected = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert " ".join(" ".join(printed).split()) == " ".join(" ".join(expected).split())


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
