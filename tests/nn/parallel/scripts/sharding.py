"""Training by shards: what one process of several finds, and the digest of its weights."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.errors import SettingError, ShapeError
from lucid.nn.parallel import DistributedDataParallel
from tests.collectives.jobs import begin, go_through, host, numbers

SHARDS = 4
RANK, SIZE = 0, 1


def part(array):
    """Return the rows of a batch that are this process's."""
    return lucid.tensor(np.ascontiguousarray(array[RANK::SIZE]))


class Counting(nn.Module):
    """Noisy, with statistics, a parameter that only some shards use, and one that none does."""

    def __init__(self, dtype):
        super().__init__()
        lucid.manual_seed(3)
        self.first = nn.Linear(8, 16, dtype=dtype)
        self.norm = nn.BatchNorm1d(16, dtype=dtype)
        self.noise = nn.Dropout(0.3)
        self.last = nn.Linear(16, 3, dtype=dtype)
        self.rare = nn.Parameter(lucid.ones(3, dtype=dtype))
        self.never = nn.Parameter(lucid.ones(3, dtype=dtype))

    def forward(self, x):
        y = self.last(self.noise(self.norm(self.first(x)).relu()))
        return y * self.rare if host(x)[0, 0] > 0 else y


def trained(dtype, optimizer, mib, steps=4):
    """Return the digest of parameters and buffers after some steps."""
    rng = np.random.default_rng(5)
    wrapped = DistributedDataParallel(Counting(dtype), shards=SHARDS, bucket_cap_mb=mib)
    steps_of = optimizer(wrapped.parameters())
    lucid.manual_seed(11)
    for step in range(steps):
        x, y = rng.standard_normal((16, 8)).astype(np.float32), rng.integers(0, 3, 16)
        steps_of.zero_grad(set_to_none=bool(step % 2))
        for a, b in wrapped.split(part(x).to(dtype), part(y)):
            nn.functional.cross_entropy(wrapped(a), b).backward()
        steps_of.step()
    assert wrapped.module.never.grad is None
    assert wrapped.module.norm.num_batches_tracked.item() == steps
    values = [host(value).tobytes() for value in wrapped.state_dict().values()]
    return hashlib.sha256(b"".join(values)).hexdigest()


def digests():
    """Return the digests of runs in several dtypes, optimizers and sizes of buckets."""
    runs = {
        "adam": (lucid.float32, lambda p: lucid.optim.AdamW(p, lr=1e-2), 25),
        "adam, many buckets": (lucid.float32, lambda p: lucid.optim.AdamW(p, lr=1e-2), 1e-5),
        "momentum": (lucid.float64, lambda p: lucid.optim.SGD(p, lr=0.1, momentum=0.9), 25),
        "bfloat16": (lucid.bfloat16, lambda p: lucid.optim.SGD(p, lr=0.1), 25),
    }
    found = {name: trained(*run) for name, run in runs.items()}
    assert found.pop("adam, many buckets") == found["adam"]
    return found


def gradients_are_the_mean_over_shards_added_to_what_was():
    """Of whole numbers the mean is exact, so that it is that of the whole batch, whatever its order."""
    x = np.concatenate([np.asarray(numbers(rank, lucid.float32, (4, 6))).astype(np.float32) for rank in range(4)])
    wrapped = DistributedDataParallel(nn.Linear(6, 2), shards=SHARDS)
    wrapped.module.weight.grad = lucid.ones(2, 6)
    seen = []
    wrapped.register_reduced_grad_hook(lambda p: seen.append(host(p.grad).copy()))
    for (rows,) in wrapped.split(part(x)):
        assert wrapped.module.bias.grad is None
        wrapped(rows).sum().backward()
        wrapped(rows).sum().backward()  # several passes in a shard's turn
    expected = 2 * x.sum(0) / SHARDS
    assert (host(wrapped.module.weight.grad) == expected + 1).all()
    assert any(each.shape == (2, 6) and (each == expected + 1).all() for each in seen)
    for (rows,) in wrapped.split(part(x)):  # several batches add up
        wrapped(rows).sum().backward()
    assert (host(wrapped.module.weight.grad) == 1.5 * expected + 1).all()
    with wrapped.no_sync(), pytest.raises(SettingError, match="is in no_sync"):
        next(iter(wrapped.split(part(x))))
    assert (host(wrapped.module.weight.grad) == 1.5 * expected + 1).all()
    wrapped.zero_grad()
    wrapped(part(x)).sum().backward()  # beside the loop there are no shards: the mean is over processes
    assert (host(wrapped.module.weight.grad) == x.sum(0) / SIZE).all()


def each_shard_has_random_numbers_of_its_own():
    """They are those of the shard in whichever process, others in the next batch, and none of what comes after."""
    wrapped = DistributedDataParallel(nn.Linear(1, 1), shards=SHARDS)
    lucid.manual_seed(7)
    rounds = []
    for _ in range(2):
        own = {}
        for (row,) in wrapped.split(part(np.arange(SHARDS, dtype=np.float32)[:, None])):
            own[int(row.item())] = lucid.rand(2).tolist()
            wrapped(row).sum().backward()
        everyone = [None] * SIZE
        dist.all_gather_object(everyone, own)
        rounds.append({shard: values for each in everyone for shard, values in each.items()})
    assert [sorted(each) for each in rounds] == [[0, 1, 2, 3]] * 2
    assert len({tuple(values) for each in rounds for values in each.values()}) == 8
    rounds.append(lucid.rand(2).tolist())
    return rounds


