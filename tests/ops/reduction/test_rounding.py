"""No reduction and no reduced gradient loses digits to its length, to a large mean or to how its numbers lie."""

from __future__ import annotations

import pytest

from tests.device import DEVICE
from tests.stress.rounding import rows_of, worst_of

ROWS = rows_of(DEVICE)
LARGEST = 2**20 if DEVICE == "cpu" else 2**14


@pytest.mark.parametrize("name", ROWS)
def test_roundings(name, rng):
    """Of the cases that ``python -m tests.stress.rounding`` goes through, one in so many."""
    worst, place = worst_of(name, LARGEST, DEVICE, rng, first=list(ROWS).index(name), step=97)
    assert worst <= ROWS[name].allowed, place
