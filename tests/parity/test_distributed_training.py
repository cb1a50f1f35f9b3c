"""Optimizers, hooks and samplers of several processes beside PyTorch's, in a group of one."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
import torch
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks as torch_hooks
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as torch_power

import lucid
from lucid.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from lucid.distributed.optim import ZeroRedundancyOptimizer
from tests.parity.pieces import parameters

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of its own, from what stands beside it
    from torch.distributed.optim import ZeroRedundancyOptimizer as TheirOptimizer


@pytest.fixture
def group(tmp_path):
    """Make a group of this process alone in PyTorch."""
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_signatures():
    """Parameters have PyTorch's names, order and defaults; our own are named only."""
    pairs = [
        (ZeroRedundancyOptimizer, TheirOptimizer),
        *(
            (getattr(ZeroRedundancyOptimizer, name), getattr(TheirOptimizer, name))
            for name in ("step", "consolidate_state_dict")
        ),
        *((getattr(default_hooks, name), getattr(torch_hooks, name)) for name in default_hooks.__all__),
        *((getattr(powerSGD_hook, name), getattr(torch_power, name)) for name in powerSGD_hook.__all__),
        (lucid.utils.data.DistributedSampler, torch.utils.data.DistributedSampler),
        (lucid.nn.SyncBatchNorm.convert_sync_batchnorm, torch.nn.SyncBatchNorm.convert_sync_batchnorm),
    ]
    for ours, theirs in pairs:
        here, there = parameters(ours), parameters(theirs)
        own = [entry for entry in here if entry not in there]
        assert [entry for entry in here if entry in there] == there, ours
        assert all(kind is inspect.Parameter.KEYWORD_ONLY for _, kind, _ in own), (ours, own)


@pytest.mark.usefixtures("group")
def test_state_dicts_of_a_divided_optimizer_go_both_ways(rng):
    """What one library has saved the other loads, and goes on with the same numbers."""
    start, grads = rng.standard_normal((2, 3)), rng.standard_normal((4, 2, 3))

    def stepped(lib, kind, steps, state=None, start=start):
        param = lib.tensor(start, requires_grad=True)
        optimizer = kind([param], lib.optim.Adam, lr=0.1)
        if state is not None:
            entries = {
                number: {name: lib.tensor(np.array(value.tolist())) for name, value in each.items()}
                for number, each in state["state"].items()
            }
            optimizer.load_state_dict({**state, "state": entries})
        for step in steps:
            param.grad = lib.tensor(grads[step])
            optimizer.step()
        optimizer.consolidate_state_dict()
        return np.array(param.tolist()), optimizer.state_dict()

    kinds = (lucid, ZeroRedundancyOptimizer), (torch, TheirOptimizer)
    for first, second in (kinds, kinds[::-1]):
        middle, state = stepped(*first, range(2))
        end, _ = stepped(*second, range(2, 4), state, middle)
        np.testing.assert_allclose(end, stepped(*second, range(4))[0], rtol=1e-6)


@pytest.mark.usefixtures("group")
def test_power_sgd_goes_on_where_pytorchs_stands(rng):
    """With the thin matrices and what was left out of PyTorch's state the next gradient is PyTorch's."""
    grads = rng.standard_normal((5, 12, 10)).astype(np.float32)

    def model_of(lib):
        module = lib.nn.Module()
        module.weight = lib.nn.Parameter(lib.zeros(12, 10))
        module.forward = lambda grad: (module.weight * grad).sum()
        return lib.nn.parallel.DistributedDataParallel(module)

    theirs, ours = model_of(torch), model_of(lucid)
    state = torch_power.PowerSGDState(None, 2, start_powerSGD_iter=2, min_compression_rate=1)
    theirs.register_comm_hook(state, torch_power.powerSGD_hook)
    own = powerSGD_hook.PowerSGDState(None, 2, start_powerSGD_iter=2, min_compression_rate=1)
    ours.register_comm_hook(own, powerSGD_hook.powerSGD_hook)
    for step, grad in enumerate(grads):
        theirs.zero_grad()
        ours.zero_grad()
        theirs(torch.tensor(grad)).backward()
        ours(lucid.tensor(grad)).backward()
        if step != 2:  # in which each draws numbers of its own
            expected = theirs.module.weight.grad.numpy()
            np.testing.assert_allclose(ours.module.weight.grad.cpu().numpy(), expected, rtol=1e-3, atol=1e-4)
        if step == 2:
            own.q_memory_dict[0] = [lucid.tensor(state.q_memory_dict[0].view(10, 2).numpy())]
            own.error_dict[0] = lucid.tensor(state.error_dict[0].numpy())
    assert own.compression_stats() == state.compression_stats()
