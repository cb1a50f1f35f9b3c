"""Modules in memory that several processes share."""

from __future__ import annotations

import copy
import multiprocessing
import os
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.base.sharing import block_of
from lucid.errors import InplaceError, SettingError


def add_one(module, ready, done):
    """Change the module in another process, and send its weight back."""
    with lucid.no_grad():
        module[0].weight.add_(1)
        module[1].running_mean.fill_(7)
    ready.put(module[0].weight)
    done.get()


@pytest.mark.cpu("memory of CUDA devices is not shared between processes")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("method", sorted({"fork", "spawn"}.intersection(multiprocessing.get_all_start_methods())))
def test_shared_memory(method, rng):
    """What one process changes the other sees, in both directions, forked or sent; the parameters stay the same."""
    context = multiprocessing.get_context(method)
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).to(lucid.bfloat16 if method == "fork" else lucid.float64)
    weight, before = module[0].weight, module[0].weight.detach().clone()
    assert module.share_memory() is module
    assert module[0].weight is weight
    assert lucid.equal(weight.detach(), before)
    memory = weight.array
    module.share_memory()
    assert weight.array is memory
    ready, done = context.Queue(), context.Queue()
    process = context.Process(target=add_one, args=(module, ready, done))
    process.start()
    theirs = ready.get(timeout=60)
    assert lucid.equal(weight.detach(), before + 1)
    assert module[1].running_mean.tolist() == [7.0] * 3
    assert (type(theirs), theirs.requires_grad) == (nn.Parameter, True)
    with lucid.no_grad():
        theirs[1].fill_(5)
    assert weight[1].tolist() == [5.0, 5.0]
    done.put(None)
    process.join()
    assert process.exitcode == 0
    assert not np.shares_memory(copy.deepcopy(weight).detach().float().numpy(), memory)


@pytest.mark.cpu("memory of CUDA devices is not shared between processes")
@pytest.mark.parametrize(
    "take", [lambda w: w.t(), lambda w: w[1:, ::2], lambda w: w.t()[2:].unsqueeze(1), lambda w: w[:, 1]]
)
def test_views_are_sent_with_their_layout(take, rng):
    """A part of shared memory that is sent is that part for who receives it, and not the elements at its beginning."""
    module = nn.Linear(4, 3).share_memory()
    part = take(module.weight.detach())
    theirs = ForkingPickler.loads(ForkingPickler.dumps(part))
    assert theirs.tolist() == part.tolist()
    assert theirs.array.strides == part.array.strides
    theirs.fill_(7)
    assert part.unique().tolist() == [7.0]
    assert int((module.weight == 7).sum()) == part.numel()


@pytest.mark.cpu("memory of CUDA devices is not shared between processes")
def test_parameters_and_buffers_of_any_size_are_sent_as_what_they_are():
    """Also one without elements; a change of the others is seen here."""
    module = nn.Module()
    module.weight, module.mean, module.none = (
        nn.Parameter(lucid.ones(2)),
        nn.Buffer(lucid.ones(3)),
        nn.Buffer(lucid.ones(0)),
    )
    module.share_memory()
    theirs = [
        ForkingPickler.loads(ForkingPickler.dumps(tensor)) for tensor in (module.weight, module.mean, module.none)
    ]
    assert [type(tensor) for tensor in theirs] == [type(t) for t in (module.weight, module.mean, module.none)]
    with lucid.no_grad():
        for tensor in theirs:
            tensor.fill_(7)
    assert (module.weight.tolist(), module.mean.tolist(), module.none.tolist()) == ([7.0] * 2, [7.0] * 3, [])
    own = nn.Buffer(module.mean)
    ForkingPickler.loads(ForkingPickler.dumps(own)).fill_(8)
    assert module.mean.tolist() == [8.0] * 3
    alone = lucid.ones(2)
    ForkingPickler.loads(ForkingPickler.dumps(alone)).fill_(8)
    assert alone.tolist() == [1.0] * 2


@pytest.mark.cpu("memory of CUDA devices is not shared between processes")
def test_the_file_behind_shared_memory_is_closed_with_the_tensor():
    """Dropping the module gives its file descriptors back; a part that is still held keeps its own open."""
    module = nn.Linear(2, 3).share_memory()
    kept = module.weight.detach()[1:]
    weight, bias = (block_of(tensor.array).descriptor for tensor in (module.weight, module.bias))
    del module
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(bias)
    os.fstat(weight)
    del kept
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(weight)


@pytest.mark.cpu("memory of CUDA devices is not shared between processes")
def test_one_tensor(rng):
    """A tensor moves with its elements and its graph; a view, or what has views, would part from the others."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    before = x.tolist()
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
    assert x[1:].is_shared()
    assert x.tolist() == before
    (x * x).sum().backward()
    assert x.grad.tolist() == [2 * number for number in before]
    memory = x.array
    assert x.share_memory_().array is memory
    base = lucid.zeros(3)
    view = base[1:]
    for part in (base, view):
        with pytest.raises(InplaceError, match=r"share_memory_: .* is a view, has views"):
            part.share_memory_()
        assert not part.is_shared()


@pytest.mark.gpu
def test_memory_of_a_device_is_not_shared():
    """On a CUDA device the call says so and changes nothing."""
    module = nn.Linear(1, 1).cuda()
    with pytest.raises(RuntimeError, match="share_memory"):
        module.share_memory()


@pytest.mark.parametrize(
    "made", [lambda: nn.LazyLinear(3), lambda: nn.Sequential(nn.Linear(2, 2), nn.LazyBatchNorm1d())]
)
def test_what_has_no_elements_is_not_shared(made):
    """A lazy module is called first: what its first call makes would lie in memory of its own."""
    module = made()
    before = [p.data_ptr() for p in module[0].parameters()] if isinstance(module, nn.Sequential) else []
    with pytest.raises(SettingError, match=r"share_memory: .*weight has no elements yet"):
        module.share_memory()
    if before:
        assert [p.data_ptr() for p in module[0].parameters()] == before
