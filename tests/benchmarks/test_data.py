"""The rows of loaders are those that were written down, and can be run."""

from __future__ import annotations

import json

import pytest

from benchmarks import command, data
from benchmarks.measure import Peer
from tests.device import DEVICE

WRITTEN = json.loads((command.RESULTS / "data.json").read_text(encoding="utf-8"))


def test_the_rows_that_were_written():
    """None was left out, and each was run."""
    assert [row["name"] for row in WRITTEN["rows"]] == [row.name for row in data.ROWS]
    assert not [row["name"] for row in WRITTEN["rows"] if row["not_run"]]


@pytest.mark.parametrize("row", data.ROWS[:4], ids=lambda row: row.name)
def test_a_row_can_be_run(row, monkeypatch):
    """A sample is a time."""
    monkeypatch.setattr(data, "LOOP", 2)
    assert row.build(Peer("lucid"))() > 0


def test_the_first_batch():
    """The time to a first batch is measured in this process, too."""
    assert data.first_batch("lucid", "forkserver") > 0


@pytest.mark.parametrize("peer", ["lucid", "torch"])
def test_a_step_that_is_fed(peer):
    """The step on batches of a loader and that on one that lies there run on either device, both with lucid."""
    assert data.FED[0].build(Peer(peer, DEVICE))() > 0
