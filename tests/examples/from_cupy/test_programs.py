"""Programs of CuPy's: with a few lines changed, the same results, right gradients, and what they look for is found."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import lucid
from tests.device import DEVICE
from tests.examples.from_cupy.programs import LINE, NAMES, before, module, problem, source
from tests.gradients import numbers, slope

SMALL = {
    "waveform": {"CELLS": 60, "STEPS": 40, "SOURCES": range(10, 51, 20), "RECEIVERS": slice(5, 56, 10), "PULSE": 20.0},
    "tomography": {"SIDE": 8, "ANGLES": 6},
    "phase": {"SIDE": 8, "MASKS": 3},
    "ode": {"VALLEYS": 5, "STEPS": 12, "EVERY": 4},
}


@pytest.fixture(autouse=True)
def _default_device():
    before = lucid.get_default_device()
    lucid.set_default_device(DEVICE)
    yield
    lucid.set_default_device(before)


def small(text, name):
    """Return a program with little to do."""
    return module(text, **SMALL[name])


def plain(array):
    """Return an array of the plain library's on the host."""
    return float(array.get() if hasattr(array, "get") else array)


@pytest.mark.parametrize("name", NAMES)
def test_result_and_gradient(name, rng):
    """The loss is the plain program's, to the bit on the CPU, and its gradient the slope of that program's results."""
    library = "cupy" if DEVICE == "cuda" else "numpy"
    state = rng.bit_generator.state
    changed, start = problem(small(source(name), name), name, rng, DEVICE)
    rng.bit_generator.state = state
    original, _ = problem(small(before(source(name), library), name), name, rng, DEVICE)
    x = lucid.tensor(start, requires_grad=True)
    loss = changed(x)
    loss.backward()
    cp = sys.modules[library]
    expected = plain(original(cp.asarray(start)))
    if DEVICE == "cpu":
        assert loss.item() == expected
    else:
        assert loss.item() == pytest.approx(expected, rel=1e-12)
    for _ in range(3):
        direction = rng.standard_normal(start.shape)
        direction /= np.abs(direction).max()
        differences = slope(lambda moved: plain(original(cp.asarray(moved[0]))), [start], [direction])
        products = numbers(x.grad) * direction
        assert abs(differences - products.sum()) < 1e-7 * np.abs(products).sum()


@pytest.mark.parametrize("name", NAMES)
def test_few_lines_are_changed(name):
    """What was there before knows nothing of lucid, and differs in few lines."""
    text = source(name)
    assert "lucid" not in before(text).partition('"""')[2].partition('"""')[2]
    changed = [line for line in text.splitlines() if LINE.match(line)]
    gradients = len(module(text).GRADIENTS) + 3 if name == "ode" else 0
    assert text.count("# changed") == len(changed) <= 12 + gradients
    assert sum("import" in line for line in changed) <= 4


def printed(program, monkeypatch, capsys, *arguments):
    """Return the numbers that a program prints."""
    monkeypatch.setattr(sys, "argv", ["program", *arguments])
    program.main()
    return [float(number) for number in re.findall(r"-?\d+\.\d+(?:e[-+]\d+)?", capsys.readouterr().out)]


FOUND = {
    "waveform": ({"CELLS": 40, "STEPS": 60, "SOURCES": (8, 32), "RECEIVERS": slice(2, 39, 4)}, 1e-2, 0.7),
    "tomography": ({"SIDE": 20, "ANGLES": 16}, 0.1, 0.6),
    "phase": ({"SIDE": 12}, 1e-2, None),
    "ode": ({"VALLEYS": 256, "STEPS": 80}, 0.8, None),
}


# a simulated device would take minutes for the others
@pytest.mark.parametrize("name", NAMES if DEVICE == "cpu" else ("ode",))
def test_it_finds_what_it_looks_for(name, monkeypatch, capsys, tmp_path):
    """A smaller problem converges, and its picture is drawn; the plain program runs as far as the first misfit."""
    constants, share, error = FOUND[name]
    options = ("--device", DEVICE, "--out", str(tmp_path))
    start, end, *rest = printed(module(source(name), **constants), monkeypatch, capsys, *options)
    assert end < share * start
    if error is not None:
        assert rest[1] < error * rest[0]
    if name == "phase":
        assert rest[0] < 0.1
    if name == "ode":
        np.testing.assert_allclose(rest[1:], (1.0, 0.5, 0.8, 0.3), rtol=0.03)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    if DEVICE == "cpu":
        plain = module(before(source(name), "numpy"), **constants, picture=lambda *_: None)
        assert printed(plain, monkeypatch, capsys, *options)[0] == start
