"""Groups, what two processes do among themselves, objects, time limits, and coming together again."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from datetime import timedelta

import numpy as np

import lucid
from lucid import distributed as dist
from lucid.collectives.engines.mpi import MpiMailbox, mpi
from lucid.collectives.world import NON_MEMBER, world
from lucid.errors import DistributedError, DistributedTimeoutError
from tests.collectives.jobs import go_through
from tests.collectives.scripts.values import made, refused, tree

LIMIT = 30


def what_is_answered(rank, size):
    """Who asks is told the launcher's numbers, in the job and in a group."""
    assert dist.is_initialized()
    assert dist.get_backend() == "mpi"
    assert dist.get_process_group_ranks(None) == list(range(size))
    assert dist.group.WORLD is dist.GroupMember.WORLD is not None
    assert dist.get_rank(dist.group.WORLD) == rank
    part = dist.new_group([size - 1, 0])  # sorted
    assert (part is dist.GroupMember.NON_GROUP_MEMBER) == (rank not in {0, size - 1})
    if rank in {0, size - 1}:
        assert part.ranks == (0, size - 1)
        assert dist.get_rank(part) == part.rank() == (rank != 0)
        assert dist.get_world_size(part) == 2
        assert dist.get_global_rank(part, 1) == size - 1
        assert dist.get_group_rank(part, size - 1) == 1
        refused(ValueError, lambda: dist.get_global_rank(part, 2), "0 .. 1", "2")
        refused(ValueError, lambda: dist.get_group_rank(part, size), str(size))
        refused(ValueError, lambda: dist.broadcast(lucid.ones(1), size, part), f"[0, {size - 1}]")
        dist.broadcast(x := lucid.full((1,), float(rank)), size - 1, part)
        assert x.item() == size - 1
        dist.broadcast(x := lucid.full((1,), float(rank)), group_src=0, group=part)
        assert x.item() == 0
    refused(TypeError, lambda: dist.get_rank("world"), "ProcessGroup")
    refused(ValueError, lambda: dist.init_process_group("mpi"), "twice")


def groups_of_some(rank, size):
    """Groups compute apart from each other; who is not in one does nothing and is warned."""
    halves = [dist.new_group([each for each in range(size) if each % 2 == odd]) for odd in (0, 1)]
    mine, other = halves[rank % 2], halves[1 - rank % 2]
    assert other is NON_MEMBER
    assert dist.get_rank(other) == dist.get_world_size(other) == -1
    x = lucid.ones(2)
    for _ in range(3 + rank % 2):  # groups count for themselves
        dist.all_reduce(x, group=mine)
    assert x[0].item() == mine.size() ** (3 + rank % 2)
    dist.all_reduce(x := lucid.full((2,), float(rank)), dist.ReduceOp.AVG, mine)  # over those of the group alone
    assert x.tolist() == [sum(mine.ranks) / mine.size()] * 2
    calls = (
        lambda: dist.all_reduce(x, group=other),
        lambda: dist.barrier(other),
        lambda: dist.monitored_barrier(other),
        *[lambda call=call: call(x, 0, group=other) for call in (dist.send, dist.isend, dist.recv, dist.irecv)],
        *[lambda call=call: call(x, 0, group=other) for call in (dist.broadcast, dist.reduce)],
        *[lambda call=call: call([x], x, group=other) for call in (dist.all_gather, dist.all_gather_object)],
        *[lambda call=call: call(x, [x], group=other) for call in (dist.gather, dist.scatter, dist.reduce_scatter)],
        *[lambda call=call: call(x, x, group=other) for call in (dist.all_gather_into_tensor, dist.all_to_all_single)],
        lambda: dist.reduce_scatter_tensor(x, x, group=other),
        lambda: dist.all_to_all([x], [x], group=other),
        lambda: dist.gather_object(1, [], group=other),
        *[lambda call=call: call([], group=other) for call in (dist.broadcast_object_list, dist.scatter_object_list)],
        lambda: dist.set_timeout(1, other),
        lambda: dist.destroy_process_group(other),
    )
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert call() in {None, -1}
    refused(ValueError, lambda: dist.new_group([0, 0]), "different ranks")
    refused(ValueError, lambda: dist.new_group([size]), f"0 .. {size - 1}")
    refused(ValueError, lambda: dist.new_group([0], use_local_synchronization=True), "use_local_synchronization")
    named = [dist.new_group(group_desc="twice", timeout=5) for _ in range(2)]
    assert named[0].name != named[1].name
    assert named[0].timeout == 5
    dist.destroy_process_group(mine)
    refused(DistributedError, lambda: dist.all_reduce(x, group=mine), "destroy_process_group")
    dist.barrier()


