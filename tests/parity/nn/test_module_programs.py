"""Random programs of modules and hooks give PyTorch's values, gradients and sequence of hook calls.

`python -m tests.parity.programs FIRST COUNT` runs as many as one likes, `python -m tests.seeds` others of each test.
"""

from __future__ import annotations

import pytest
import torch

import lucid
from tests.parity.programs.compare import TOLERANCE, agree, first_difference, first_that_differs, outcome
from tests.parity.programs.generator import Program
from tests.parity.programs.machine import Raised, Step
from tests.parity.programs.parts import Spec
from tests.parity.programs.rounding import close

PROGRAMS = 600
CHUNK = 20

# In it one unit in the last place grows whenever a part is applied to its own output.
AMPLIFIES = Program(
    122046,
    (
        Spec("listed", (), 30), Spec("repeat", (0,), 35), Spec("gathered", (), 49), Spec("island", (), 32),
        Spec("chain", (2, 3), 40), Spec("gathered", (), 11), Spec("chain", (1, 4, 5), 55),
    ),
    (Step("forward", 4, 6), *(Step("forward", 0, 6, 1, 1),) * 3),
)  # fmt: skip


@pytest.mark.contract("0.2")
@pytest.mark.contract("0.3")
@pytest.mark.contract("5.4")
@pytest.mark.contract("5.5")
@pytest.mark.contract("5.9")
@pytest.mark.parametrize("chunk", range(PROGRAMS // CHUNK))
def test_programs(chunk, rng):
    """Each hook call comes at its moment, with its values, whatever else is registered, removed or raised."""
    first = int(rng.integers(10**12))
    found = first_that_differs(range(first, first + CHUNK))
    assert found is None, found


@pytest.mark.cpu("of another device the last places differ otherwise")
def test_amplified_rounding():
    """A difference is rounding as far as PyTorch differs from itself where each result is off by some last places."""
    theirs, ours = outcome(torch, AMPLIFIES), outcome(lucid, AMPLIFIES)
    last = next(n for n, event in reversed(list(enumerate(theirs.events))) if event.name == "output")
    assert not close(ours.events[last].seen, theirs.events[last].seen, None, TOLERANCE)
    assert first_difference(theirs, ours, AMPLIFIES) is None
    # a wrong value is no rounding, neither in the amplified place nor beside it
    for place in ((0, 2), (1, 1)):
        output, flags = ours.events[last].seen
        output = output.copy()
        output[place] *= 2.0
        wrong = ours.events[last]._replace(seen=(output, flags))
        events = [*ours.events[:last], wrong, *ours.events[last + 1 :]]
        ours_but_for_one = type("Run", (), {"events": events})
        assert first_difference(theirs, ours_but_for_one, AMPLIFIES) == last


def test_errors_of_several_classes():
    """An error of lucid's that is of PyTorch's class and of another counts as PyTorch's."""
    assert agree(Raised(("RuntimeError", "KeyError")), Raised(("KeyError",)), None, TOLERANCE)
    assert not agree(Raised(("ValueError",)), Raised(("RuntimeError",)), None, TOLERANCE)
