"""Averages of weights: what an average is after each update, and statistics of batches computed anew."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import LucidError, ShapeError
from lucid.optim import swa_utils as m
from tests.device import DEVICE, shares_memory
from tests.schedulers import optimizer_of


def model_of():
    """Return a model with parameters, and buffers of floats and integers."""
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to(lucid.float64)


def arrays(tensors):
    """Return copies of tensors in NumPy."""
    return [np.array(each.detach().cpu().numpy()) for each in tensors]


def changed(model, rng):
    """Give a model random parameters and buffers; returns them."""
    for each in [*model.parameters(), *model.buffers()]:
        each.detach().copy_(lucid.tensor(rng.integers(0, 99, tuple(each.shape)) + 0.5 * each.is_floating_point()))
    return arrays(model.parameters()), arrays(model.buffers())


def mean(states):
    """Return the mean of all."""
    return sum(states) / len(states)


def decaying(decay):
    """Return the average of which a new state has the share ``1 - decay``; the first has all of it."""

    def average(states):
        weights = [1.0] if len(states) == 1 else None
        weights = weights or [
            decay ** (len(states) - 1),
            *((1 - decay) * decay**n for n in range(len(states) - 2, -1, -1)),
        ]
        return sum(weight * state for weight, state in zip(weights, states, strict=True))

    return average


FUNCTIONS = {
    "default": (dict, mean),
    "the mean": (lambda: {"avg_fn": m.get_swa_avg_fn()}, mean),
    "the mean, of lists": (lambda: {"multi_avg_fn": m.get_swa_multi_avg_fn()}, mean),
    "decaying": (lambda: {"avg_fn": m.get_ema_avg_fn(0.75)}, decaying(0.75)),
    "decaying, of lists": (lambda: {"multi_avg_fn": m.get_ema_multi_avg_fn(0.25)}, decaying(0.25)),
    "decaying by default": (lambda: {"avg_fn": m.get_ema_avg_fn()}, decaying(0.999)),
}


@pytest.mark.parametrize("row", FUNCTIONS)
@pytest.mark.parametrize("use_buffers", [False, True])
def test_averages(rng, row, use_buffers):
    """Parameters are the average of all states so far; buffers are too if asked for, and otherwise the last ones."""
    make, expected = FUNCTIONS[row]
    model = model_of()
    average = m.AveragedModel(model, use_buffers=use_buffers, **make())
    states, before = [], arrays(average.parameters())
    np.testing.assert_array_equal(before[0], arrays(model.parameters())[0])
    for count in range(5):
        assert int(average.n_averaged) == count
        states.append(changed(model, rng))
        average.update_parameters(model)
        for place, value in enumerate(arrays(average.module.parameters())):
            np.testing.assert_allclose(value, expected([state[0][place] for state in states]), rtol=1e-12)
        for place, value in enumerate(arrays(average.module.buffers())):
            last = states[-1][1][place]
            if not use_buffers:
                np.testing.assert_array_equal(value, last)
            elif value.dtype.kind == "f":
                np.testing.assert_allclose(value, expected([state[1][place] for state in states]), rtol=1e-12)
    assert all(parameter.grad_fn is None and parameter.requires_grad for parameter in average.parameters())


def test_functions_get_the_count(rng):
    """A user's function is given the number of states so far, on the parameter's device, and no graph is recorded."""
    model, seen = model_of(), []

    def function(old, new, count):
        seen.append((int(count), count.device == old.device, old.requires_grad, new.requires_grad))
        return old + new

    average = m.AveragedModel(model, avg_fn=function)
    for _ in range(3):
        average.update_parameters(model)
    assert seen == [(1, True, False, False)] * 4 + [(2, True, False, False)] * 4
    lists = []
    average = m.AveragedModel(
        nn.ModuleList([model, nn.Linear(1, 1)]), multi_avg_fn=lambda old, new, count: lists.append((len(old), len(new)))
    )
    for _ in range(2):
        average.update_parameters(nn.ModuleList([model, nn.Linear(1, 1)]))
    assert lists == [(4, 4), (2, 2)]


def test_the_model_is_copied():
    """The copy shares nothing with the model, gives what it gives, and is saved with its count."""
    model = model_of().eval()
    average = m.AveragedModel(model)
    x = lucid.ones(2, 3, dtype=lucid.float64)
    np.testing.assert_array_equal(*arrays([average(x), model(x)]))
    assert not any(
        shares_memory(ours, theirs) for ours, theirs in zip(average.parameters(), model.parameters(), strict=True)
    )
    assert list(average.state_dict()) == ["n_averaged", *(f"module.{name}" for name in model.state_dict())]
    average.update_parameters(model)
    for other in (copy.deepcopy(average), pickle.loads(pickle.dumps(average)), m.AveragedModel(model)):
        other.load_state_dict(average.state_dict())
        assert int(other.n_averaged) == 1


@pytest.mark.gpu
def test_on_another_device(rng):
    """An average may be kept elsewhere than the model."""
    model = model_of().to("cuda")
    average = m.AveragedModel(model, device="cpu")
    states = []
    for _ in range(3):
        states.append(changed(model, rng)[0])
        average.update_parameters(model)
    assert all(each.device.type == "cpu" for each in average.state_dict().values())
    for value, *given in zip(arrays(average.parameters()), *states, strict=True):
        np.testing.assert_allclose(value, mean(given), rtol=1e-12)


def test_another_model_is_refused():
    """One with other parameters or buffers changes nothing."""
    average = m.AveragedModel(model_of())
    before = arrays(average.state_dict().values())
    for other in (nn.Linear(3, 4), nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=False))):
        with pytest.raises(ShapeError, match="update_parameters: expected a model with"):
            average.update_parameters(other)
    for ours, theirs in zip(arrays(average.state_dict().values()), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


BATCHES = {
    "lists": lambda batch: [batch, "label"],
    "tuples": lambda batch: (batch, "label"),
    "tensors": lambda batch: batch,
}


@pytest.mark.parametrize("kind", BATCHES)
def test_running_statistics(kind, rng):
    """They are the means over all batches, however the model was trained before, and whatever stands beside inputs."""
    batches = [rng.standard_normal((size, 3)) * 2 + 1 for size in (5, 7, 4)]
    model = nn.Sequential(nn.BatchNorm1d(3, momentum=0.3), nn.Dropout(0.5)).to(lucid.float64)
    model(lucid.ones(4, 3, dtype=lucid.float64) * 50)
    model[1].eval()
    model[0].eval()
    m.update_bn((BATCHES[kind](lucid.tensor(batch).cpu()) for batch in batches), model, device=DEVICE)
    norm = model[0]
    np.testing.assert_allclose(arrays([norm.running_mean])[0], np.mean([b.mean(0) for b in batches], 0), rtol=1e-10)
    np.testing.assert_allclose(
        arrays([norm.running_var])[0], np.mean([b.var(0, ddof=1) for b in batches], 0), rtol=1e-10
    )
    assert int(norm.num_batches_tracked) == 3
    assert norm.momentum == 0.3
    assert [module.training for module in model.modules()] == [True, False, False]


def test_statistics_of_a_loader_that_fails():
    """Momentum and modes are put back; a model without batch normalisation is not called."""
    model = nn.BatchNorm1d(3).eval()

    def loader():
        yield lucid.ones(2, 3)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        m.update_bn(loader(), model)
    assert (model.momentum, model.training) == (0.1, False)
    m.update_bn(loader(), nn.Linear(3, 1))
    with pytest.raises(OSError, match="disk"):
        m.update_bn(loader(), nn.BatchNorm1d(3, track_running_stats=False))


BAD = {
    "decay": (lambda: m.get_ema_avg_fn(1.5), r"decay value: 1.5: expected a number in \[0, 1\]"),
    "decay of lists": (lambda: m.get_ema_multi_avg_fn(-0.1), r"decay value: -0.1: expected a number in \[0, 1\]"),
    "a text": (lambda: m.get_ema_avg_fn("a"), "get_ema_avg_fn: decay: expected a number, got str 'a'"),
    "two functions": (
        lambda: m.AveragedModel(model_of(), avg_fn=max, multi_avg_fn=max),
        "expected avg_fn or multi_avg_fn, got both",
    ),
    "no function": (lambda: m.AveragedModel(model_of(), avg_fn=3), "avg_fn: expected a callable or None, got int 3"),
    "no model": (lambda: m.AveragedModel(3), "AveragedModel: model: expected a Module, got int 3"),
    "no statistics": (lambda: m.update_bn([], 3), "model: expected a Module, got int 3"),
    "no average": (lambda: m.AveragedModel(model_of()).update_parameters(3), "model: expected a Module, got int 3"),
}


@pytest.mark.parametrize("case", BAD)
def test_nonsense_is_refused(case):
    """The message says what is allowed, and what was given."""
    make, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message) as error:
        make()
    assert isinstance(error.value, LucidError)


def test_swa_goes_on_from_where_the_rate_is():
    """`SWALR` begins at the learning rate that another schedule has left in the group."""
    optimizer = optimizer_of()
    optimizer.step()
    first = lucid.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    first.step()
    schedule = m.SWALR(optimizer, swa_lr=0.01, anneal_epochs=4)
    for epoch in range(6):
        share = (1 - math.cos(math.pi * min(epoch / 4, 1))) / 2
        np.testing.assert_allclose(
            schedule.get_last_lr(), [0.05 + (0.01 - 0.05) * share, 0.015 + (0.01 - 0.015) * share]
        )
        schedule.step()
    assert [group["swa_lr"] for group in optimizer.param_groups] == [0.01, 0.01]


def test_statistics_of_an_update_that_raises(rng):
    """A batch that the model does not take leaves the statistics as they were."""
    model = nn.Sequential(model_of(), nn.BatchNorm1d(4).to(lucid.float64))
    model(lucid.tensor(rng.standard_normal((5, 3)), device=DEVICE))
    before = arrays(model.buffers())
    assert len(before) == 6
    batches = [lucid.tensor(rng.standard_normal((5, columns)), device=DEVICE) for columns in (3, 2)]
    with pytest.raises(ShapeError):
        m.update_bn(batches, model)
    for old, now in zip(before, arrays(model.buffers()), strict=True):
        np.testing.assert_array_equal(now, old)


@pytest.mark.parametrize("make", [m.get_swa_multi_avg_fn, m.get_ema_multi_avg_fn])
def test_lists_of_other_lengths(make):
    """They are refused before the first average has changed."""
    averages = [lucid.zeros(2, device=DEVICE), lucid.zeros(2, device=DEVICE)]
    with pytest.raises(ValueError, match="shorter"):
        make()(averages, [lucid.ones(2, device=DEVICE)], 1)
    assert [average.tolist() for average in averages] == [[0, 0], [0, 0]]
