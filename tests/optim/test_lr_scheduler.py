"""Schedules: the formula of each, what a step does to groups, and how a schedule goes on where it was left."""

from __future__ import annotations

import copy
import io
import math
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.errors import ArgumentError, CaptureError, LucidError, StateDictError
from lucid.optim import lr_scheduler as m
from tests.captures import Recorded
from tests.device import DEVICE
from tests.schedulers import OURS, RATES, SCHEDULES, made, numbers, optimizer_of, run

BASE = np.array(RATES)
EPOCHS = 60
each_row = pytest.mark.parametrize("row", SCHEDULES)


# ---- the formula of each ----


def ramp(t, length):
    """Return how far an epoch is on the way to another one, from 0 to 1."""
    return np.minimum(t / length, 1)


def hill(t):
    """Return half a period of a cosine, from 1 at 0 to 0 at 1."""
    return (1 + np.cos(np.pi * t)) / 2


def since_restart(epoch, first, factor):
    """Return epochs since the last restart, and from there to the next, counted one by one."""
    start, length = 0, first
    while epoch >= start + length:
        start, length = start + length, length * factor
    return epoch - start, length


def restarts(first, factor, least=0.0):
    """Return the formula of restarts."""

    def formula(t):
        places = [since_restart(epoch, first, factor) for epoch in t[:, 0]]
        return least + (BASE - least) * hill(np.array([[now / length] for now, length in places]))

    return formula


def triangle(t, up, down):
    """Return the height of a wave that rises in `up` epochs and falls in `down`, and the number of its cycle from 0."""
    place, cycle = t % (up + down), t // (up + down)
    return np.where(place <= up, place / up, (up + down - place) / down), cycle


def phases(t, *ends):
    """Return the value between (epoch, value) and the next such point, with the cosine's way from one to the next."""
    result = np.full(t.shape, ends[-1][1], float)
    for (start, first), (end, last) in pairwise(ends):
        inside = (start <= t) & (t <= end)
        result = np.where(inside, last + (first - last) * hill((t - start) / (end - start)), result)
    return result


def powers(factors):
    """Return the products of the factors of epochs 1, 2, ... up to each."""
    return np.cumprod(np.concatenate([[1.0], factors]))[: EPOCHS + 1, None]


