"""The recipes in docs/recipes.md, each run as it is printed, after the beginning that all share."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from tests.laws.test_documents import run

TEXT = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
BEGINNING = re.search(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)[1]
RECIPES = dict(re.findall(r"^<!-- recipe: (\S+) -->\n```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE))


def check(text):
    """Fail unless a program prints what the comments beside its prints say."""
    with warnings.catch_warnings():
        # anomaly detection warns that it is on, and of what it has found
        warnings.simplefilter("ignore", UserWarning)
        _, printed = run(BEGINNING + text)
    assert printed == re.findall(r"^.*\)  # (.*)$", text, re.MULTILINE)


def test_there_are_seven():
    """Every block of code but the beginning is a recipe."""
    assert [*RECIPES] == [
        "activations", "histograms", "intermediate", "clip", "nan", "freeze", "accumulate",
    ]  # fmt: skip
    assert TEXT.count("```python") == 1 + len(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_recipe(name):
    check(RECIPES[name])


def test_one_program():
    """They run in their order, one after the other, as well as alone."""
    check("".join(RECIPES.values()))
