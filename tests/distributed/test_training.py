"""What several processes train together: optimizers in parts, batch normalisation, communication hooks."""

from __future__ import annotations

import pytest

from tests.collectives.jobs import failures


@pytest.mark.cpu("processes exchange CPU tensors")
@pytest.mark.parametrize("processes", [2, 3])
def test_among_processes(processes, tmp_path):
    """Weights, statistics and gradients are those of one process with the whole batch, and hooks' those of NumPy."""
    assert failures(processes, "tests.distributed.scripts.training", tmp_path) == {}