# By row, the learning rates of both groups from the epochs, a column from 0.
FORMULAS = {
    "lambda": lambda t: BASE * 0.95**t,
    "lambda, one for each group": lambda t: BASE * np.hstack([0.9**t, 1 / (1 + t)]),
    "lambda, an object": lambda t: BASE * ramp(t + 1, 7),
    "multiplicative": lambda t: BASE * 0.97**t,
    "multiplicative, one for each group": lambda t: (
        BASE * np.hstack([powers(1 - 1 / np.arange(2, EPOCHS + 3) ** 2)[: len(t)], 1.01**t])
    ),
    "step": lambda t: BASE * 0.1 ** (t // 7),
    "step of one, up": lambda t: BASE * 1.1**t,
    "step, to nothing": lambda t: BASE * (t < 5),
    "multi-step": lambda t: BASE * 0.3 ** ((t >= 3) * 1 + (t >= 11) + (t >= 30)),
    "multi-step, unordered and twice": lambda t: BASE * 0.7 ** (1 + (t >= 4) + (t >= 12) * 2),
    "constant": lambda t: BASE * np.where(t < 5, 1 / 3, 1),
    "constant, long": lambda t: BASE * np.where(t < 23, 0.7, 1),
    "linear": lambda t: BASE * (1 / 3 + 2 / 3 * ramp(t, 5)),
    "linear, down": lambda t: BASE * (1 - ramp(t, 31)),
    "linear, one step": lambda t: BASE * np.where(t == 0, 0.01, 0.5),
    "exponential": lambda t: BASE * 0.9**t,
    "exponential, up": lambda t: BASE * 1.05**t,
    "polynomial": lambda t: BASE * (1 - ramp(t, 5)),
    "polynomial, a power": lambda t: BASE * (1 - ramp(t, 37)) ** 2.5,
    "polynomial, no power": lambda t: BASE + 0 * t,
    "cosine": lambda t: BASE * hill(t / 13),
    "cosine, a least rate": lambda t: 0.01 + (BASE - 0.01) * hill(t / 10),
    "cosine, one epoch": lambda t: 0.001 + (BASE - 0.001) * hill(t),
    "restarts": restarts(6, 1),
    "restarts, longer": restarts(3, 2, 0.005),
    "restarts, one epoch": restarts(1, 3),
    "cyclic": lambda t: 0.01 + 0.19 * triangle(t, 5, 5)[0] + 0 * BASE,
    "cyclic, lists": lambda t: (
        np.array([0.01, 0.02]) + np.array([0.19, 0.08]) * triangle(t, 4, 7)[0] / 2.0 ** triangle(t, 4, 7)[1]
    ),
    "cyclic, a range": lambda t: 0.01 + 0.19 * triangle(t, 3, 3)[0] * 0.97**t + 0 * BASE,
    "cyclic, a function of cycles": lambda t: (
        0.01 + 0.19 * triangle(t, 3, 2)[0] / (2 + triangle(t, 3, 2)[1]) + 0 * BASE
    ),
    "cyclic, a function of steps": lambda t: 0.01 + 0.19 * triangle(t, 3, 2)[0] * ramp(t + 1, 9) + 0 * BASE,
    "one cycle": lambda t: phases(t, (0, 0.02), (62, 0.5), (209, 2e-6)) + 0 * BASE,
    "one cycle, lines": lambda t: (
        np.array([0.5, 0.3]) * (1 / 3 + 2 / 3 * t / 93.5)  # the way up takes all of these epochs
    ),
    "one cycle, three phases": lambda t: (
        phases(t, (0, 0.02), (0.2 * 211 - 1, 0.5), (0.4 * 211 - 2, 0.02), (210, 0.0002)) + 0 * BASE
    ),
    "one cycle, no momentum": lambda t: phases(t, (-1, 0.5), (204, 2e-6)) + 0 * BASE,
    "swa": lambda t: 0.05 + (BASE - 0.05) * hill(ramp(t, 10)),
    "swa, lines": lambda t: BASE + (np.array([0.01, 0.06]) - BASE) * ramp(t, 17),
    "swa, at once": lambda t: 0.02 + 0 * t * BASE,
    "swa, one epoch": lambda t: np.where(t < 1, BASE, 0.02),
    "sequence": lambda t: (
        BASE
        * np.where(
            t < 5, 0.1 + 0.9 * t / 5, np.where(t < 25, hill((t - 5) / 20), 0.9 ** (np.maximum(t - 25, 0) // 3))
        )
    ),
    "sequence, at once": lambda t: BASE * 0.9**t,
    "sequence, one is left out": lambda t: (
        BASE * np.where(t < 6, np.where(t < 5, 1 / 3, 1), hill((t - 6) % 4 / 4))
    ),
    "chain": lambda t: BASE * np.where(t < 6, 0.2, 1) * 0.95**t,
}  # fmt: skip

# The same of the momentum, where it changes.
MOMENTA = {
    "cyclic": lambda t: 0.9 - 0.1 * triangle(t, 5, 5)[0] + 0 * BASE,
    "cyclic, lists": lambda t: (
        np.array([0.8, 0.95]) - np.array([0.3, 0.35]) * triangle(t, 4, 7)[0] / 2.0 ** triangle(t, 4, 7)[1]
    ),
    "cyclic, a range": lambda t: 0.9 + 0 * t * BASE,
    "one cycle": lambda t: phases(t, (0, 0.95), (62, 0.85), (209, 0.95)) + 0 * BASE,
    "one cycle, no momentum": lambda t: 0.9 + 0 * t * BASE,
    "one cycle, three phases": lambda t: np.hstack([
        phases(t, (0, 0.95), (0.2 * 211 - 1, low), (0.4 * 211 - 2, 0.95), (210, 0.95)) for low in (0.3, 0.4)
    ]),
    "step": lambda t: 0.9 + 0 * t * BASE,
}  # fmt: skip


@pytest.mark.parametrize("row", FORMULAS)
def test_formula(row):
    """Learning rates of each group are those of the closed formula, at each of 60 epochs; `get_last_lr` is the last."""
    optimizer, schedule = made(row)
    found = np.array(run(optimizer, schedule, EPOCHS))[..., 0]
    np.testing.assert_allclose(found, FORMULAS[row](np.arange(EPOCHS + 1)[:, None]), rtol=1e-11, atol=1e-16)
    np.testing.assert_array_equal(schedule.get_last_lr(), found[-1])


@pytest.mark.parametrize("row", MOMENTA)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_momentum(row, kind):
    """Momentum, or the first beta, goes the other way, and stays where it is not asked to change."""
    optimizer, schedule = made(row, kind=kind)
    found = np.array(run(optimizer, schedule, EPOCHS))[..., 1]
    np.testing.assert_allclose(found, MOMENTA[row](np.arange(EPOCHS + 1)[:, None]), rtol=1e-11)
    if kind == "Adam":
        assert [group["betas"][1:] for group in optimizer.param_groups] == [(0.999,)] * 2


@pytest.mark.parametrize("row", [row for row in FORMULAS if "sequence" not in row and "chain" not in row])
def test_steps_to_an_epoch(row):
    """Schedules that know their formula go to any epoch by it, and warn; others go on from what is there."""
    if row.startswith(("swa", "multiplicative")):
        return
    optimizer, schedule = made(row)
    optimizer.step()
    warning = (lambda: warnings.catch_warnings()) if "restarts" in row else (lambda: pytest.warns(match="epoch param"))
    for epoch in (44, *range(32), 12):
        with warning():
            schedule.step(epoch)
        expected = FORMULAS[row](np.array([[epoch]]))[0]
        if row == "multi-step, unordered and twice":
            # its first epoch is in its first learning rates already
            expected = BASE * 0.7 ** (1 + (epoch >= 4) + (epoch >= 12) * 2)
        np.testing.assert_allclose(schedule.get_last_lr(), expected, rtol=1e-11, atol=1e-16)
        assert schedule.last_epoch == epoch


def test_fractions_of_an_epoch():
    """Restarts go to fractions of epochs, and count whole ones."""
    optimizer = optimizer_of()
    schedule = m.CosineAnnealingWarmRestarts(optimizer, 4)
    for epoch in (0.25, 3.75, 4.5, 11.0):
        schedule.step(epoch)
        np.testing.assert_allclose(schedule.get_last_lr(), BASE * hill(epoch % 4 / 4), rtol=1e-12)
        assert schedule.last_epoch == math.floor(epoch)
    with pytest.raises(ValueError, match="non-negative epoch"):
        schedule.step(-0.5)


def test_cycles_of_an_optimizer_with_a_schedule():
    """`CyclicLR` goes back to its own lowest learning rate, whatever groups began with."""
    optimizer = optimizer_of()
    m.ExponentialLR(optimizer, 0.9)
    schedule = m.CyclicLR(optimizer, 0.01, 0.2, 1, cycle_momentum=False)
    assert schedule.base_lrs == [0.01, 0.01]
    np.testing.assert_allclose(np.array(run(optimizer, schedule, 4))[1:, :, 0], [[x, x] for x in (0.2, 0.01) * 2])


def test_a_phase_without_steps_is_at_its_end():
    """A way up of no steps begins at the highest learning rate; PyTorch divides by zero."""
    for share, steps in ((0.1, 10), (1.0, 1)):
        optimizer = optimizer_of()
        m.OneCycleLR(optimizer, 0.5, steps, pct_start=share)
        assert numbers(optimizer)[0] == (0.5, 0.85)


# ---- plateaus ----


def plateau(metrics, rate, *, better, factor, patience, cooldown=0, least=0.0):
    """Return the learning rate after each metric: the rule in the words of its documentation."""
    best, bad, wait, found = None, 0, 0, []
    for metric in metrics:
        if best is None or better(metric, best):
            best, bad = metric, 0
        else:
            bad += 1
        if wait:
            wait, bad = wait - 1, 0
        if bad > patience:
            rate, wait, bad = max(rate * factor, least), cooldown, 0
        found.append(rate)
    return found


RULES = {
    "min, rel": ({}, lambda new, best: new < best * 0.98),
    "min, abs": ({"threshold_mode": "abs"}, lambda new, best: new < best - 0.02),
    "max, rel": ({"mode": "max"}, lambda new, best: new > best * 1.02),
    "max, abs": ({"mode": "max", "threshold_mode": "abs"}, lambda new, best: new > best + 0.02),
}


@pytest.mark.parametrize("row", RULES)
@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize(("patience", "cooldown"), [(0, 0), (2, 0), (1, 3)])
def test_plateaus(rng, row, tensors, patience, cooldown):
    """The rate falls when a metric has not improved by the threshold for more than `patience` epochs."""
    settings, better = RULES[row]
    metrics = 1 + np.cumsum(rng.standard_normal(50)) / 40
    optimizer = optimizer_of()
    schedule = m.ReduceLROnPlateau(
        optimizer, factor=0.7, patience=patience, cooldown=cooldown, threshold=0.02, min_lr=[0.01, 0.02], **settings
    )
    found = []
    for metric in metrics:
        schedule.step(lucid.tensor(metric, dtype=lucid.float64) if tensors else metric)
        found.append(schedule.get_last_lr())
    expected = [
        plateau(metrics, rate, better=better, factor=0.7, patience=patience, cooldown=cooldown, least=least)
        for rate, least in zip(RATES, (0.01, 0.02), strict=True)
    ]
    np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-12)


def test_a_plateau_begins_with_nothing_counted():
    """Of a new schedule no epoch was bad and none is waited for, as scripts read it."""
    schedule = m.ReduceLROnPlateau(optimizer_of(), cooldown=2)
    assert (schedule.num_bad_epochs, schedule.cooldown_counter, schedule.best) == (0, 0, math.inf)


def test_a_nan_is_no_improvement():
    """A metric that is not a number counts as bad."""
    optimizer = optimizer_of()
    schedule = m.ReduceLROnPlateau(optimizer, patience=1)
    for metric in (1.0, math.nan, math.nan):
        schedule.step(metric)
    np.testing.assert_allclose(schedule.get_last_lr(), BASE / 10)


def test_a_small_change_is_left_out():
    """A change of at most `eps` is none; the count of bad epochs begins again all the same."""
    optimizer = optimizer_of()
    schedule = m.ReduceLROnPlateau(optimizer, patience=0, eps=0.05)
    for metric in (1.0, 2.0):
        schedule.step(metric)
    np.testing.assert_allclose(schedule.get_last_lr(), [0.01, 0.03])
    assert schedule.num_bad_epochs == 0
    optimizer = optimizer_of(rates=(0.5, 0.5625))
    schedule = m.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, eps=0.25)
    for metric in (1.0, 2.0):
        schedule.step(metric)
    assert schedule.get_last_lr() == [0.5, 0.28125]


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_a_metric_at_the_threshold_is_no_improvement(mode, threshold_mode, threshold):
    """It has to be beyond it: the same again is bad, also without a threshold."""
    schedule = m.ReduceLROnPlateau(optimizer_of(), mode, threshold=threshold, threshold_mode=threshold_mode)
    schedule.step(2.0)
    step = threshold * (2.0 if threshold_mode == "rel" else 1.0)
    at = 2.0 - step if mode == "min" else 2.0 + step
    for metric, bad in ((at, 1), (at, 2), (math.nextafter(at, -math.inf if mode == "min" else math.inf), 0)):
        schedule.step(metric)
        assert schedule.num_bad_epochs == bad


@pytest.mark.parametrize("factor", [1, 2])
def test_a_fraction_of_an_epoch_goes_on_behind_a_restart(factor):
    """Whole epochs from a fraction on are those of their own numbers: the restart keeps what is beyond it."""
    schedules = [m.CosineAnnealingWarmRestarts(optimizer_of(), 3, factor) for _ in range(2)]
    schedules[0].step(1.75)
    for epoch in (2.75, 3.75, 4.75):
        schedules[0].step()
        schedules[1].step(epoch)
        np.testing.assert_allclose(*[schedule.get_last_lr() for schedule in schedules], rtol=1e-12)


OF_RATES = {
    "cyclic": lambda o, low, high: m.CyclicLR(o, low, high, 2),
    "one cycle": lambda o, low, high: m.OneCycleLR(o, high, 6),
    "swa": lambda o, low, high: OURS.SWALR(o, high, 3),
    "a list": lambda o, low, high: m.CyclicLR(o, [low, high], [high, high * 2], 3),
}


@pytest.mark.parametrize("name", OF_RATES)
@pytest.mark.parametrize(
    "rates", [BASE.tolist(), [lucid.tensor(each) for each in BASE.tolist()]], ids=["floats", "tensors"]
)
def test_rates_that_are_given_as_tensors(name, rates):
    """They are those of floats, stay what they were, and may change afterwards; the groups' are other tensors."""
    runs = []
    for kind in (float, lambda value: lucid.tensor(value, dtype=lucid.float64)):
        low, high = kind(0.01), kind(0.2)
        optimizer = optimizer_of(
            rates=[lucid.tensor(rate.item()) if isinstance(rate, lucid.Tensor) else rate for rate in rates]
        )
        schedule = OF_RATES[name](optimizer, low, high)
        if isinstance(low, lucid.Tensor):
            assert [low.item(), high.item()] == [0.01, 0.2]
            low.fill_(5.0)
            high.fill_(7.0)
        runs.append([])
        for _ in range(6):
            optimizer.step()
            schedule.step()
            runs[-1].append([float(rate) for rate in schedule.get_last_lr()])
            assert runs[-1][-1] == [float(group["lr"]) for group in optimizer.param_groups]
        if isinstance(low, lucid.Tensor):
            assert [low.item(), high.item()] == [5.0, 7.0]
    np.testing.assert_allclose(runs[1], runs[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("metric", ["3", None, [1.0], lucid.ones(2)], ids=repr)
def test_a_metric_is_a_number(metric):
    """Anything else is refused, and counts as no epoch."""
    schedule = m.ReduceLROnPlateau(optimizer_of())
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        schedule.step(metric)
    assert schedule.last_epoch == 0


def test_plateaus_of_groups_added_later():
    """They have the lowest learning rate of all, or the number of those given must fit."""
    extra = {"params": [lucid.ones(1, requires_grad=True)], "lr": 1.0}
    for least in (0.05, [0.05, 0.05]):
        optimizer = optimizer_of()
        schedule = m.ReduceLROnPlateau(optimizer, patience=0, min_lr=least)
        optimizer.add_param_group(extra)
        if isinstance(least, list):
            before = schedule.state_dict()
            with pytest.raises(RuntimeError, match="number of param groups"):
                schedule.step(1.0)
            assert schedule.state_dict() == before, "the epoch that is refused counts"
            schedule.min_lrs = [0.05, 0.05, 0.2]
        schedule.step(1.0)
        schedule.step(1.0)
        np.testing.assert_allclose(schedule.get_last_lr(), [0.05, 0.03, 0.2 if isinstance(least, list) else 0.1])


# ---- going on where it was left ----


def through_a_file(state):
    """Return a state dict as it comes back from a file."""
    file = io.BytesIO()
    lucid.save(state, file)
    file.seek(0)
    return lucid.load(file)


def optimizer_then_schedule(row, first, second):
    optimizer, schedule = made(row)
    optimizer.load_state_dict(first)
    schedule.load_state_dict(second)
    return optimizer, schedule


def schedule_then_optimizer(row, first, second):
    optimizer, schedule = made(row)
    schedule.load_state_dict(second)
    optimizer.load_state_dict(first)
    return optimizer, schedule


def schedule_made_after_a_load(row, first, second):
    optimizer = optimizer_of()
    optimizer.load_state_dict(first)
    schedule = SCHEDULES[row](OURS, optimizer)
    schedule.load_state_dict(second)
    return optimizer, schedule


def from_files(row, first, second):
    return optimizer_then_schedule(row, through_a_file(first), through_a_file(second))


@each_row
@pytest.mark.parametrize(
    "resumed", [optimizer_then_schedule, schedule_then_optimizer, schedule_made_after_a_load, from_files]
)
def test_resume_at_every_cut(row, resumed):
    """What is left at any epoch, and goes on with its state dict and the optimizer's, is the run that was not left.

    The states are loaded in any order, and the schedule is made before or after that.
    """
    optimizer, schedule = made(row)
    whole, states = [numbers(optimizer)], []
    for _ in range(32):
        states.append(copy.deepcopy((optimizer.state_dict(), schedule.state_dict())))
        optimizer.step()
        schedule.step()
        whole.append(numbers(optimizer))
    for cut in range(0, 32, 5 if resumed is from_files else 1):
        again, other = resumed(row, *states[cut])
        assert run(again, other, 32 - cut) == whole[cut:]


def test_plateaus_resume():
    """So does a schedule on metrics, whose best is in its state."""
    metrics = [3.0, 2.0, 2.5, 2.5, 2.5, 2.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]

    def schedule_of():
        optimizer = optimizer_of()
        return optimizer, m.ReduceLROnPlateau(optimizer, patience=1, cooldown=1)

    def rates(optimizer, schedule, metrics):
        return [schedule.step(metric) or numbers(optimizer) for metric in metrics]

    expected = rates(*schedule_of(), metrics)
    for cut in range(len(metrics)):
        optimizer, schedule = schedule_of()
        rates(optimizer, schedule, metrics[:cut])
        again, other = schedule_of()
        again.load_state_dict(optimizer.state_dict())
        other.load_state_dict(through_a_file(schedule.state_dict()))
        assert rates(again, other, metrics[cut:]) == expected[cut:]


def test_a_state_dict_is_a_copy():
    """What was loaded shares nothing with the schedule, and is left as it was."""
    schedule = m.MultiStepLR(optimizer_of(), [3])
    state = copy.deepcopy(schedule.state_dict())
    schedule.load_state_dict(state)
    schedule.milestones[5] = 1
    assert state["milestones"] == {3: 1}
    assert "optimizer" not in state


def test_objects_are_saved_by_their_attributes():
    """Of what can be called, the attributes go along; of functions there is None."""
    _, schedule = made("lambda, an object")
    state = schedule.state_dict()
    assert state["lr_lambdas"] == [{"length": 7}] * 2
    other = made("lambda, an object")[1]
    other.lr_lambdas[0].length = 3
    other.load_state_dict(state)
    assert other.lr_lambdas[0].length == 7
    assert made("lambda")[1].state_dict()["lr_lambdas"] == [None, None]
    scaled = made("cyclic, a function of steps")[1]
    state = scaled.state_dict()
    assert state["_scale_fn_custom"] == {"length": 9}
    scaled.load_state_dict({**state, "_scale_fn_custom": {"length": 2}})
    assert scaled.scale_fn(0) == 0.5


def test_arrays_in_a_state_dict_become_tensors():
    """Learning rates of another library's tensors are taken as copies, beside those of their groups."""
    rates = [lucid.tensor(0.1), lucid.tensor(0.03)]
    _, schedule = made("cosine", rates=rates)
    first = np.array(0.4, np.float32)
    schedule.load_state_dict({**schedule.state_dict(), "base_lrs": [first, lucid.tensor(0.2)]})
    first[()] = 9
    assert [float(rate) for rate in schedule.base_lrs] == pytest.approx([0.4, 0.2])
    assert all(isinstance(rate, lucid.Tensor) and rate.device == rates[0].device for rate in schedule.base_lrs)


def test_a_state_of_another_schedule_is_refused():
    """The message names what is missing, and nothing has changed."""
    _, schedule = made("step")
    before = copy.deepcopy(schedule.state_dict())
    with pytest.raises(StateDictError, match=r"lacks \['step_size'\]: expected that of StepLR"):
        schedule.load_state_dict(made("exponential")[1].state_dict())
    with pytest.raises(TypeError, match="state_dict: expected a dict"):
        schedule.load_state_dict(3)
    assert schedule.state_dict() == before
    _, chain = made("chain")
    state = chain.state_dict()
    before = copy.deepcopy(state)
    with pytest.raises(StateDictError, match="has 2 schedulers, the state those of 1"):
        chain.load_state_dict({**state, "_schedulers": state["_schedulers"][:1]})
    wrong = [{**state["_schedulers"][0], "last_epoch": 9}, made("step")[1].state_dict() | {"gamma": 0.5}]
    del wrong[1]["gamma"]
    with pytest.raises(StateDictError, match=r"lacks \['gamma'\]"):
        chain.load_state_dict({**state, "_schedulers": wrong})
    assert chain.state_dict() == before
    functions = made("lambda")[1]
    with pytest.raises(StateDictError, match="expected 2 lr_lambdas, got 1"):
        functions.load_state_dict({**functions.state_dict(), "lr_lambdas": [None]})


@each_row
def test_copies_go_on_by_themselves(row):
    """A deep copy has an optimizer of its own, and a pickle is one where its functions can be pickled."""
    optimizer, schedule = made(row)
    run(optimizer, schedule, 4)
    copies = [copy.deepcopy((optimizer, schedule))]
    try:
        copies.append(pickle.loads(pickle.dumps((optimizer, schedule))))
    except (pickle.PicklingError, AttributeError):
        assert "lambda" in row or "multiplicative" in row or "with a sequence" in row
    expected = run(optimizer, schedule, 20)
    for other, again in copies:
        assert again.optimizer is other
        assert run(other, again, 20) == expected


def test_going_on_needs_the_first_learning_rates():
    """With `last_epoch`, groups have their first learning rates, which go on as base; new ones are given none."""
    optimizer, schedule = made("exponential")
    run(optimizer, schedule, 5)
    again = m.ExponentialLR(optimizer, 0.9, last_epoch=4)
    assert again.base_lrs == list(RATES)
    assert again.last_epoch == 5
    with pytest.raises(KeyError, match=r"'initial_lr' is not specified in param_groups\[0\]"):
        m.ExponentialLR(optimizer_of(), 0.9, last_epoch=4)


# ---- steps ----


def test_attributes():
    """PyTorch's attributes are there, and the first learning rate is in the group."""
    optimizer, schedule = made("step")
    assert schedule.optimizer is optimizer
    assert (schedule.last_epoch, schedule._step_count, schedule.base_lrs) == (0, 1, list(RATES))
    assert [group["initial_lr"] for group in optimizer.param_groups] == list(RATES)
    assert schedule._last_lr == schedule.get_last_lr() == list(RATES)
    run(optimizer, schedule, 2)
    assert (schedule.last_epoch, schedule._step_count) == (2, 3)


def test_two_schedules_change_the_same_groups():
    """Schedules that multiply what is there work together, with the same first learning rates."""
    optimizer = optimizer_of()
    first, second = m.ExponentialLR(optimizer, 0.9), m.StepLR(optimizer, 2, 0.5)
    for _ in range(5):
        optimizer.step()
        first.step()
        second.step()
    np.testing.assert_allclose(second.get_last_lr(), BASE * 0.9**5 * 0.5**2)
    assert first.base_lrs == second.base_lrs == list(RATES)


def test_a_first_step_before_the_optimizers_warns():
    """Once, whatever steps came before there was a schedule; and a step that is overridden is not seen."""
    optimizer = optimizer_of()
    optimizer.step()
    schedule = m.StepLR(optimizer, 3)
    with pytest.warns(UserWarning, match="before `optimizer.step") as caught:
        schedule.step()
    assert caught[0].filename == __file__
    schedule.step()
    optimizer = optimizer_of()
    schedule = m.StepLR(optimizer, 3)
    optimizer.step = lambda: None
    optimizer.step()
    with pytest.warns(UserWarning, match="has been overridden"):
        schedule.step()
    # one that calls the optimizer's own is seen
    optimizer = optimizer_of()
    schedule = m.StepLR(optimizer, 3)
    own = optimizer.step
    optimizer.step = lambda: own()
    optimizer.step()
    schedule.step()


def test_a_later_schedule_knows_of_steps():
    """A schedule that is made while another is at work does not ask for the optimizer's step anew."""
    optimizer, schedule = made("step")
    run(optimizer, schedule, 2)
    m.ExponentialLR(optimizer, 0.9).step()


def test_get_lr_outside_of_a_step_warns():
    """`get_lr` is for `step`; it changes nothing, the momentum included."""
    for row in ("step", "lambda", "multiplicative", "cosine", "restarts", "cyclic", "one cycle", "swa"):
        optimizer, schedule = made(row)
        run(optimizer, schedule, 3)
        before = numbers(optimizer)
        with pytest.warns(UserWarning, match="get_last_lr") as caught:
            schedule.get_lr()
        assert caught[0].filename == __file__
        assert numbers(optimizer) == before


def test_a_step_with_an_epoch_warns():
    """Both kinds of schedules say that the epoch need not be given, at the caller's line."""
    optimizer, schedule = made("step")
    optimizer.step()
    for step in (lambda: schedule.step(7), lambda: m.ReduceLROnPlateau(optimizer).step(1.0, 7)):
        with pytest.warns(UserWarning, match="epoch parameter in `scheduler.step") as caught:
            step()
        assert caught[0].filename == __file__
    np.testing.assert_allclose(schedule.get_last_lr(), BASE / 10)
    with pytest.raises(TypeError, match="epoch"):
        schedule.step("a")


def test_groups_added_later():
    """Schedules that multiply what is there change them too; those of the first learning rates say what to do."""
    for row, goes in (("step", True), ("linear", True), ("swa", False), ("lambda", False), ("multiplicative", False)):
        optimizer, schedule = made(row)
        optimizer.step()
        schedule.step()
        optimizer.add_param_group({"params": [lucid.ones(1, requires_grad=True)], "lr": 0.7})
        if goes:
            run(optimizer, schedule, 7)
            assert len(schedule.get_last_lr()) == 3
            assert optimizer.param_groups[2]["lr"] != 0.7
        else:
            before = [group["lr"] for group in optimizer.param_groups], schedule.last_epoch
            with pytest.raises(ValueError, match=r"make a new scheduler after add_param_group\(\)"):
                schedule.step()
            assert ([group["lr"] for group in optimizer.param_groups], schedule.last_epoch) == before
    optimizer, schedule = made("one cycle")
    optimizer.add_param_group({"params": [lucid.ones(1, requires_grad=True)], "lr": 0.7})
    optimizer.step()
    with pytest.raises(KeyError, match=r"param_groups\[2\] has no \['initial_lr', 'max_lr'\]"):
        schedule.step()


def test_a_step_that_raises_changes_nothing():
    """A function of the user's that fails leaves epoch, count and learning rates as they were, and adds nothing."""

    def function(epoch):
        if epoch == 3:
            schedule.noted = epoch
            raise ZeroDivisionError
        return 0.5**epoch

    optimizer = optimizer_of()
    schedule = m.LambdaLR(optimizer, function)
    run(optimizer, schedule, 2)
    before = copy.deepcopy(schedule.state_dict()), numbers(optimizer)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            schedule.step()
    assert (schedule.state_dict(), numbers(optimizer)) == before


def test_the_one_cycle_ends():
    """A step past the last one is refused, with what to count, however often."""
    optimizer = optimizer_of()
    schedule = m.OneCycleLR(optimizer, 0.5, total_steps=4)
    run(optimizer, schedule, 4)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"Tried to step 5 times.* total steps is 4"):
            schedule.step()


def test_subclasses_of_the_users():
    """A class with a `get_lr` as PyTorch's users write it works, with a closed form or without."""

    class Root(m.LRScheduler):
        def __init__(self, optimizer, scale, last_epoch=-1):
            self.scale = scale
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            assert self._get_lr_called_within_step
            return [lr * self.scale / math.sqrt(1 + self.last_epoch) for lr in self.base_lrs]

    optimizer = optimizer_of()
    schedule = Root(optimizer, 2.0)
    np.testing.assert_allclose(np.array(run(optimizer, schedule, 3))[3, :, 0], BASE)
    assert schedule.state_dict()["scale"] == 2.0
    with pytest.raises(NotImplementedError, match="LRScheduler defines no get_lr"):
        m.LRScheduler(optimizer_of())


# ---- schedules of schedules ----


def test_composed_schedules_take_over():
    """A chain or a sequence that comes second begins with its own epoch 0, from the first learning rates."""

    def half(optimizer):
        return m.ConstantLR(optimizer, 0.5, 3)

    optimizer = optimizer_of()
    chain = m.ChainedScheduler([half(optimizer), m.ExponentialLR(optimizer, 0.9)])
    schedule = m.SequentialLR(optimizer, [m.ConstantLR(optimizer, 0.2, 99), chain], [4])
    t = np.arange(11)
    expected = np.where(t < 4, 0.2, np.where(t < 7, 0.5, 1) * 0.9 ** np.maximum(t - 4, 0))
    np.testing.assert_allclose(np.array(run(optimizer, schedule, 10))[:, 0, 0], 0.1 * expected, rtol=1e-12)

    optimizer = optimizer_of()
    inner = m.SequentialLR(optimizer, [half(optimizer), m.ExponentialLR(optimizer, 0.9)], [2])
    schedule = m.SequentialLR(optimizer, [m.ConstantLR(optimizer, 0.2, 99), inner], [4])
    expected = np.where(t < 4, 0.2, np.where(t < 6, 0.5, 0.9 ** np.maximum(t - 6, 0)))
    np.testing.assert_allclose(np.array(run(optimizer, schedule, 10))[:, 0, 0], 0.1 * expected, rtol=1e-12)
    assert schedule.get_last_lr() == inner.get_last_lr() == [group["lr"] for group in optimizer.param_groups]


# ---- learning rates in tensors ----


@each_row
def test_a_tensor_keeps_its_place(row):
    """A learning rate in a tensor is written in place, and has the same values; the first ones are copies."""
    rates = [lucid.tensor(rate, dtype=lucid.float64) for rate in RATES]
    optimizer, schedule = made(row, kind="Adam", rates=rates, capturable=DEVICE != "cpu")
    kept = [group["lr"] for group in optimizer.param_groups]
    other, plain = made(row, kind="Adam")
    np.testing.assert_allclose(run(optimizer, schedule, 12), run(other, plain, 12), rtol=1e-11, atol=1e-16)
    assert all(group["lr"] is rate for group, rate in zip(optimizer.param_groups, kept, strict=True))
    last = schedule.get_last_lr()
    assert all(isinstance(rate, lucid.Tensor) and rate is not own for rate, own in zip(last, kept, strict=True))
    last[0].fill_(7.0)
    assert float(kept[0]) != 7.0


def test_plateaus_write_in_place():
    """So does the schedule on metrics."""
    optimizer = optimizer_of(rates=[lucid.tensor(0.5), lucid.tensor([0.25])])
    kept = [group["lr"] for group in optimizer.param_groups]
    schedule = m.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
    schedule.step(1.0)
    schedule.step(2.0)
    assert [group["lr"] for group in optimizer.param_groups] == kept
    assert (kept[0].item(), kept[1].tolist()) == (0.25, [0.125])


def test_a_tensor_that_requires_grad():
    """A learning rate that requires grad is written without a graph, as a user's leaf may not be changed in one."""
    optimizer = optimizer_of(rates=[lucid.tensor(0.5, requires_grad=True), 0.1])
    schedule = m.ExponentialLR(optimizer, 0.5)
    run(optimizer, schedule, 1)
    rate = optimizer.param_groups[0]["lr"]
    assert (rate.item(), rate.is_leaf, rate.requires_grad) == (0.25, True, True)
    assert not any(each.requires_grad for each in (schedule.base_lrs[0], schedule.get_last_lr()[0]))


def test_a_rate_of_one_element():
    """One of shape (1,) stays so, whatever shape the schedule's numbers have."""
    optimizer = optimizer_of(rates=[lucid.tensor([0.1]), lucid.tensor([0.2])])
    schedule = m.CyclicLR(optimizer, lucid.tensor(0.5), lucid.tensor(1.0), 2, cycle_momentum=False)
    run(optimizer, schedule, 1)
    assert [group["lr"].tolist() for group in optimizer.param_groups] == [[0.75], [0.75]]


@pytest.mark.gpu
@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("row", ["cosine", "one cycle", "sequence"])
def test_replays_have_the_learning_rate_of_now(rng, row, tensors):
    """A captured step takes the scheduled rate at each replay, and the momentum: its parameters are an eager run's."""
    grads = rng.standard_normal((6, 4)).astype(np.float32)

    def trained(*, replayed):
        params = [lucid.ones(4, device="cuda", requires_grad=True) for _ in range(2)]
        rates = [lucid.tensor(rate, device="cuda") if tensors else rate for rate in RATES]
        groups = [{"params": [param], "lr": rate} for param, rate in zip(params, rates, strict=True)]
        optimizer = optim.Adam(groups, capturable=True)
        schedule = SCHEDULES[row](OURS, optimizer)
        for param in params:
            param.grad = lucid.zeros(4, device="cuda")
        for number, grad in enumerate(grads):
            for param in params:
                param.grad.copy_(lucid.tensor(grad))
            if number == 1:
                step = Recorded(optimizer.step) if replayed else optimizer.step
            optimizer.step() if number == 0 else step()
            schedule.step()
        return [param.tolist() for param in params], numbers(optimizer)

    assert trained(replayed=True) == trained(replayed=False)


@pytest.mark.gpu
def test_a_schedule_is_not_captured():
    """In a capture a step raises, and says where to call it; nothing has changed."""
    optimizer, schedule = made("step")
    plateau_schedule = m.ReduceLROnPlateau(optimizer)
    chain, restarts_schedule = made("chain")[1], made("restarts")[1]

    def act():
        for each in (schedule.step, chain.step, restarts_schedule.step, lambda: plateau_schedule.step(1.0)):
            with pytest.raises(CaptureError, match="call it after the graphed step"):
                each()

    Recorded(act)
    assert (schedule.last_epoch, plateau_schedule.last_epoch, restarts_schedule.last_epoch) == (0, 0, 0)


# ---- what is refused ----

BAD = {
    "step_size": (lambda o: m.StepLR(o, 0), "step_size value: 0: expected a whole number of at least 1"),
    "gamma": (lambda o: m.StepLR(o, 3, -0.1), "gamma value: -0.1: expected a finite number of at least 0"),
    "gamma, nan": (lambda o: m.ExponentialLR(o, math.nan), "gamma value: nan: expected a finite number of at least 0"),
    "last_epoch": (lambda o: m.StepLR(o, 3, last_epoch=-2), "last_epoch value: -2: expected .* at least -1"),
    "milestones": (lambda o: m.MultiStepLR(o, [3, -1]), "milestones value: -1: expected a whole number of at least 0"),
    "milestones, fractions": (lambda o: m.MultiStepLR(o, [3.5]), "milestones value: expected an int, got float 3.5"),
    "lambdas": (lambda o: m.LambdaLR(o, [abs]), "lr_lambda must have the same length .*: expected 2 values, got 1"),
    "no lambda": (lambda o: m.MultiplicativeLR(o, 0.9), "MultiplicativeLR: lr_lambda: expected a function .*, got"),
    "factor": (lambda o: m.ConstantLR(o, 1.5), r"factor value: 1.5: expected a number in \(0, 1\]"),
    "factor, nothing": (lambda o: m.ConstantLR(o, 0.0), r"factor value: 0.0: expected a number in \(0, 1\]"),
    "start_factor": (lambda o: m.LinearLR(o, 0.0), r"start_factor value: 0.0: expected a number in \(0, 1\]"),
    "end_factor": (lambda o: m.LinearLR(o, 0.5, 1.1), r"end_factor value: 1.1: expected a number in \[0, 1\]"),
    "total_iters": (lambda o: m.LinearLR(o, total_iters=-1), "total_iters value: -1: expected a whole .* at least 0"),
    "total_iters, float": (lambda o: m.PolynomialLR(o, 2.5), "PolynomialLR: total_iters: expected an int, got float"),
    "power": (lambda o: m.PolynomialLR(o, power=-1), "power value: -1: expected a finite number of at least 0"),
    "T_max": (lambda o: m.CosineAnnealingLR(o, 0), "T_max value: 0: expected a whole number of at least 1"),
    "eta_min": (lambda o: m.CosineAnnealingLR(o, 3, -1.0), "eta_min value: -1.0: .* of at least 0"),
    "T_0": (lambda o: m.CosineAnnealingWarmRestarts(o, -3), "T_0 value: -3: expected a whole number of at least 1"),
    "T_mult": (lambda o: m.CosineAnnealingWarmRestarts(o, 3, 0), "T_mult value: 0: expected a whole .* at least 1"),
    "base_lr": (lambda o: m.CyclicLR(o, -1.0, 1.0), "base_lr value: -1.0: expected a finite number of at least 0"),
    "max_lr": (lambda o: m.CyclicLR(o, 0.1, [1.0]), "max_lr must have the same length .* 2 values, got 1"),
    "step_size_up": (lambda o: m.CyclicLR(o, 0.1, 1.0, 0), "step_size_up value: 0: expected .* at least 1"),
    "step_size_down": (lambda o: m.CyclicLR(o, 0.1, 1.0, 2, 0), "step_size_down value: 0: expected .* at least 1"),
    "mode": (lambda o: m.CyclicLR(o, 0.1, 1.0, mode="up"), "mode: expected one of 'triangular', .* got 'up'"),
    "scale_fn": (lambda o: m.CyclicLR(o, 0.1, 1.0, scale_fn=2), "scale_fn: expected a callable or None, got int 2"),
    "scale_mode": (lambda o: m.CyclicLR(o, 0.1, 1.0, scale_mode="a"), "scale_mode: expected one of 'cycle', 'iter"),
    "base_momentum": (lambda o: m.CyclicLR(o, 0.1, 1.0, base_momentum=-0.1), "base_momentum value: -0.1: expected"),
    "total_steps": (lambda o: m.OneCycleLR(o, 1.0, 0), "total_steps value: 0: expected a whole number of at least 1"),
    "no steps": (lambda o: m.OneCycleLR(o, 1.0, epochs=3), r"define either total_steps OR \(epochs AND steps_per"),
    "epochs": (lambda o: m.OneCycleLR(o, 1.0, epochs=0, steps_per_epoch=1), "epochs value: 0: expected .* at least 1"),
    "pct_start": (lambda o: m.OneCycleLR(o, 1.0, 9, pct_start=1.5), r"pct_start value: 1.5: expected .* in \[0, 1\]"),
    "strategy": (lambda o: m.OneCycleLR(o, 1.0, 9, anneal_strategy="no"), "anneal_strategy: expected one of 'cos', "),
    "div_factor": (lambda o: m.OneCycleLR(o, 1.0, 9, div_factor=0.0), "div_factor value: 0.0: expected .* above 0"),
    "plateau, factor": (lambda o: m.ReduceLROnPlateau(o, factor=1.0), r"Factor should be < 1.0: .*\[0, 1\), got 1.0"),
    "plateau, mode": (lambda o: m.ReduceLROnPlateau(o, "least"), "mode: expected one of 'min', 'max', got 'least'"),
    "threshold_mode": (lambda o: m.ReduceLROnPlateau(o, threshold_mode="a"), "threshold_mode: expected one of 'rel', "),
    "patience": (lambda o: m.ReduceLROnPlateau(o, patience=-1), "patience value: -1: expected .* at least 0"),
    "min_lr": (lambda o: m.ReduceLROnPlateau(o, min_lr=[0.1]), "min_lr must have the same length .* 2 values, got 1"),
    "no schedulers": (lambda o: m.SequentialLR(o, [], []), "schedulers: expected at least one scheduler"),
    "order": (lambda o: m.SequentialLR(o, [m.StepLR(o, 1)] * 3, [5, 3]), "milestones: expected epochs in ascending"),
    "too few": (lambda o: m.SequentialLR(o, [m.StepLR(o, 1)], [5]), "a milestone for each of 1 schedulers but the fir"),
    "another's": (
        lambda o: m.SequentialLR(o, [m.StepLR(optimizer_of(), 1)], []),
        r"schedulers\[0\]: expected all schedulers to belong to the same optimizer",
    ),
    "a chain of two optimizers": (
        lambda o: m.ChainedScheduler([m.StepLR(o, 1), m.StepLR(optimizer_of(), 1)]),
        r"schedulers\[1\]: expected all schedulers to belong to the same optimizer",
    ),
    "a plateau in a chain": (
        lambda o: m.ChainedScheduler([m.ReduceLROnPlateau(o)]),
        "ReduceLROnPlateau needs a metric at each step",
    ),
    "no list of epochs": (lambda o: m.SequentialLR(o, [m.StepLR(o, 1)], 5), "milestones: expected a list"),
    "no scheduler": (lambda o: m.ChainedScheduler([3]), r"schedulers\[0\]: expected an LRScheduler, got int 3"),
    "swa_lr": (lambda o: OURS.SWALR(o, -0.1), "swa_lr value: -0.1: expected a finite number of at least 0"),
    "anneal_epochs": (lambda o: OURS.SWALR(o, 0.1, -1), "anneal_epochs value: -1: expected .* at least 0"),
    "anneal_strategy": (lambda o: OURS.SWALR(o, 0.1, 1, "a"), "anneal_strategy: expected one of 'cos', 'linear', got"),
    "a flag": (lambda o: m.StepLR(o, True), "step_size value: expected an int, got bool True"),
    "a tensor": (lambda o: m.ExponentialLR(o, lucid.tensor(0.9)), "gamma value: expected a Python number, got Tensor"),
    "no optimizer": (lambda o: m.StepLR(3, 1), "StepLR: optimizer: expected an Optimizer, got int 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_nonsense_is_refused(case):
    """The message says what is allowed and what was given, as a builtin error too; no group changes."""
    make, message = BAD[case]
    optimizer = optimizer_of()
    before = copy.deepcopy(numbers(optimizer))
    with pytest.raises((ValueError, TypeError), match=message) as error:
        make(optimizer)
    assert isinstance(error.value, LucidError)
    assert numbers(optimizer) == before


def test_betas_are_below_one():
    """In place of the first of the betas a momentum of 1 is refused, and so is an optimizer without either."""
    with pytest.raises(ValueError, match=r"max_momentum value: 1.0: expected a number in \[0, 1\)"):
        m.CyclicLR(optimizer_of(kind="Adam"), 0.1, 0.2, max_momentum=1.0)

    class Plain(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})

    for make in (lambda o: m.CyclicLR(o, 0.1, 0.2), lambda o: m.OneCycleLR(o, 0.1, 9)):
        with pytest.raises(ValueError, match=r"must support momentum or beta1.*pass cycle_momentum=False"):
            make(Plain([lucid.ones(1, requires_grad=True)]))
    m.CyclicLR(Plain([lucid.ones(1, requires_grad=True)]), 0.1, 0.2, cycle_momentum=False)


def test_there_after_the_import():
    """`import lucid` alone is enough, whichever way schedules and averages are named."""
    assert lucid.optim.lr_scheduler.StepLR is m.StepLR
    assert lucid.optim.swa_utils.SWALR is OURS.SWALR
    assert issubclass(ArgumentError, TypeError)
    with pytest.raises(AttributeError, match=r"module 'lucid\.optim' has no attribute 'nope'"):
        _ = optim.nope
    with pytest.raises(AttributeError, match="no SparseAdam, as there are no sparse tensors: use Adam"):
        _ = optim.SparseAdam


@pytest.mark.parametrize("tensor", [False, True])
@pytest.mark.parametrize("what", ["CyclicLR", "LambdaLR", "SWALR"])
def test_a_schedule_that_cannot_be_made_leaves_the_optimizer_alone(what, tensor):
    """Where the user's function, or a setting, raises at the first step, groups and rates are as they were."""
    make = {
        "CyclicLR": lambda o: m.CyclicLR(o, 0.01, 0.5, scale_fn=lambda x: "a"),
        "LambdaLR": lambda o: m.LambdaLR(o, lambda epoch: 1 / epoch),
        "SWALR": lambda o: lucid.optim.swa_utils.SWALR(o, 0.05, last_epoch=0),
    }[what]
    rate = lucid.tensor(0.25) if tensor else 0.25
    optimizer = lucid.optim.SGD([lucid.ones(2, requires_grad=True)], lr=rate, momentum=0.9)
    attributes, group = {*vars(optimizer)}, dict(optimizer.param_groups[0])
    with pytest.raises((TypeError, ZeroDivisionError, StateDictError)):
        make(optimizer)
    assert {*vars(optimizer)} == attributes
    assert optimizer.param_groups[0] == group
    assert float(optimizer.param_groups[0]["lr"]) == 0.25


def test_no_epochs_of_warming_up():
    """With `total_iters` 0 the first factor stays, as in PyTorch, and a polynomial has no effect."""
    for make, factor in ((lambda o: m.LinearLR(o, 0.5, total_iters=0), 0.5), (lambda o: m.PolynomialLR(o, 0), 1.0)):
        optimizer = lucid.optim.SGD([lucid.ones(2, requires_grad=True)], lr=1.0)
        schedule = make(optimizer)
        for _ in range(3):
            assert optimizer.param_groups[0]["lr"] == factor
            optimizer.step()
            schedule.step()


def test_older_name_of_the_base_class():
    """A schedule that inherits from the base class by its older name is one like all others."""

    class Halved(m._LRScheduler):
        def get_lr(self):
            return [rate * 0.5**self.last_epoch for rate in self.base_lrs]

    optimizer = optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    schedule = Halved(optimizer)
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.5]
    assert isinstance(schedule, m.LRScheduler)


def test_a_first_step_within_a_sequence_is_no_step_of_the_optimizer():
    """What begins it takes no warning from a schedule that steps too early."""
    optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    chain = OURS.ChainedScheduler([OURS.ExponentialLR(optimizer, 0.5)])
    OURS.SequentialLR(optimizer, [chain, OURS.ConstantLR(optimizer)], [3])
    other = OURS.ExponentialLR(optimizer, 0.5)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        other.step()


def test_an_epoch_that_is_given_is_that_of_the_plateau():
    """The epoch of a metric may be said; it is counted on from there."""
    schedule = m.ReduceLROnPlateau(optimizer_of())
    with pytest.warns(UserWarning, match="epoch parameter"):
        schedule.step(1.0, 7)
    schedule.step(1.0)
    assert schedule.last_epoch == 8


def test_a_loaded_plateau_knows_what_is_worst():
    """That of the mode that was saved."""
    for mode, worst in (("max", -math.inf), ("min", math.inf)):
        schedule = m.ReduceLROnPlateau(optimizer_of(), "max" if mode == "min" else "min")
        saved = m.ReduceLROnPlateau(optimizer_of(), mode).state_dict()
        # as schedules were saved that kept no such number
        for state in (saved, {**saved, "mode_worse": None}):
            schedule.load_state_dict(state)
            assert (schedule.mode, schedule.mode_worse) == (mode, worst)


def test_a_loaded_schedule_shares_nothing_with_the_state():
    """What an attribute of the user's own holds is copied."""

    class Own(m.LRScheduler):
        def __init__(self, optimizer):
            self.seen = {"epochs": []}
            super().__init__(optimizer)

        def get_lr(self):
            return [group["lr"] for group in self.optimizer.param_groups]

    saved = Own(optimizer_of()).state_dict()
    schedule = Own(optimizer_of())
    schedule.load_state_dict(saved)
    schedule.seen["epochs"].append(1)
    assert saved["seen"] == {"epochs": []}


def test_a_tuple_of_settings_is_one_for_each_group():
    """As a list is."""
    functions = (lambda epoch: 0.5, lambda epoch: 0.25)
    schedule = m.LambdaLR(optimizer_of(), functions)
    np.testing.assert_allclose(schedule.get_last_lr(), BASE * (0.5, 0.25))