def roots_by_both_numbers(rank, size):
    """A root is named by its number in the job or in the group, which differ here; each call means the same one."""
    group = dist.new_group(range(size - 1, -1, -1), sort_ranks=False)
    assert group.ranks == tuple(range(size - 1, -1, -1))
    for root in range(size):
        for job, here in ((root, None), (None, size - 1 - root)):
            dist.broadcast(x := lucid.full((1,), float(rank)), job, group, group_src=here)
            assert x.item() == root
            dist.reduce(x := lucid.full((1,), float(rank)), job, group=group, group_dst=here)
            assert x.item() == (size * (size - 1) / 2 if rank == root else rank)
            into = [lucid.zeros(1) for _ in range(size)] if rank == root else None
            dist.gather(lucid.full((1,), float(rank)), into, job, group, group_dst=here)
            assert [each.item() for each in into or ()] == (list(group.ranks) if rank == root else [])
            dist.scatter(x, into, job, group, group_src=here)
            assert x.item() == rank
            objects = [None] * size if rank == root else None
            dist.gather_object(rank, objects, job, group, here)
            assert objects == (list(group.ranks) if rank == root else None)
            dist.broadcast_object_list(said := [rank], job, group, group_src=here)
            assert said == [root]
            dist.scatter_object_list(said, objects, job, group, group_src=here)
            assert said == [rank]
    after = (rank + 1) % size
    work = dist.isend(lucid.full((1,), float(rank)), group=group, group_dst=group.ranks.index(after))
    assert dist.recv(x, group=group, group_src=group.ranks.index((rank - 1) % size)) == (rank - 1) % size
    work.wait()
    assert x.item() == (rank - 1) % size


def groups_that_come_and_go(rank, size):
    """MPI's 2,048 communicators are given back, also where processes leave in another order, or later."""
    kept = None
    for each in range(600):
        group = dist.new_group([each % size, (each + 1) % size])
        if group is not NON_MEMBER:
            dist.barrier(group)
            if rank == 0 and each % 2:
                kept, group = group, kept
            if group is not None:
                dist.destroy_process_group(group)
    dist.barrier()


def what_not_all_have_left_is_kept(rank, size):
    """MPI frees what a group holds in a call of all its processes: not before the last of them has left it."""
    group = dist.new_group()
    if rank == 0:
        dist.destroy_process_group(group)
    dist.destroy_process_group(dist.new_group())
    if rank == 0:
        assert group in world.discarded
    else:
        dist.destroy_process_group(group)
    dist.destroy_process_group(dist.new_group())
    assert group not in world.discarded


