"""Schedules beside PyTorch's: the same numbers over 200 epochs, and state dicts that go both ways."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import torch

import lucid
from lucid.optim import lr_scheduler
from tests.parity.pieces import parameters
from tests.schedulers import NAMES, OURS, SCHEDULES, Modules, made, numbers, optimizer_of, run

THEIRS = Modules(torch)
STEPS = 200
each_row = pytest.mark.parametrize("row", SCHEDULES)
# those that take an epoch, and are made of no others
each_single_row = pytest.mark.parametrize(
    "row", [row for row in SCHEDULES if not row.startswith(("sequence", "chain"))]
)
# PyTorch warns of a chain that is first in a sequence, which steps as it is made, and so does lucid
pytestmark = pytest.mark.filterwarnings("ignore:Detected call:UserWarning")


def close(ours, theirs):
    """Compare to 12 digits."""
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)


def test_every_name_is_there():
    """What PyTorch's module exports, lucid's does."""
    assert sorted(lr_scheduler.__all__) == sorted(torch.optim.lr_scheduler.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_signature(name):
    """Constructors and steps take PyTorch's parameters, with its defaults."""
    for method in ("__init__", "step"):
        ours, theirs = (parameters(getattr(getattr(m, name), method)) for m in (OURS, THEIRS))
        assert ours == theirs


@each_row
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_two_hundred_epochs(row, kind):
    """Learning rates and momenta of both groups are PyTorch's, and so is `get_last_lr`."""
    (ours, schedule), (theirs, other) = (made(row, library, kind=kind) for library in (lucid, torch))
    close(run(ours, schedule, STEPS), run(theirs, other, STEPS))
    close(schedule.get_last_lr(), other.get_last_lr())


@each_row
def test_learning_rates_in_tensors(row):
    """One in a tensor of float32 is PyTorch's within its precision, and the tensor stays the same one."""
    optimizers, schedules = [], []
    for library in (lucid, torch):
        rates = [library.tensor(0.1), library.tensor(0.03)]
        optimizer, schedule = made(row, library, kind="Adam", rates=rates, capturable=True)
        optimizers.append((optimizer, [group["lr"] for group in optimizer.param_groups]))
        schedules.append(schedule)
    found = []
    for (optimizer, rates), schedule in zip(optimizers, schedules, strict=True):
        values = [numbers(optimizer)]
        for _ in range(60):
            optimizer._opt_called = True
            schedule.step()
            values.append(numbers(optimizer))
        found.append(values)
        assert all(group["lr"] is rate for group, rate in zip(optimizer.param_groups, rates, strict=True))
    np.testing.assert_allclose(*found, rtol=2e-6, atol=1e-9)


@each_row
@pytest.mark.parametrize("cut", [0, 1, 5, 8, 30, 111])
def test_state_dicts_go_both_ways(row, cut):
    """A state that one library wrote is continued by the other as by itself, with the same keys."""
    pairs = {library: made(row, library) for library in (lucid, torch)}
    for pair in pairs.values():
        run(*pair, cut)
    states = {
        library: copy.deepcopy((optimizer.state_dict()["param_groups"], schedule.state_dict()))
        for library, (optimizer, schedule) in pairs.items()
    }
    ahead = {library: run(*pair, 60) for library, pair in pairs.items()}
    assert keys(states[lucid][1]) == keys(states[torch][1])
    for source, target in ((lucid, torch), (torch, lucid)):
        optimizer, schedule = made(row, target)
        groups = [
            {**theirs, "params": ours["params"]}
            for ours, theirs in zip(optimizer.state_dict()["param_groups"], states[source][0], strict=True)
        ]
        optimizer.load_state_dict({"state": {}, "param_groups": groups})
        schedule.load_state_dict(copy.deepcopy(states[source][1]))
        optimizer.step()
        close(run(optimizer, schedule, 60), ahead[source])


def keys(state):
    """Return the keys of a state dict, and of those in it."""
    inner = [keys(each) for each in state.get("_schedulers", ())]
    return sorted(state), inner


@pytest.mark.parametrize("last_epoch", [0, 6, 40])
@each_single_row
def test_going_on_after_an_epoch(row, last_epoch):
    """A schedule made with `last_epoch`, where groups have their first learning rates, is PyTorch's."""
    found = []
    for library in (lucid, torch):
        optimizer, schedule = made(row, library)
        run(optimizer, schedule, last_epoch)
        kind, m = type(schedule), Later(library, last_epoch)
        assert isinstance(SCHEDULES[row](m, optimizer), kind)
        found.append(run(optimizer, m.made, 50))
    close(*found)


