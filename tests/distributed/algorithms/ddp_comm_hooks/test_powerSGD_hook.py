"""Settings and state of PowerSGD; what it computes among processes is tested with the other hooks."""

from __future__ import annotations

import pickle

import pytest

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from lucid.errors import SettingError
from lucid.nn.parallel import DistributedDataParallel
from tests.device import DEVICE


def test_settings():
    """What is out of range is refused, with PyTorch's words."""
    with pytest.raises(SettingError, match=r"Expect `start_powerSGD_iter` > 1"):
        PowerSGDState(None, start_powerSGD_iter=1)
    with pytest.raises(SettingError, match="matrix_approximation_rank"):
        PowerSGDState(None, 0)
    PowerSGDState(None, start_powerSGD_iter=0, use_error_feedback=False, warm_start=False)


def test_a_saved_state_goes_on(rng):
    """A pickled state has all but the group, and gives the same gradients."""
    x = [lucid.tensor(rng.standard_normal((2, 8)), dtype=lucid.float32, device=DEVICE) for _ in range(5)]
    lucid.manual_seed(0)
    layer = nn.Linear(8, 8).to(DEVICE)
    state = PowerSGDState(None, start_powerSGD_iter=2, random_seed=3)

    def grads_of(state, steps):
        model = DistributedDataParallel(layer)
        model.register_comm_hook(state, powerSGD_hook)
        for step in steps:
            model.zero_grad()
            model(x[step]).exp().sum().backward()
        return layer.weight.grad.tolist()

    grads_of(state, range(4))
    saved = pickle.dumps(state)
    expected = grads_of(state, [4])
    assert grads_of(pickle.loads(saved), [4]) == expected
    assert state.iter == 5
    with pytest.warns(match="process group is not saved"):
        assert pickle.loads(pickle.dumps(PowerSGDState(dist.new_group()))).process_group is None
