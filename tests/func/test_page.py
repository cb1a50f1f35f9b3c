"""The code in docs/func.md, run as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.laws.test_documents import run

TEXT = (Path(__file__).parents[2] / "docs" / "func.md").read_text(encoding="utf-8")


@pytest.mark.cpu("tensors on another device print it")
def test_the_page_prints_what_it_says():
    """Each print gives what the comment beside it says."""
    code = "".join(re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE))
    _, printed = run(code)
    expected = re.findall(r"^print.*\)  # (.*)$", code, re.MULTILINE)
    assert len(expected) == 4
    assert printed == expected
