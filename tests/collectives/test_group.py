"""Groups, pairs of processes, objects and time limits, among two and three processes."""

from __future__ import annotations

import pytest

from tests.collectives.jobs import failures


@pytest.mark.parametrize("processes", [2, 3])
def test_groups(processes, tmp_path):
    """Every check of the script holds in each process."""
    assert failures(processes, "groups", tmp_path) == {}