class Later:
    """Schedules of a library, made to go on after an epoch."""

    def __init__(self, library, last_epoch):
        self.modules, self.last_epoch = Modules(library), last_epoch

    def __getattr__(self, name):
        def make(*args, **kwargs):
            self.made = getattr(self.modules, name)(*args, **kwargs, last_epoch=self.last_epoch)
            return self.made

        return make


@each_single_row
def test_steps_to_an_epoch(row):
    """`step(epoch)` goes where PyTorch's goes, by the closed form where it has one, and warns."""
    found = []
    for library in (lucid, torch):
        optimizer, schedule = made(row, library)
        values = []
        optimizer.step()
        for epoch in (3, 17, 5, 0, 60, 8):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                schedule.step(epoch)
            values.append([numbers(optimizer), schedule.last_epoch, len(caught), schedule.get_last_lr()])
            schedule.step()
            values.append([numbers(optimizer), schedule.last_epoch, 0, schedule.get_last_lr()])
        found.append(values)
    for ours, theirs in zip(*found, strict=True):
        close(ours[0], theirs[0])
        assert ours[1:3] == theirs[1:3]
        close(ours[3], theirs[3])


def test_restarts_at_fractions_of_epochs():
    """`CosineAnnealingWarmRestarts.step` takes a fraction, as PyTorch's."""
    found = []
    for library in (lucid, torch):
        for settings in ({"T_0": 3}, {"T_0": 3, "T_mult": 2}, {"T_0": 5, "T_mult": 3, "eta_min": 0.01}):
            optimizer = optimizer_of(library)
            schedule = Modules(library).CosineAnnealingWarmRestarts(optimizer, **settings)
            for step in np.arange(0, 60, 0.25):
                schedule.step(float(step))
                found.append([library is torch, numbers(optimizer), schedule.T_cur, schedule.T_i, schedule.last_epoch])
    ours, theirs = ([each[1:] for each in found if each[0] is theirs] for theirs in (False, True))
    for our, their in zip(ours, theirs, strict=True):
        close(our[0], their[0])
        close(our[1:], their[1:])


PLATEAUS = [
    {},
    {"mode": "max", "patience": 0},
    {"patience": 2, "cooldown": 3, "factor": 0.5},
    {"patience": 1, "threshold": 0.3, "threshold_mode": "abs"},
    {"mode": "max", "patience": 1, "threshold": 0.2, "threshold_mode": "abs", "min_lr": 0.01},
    {"mode": "max", "patience": 1, "threshold": 0.05, "min_lr": [0.01, 0.02]},
    {"patience": 0, "factor": 0.9, "eps": 1e-3},
    {"patience": 3, "factor": 0.0},
]


@pytest.mark.parametrize("settings", PLATEAUS, ids=str)
@pytest.mark.parametrize("kind", ["numbers", "tensors"])
def test_plateaus(rng, settings, kind):
    """On random metrics, NaN and infinities among them, learning rates and state are PyTorch's, also across a load."""
    metrics = rng.standard_normal(STEPS) * np.exp(-np.arange(STEPS) / 40)
    metrics[rng.integers(0, STEPS, 6)] = [np.nan, np.inf, -np.inf, np.nan, 0.0, -0.0]
    schedules = []
    for library in (lucid, torch):
        optimizer = optimizer_of(library)
        schedules.append((library, optimizer, Modules(library).ReduceLROnPlateau(optimizer, **settings)))
    for number, metric in enumerate(metrics):
        for library, _, schedule in schedules:
            schedule.step(library.tensor(metric, dtype=library.float64) if kind == "tensors" else metric)
        close(*(numbers(optimizer) for _, optimizer, _ in schedules))
        ours, theirs = (schedule.state_dict() for *_, schedule in schedules)
        assert ours.keys() == theirs.keys()
        assert repr(sorted(ours.items())) == repr(sorted(theirs.items()))
        if number % 50 == 49:
            for (_, _, schedule), state in zip(schedules, (theirs, ours), strict=True):
                schedule.load_state_dict(copy.deepcopy(state))


@each_row
def test_groups_added_later(row):
    """What PyTorch's schedule makes of a group that is added, lucid's does; where that raises, so does this."""
    found = []
    for library in (lucid, torch):
        optimizer, schedule = made(row, library)
        run(optimizer, schedule, 3)
        optimizer.add_param_group({"params": [library.ones(1, requires_grad=True)], "lr": 0.7})
        try:
            found.append(run(optimizer, schedule, 20))
        except (ValueError, KeyError, RuntimeError) as error:
            found.append(type(error))
    ours, theirs = found
    if isinstance(theirs, type):
        assert isinstance(ours, type)
        assert issubclass(ours, theirs)
    else:
        close(ours, theirs)
