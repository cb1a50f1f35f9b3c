"""DistributedDataParallel in jobs of several processes, and in one that is alone."""

from __future__ import annotations

import pytest

from tests.collectives.jobs import failures


@pytest.mark.contract("12.1")
@pytest.mark.cpu("processes exchange CPU tensors")
@pytest.mark.parametrize("processes", [2, 3])
def test_reducing(processes, tmp_path):
    """Every check of the script holds in each process."""
    assert failures(processes, "tests.nn.parallel.scripts.reducing", tmp_path) == {}
