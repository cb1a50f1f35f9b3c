"""Drawn numbers have the distribution that they are drawn from, whichever way its parameters make them be drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.ops.creation import rejection
from tests.device import DEVICE
from tests.gradients import numbers

special = pytest.importorskip("scipy.special")
COUNT = 20_000 if DEVICE == "cpu" else 4_000  # a simulated device takes its time


def share_of_angles(kappa, x):
    """Return the share of the von Mises distribution below each angle, by a sum over small steps."""
    grid = np.linspace(-math.pi, math.pi, 20_001)
    density = np.exp(kappa * (np.cos(grid) - 1))
    return np.interp(x, grid, np.cumsum(density) / density.sum())


DRAWS = {
    "rand": ((0.0,), lambda p, g: lucid.rand(COUNT, generator=g, dtype=p.dtype), lambda p, x: np.clip(x, 0, 1)),
    "randn": ((0.0,), lambda p, g: lucid.randn(COUNT, generator=g, dtype=p.dtype), lambda p, x: special.ndtr(x)),
    "exponential_": (
        (0.5, 3.0),
        lambda p, g: p.clone().exponential_(p[0].item(), generator=g),
        lambda p, x: 1 - np.exp(-p * x),
    ),
    "gamma": ((0.02, 0.4, 1.0, 1.5, 7.0, 300.0), rejection.standard_gamma, special.gammainc),
    "poisson": ((0.3, 4.0, 9.9, 10.1, 35.0, 2000.0), rejection.poisson, lambda p, x: special.pdtr(np.floor(x), p)),
    "binomial": (
        (0.01, 0.3, 0.5, 0.8, 0.99),
        lambda p, g: rejection.binomial(lucid.full_like(p, 60), p, g),
        lambda p, x: special.bdtr(np.floor(x), 60, p),
    ),
    "von_mises": ((1e-5, 0.3, 2.0, 30.0), rejection.von_mises, share_of_angles),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_shares_below_every_number(name):
    """As Kolmogorov's and Smirnov's test has it, at a level of 1 in 1,000,000, and of integers by their counts."""
    parameters, draw, share = DRAWS[name]
    for parameter in parameters:
        given = lucid.full((COUNT,), parameter, dtype=lucid.float64, device=DEVICE)
        made = np.sort(numbers(draw(given, lucid.Generator(DEVICE, 11))))
        points = np.unique(made)
        found = np.searchsorted(made, points, side="right") / COUNT
        assert abs(found - share(parameter, points)).max() < 2.7 / math.sqrt(COUNT), parameter
