"""Groups, pairs of processes, objects and time limits, among two and three processes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from lucid import distributed as dist
from lucid.collectives import operations
from lucid.public import written_in
from tests.collectives.jobs import failures


@pytest.mark.parametrize("processes", [2, 3])
def test_groups(processes, tmp_path):
    """Every check of the script holds in each process."""
    assert failures(processes, "groups", tmp_path) == {}


def test_every_name_is_tried():
    """What `lucid.distributed` computes or answers is called in a check of several processes, or by one alone."""
    tests = Path(__file__).parents[1]
    checks = *Path(__file__).parent.rglob("*.py"), *(tests / "nn/parallel").rglob("*.py")
    texts = "".join(path.read_text(encoding="utf-8") for path in checks)
    texts += (tests / "namespaces/test_answers.py").read_text(encoding="utf-8").replace("distributed.", "dist.")
    untried = [name for name in dist.__all__ if not re.search(rf"\bdist\.{name}\b", texts) and not is_beside(name)]
    assert not untried, f"lucid.distributed: add a check that calls {untried} to a table of tests/collectives/scripts"


def test_a_docstring_does_not_repeat_the_page():
    """What holds for every collective is said once, in `lucid.collectives.operations`, which those elsewhere name."""
    assert all(f"`{name}" in operations.__doc__ for name in ("group", "src", "dst"))
    assert "async_op" in operations.__doc__
    shown = [each for name in dist.__all__ if inspect.isfunction(each := getattr(dist, name))]
    assert not [each.__name__ for each in shown if ">>> " not in each.__doc__], "they have no example"
    taken = [each for each in shown if "async_op" in inspect.signature(each).parameters]
    assert len(taken) == 12
    assert not [
        each.__name__ for each in taken if re.search(r"^ *(group|async_op)\b.*\n +", each.__doc__, re.MULTILINE)
    ]
    page = operations.__name__
    assert not [each.__name__ for each in taken if written_in(each) != page and f"`{page}`" not in each.__doc__]


def is_beside(name):
    """Tell whether a name is that of an error, which checks have from `lucid.errors`, or of a module with tests."""
    return name.endswith("Error") or (folder(name).is_dir() and any(folder(name).rglob("test_*.py")))


def folder(name):
    """Return where the tests of a module of `lucid.distributed` are."""
    return Path(__file__).parents[1] / "distributed" / name
