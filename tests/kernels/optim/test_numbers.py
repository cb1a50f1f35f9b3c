"""The kernels that count steps and make numbers in device memory, and that change the scale of a loss."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lucid import optim
from lucid.backend import gpu
from lucid.cuda.steps.numbers import Given, RowNumbers
from lucid.cuda.steps.scale import update_scale

pytestmark = pytest.mark.gpu


def on_device(values, dtype=np.float32):
    return gpu.cupy().asarray(np.asarray(values, dtype))


def computed(kind, settings, steps, found=None, times=1):
    """Return the numbers of each row, and the counts, after some computations."""
    counts = [None if step is None else on_device(step) for step in steps]
    rows = RowNumbers(kind._numbers_kernel, counts, len(settings))
    for _ in range(times):
        rows.compute(Given(settings, [], write=True), 0 if found is None else found.data.ptr)
    return rows._numbers.get(), [None if count is None else count.item() for count in counts]


@pytest.mark.parametrize("apart", [0.0, 1.0])
def test_numbers_of_adam(rng, apart):
    """They are those of the formula in float64, of each row by its own count, for more rows than one launch takes."""
    lr, beta1, beta2, eps, decay = (float(each) for each in rng.uniform(0.01, 0.99, 5))
    steps = [float(each) for each in rng.integers(0, 2000, 1001)]
    made, counts = computed(optim.Adam, [lr, beta1, beta2, eps, decay, 0.0, 0.0, apart, 1.0], steps)
    assert counts == [step + 1 for step in steps]
    for row, step in zip(made, counts, strict=True):
        root = math.sqrt(1 - beta2**step)
        expected = [beta1, beta2, lr * root / (1 - beta1**step), eps * root]
        expected += [1 - lr * decay, 0] if apart else [1, decay]
        np.testing.assert_allclose(row, expected, rtol=1e-13)


def test_numbers_of_sgd(rng):
    """They are the settings, and what dampening leaves of a direction; nothing is counted."""
    lr, momentum, dampening, decay = (float(each) for each in rng.uniform(0.01, 0.99, 4))
    made, _ = computed(optim.SGD, [lr, momentum, dampening, decay, 0.0, 0.0], [None] * 3)
    np.testing.assert_array_equal(made, [[lr, decay, momentum, 1 - dampening]] * 3)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
def test_the_device_makes_what_the_host_makes(rng, kind):
    """Whatever an optimizer declares, both make the same numbers of the same settings, to rounding."""
    settings = {name: float(rng.uniform(0.01, 0.5)) for name in kind.ranges}
    for name in ("amsgrad", "maximize", "nesterov", "decoupled_weight_decay", "capturable"):
        if name in settings:
            settings[name] = bool(rng.integers(2))
    if "betas" in settings:
        settings["betas"] = tuple(map(float, rng.uniform(0.1, 0.9, 2)))
    flat = [each for value in settings.values() for each in (value if isinstance(value, tuple) else (float(value),))]
    counted = "step" in kind.slots
    made, _ = computed(kind, flat, [4.0 if counted else None])
    host = {**settings, **kind.numbers(kind.__new__(kind), settings, 5.0 if counted else math.inf)}
    names = [name for name in kind._numbers if not isinstance(host[name], bool)]
    np.testing.assert_allclose(made[0], [host[name] for name in names], rtol=1e-13)


@pytest.mark.parametrize(("flag", "left"), [(0.0, 5.0), (1.0, 3.0)])
def test_a_flag_keeps_counts(flag, left):
    """A step that is left out is not counted."""
    settings = [0.1, 0.9, 0.99, 1e-8, 0.0, 0.0, 0.0, 0.0, 1.0]
    assert computed(optim.Adam, settings, [3.0, 0.0], on_device(flag), times=2)[1] == [left, left - 3]


def test_the_scale_shrinks_and_grows(rng):
    """It follows a float64 model on the host, whether the overflow is told by a flag or by the host."""
    scale, tracker = 1000.3, 0
    arrays = [on_device(scale, np.float64), on_device(scale), on_device(0.0, np.float64)]
    for _ in range(40):
        flag, bad = (float(rng.random() < 0.15), bool(rng.random() < 0.1))
        found = on_device(flag) if rng.random() < 0.8 else None
        update_scale(*arrays, found, bad=bad, growth=1.7, backoff=0.3, interval=3)
        if bad or (flag and found is not None):
            scale, tracker = scale * 0.3, 0
        else:
            tracker += 1
            if tracker == 3:
                scale, tracker = scale * 1.7, 0
        assert [array.item() for array in arrays] == [scale, np.float32(scale), tracker]
