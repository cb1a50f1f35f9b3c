"""What is left of a group over NCCL when one of three processes does not come, or is left out."""

from __future__ import annotations

import os

import pytest

import lucid
from lucid import distributed as dist
from lucid.errors import DeviceError, DistributedError, DistributedTimeoutError, SettingError
from tests.collectives.jobs import begin, go_through

LAST = 2


def sum_of(group, rank):
    """Return what all processes of a group add up."""
    dist.all_reduce(x := lucid.full((2,), rank + 1.0), group=group)
    return x.tolist()


def fewer_go_on(rank):
    """Without one process the others' ranks are those of the job, their numbers in the group new."""
    group = dist.new_group()
    assert sum_of(group, rank) == [6.0, 6.0]
    if rank != 1:
        less = group.without([1])
        assert sum_of(less, rank) == [4.0, 4.0]
        assert (less.ranks, less.rank(), less.size()) == ((0, 2), rank // 2, 2)
        dist.broadcast(x := lucid.full((1,), float(rank)), LAST, group=less)
        assert x.item() == LAST
        with pytest.raises(DeviceError, match="this group computes with cuda tensors"):
            dist.all_reduce(lucid.ones(1, device="cpu"), group=less)
    assert sum_of(group, rank) == [6.0, 6.0]
    for wrong in ([], [rank], [3], [rank, (rank + 1) % 3]):
        with pytest.raises(SettingError, match="ranks: expected some of"):
            group.without(wrong)
    dist.barrier()


def who_does_not_come_is_noticed(rank):
    """Each of the others raises at the time limit, and they can be connected anew."""
    group = dist.new_group(timeout=1.0)
    assert sum_of(group, rank) == [6.0, 6.0]
    if rank != LAST:
        missing = f"rank {rank} of 3 waits in collective 2, all_reduce.*: rank 2, which waits in collective .*, barrier"
        with pytest.raises(DistributedTimeoutError, match=missing):
            sum_of(group, rank)
        with pytest.raises(DistributedError, match="no use any more"):
            sum_of(group, rank)
        less = group.without([LAST])
        assert sum_of(less, rank) == [3.0, 3.0]
    dist.barrier()
    if rank == LAST:
        sum_of(group, rank)  # too late for them; of the stand-in it ends what they had begun
    dist.barrier()


def a_ring_at_once(rank):
    """Sends and receives of a batch wait for nothing among each other, in any order, large and in any layout."""
    for size in (3, 400_000):
        for turn in (1, -1):
            given, into = lucid.full((size,), float(rank)), lucid.zeros(size, 2)
            ring = [
                dist.P2POp(dist.isend, given, (rank + 1) % 3),
                dist.P2POp(dist.irecv, into[:, 1], (rank - 1) % 3),
            ]
            for work in dist.batch_isend_irecv(ring[::turn]):
                work.wait()
            assert into.sum(0).tolist() == [0.0, (rank - 1) % 3 * size]
    with pytest.raises(SettingError, match="tag: NCCL tells messages apart by their order"):
        dist.isend(given, (rank + 1) % 3, tag=1)


def groups_are_given_back(rank):
    """When all have left a group, the next one that is made ends its communicator; its processes may be others."""
    pair = dist.new_group([0, LAST])
    if rank != 1:
        assert sum_of(pair, rank) == [4.0, 4.0]
        dist.destroy_process_group(pair)
    assert sum_of(dist.new_group(), rank) == [6.0, 6.0]


def calls_are_compared(rank):
    """LUCID_DISTRIBUTED_DEBUG=1 compares over NCCL too, where there is no MPI for CPU tensors."""
    os.environ["LUCID_DISTRIBUTED_DEBUG"] = "1"
    group = dist.new_group()
    assert sum_of(group, rank) == [6.0, 6.0]
    with pytest.raises(DistributedError, match=r"call different collectives:\n  rank 0: collective 2, all_reduce"):
        dist.all_reduce(lucid.ones(2 + rank // 2), group=group)
    del os.environ["LUCID_DISTRIBUTED_DEBUG"]


CHECKS = (fewer_go_on, a_ring_at_once, groups_are_given_back, calls_are_compared, who_does_not_come_is_noticed)

if __name__ == "__main__":
    begin(30)
    go_through(CHECKS, dist.get_rank(), dist.get_rank())
