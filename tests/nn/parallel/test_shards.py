"""The same bits for any number of processes: what a process that is alone computes is what several do."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lucid.collectives.reduction import tree_sum
from lucid.nn.parallel.shards import PairwiseSum, bit_reversed
from tests.collectives.jobs import ROOT, failures, job
from tests.nn.parallel.scripts import sharding

pytestmark = pytest.mark.cpu("processes exchange CPU tensors")


@pytest.mark.parametrize("count", [1, 2, 4, 8, 32])
def test_sums_of_parts_are_the_sum_of_all(count, rng):
    """A tree over processes of trees over what each holds has the bits of one tree, whatever the division."""
    rows = list(rng.standard_normal((count, 50)).astype(np.float32) * 10.0 ** rng.integers(-3, 4, (count, 1)))
    whole = tree_sum(rows)
    for processes in [2**k for k in range(6) if 2**k <= count]:
        parts = []
        for rank in range(processes):
            own = rows[rank::processes]
            total = PairwiseSum()
            for index in bit_reversed(len(own)):
                total.add(own[index])
            np.testing.assert_array_equal(total.total(), tree_sum(own))
            parts.append(total.total())
        np.testing.assert_array_equal(tree_sum(parts), whole)


def test_a_tree_is_another_order():
    """The second half is added to the first, which one number after the other would not give."""
    rows = [np.float32(value) for value in (1e8, 1, -1e8, 1)]
    assert (tree_sum(rows), sum(rows)) == (2, 1)


def test_nothing_is_zeros():
    """None stands for zeros, and leaves no negative one."""
    total = PairwiseSum()
    for part in (None, np.array([-0.0, 1.0]), None, None):
        total.add(part)
    assert not np.signbit(total.total()).any()
    nothing = PairwiseSum()
    nothing.add(None)
    nothing.add(None)
    assert nothing.total() is None


@pytest.fixture(scope="module")
def alone():
    """Return what a process that is alone finds."""
    return sharding.digests(), sharding.each_shard_has_random_numbers_of_its_own()[0]


@pytest.mark.filterwarnings("ignore:object collectives unpickle")
@pytest.mark.parametrize("processes", [2, 4])
def test_the_same_bits(processes, alone, tmp_path):
    """Weights, buffers and random numbers of 2 and 4 processes are those of one, in each of them."""
    assert failures(processes, "tests.nn.parallel.scripts.sharding", tmp_path) == {}
    for rank in range(processes):
        assert json.loads((tmp_path / f"digests-{rank}.json").read_text()) == json.loads(json.dumps(alone))


@pytest.mark.filterwarnings("ignore:object collectives unpickle")
@pytest.mark.parametrize("check", sharding.CHECKS, ids=lambda check: check.__name__)
def test_alone(check):
    """A process that is alone goes through the same."""
    check()


def test_the_example(tmp_path):
    """The digits give the same weights on one process and on two, and others where the order is left to MPI."""
    lines = {}
    for processes, more in ((1, ()), (2, ()), (2, ("--control",))):
        ended = job(processes, [ROOT / "examples/distributed_digits.py", "--epochs", "1", *more], tmp_path)
        assert ended.status == 0, ended
        (line,) = ended.out.splitlines()
        lines[processes, more] = line.rpartition(" ")[2]
    assert lines[1, ()] == lines[2, ()] != lines[2, ("--control",)]
    assert len(lines[1, ()]) == 64
