"""The pole obeys physics, returns are discounted sums, and the policy learns to balance."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "cartpole.py"


@pytest.fixture(scope="module")
def program():
    """Return the example as a module."""
    spec = importlib.util.spec_from_file_location("cartpole", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def energy(carts):
    """Return the energy of a cart and its pole, a rod of mass 0.1 and length 1 whose middle is half its length up."""
    _, speed, angle, turning = carts.state.T
    mass, half = carts.POLE, carts.HALF_LENGTH
    moving = carts.CART * speed**2 / 2 + mass * (speed**2 + 2 * speed * half * turning * np.cos(angle)) / 2
    return moving + mass * half**2 * turning**2 * (4 / 3) / 2 + mass * carts.GRAVITY * half * np.cos(angle)


def test_energy_is_kept(program, rng, monkeypatch):
    """Without a push a pole that falls keeps its energy, up to what steps of a hundredth of the usual leave out."""
    monkeypatch.setattr(program.CartPole, "FORCE", 0.0)
    monkeypatch.setattr(program.CartPole, "SECONDS", 0.02e-2)
    carts = program.CartPole(5, rng)
    before = energy(carts)
    start = carts.state.copy()
    for _ in range(450):
        ended, _ = carts.step(np.ones(5))
        assert not ended.any()
    assert np.abs(carts.state - start).max() > 1e-4
    np.testing.assert_allclose(energy(carts), before, rtol=1e-5)


def test_a_pole_that_fell_begins_anew(program, rng):
    """Pushed one way, every cart ends within a hundred steps, and starts near the upright with age zero."""
    carts = program.CartPole(3, rng)
    ages = []
    for _ in range(100):
        ended, old = carts.step(np.ones(3))
        ages += old.tolist()
        assert np.abs(carts.state[ended]).max(initial=0) <= 0.05
        assert not carts.age[ended].any()
    assert len(ages) >= 3
    assert 5 < min(ages) <= max(ages) < 20


def test_returns_are_discounted_sums(program):
    """Rewards of one are summed up to where the pole fell, or to the estimate behind the last step."""
    ended = np.array([[False, False], [True, False], [False, False]])
    d = program.DISCOUNT
    r = 1 - d
    expected = [[r + r * d, r + r * d + r * d**2 + d**3 * 7], [r, r + r * d + d**2 * 7], [r + d * 5, r + d * 7]]
    np.testing.assert_allclose(program.returns(ended, np.array([5.0, 7.0])), expected)


@pytest.mark.cpu("the example chooses its device itself")
def test_learns(program, capsys):
    """A hundred and fifty updates let poles stand at least three times as long as at first, whatever the seed."""
    assert program.main(["--updates", "150", "--seed", "1"]) == 0
    words = capsys.readouterr().out.split("the first 50 poles stood for ")[1].split()
    assert float(words[words.index("for") + 1]) > 3 * float(words[0])


def test_refuses(program, capsys):
    """Nothing is trained for no update."""
    with pytest.raises(SystemExit, match="2"):
        program.main(["--updates", "0"])
    assert "expected --updates of at least 1, got 0" in capsys.readouterr().err