def sent_and_received(rank, size):
    """What one process sends another one receives: in every dtype, by tags in another order, of any layout."""
    after, before = (rank + 1) % size, (rank - 1) % size
    for dtype in (lucid.bool, lucid.int16, lucid.bfloat16, lucid.float32, lucid.complex128):
        sent, wide = made(rank, dtype, (3, 4)), lucid.zeros(4, 3, dtype=dtype)
        work = dist.isend(sent.t() if dtype is lucid.int16 else sent, after)
        into = wide if dtype is lucid.int16 else wide.t()
        version = into._version
        assert dist.recv(into, before) == before
        assert into._version > version
        work.wait()
        expected = made(before, dtype, (3, 4))
        assert bool((into == (expected.t() if dtype is lucid.int16 else expected)).all())
    works = [dist.isend(lucid.full((2,), float(tag)), after, tag=tag) for tag in range(4)]
    for tag in (2, 0, 3, 1):
        x = lucid.zeros(2)
        dist.recv(x, before, tag=tag)
        assert x.tolist() == [tag, tag]
    for work in works:
        work.wait()
    one = dist.irecv(x := lucid.zeros(100_000), before)
    dist.send(lucid.full((100_000,), float(rank)), after)
    one.wait()
    assert x[-1].item() == before
    ring = [
        dist.P2POp(dist.isend, lucid.full((2,), float(rank)), after),
        dist.P2POp(dist.irecv, x := lucid.zeros(2), before),
    ]
    for work in dist.batch_isend_irecv(ring):
        work.wait()
    assert x.tolist() == [before, before]
    refused(ValueError, lambda: dist.P2POp(dist.all_reduce, x, after), "isend or irecv")
    refused(ValueError, lambda: dist.batch_isend_irecv([]), "P2POp")
    refused(ValueError, lambda: dist.send(x, rank), "another process")
    refused(ValueError, lambda: dist.send(x, after, tag=-1), "tag")
    refused(ValueError, lambda: dist.recv(x, before, tag=40_000), "tag")
    refused(RuntimeError, lambda: dist.recv(lucid.ones(1, requires_grad=True).view(1), before), "view of a leaf")


def a_message_of_another_size(rank, size):
    """Who receives fewer or more bytes than its tensor has is told so, rather than left with a part of them."""
    group = dist.new_group()
    if rank == 0:
        dist.send(lucid.ones(2), 1, group)
        dist.send(lucid.ones(2), 1, group, tag=1)
    if rank == 1:
        refused(DistributedError, lambda: dist.recv(lucid.ones(4), 0, group), "16", "8")
        refused(DistributedError, lambda: dist.recv(lucid.ones(4), 0, group), "of no use any more")
    group = dist.new_group()
    if rank == 0:
        dist.send(lucid.ones(4), 1, group)
    if rank == 1:  # more than fits is noticed by MPI itself, whose error is the cause of lucid's
        try:
            dist.recv(lucid.ones(2), 0, group)
        except DistributedError as error:
            assert "rank 1 of" in str(error)
            assert "MPI says" in str(error)
            assert isinstance(error.__cause__, mpi().Exception)
        else:
            raise AssertionError("a part was taken for the whole")
    dist.barrier()


