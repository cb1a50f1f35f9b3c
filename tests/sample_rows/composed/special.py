"""Functions that `lucid.special` alone has, and parts of floating-point numbers."""

from __future__ import annotations

import math

import numpy as np

import lucid
from lucid import special
from tests.samples import Sample

# of what is composed half types round each step
COARSE = {"float16": 2e-2, "bfloat16": 1e-1}


def within(low, high, count=1):
    """Return what draws arrays of numbers from `low` to `high`."""
    return lambda rng: tuple(rng.uniform(low, high, (3, 4)) for _ in range(count))


def share_below(x):
    """Return the share of the normal distribution below each number, by the standard library."""
    return np.vectorize(lambda value: (1 + math.erf(value / math.sqrt(2))) / 2, otypes=[float])(x)


def bessel(x):
    """Return the modified Bessel function of order 1, by its integral."""
    angles = (np.arange(400) + 0.5) * np.pi / 400
    return np.mean(np.exp(x[..., None] * np.cos(angles)) * np.cos(angles), -1)


def row(name, inputs, reference, **more):
    """Return the row of a function of `lucid.special`."""
    return Sample(
        f"special.{name}",
        getattr(special, name),
        inputs,
        reference,
        lambda torch, *x: getattr(torch.special, name)(*x),
        empty=lambda rng: tuple(np.zeros((0, 4)) for _ in inputs(rng)),
        tolerance=COARSE,
        **more,
    )


ROWS = [
    row("entr", within(0.1, 3), lambda x: -x * np.log(x)),
    row("ndtr", within(-2, 2), share_below),
    row("i1", within(-4, 4), bessel),
    row("xlog1py", within(-0.5, 3, 2), lambda a, b: a * np.log1p(b), broadcasts=True),
    Sample(
        "frexp",
        lambda x: lucid.frexp(x)[0],
        lambda rng: (rng.uniform(1.1, 1.9, (3, 4)) * 2.0 ** rng.integers(-3, 4, (3, 4)),),
        lambda x: np.frexp(x)[0],
        lambda torch, x: torch.frexp(x)[0],
        empty=lambda rng: (np.zeros((0, 4)),),
    ),
    Sample(
        "frexp:exponent",
        lambda x: lucid.frexp(x)[1],
        lambda rng: (rng.uniform(1.1, 1.9, (3, 4)) * 2.0 ** rng.integers(-3, 4, (3, 4)),),
        lambda x: np.frexp(x)[1],
        lambda torch, x: torch.frexp(x)[1],
        differentiable=False,
        twice=False,
    ),
]
