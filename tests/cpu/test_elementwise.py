"""Loops in C++ of elementwise formulas, beside their chains of NumPy's ufuncs."""

from __future__ import annotations

import numpy as np
import pytest

import lucid.nn  # noqa: F401 - which loads all ops
from lucid.autograd.recording.namespace import PRIMITIVES
from lucid.backends import cpu
from lucid.ops.base.formula.formulas import Formula

MANY = 1 << 13

SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-45,
    1e-38,
    -1e-38,
    3e38,
    -3e38,
    1.0,
    -1.0,
    0.5,
    2.0,
    88.5,
    -104,
]
SETTINGS = {"lower": -0.75, "upper": 1.25, "eps": 0.1, "threshold": 0.5, "min": -0.5, "max": 0.75, "min_val": -1.0}


def formulas():
    """Return the formulas that primitives compute on the CPU, and can be loops, by the names of the primitives."""
    functions = {name: primitive.reference for name, primitive in PRIMITIVES.items()}
    made = {name: getattr(function, "__self__", None) for name, function in functions.items()}
    return {name: each for name, each in made.items() if isinstance(each, Formula) and each.loop._text()}


FORMULAS = formulas()


def operands(count, dtype=np.float32):
    """Return arrays with each special value beside each, and random numbers of several sizes."""
    random = np.random.default_rng(0)
    edges = random.choice(SPECIAL, (count, 4096))
    edges[:, : len(SPECIAL)] = SPECIAL
    numbers = random.standard_normal((count, 3 * MANY)) * 10.0 ** random.uniform(-3, 1, (count, 3 * MANY))
    return [*np.concatenate([edges, numbers], 1).astype(dtype)]


def computed(formula, arrays, *, compiled):
    """Return the result of a formula in either way."""
    settings = {name: SETTINGS.get(name, 1.5) for name in formula.settings}
    before, cpu.compiled = cpu.compiled, compiled
    try:
        with np.errstate(all="ignore"):
            return formula.apply(np, *arrays, **settings)
    finally:
        cpu.compiled = before


@pytest.mark.parametrize("name", FORMULAS)
def test_as_near_as_ufuncs(name):
    """A loop's errors, in units of float32 from float64, are at most four more than four times those of the chain."""
    formula = FORMULAS[name]
    arrays = operands(len(formula.arrays))
    exact = computed(formula, [a.astype(np.float64) for a in arrays], compiled=False)
    chain, loop = computed(formula, arrays, compiled=False), computed(formula, arrays, compiled=True)
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        sure = np.isfinite(rounded) & np.isfinite(chain)
        unit = np.spacing(np.maximum(np.abs(rounded), np.float32(1e-37)))
        far, limit = (np.abs(x[sure] - exact[sure]) / unit[sure] for x in (loop, chain))
    assert far.max() <= 4 * limit.max() + 4, (far.argmax(), [a[sure][far.argmax()] for a in arrays])


@pytest.mark.parametrize("name", FORMULAS)
def test_edges_are_those_of_ufuncs(name):
    """NaN, infinities and the signs of zeros are those of the chain."""
    formula = FORMULAS[name]
    arrays = operands(len(formula.arrays))
    chain, loop = computed(formula, arrays, compiled=False), computed(formula, arrays, compiled=True)
    np.testing.assert_array_equal(np.isnan(loop), np.isnan(chain))
    np.testing.assert_array_equal(loop[np.isinf(chain)], chain[np.isinf(chain)])
    zero = (chain == 0) & (loop == 0)
    np.testing.assert_array_equal(np.signbit(loop[zero]), np.signbit(chain[zero]))


@pytest.mark.parametrize("name", [name for name, formula in FORMULAS.items() if len(formula.arrays) > 1])
def test_bools_are_left_to_ufuncs(name, monkeypatch):
    """A loop reads floats: it takes no mask among the operands."""
    monkeypatch.setattr(cpu, "compiled", True)
    first, *arrays = operands(len(FORMULAS[name].arrays))
    loop = FORMULAS[name].loop
    assert loop.of([first, *arrays]) is not None
    assert loop.of([first > 0, *arrays]) is None