def objects_of_all(rank, size):
    """Objects of any size and kind come to all, to one, from one, and are told to be unpickled once."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dist.all_gather_object(into := [None] * size, {"rank": rank, "text": "ä" * 1000 * rank})
        assert into == [{"rank": each, "text": "ä" * 1000 * each} for each in range(size)]
        dist.all_gather_object(into, lucid.full((2,), float(rank)))
    assert len([each for each in said if "unpickle" in str(each.message)]) == 1
    assert [each.tolist() for each in into] == [[each, each] for each in range(size)]
    for root in (0, size - 1):
        into = [None] * size if rank == root else None
        dist.gather_object((rank, None), into, root)
        assert into == ([(each, None) for each in range(size)] if rank == root else None)
        objects = [f"from {root}", {1, 2}] if rank == root else [None, None]
        dist.broadcast_object_list(objects, root)
        assert objects == [f"from {root}", {1, 2}]
        got = [None]
        dist.scatter_object_list(got, [each * 10 for each in range(size)] if rank == root else None, root)
        assert got == [rank * 10]
    refused(ValueError, lambda: dist.all_gather_object([], 1), "object_list")
    refused(ValueError, lambda: dist.gather_object(1, [], rank), "object_gather_list")
    refused(TypeError, lambda: dist.broadcast_object_list("ab", 0), "object_list")
    refused(ValueError, lambda: dist.scatter_object_list([], None, 0), "scatter_object_output_list")
    dist.barrier()


class OnlyHere:
    """An object that only the processes for which it is meant may unpickle."""

    def __init__(self, ranks):
        self.ranks = ranks

    def __setstate__(self, state):
        """Refuse to be in another process."""
        assert dist.get_rank() in state["ranks"], "unpickled where nobody asked for it"
        self.__dict__ = state


def objects_that_are_not_for_all(rank, size):
    """A process unpickles what is for it, and nothing else."""
    dist.gather_object(OnlyHere([1]), [None] * size if rank == 1 else None, 1)
    dist.broadcast_object_list([OnlyHere(range(size))], 0)
    group = dist.new_group([1, 0])
    if group is not NON_MEMBER:
        dist.gather_object(OnlyHere([0]), [None] * 2 if rank == 0 else None, group_dst=0, group=group)


class Pending:
    """A request to send, and the communicator that hands it out."""

    rank, size, done = 0, 2, False

    def Test(self):
        return self.done

    def Isend(self, data, rank):
        self.request = Pending()
        return self.request


def messages_under_way_keep_their_memory(rank, size):
    """MPI reads what is sent until the request is complete, and it is held as long, and no longer."""
    box = MpiMailbox(comm := Pending())
    requests = []
    for text in (b"one", b"two"):
        box.send(text, 1)
        requests.append(comm.request)
    assert [kept for _, kept in box._sent] == [b"one", b"two"]
    requests[0].done = True
    box.send(b"three", 1)
    assert [kept for _, kept in box._sent] == [b"two", b"three"]


def limits(rank, size):
    """A collective that not all call ends by its limit, in an error that says what, where, how long and who."""
    group = dist.new_group(timeout=timedelta(seconds=100))
    dist.set_timeout(0.2, group)
    assert group.timeout == 0.2
    if rank == 0:
        try:
            dist.all_reduce(lucid.ones(3), group=group)
        except TimeoutError as error:
            assert isinstance(error, DistributedTimeoutError)
            assert error.rank == 0
            assert error.call == "collective 1, all_reduce of shape (3,), float32, SUM"
            for words in ("rank 0 of", error.call, "0.2 s", "Not arrived: rank 1", "Last finished here: nothing"):
                assert words in str(error), (words, error)
        else:
            raise AssertionError("ended alone")
        refused(DistributedError, lambda: dist.barrier(group), "of no use any more", "0.2 s")
    dist.barrier()  # other groups are not concerned
    dist.set_timeout(LIMIT + 1)
    assert world.timeout == LIMIT + 1  # after which a script that has ended says for whom it waits
    assert dist.new_group().timeout == LIMIT + 1
    dist.set_timeout(LIMIT)
    work = dist.barrier(dist.new_group(), async_op=True)
    assert work.wait(timedelta(seconds=LIMIT))
    for wrong in (0, -1, float("nan"), timedelta(0)):
        refused(ValueError, lambda wrong=wrong: dist.set_timeout(wrong), "more than 0 seconds")
    refused(TypeError, lambda: dist.set_timeout("10"), "timedelta")


def who_has_begun_it_has_arrived(rank, size):
    """A process that waits for an earlier collective, and has begun the later one, is not named as missing."""
    group = dist.new_group(timeout=1)
    if rank == 0:
        works = [dist.all_reduce(lucid.ones(1), group=group, async_op=True) for _ in range(2)]
        refused(TimeoutError, works[1].wait, "Not arrived: rank 1")
    if rank == size - 1 and size > 2:
        works = [dist.all_reduce(lucid.ones(1), group=group, async_op=True) for _ in range(2)]
        refused(TimeoutError, works[0].wait, "Not arrived: rank 1, which")
    dist.barrier()


def a_barrier_that_names(rank, size):
    """The first process of the group names the first rank that has not come, and all of them if it is asked."""
    dist.monitored_barrier()
    dist.monitored_barrier(timeout=LIMIT)
    for every in (True, False):
        group = dist.new_group()
        named = f"ranks {', '.join(map(str, range(1, size)))} of" if every and size > 2 else "rank 1 of"
        if rank == 0:
            refused(TimeoutError, lambda: dist.monitored_barrier(group, 0.2, wait_all_ranks=every), f"barrier: {named}")
            refused(DistributedError, lambda: dist.barrier(group), "monitored_barrier")
    dist.barrier()


def others_that_call_something_else(rank, size):
    """Processes that call different collectives of one group all get an error, at once."""
    for call in (
        lambda group: dist.all_reduce(lucid.ones(2 + rank), group=group),
        lambda group: dist.all_reduce(lucid.ones(2).to([lucid.float32, lucid.int32][rank % 2]), group=group),
        lambda group: dist.all_reduce(lucid.ones(2), list(dist.ReduceOp)[rank], group=group),
        lambda group: [dist.barrier, lambda group: dist.all_reduce(lucid.ones(2), group=group)][rank % 2](group),
        lambda group: dist.broadcast(lucid.ones(2), rank, group=group),
    ):
        group = dist.new_group()
        refused(DistributedError, lambda call=call, group=group: call(group), "another")
        refused(DistributedError, lambda group=group: dist.barrier(group), "of no use any more")
    group = dist.new_group()
    works = [dist.all_reduce(lucid.ones(2 + rank), group=group, async_op=True)]
    works += [dist.barrier(group, async_op=True)]
    refused(DistributedError, works[0].wait, "another")
    with contextlib.suppress(DistributedError):  # it may have ended before that was noticed
        works[1].wait()
    dist.barrier()


def compared_before_they_are_called(rank, size):
    """Under LUCID_DISTRIBUTED_DEBUG=1 all processes say what each calls, and in which line, before any waits."""
    os.environ["LUCID_DISTRIBUTED_DEBUG"] = "1"
    try:
        dist.all_reduce(x := lucid.full((2,), float(rank)))
        assert x[0].item() == size * (size - 1) / 2
        line = f"{__file__}:{sys._getframe().f_lineno + 1}"
        text = told(lambda group: dist.all_reduce(lucid.ones(rank + 1), group=group))
        for each in range(size):
            assert f"rank {each}: collective 1, all_reduce of shape ({each + 1},), float32, SUM, at {line}" in text
        call = told(
            lambda group: [dist.barrier, dist.all_gather_object][rank % 2](*((), ([None] * size, 1))[rank % 2], group)
        )
        assert "rank 0: collective 1, barrier" in call
        assert "rank 1: collective 1, all_gather_object of sizes" in call
    finally:
        del os.environ["LUCID_DISTRIBUTED_DEBUG"]
    dist.barrier()


def told(call):
    """Return the message of a call that has to raise, with a group of its own."""
    group = dist.new_group()
    try:
        call(group)
    except DistributedError as error:
        refused(DistributedError, lambda: dist.barrier(group), "of no use any more", str(error))
        return str(error)
    raise AssertionError("not refused")


def left_and_together_again(rank, size):
    """After `destroy_process_group` there is none; `init_process_group` makes one that computes."""
    old = dist.new_group()
    for backend in ("gloo", None, "cpu:mpi,cuda:nccl"):
        dist.destroy_process_group()
        assert not dist.is_initialized()
        refused(ValueError, lambda: dist.all_reduce(lucid.ones(1)), "init_process_group")
        refused(ValueError, dist.get_rank, "Default process group has not been initialized")
        refused(ValueError, dist.destroy_process_group)
        refused(DistributedError, lambda: dist.barrier(old), "destroy_process_group")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dist.init_process_group(backend, timeout=LIMIT, rank=rank, world_size=size)
        dist.all_reduce(x := lucid.full((1,), float(rank)))
        assert x.item() == size * (size - 1) / 2
        tree(x).wait()


CHECKS = (
    what_is_answered,
    groups_of_some,
    groups_that_come_and_go,
    what_not_all_have_left_is_kept,
    sent_and_received,
    a_message_of_another_size,
    objects_of_all,
    objects_that_are_not_for_all,
    roots_by_both_numbers,
    messages_under_way_keep_their_memory,
    limits,
    who_has_begun_it_has_arrived,
    a_barrier_that_names,
    others_that_call_something_else,
    compared_before_they_are_called,
    left_and_together_again,
)

if __name__ == "__main__":
    np.seterr(over="ignore")
    dist.init_process_group("mpi", timeout=LIMIT)
    go_through(CHECKS, dist.get_rank(), dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
