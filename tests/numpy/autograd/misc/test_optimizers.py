"""Optimizers: their steps by their formulas, for nested parameters, and derivatives of where they arrive."""

import numpy as np
import pytest

from lucid.numpy.autograd import grad
from lucid.numpy.autograd.misc.optimizers import adam, rmsprop, sgd
from tests.numpy.autograd.calls import equal


def sgd_steps(x, slopes, step=0.1, mass=0.9):
    v = 0
    for g in slopes:
        v = mass * v - (1 - mass) * g(x)
        x = x + step * v
    return x


def rmsprop_steps(x, slopes, step=0.1, gamma=0.9, eps=1e-8):
    s = 1
    for g in slopes:
        s = s * gamma + g(x) ** 2 * (1 - gamma)
        x = x - step * g(x) / (np.sqrt(s) + eps)
    return x


def adam_steps(x, slopes, step=0.001, a=0.9, b=0.999, eps=1e-8):
    m = v = 0
    for i, g in enumerate(slopes):
        m, v = (1 - a) * g(x) + a * m, (1 - b) * g(x) ** 2 + b * v
        x = x - step * (m / (1 - a ** (i + 1))) / (np.sqrt(v / (1 - b ** (i + 1))) + eps)
    return x


@pytest.mark.parametrize(("optimizer", "steps"), [(sgd, sgd_steps), (rmsprop, rmsprop_steps), (adam, adam_steps)])
def test_steps_are_those_of_the_formula(optimizer, steps):
    """Parameters of any form arrive where the formula leads, and a callback sees each step before it is taken."""
    seen = []
    start = {"a": 2.0, "b": [np.array([1.0, -3.0])]}
    slope = lambda p, i: {"a": 2 * p["a"] + i, "b": [3 * p["b"][0] ** 2]}
    found = optimizer(slope, start, callback=lambda p, i, g: seen.append((p["a"], i, g["a"])), num_iters=5)
    equal(found["a"], steps(2.0, [lambda x, i=i: 2 * x + i for i in range(5)]))
    equal(found["b"][0], steps(start["b"][0], [lambda x: 3 * x**2] * 5))
    assert [i for _, i, _ in seen] == [0, 1, 2, 3, 4]
    equal(seen[0][0], 2.0)
    equal(seen[0][2], 4.0)


@pytest.mark.parametrize(("optimizer", "steps"), [(sgd, sgd_steps), (rmsprop, rmsprop_steps), (adam, adam_steps)])
def test_where_they_arrive_has_a_derivative(optimizer, steps):
    """By a parameter of the slope, as differences of the formula say."""
    at = lambda a: steps(1.0, [lambda x: a * x**2 - x / 2] * 4)
    found = grad(lambda a: optimizer(lambda x, i: a * x**2 - x / 2, 1.0, num_iters=4))(0.7)
    equal(found, (at(0.7 + 1e-4) - at(0.7 - 1e-4)) / 2e-4, rtol=1e-6)
