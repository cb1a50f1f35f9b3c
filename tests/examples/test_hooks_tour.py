"""The tour of hooks prints what it promises."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

TOUR = Path(__file__).parents[2] / "examples" / "hooks_tour.py"

EXPECTED = {
    "A tensor's hook": ["grad = tensor([2., 4.])", "x.grad after two passes = tensor([4., 8.])"],
    "As a context manager": ["x.grad = tensor([4., 8.])"],
    "A function with a backward": ["x.grad = tensor([ 6., -2.])"],
    "A forward pre-hook": ["with the hook: [[4.0, 4.0], [4.0, 4.0]]", "without:       [[2.0, 2.0], [2.0, 2.0]]"],
    "A forward hook": ["with the hook: 6.0", "without:       2.0"],
    "A backward hook": ["grad: tensor([1.])"],
    "A full backward pre-hook": ["grad_out: (tensor([1.]),)"],
    "A full backward hook sees": ["grad_in: (tensor([1.]), tensor([1.]))", "grad_out: (tensor([1.]),)"],
    "Full backward hooks:": ["global: Linear", "prepended: Linear", "registered first: Linear"],
    "A full backward hook may": ["x.grad = tensor([[0., 0.]])", "InplaceError on y.mul_(2)"],
    "A state-dict pre-hook": ["saving with prefix: ''"],
    "A state-dict hook": ["{'note': 'custom'}"],
    "A load-state-dict pre-hook": ["<All keys matched successfully>"],
    "A load-state-dict post-hook": ["missing: ['weight', 'bias']"],
    "A Hook owns": [
        "before Identity in training",
        "after: the output is doubled",
        "training:   2.0",
        "evaluation: 1.0",
        "off again:  1.0",
    ],
    "A Hook leaves": ["with the Hook: 2.0", "without:       1.0"],
}


@pytest.fixture(scope="module")
def stops():
    """Return what each stop prints, by its number and title."""
    import contextlib
    import io

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(TOUR)])
        patch.setenv("COLUMNS", "80")
        runpy.run_path(str(TOUR), run_name="__main__")
    blocks = printed.getvalue().strip("\n").split("\n\n")
    return {block.splitlines()[0].lstrip(" 0123456789"): block.splitlines()[1:] for block in blocks}


@pytest.mark.parametrize("title", EXPECTED)
def test_a_stop_prints_its_lines(stops, title):
    """Each stop of the tour prints exactly the lines that show what its hooks did."""
    (found,) = [lines for full, lines in stops.items() if full.startswith(title)]
    assert found == EXPECTED[title]


def test_every_stop_is_expected(stops):
    """No stop is without a check, and titles fit a terminal of 80 columns in one line."""
    assert len(stops) == len(EXPECTED)
