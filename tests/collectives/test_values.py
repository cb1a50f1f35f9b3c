"""Collectives of tensors among two, three and four processes."""

from __future__ import annotations

import pytest

from tests.collectives.jobs import failures


@pytest.mark.parametrize(("processes", "debug"), [(2, "0"), (3, "1"), (4, "0")])
def test_values(processes, debug, tmp_path):
    """Every check of the script holds in each process, for even and odd numbers of them; compared beforehand or not."""
    assert failures(processes, "values", tmp_path, LUCID_DISTRIBUTED_DEBUG=debug) == {}
