"""The kernels that count steps and make numbers in device memory, and that change the scale of a loss."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.base import gpu
from lucid.cuda.steps.numbers import RowNumbers, StepSettings
from lucid.cuda.steps.scale import update_scale
from lucid.optim.base.algebra import HOST
from lucid.settings.optimizers import choice, flag
from tests.optimizers import NAMES

pytestmark = pytest.mark.gpu


def on_device(values, dtype=np.float32):
    return gpu.cupy().asarray(np.asarray(values, dtype))


def computed(kind, settings, states, found=None, times=1):
    """Return the numbers of each row, and of its state, after some computations."""
    scalars = [[on_device(value) for value in state] for state in states]
    rows = RowNumbers(kind.numbers_kernel, scalars, len(settings))
    for _ in range(times):
        rows.compute(StepSettings(settings, [], write=True), 0 if found is None else found.data.ptr)
    return rows._numbers.get(), [[array.item() for array in held] for held in scalars]


@pytest.mark.parametrize("apart", [0.0, 1.0])
def test_numbers_of_adam(rng, apart):
    """They are those of the formula in float64, of each row by its own count, for more rows than one launch takes."""
    lr, beta1, beta2, eps, decay = (float(each) for each in rng.uniform(0.01, 0.99, 5))
    steps = [float(each) for each in rng.integers(0, 2000, 1001)]
    made, counts = computed(
        optim.Adam, [lr, beta1, beta2, eps, decay, 0.0, 0.0, apart, 1.0], [[step] for step in steps]
    )
    assert counts == [[step + 1] for step in steps]
    for row, (step,) in zip(made, counts, strict=True):
        root = math.sqrt(1 - beta2**step)
        expected = [beta1, beta2, lr * root / (1 - beta1**step), eps * root]
        expected += [1 - lr * decay, 0] if apart else [1, decay]
        np.testing.assert_allclose(row, expected, rtol=1e-13)


def test_numbers_of_sgd(rng):
    """They are the settings, and what dampening leaves of a direction; nothing is counted."""
    lr, momentum, dampening, decay = (float(each) for each in rng.uniform(0.01, 0.99, 4))
    made, _ = computed(optim.SGD, [lr, momentum, dampening, decay, 0.0, 0.0], [[]] * 3)
    np.testing.assert_array_equal(made, [[lr, decay, momentum, 1 - dampening]] * 3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("flags", [False, True])
@pytest.mark.parametrize("step", [1, 5, 300])
def test_the_device_makes_what_the_host_makes(rng, name, flags, step):
    """Whatever an optimizer declares, both make the same numbers of the same settings and state, to rounding."""
    kind = getattr(optim, name)
    drawn = kind([lucid.ones(1, requires_grad=True)]).param_groups[0]
    settings = {}
    for setting, check in kind.ranges.items():
        value = drawn[setting]
        if check in {flag, choice}:
            settings[setting] = flags
        else:
            settings[setting] = tuple(rng.uniform(0.1, 0.9, 2).tolist()) if isinstance(value, tuple) else rng.random()
    flat = [each for value in settings.values() for each in (value if isinstance(value, tuple) else (float(value),))]
    counted = "step" in kind.slots
    before = [step - 1.0, *rng.uniform(0.1, 0.9, 9).astype(np.float32).tolist()][: len(kind.scalars)]
    made, after = computed(kind, flat, [before] * 3)
    given = {**settings, **dict(zip(kind.scalars, before, strict=True))}
    given["step"] = step if counted else math.inf
    host = {**given, **kind.numbers(HOST, given, given["step"])}
    names = [each for each in kind.formula_numbers if kind.ranges.get(each) is not flag]
    for row, held in zip(made, after, strict=True):
        np.testing.assert_allclose(row, [float(host[each]) for each in names], rtol=1e-13)
        # a power may be rounded in another way
        np.testing.assert_allclose(held, [host[each] for each in kind.scalars], rtol=2e-7)


@pytest.mark.parametrize("name", [name for name in NAMES if len(getattr(optim, name).scalars) > 1])
def test_numbers_of_many_states(rng, name):
    """More rows than one launch takes go each by the numbers of its own state, which a flag keeps."""
    kind = getattr(optim, name)
    group = kind([lucid.ones(1, requires_grad=True)]).param_groups[0]
    flat = []
    for value in (group[setting] for setting in kind.ranges):
        flat += map(float, value) if isinstance(value, tuple) else [float(value)]
    states = [[float(n), *rng.uniform(0.1, 0.9, len(kind.scalars) - 1).astype(np.float32).tolist()] for n in range(601)]
    together, after = computed(kind, flat, states)
    for n in (0, 1, 159, 160, 239, 240, 600):
        alone, (held,) = computed(kind, flat, [states[n]])
        np.testing.assert_array_equal(together[n], alone[0])
        assert after[n] == held
    assert computed(kind, flat, states, on_device(1.0))[1] == states


@pytest.mark.parametrize(("found", "left"), [(0.0, 5.0), (1.0, 3.0)])
def test_a_flag_keeps_counts(found, left):
    """A step that is left out is not counted."""
    settings = [0.1, 0.9, 0.99, 1e-8, 0.0, 0.0, 0.0, 0.0, 1.0]
    assert computed(optim.Adam, settings, [[3.0], [0.0]], on_device(found), times=2)[1] == [[left], [left - 3]]


def test_the_scale_shrinks_and_grows(rng):
    """It follows a float64 model on the host, whether the overflow is told by a flag or by the host."""
    scale, tracker = 1000.3, 0
    arrays = [on_device(scale, np.float64), on_device(scale), on_device(0.0, np.float64)]
    for _ in range(40):
        told, bad = (float(rng.random() < 0.15), bool(rng.random() < 0.1))
        found = on_device(told) if rng.random() < 0.8 else None
        update_scale(*arrays, found, 1.7, 0.3, 3, bad=bad)
        if bad or (told and found is not None):
            scale, tracker = scale * 0.3, 0
        else:
            tracker += 1
            if tracker == 3:
                scale, tracker = scale * 1.7, 0
        assert [array.item() for array in arrays] == [scale, np.float32(scale), tracker]
