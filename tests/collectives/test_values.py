"""Collectives of tensors among two, three and four processes."""

from __future__ import annotations

import pytest

from tests.collectives.jobs import failures


@pytest.mark.parametrize("processes", [2, 3, 4])
def test_values(processes, tmp_path):
    """Every check of the script holds in each process, for even and odd numbers of them."""
    assert failures(processes, "values", tmp_path) == {}
