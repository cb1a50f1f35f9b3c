"""Collectives of tensors among two (over NCCL), three and four processes."""

from __future__ import annotations

import pytest

from tests.collectives.jobs import NCCL, failures


@pytest.mark.parametrize(("processes", "debug"), [(3, "1"), (4, "0")])
def test_values(processes, debug, tmp_path):
    """Every check of the script holds in each process, for even and odd numbers of them; compared beforehand or not."""
    assert failures(processes, "values", tmp_path, LUCID_DISTRIBUTED_DEBUG=debug) == {}


@pytest.mark.gpu
def test_values_over_nccl(tmp_path):
    """The same on a simulated device for each process, through a stand-in of nccl4py."""
    assert failures(2, "values", tmp_path, **NCCL) == {}


@pytest.mark.gpu
def test_fewer_processes_over_nccl(tmp_path):
    """What is left of a group when one of its processes does not come, or is left out."""
    assert failures(3, "fewer", tmp_path, **NCCL) == {}
