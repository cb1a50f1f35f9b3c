"""Blocks in which processes have different numbers of batches: whose hooks are called, and how often."""

from __future__ import annotations

import pytest

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.distributed.algorithms import Join, Joinable, JoinHook
from lucid.errors import SettingError
from lucid.nn.parallel import DistributedDataParallel
from tests.nn.parallel.scripts.reducing import batch, loss_of, model


class Counter(Joinable):
    """Counts batches of all processes; who has run out adds 0."""

    def __init__(self, group=None):
        self.group, self.counted, self.ended = group, [], None

    def __call__(self, value=1.0):
        Join.notify_join_context(self)
        dist.all_reduce(x := lucid.tensor(value))
        self.counted.append(x.item())

    def join_hook(self, **kwargs):
        return Zero(self, **kwargs)

    @property
    def join_device(self):
        return lucid.device("cpu")

    @property
    def join_process_group(self):
        return self.group


class Zero(JoinHook):
    """Counts 0 in the place of a batch, and sends how often."""

    def __init__(self, counter, last=()):
        self.counter, self.last, self.calls = counter, last, 0

    def main_hook(self):
        self.calls += 1
        dist.all_reduce(x := lucid.tensor(0.0))
        self.counter.counted.append(x.item())

    def post_hook(self, is_last_joiner):
        self.last.append(is_last_joiner)
        self.counter.ended = self.calls


def what_is_joinable_is_called_by_hooks():
    """One's own classes too: the first tells that there is a batch, main hooks follow it, post hooks end the block."""
    rank, size = dist.get_rank(), dist.get_world_size()
    counter, second, last = Counter(), Counter(dist.group.WORLD), []
    block = Join([counter, second], last=last)
    for _ in range(2):
        with block:
            for _ in range(1 + rank):
                counter()
                second(2.0)
        assert counter.counted == [size - step for step in range(size)]
        assert second.counted == [2.0 * (size - step) for step in range(size)]
        assert last == [rank == size - 1] * 2
        assert counter.joining is None
        for each in (counter.counted, second.counted, last):
            each.clear()
    with Join([counter], enable=False, last=last):
        counter()
    assert (counter.counted, last) == ([size], [])
    with pytest.raises(ZeroDivisionError), Join([counter], last=last):
        raise ZeroDivisionError
    assert (counter.joining, last) == (None, [])
    with Join([counter], last=last), pytest.raises(SettingError, match="in no other such block"), Join([counter]):
        pass
    part = dist.new_group(range(size))
    for joinables, error, words in (
        ([], SettingError, "at least one"),
        ([model()], TypeError, "Joinables, such as a DistributedDataParallel"),
        ([counter, Counter(part)], SettingError, "of one process group"),
    ):
        with pytest.raises(error, match=words):
            Join(joinables)
    dist.destroy_process_group(part)


def an_evaluation_in_a_block_is_no_batch():
    """What records nothing sends nothing, in `join` too: one process may evaluate alone between its batches."""
    rank = dist.get_rank()
    wrapped = DistributedDataParallel(model())
    with wrapped.join():
        for step in range(1 + rank):
            if rank and step:
                with lucid.no_grad():
                    wrapped(batch(rank))
            wrapped.zero_grad()
            loss_of(wrapped, rank).backward()
    assert wrapped.logging_data()["passes"] == dist.get_world_size()


def after_a_block_all_processes_count():
    """Also where the forward was in `no_sync`, which begins nothing."""
    rank, size = dist.get_rank(), dist.get_world_size()
    wrapped = DistributedDataParallel(nn.Linear(6, 2), bucket_cap_mb=1e-5)
    with wrapped.join(divide_by_initial_world_size=False):
        for _ in range(1 + rank):
            wrapped(batch(rank)).sum().backward()
    wrapped.zero_grad()
    with wrapped.no_sync():
        loss = wrapped(batch(rank)).sum() * rank
    loss.backward()
    assert wrapped.module.bias.grad.tolist() == [4 * (size - 1) / 2] * 2


CHECKS = (what_is_joinable_is_called_by_hooks, an_evaluation_in_a_block_is_no_batch, after_a_block_all_processes_count)
