"""DistributedDataParallel in jobs of several processes, and in one that is alone."""

from __future__ import annotations

import json

import pytest

from tests.collectives.jobs import NCCL, failures


@pytest.mark.contract("12.1")
@pytest.mark.cpu("processes exchange CPU tensors")
@pytest.mark.parametrize("processes", [2, 3])
def test_reducing(processes, tmp_path):
    """Every check of the script holds in each process."""
    assert failures(processes, "tests.nn.parallel.scripts.reducing", tmp_path) == {}


@pytest.mark.gpu
def test_reducing_over_nccl(tmp_path):
    """The same on a simulated device for each process, through a stand-in of nccl4py."""
    assert failures(2, "tests.nn.parallel.scripts.reducing", tmp_path, **NCCL) == {}


@pytest.mark.gpu
def test_the_same_bits_over_nccl(tmp_path):
    """On a simulated device for each process, of one process and of two."""
    found = []
    for processes in (1, 2):
        (folder := tmp_path / str(processes)).mkdir()
        assert failures(processes, "tests.nn.parallel.scripts.sharding", folder, **NCCL) == {}
        found += [json.loads((folder / f"digests-{rank}.json").read_text()) for rank in range(processes)]
    assert found[0] == found[1] == found[2]


@pytest.mark.cpu("processes exchange CPU tensors")
def test_changing(tmp_path):
    """Between passes modules are converted, frozen and cleared: every check holds in each of three processes."""
    assert failures(3, "tests.nn.parallel.scripts.changing", tmp_path) == {}
