"""An optimizer whose state is divided among processes, and what it is in a process that is alone."""

from __future__ import annotations

import copy

import pytest

import lucid
from lucid import nn
from lucid.distributed.optim import ZeroRedundancyOptimizer
from lucid.errors import ArgumentError, SettingError, StateDictError
from lucid.optim import LBFGS, SGD, AdamW
from lucid.optim.lr_scheduler import StepLR
from tests.device import DEVICE
from tests.distributed.together import Twins


def same(one, other):
    """Tell whether two state dicts hold the same settings, and state of the same digits."""
    return one["param_groups"] == other["param_groups"] and repr(one["state"]) == repr(other["state"])


def trained(make, rng, steps=3):
    """Return parameters and optimizer after some steps with a schedule."""
    params = [lucid.tensor(rng.standard_normal(shape), device=DEVICE, requires_grad=True) for shape in ((3, 2), (4,))]
    optimizer = make(params)
    schedule = StepLR(optimizer, 2, 0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        sum((param * param).sum() for param in params).backward()
        optimizer.step()
        schedule.step()
    return params, optimizer


def test_alone_it_is_the_optimizer(seeded):
    """A process that is alone has all of the state, the bits of the optimizer itself, and its state dict, at once."""
    theirs, plain = trained(lambda params: AdamW(params, lr=0.1), seeded())
    ours, zero = trained(lambda params: ZeroRedundancyOptimizer(params, AdamW, lr=0.1), seeded())
    assert [param.tolist() for param in ours] == [param.tolist() for param in theirs]
    assert (zero.rank, zero.world_size, zero.defaults) == (0, 1, plain.defaults)
    zero.consolidate_state_dict()
    saved, expected = zero.state_dict(), plain.state_dict()
    assert same(saved, expected)
    again = ZeroRedundancyOptimizer(ours, AdamW, lr=5.0)
    again.load_state_dict(expected)
    assert same(again.state_dict(), expected)
    with pytest.raises(StateDictError, match="different number of parameter groups"):
        again.load_state_dict({"state": {}, "param_groups": []})
    assert same(again.state_dict(), expected)


@pytest.fixture
def seeded(rng):
    """Return a function that gives the same numbers each time."""
    return lambda state=rng.bit_generator.state: _at(rng, state)


def _at(rng, state):
    rng.bit_generator.state = state
    return rng


def test_what_it_does_not_do():
    """What cannot be divided, or is not there, is refused, with what to do instead."""
    params = [lucid.ones(2, requires_grad=True)]
    for call, error, match in (
        (lambda: ZeroRedundancyOptimizer(params, LBFGS), SettingError, "LBFGS changes all parameters together"),
        (lambda: ZeroRedundancyOptimizer(params, ZeroRedundancyOptimizer), SettingError, "changes all parameters"),
        (lambda: ZeroRedundancyOptimizer(params, SGD([lucid.ones(1)])), ArgumentError, "a subclass of Optimizer"),
        (lambda: ZeroRedundancyOptimizer(params, nn.Linear), ArgumentError, "a subclass of Optimizer"),
        (lambda: ZeroRedundancyOptimizer(params, SGD, 3, lr=0.1), ArgumentError, "process_group: expected a Proc"),
        (lambda: ZeroRedundancyOptimizer(params, SGD, overlap_with_ddp=True), NotImplementedError, "overlap_with_ddp"),
        (lambda: ZeroRedundancyOptimizer(params, SGD, lr=-1.0), SettingError, "learning rate"),
        (lambda: ZeroRedundancyOptimizer([], SGD, lr=0.1), SettingError, "empty parameter list"),
    ):
        with pytest.raises(error, match=match):
            call()
    zero = ZeroRedundancyOptimizer(params, SGD, lr=0.1)
    with pytest.raises(SettingError, match="not copied"):
        copy.deepcopy(zero)
    with pytest.raises(SettingError, match=r"expected a number of 0 \.\. 0"):
        zero.consolidate_state_dict(1)
    with pytest.raises(ArgumentError, match="closure"):
        zero.step(3)
    with pytest.raises(SettingError, match="more than one parameter group"):
        zero.add_param_group({"params": params})
    with pytest.raises(SettingError, match="momentum"):
        zero.add_param_group({"params": [lucid.ones(1, requires_grad=True)], "momentum": -1.0})
    assert len(zero.param_groups) == len(zero.optim.param_groups) == 1


def test_a_part_on_the_device(rng):
    """The second of two processes changes its own parameters, on each device, and takes the others as they come."""
    shapes = (3, 2), (4,), (5,)
    params = [lucid.tensor(rng.standard_normal(shape), device=DEVICE, requires_grad=True) for shape in shapes]
    before = [param.tolist() for param in params]
    zero = ZeroRedundancyOptimizer(params, SGD, Twins(), lr=0.1, momentum=0.9)
    own = zero.optim.param_groups[0]["params"]
    assert [tuple(param.shape) for param in own] == [(4,), (5,)]
    sum(param.sum() for param in params).backward()
    zero.step()
    for param, values in zip(params, before, strict=True):
        assert (param.tolist() != values) == any(param is each for each in own)
    assert len(zero.state) == 2
