"""Modules in memory that several processes share."""

from __future__ import annotations

import copy
import multiprocessing

import numpy as np
import pytest

import lucid
from lucid import nn


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


@pytest.mark.gpu
def test_memory_of_a_device_is_not_shared():
    """On a CUDA device the call says so and changes nothing."""
    module = nn.Linear(1, 1).cuda()
    with pytest.raises(RuntimeError, match="share_memory"):
        module.share_memory()
