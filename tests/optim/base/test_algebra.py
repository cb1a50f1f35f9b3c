"""What is made of an optimizer's formula has no more passes over memory than need be, and says what it takes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.cuda.source.sources import joined
from lucid.optim.base.algebra import source_of, state_forms
from lucid.settings.optimizers import flag
from tests.optimizers import NAMES, SETTINGS


@pytest.mark.parametrize("row", SETTINGS)
def test_few_temporaries(row):
    """A step takes at most two arrays beside its own, whatever its settings."""
    name, options = SETTINGS[row]
    optimizer = getattr(optim, name)([lucid.ones(2, requires_grad=True)], **{"lr": 0.1, **options})
    group = optimizer.param_groups[0]
    step = optimizer.kernel_steps[tuple(each for each in optimizer.state_names(group) if each not in optimizer.scalars)]
    before = (1.0,) * max(len(optimizer.scalars), 1)
    assert step.chain(optimizer.numbers_of_step(group, before)[1])[1] <= 2


@pytest.mark.parametrize("name", NAMES)
def test_kernels_are_the_same_text_each_time(name):
    """There is one kernel for each state that settings may ask for, and the text is in the key of what is compiled."""
    kind = getattr(optim, name)
    text = joined(f"optim_{kind.kernel}.cu")
    flags = [each for each in kind.formula_numbers if kind.ranges.get(each) is flag]
    plain = [each for each in kind.formula_numbers if each not in flags]
    assert text.endswith(source_of(optim.Adam if name == "AdamW" else kind, plain, flags))
    names = [name for _, _, name in state_forms(kind)]
    assert len(set(names)) == len(names) == len(kind.kernel_steps)
    for each in (*names, f"{kind.kernel}_numbers"):
        assert text.count(f" {each}(") == 1


def test_a_formula_of_ones_own():
    """A subclass may have another formula, with choices by its numbers."""

    class Clipped(optim.SGD):
        @staticmethod
        def formula(m, grad, param, momentum_buffer, *, lr, maximize):
            step = m.maximum(m.minimum(grad, 1), -1)
            return m.where(maximize, param + step * lr, param - step * lr), momentum_buffer

    for maximize, sign in ((False, -1), (True, 1)):
        param = lucid.tensor([1.0, 2.0, np.nan], requires_grad=True)
        param.grad = lucid.tensor([0.5, -3.0, 1.0])
        Clipped([param], lr=0.5, maximize=maximize).step()
        np.testing.assert_array_equal(param.numpy(force=True), [1 + sign * 0.25, 2 + sign * -0.5, np.nan])


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop"])
def test_a_mean_without_decay_is_the_gradient(name, rng):
    """With a decay of 0 the mean is the last gradient, to the bit, however much larger the one before was."""
    x = lucid.zeros(50, requires_grad=True)
    settings = {"alpha": 0.0, "centered": True} if name == "RMSprop" else {"betas": (0.0, 0.9)}
    optimizer = getattr(optim, name)([x], lr=0.1, **settings)
    for size in (1e9, 1.0, 1e-7, 1e12):
        grad = (rng.standard_normal(50) * size).astype(np.float32)
        x.grad = lucid.tensor(grad)
        optimizer.step()
        mean = optimizer.state[x]["grad_avg" if name == "RMSprop" else "exp_avg"]
        np.testing.assert_array_equal(mean.numpy(force=True), grad)


@pytest.mark.parametrize("decay", [0.0, 0.2, 0.5, 0.6, 0.9, 1 - 2**-20])
def test_means_are_near_those_of_doubles(decay, rng):
    """Whatever the decay, a mean is within 2 ulp of what either number contributes, as by PyTorch's `lerp`."""
    x = lucid.zeros(200, requires_grad=True)
    optimizer, mean = optim.Adam([x], betas=(decay, 0.9)), np.zeros(200, np.float32)
    for size in (1.0, 1e6, 1e-6, 1.0):
        grad = (rng.standard_normal(200) * size).astype(np.float32)
        exact = mean.astype(np.float64) * decay + grad * (1 - decay)
        x.grad = lucid.tensor(grad)
        optimizer.step()
        mean = optimizer.state[x]["exp_avg"].numpy(force=True).copy()
        parts = np.maximum(abs(mean), np.maximum(abs(exact), abs(grad - exact) * min(decay, 1 - decay)))
        assert (abs(mean - exact) <= 4 * np.spacing(parts.astype(np.float32))).all()
