"""Random programs of modules and hooks give PyTorch's values, gradients and sequence of hook calls.

`python -m tests.parity.programs FIRST COUNT` runs as many as one likes.
"""

from __future__ import annotations

import os

import pytest

from tests.parity.programs.compare import first_difference

PROGRAMS = 300
CHUNK = 20


@pytest.mark.contract("0.2")
@pytest.mark.contract("0.3")
@pytest.mark.contract("5.4")
@pytest.mark.contract("5.5")
@pytest.mark.contract("5.9")
@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_programs(first):
    """Each hook call comes at its moment, with its values, whatever else is registered, removed or raised."""
    first += PROGRAMS * int(os.environ["LUCID_TEST_SEED"])
    found = first_difference(range(first, first + CHUNK))
    assert found is None, found