def wrong_batches_and_buffers_are_refused():
    wrapped = DistributedDataParallel(nn.Linear(6, 2), shards=SHARDS)
    for batch, words in (
        ((lucid.ones(SHARDS // SIZE * 2 + 1 if SIZE < SHARDS else 1, 6), lucid.ones(3)), "which this process's"),
        ((), "got none"),
        ((lucid.ones(()),), "first dimension"),
        ((3,), "first dimension"),
    ):
        with pytest.raises(ShapeError, match=words):
            next(iter(wrapped.split(*batch)))

    class Unlike(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(lucid.ones(1))
            self.register_buffer("seen", lucid.zeros(1, dtype=lucid.int64))

        def forward(self, x):
            self.seen += int(host(x)[0, 0])
            return self.weight * x

    wrapped = DistributedDataParallel(Unlike(), shards=SHARDS)
    with pytest.raises(SettingError, match="buffer seen holds integers that differ"):
        for (row,) in wrapped.split(part(np.arange(SHARDS, dtype=np.float32)[:, None])):
            wrapped(row).sum().backward()
    dist.barrier()


class Averaging(nn.Module):
    """Keeps a running mean of its inputs: in place, or by another tensor each time; has a layer that may be unused."""

    def __init__(self, inplace):
        super().__init__()
        self.inplace = inplace
        self.first, self.second = nn.Linear(6, 2), nn.Linear(6, 2)
        self.inner = nn.Module()
        self.inner.register_buffer("mean", lucid.ones(1))
        self.uses_second = True

    def forward(self, x):
        with lucid.no_grad():
            if self.inplace:
                self.inner.mean.mul_(0.5).add_(x.mean())
            else:
                self.inner.mean = self.inner.mean * 0.5 + x.mean()
        return self.first(x) + self.second(x) if self.uses_second else self.first(x)


def what_a_batch_does_not_use_keeps_its_gradient():
    """No process has one for it in this batch, so that nothing is added to that of before."""
    x = part(np.ones((8, 6), np.float32))
    for view in (False, True):
        wrapped = DistributedDataParallel(Averaging(True), shards=SHARDS, gradient_as_bucket_view=view)
        for batch in range(3):
            wrapped.module.uses_second = not batch
            for (rows,) in wrapped.split(x):
                wrapped(rows).mean(0).sum().backward()
            assert (host(wrapped.module.first.weight.grad) == batch + 1).all(), (view, batch)
            assert (host(wrapped.module.second.weight.grad) == 1).all(), (view, batch)


def buffers_that_forwards_replace_are_joined():
    """The buffer becomes the mean over shards of what each has made of that of before, also by another tensor."""
    x = np.arange(48, dtype=np.float32).reshape(8, 6)
    expected = np.mean([0.5 + x[shard::SHARDS].mean() for shard in range(SHARDS)])
    for inplace in (True, False):
        wrapped = DistributedDataParallel(Averaging(inplace), shards=SHARDS)
        for (rows,) in wrapped.split(part(x)):
            assert wrapped.module.inner.mean.item() == 1
            wrapped(rows).sum().backward()
        assert wrapped.module.inner.mean.item() == expected, inplace
    with pytest.raises(SettingError, match="in the place of the buffer inner"):
        for (rows,) in wrapped.split(part(x)):
            wrapped(rows)
            wrapped.module.inner.mean = lucid.ones(2)
    assert wrapped.module.inner.mean.item() == expected
    dist.barrier()


def buffers_beside_the_loop_are_those_of_the_first_process():
    """A forward in training begins with them, with shards too, and a loop after such forwards does."""
    wrapped = DistributedDataParallel(Averaging(True), shards=SHARDS)
    for _ in range(2):
        wrapped(lucid.full((2, 6), float(RANK))).sum().backward()
    assert wrapped.module.inner.mean.item() == 0.25 + RANK  # of the second forward alone
    for (rows,) in wrapped.split(part(np.zeros((SHARDS, 6), np.float32))):
        assert wrapped.module.inner.mean.item() == 0.25
        wrapped(rows).sum().backward()
    assert wrapped.module.inner.mean.item() == 0.125


def leaving_early_puts_back_what_was():
    """An exception or a break leaves gradients, buffers, generators and synchronisation as before the batch."""
    wrapped = DistributedDataParallel(Averaging(False), shards=SHARDS)
    first, second = wrapped.module.first, wrapped.module.second
    for drops in (True, False):
        first.weight.grad, second.bias.grad = lucid.ones(2, 6), lucid.ones(2)

        def fails(drops=drops):
            for (rows,) in wrapped.split(lucid.ones(4, 6)):
                wrapped(rows).sum().backward()
                if drops:
                    first.weight.grad = None
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fails()
        for turns in (1, 2):
            loop = wrapped.split(lucid.ones(8, 6))
            for turn, (rows,) in enumerate(loop, 1):
                wrapped(rows).sum().backward()
                if turn == min(turns, SHARDS // SIZE):
                    break
            loop.close()
        assert (host(first.weight.grad) == 1).all()
        assert (host(second.bias.grad) == 1).all()
        assert first.bias.grad is second.weight.grad is None
        assert wrapped.module.inner.mean.item() == 1
        assert wrapped.reducer.syncing


CHECKS = (
    gradients_are_the_mean_over_shards_added_to_what_was,
    each_shard_has_random_numbers_of_its_own,
    wrong_batches_and_buffers_are_refused,
    what_a_batch_does_not_use_keeps_its_gradient,
    buffers_that_forwards_replace_are_joined,
    buffers_beside_the_loop_are_those_of_the_first_process,
    leaving_early_puts_back_what_was,
)

if __name__ == "__main__":
    begin(60, cuda=None)
    RANK, SIZE = dist.get_rank(), dist.get_world_size()
    folder = Path(sys.argv[1])
    said = [digests(), each_shard_has_random_numbers_of_its_own()[0]]
    (folder / f"digests-{RANK}.json").write_text(json.dumps(said))
    go_through(CHECKS, RANK)
