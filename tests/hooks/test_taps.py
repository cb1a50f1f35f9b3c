"""`lucid.hooks.tap`: values of a program that have a name of their own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import lucid
from lucid import hooks
from lucid.errors import ArgumentError
from lucid.hooks.taps import listeners
from tests.device import DEVICE


def test_values_by_name(rng):
    """They are kept and edited by name, in code without modules, and are nothing but their value otherwise."""
    x = lucid.tensor(rng.standard_normal((4, 3)), dtype=lucid.float32, requires_grad=True, device=DEVICE)

    def energy(x):
        return hooks.tap("force.x", hooks.tap("step", x * 2) + 1).sum()

    assert hooks.tap("step", x) is x
    with hooks.capture(taps="force*", what=("output", "grad")) as kept:
        (grad,) = lucid.autograd.grad(energy(x), x)
    assert list(kept) == [("force.x", "output", 0), ("force.x", "grad", 0)]
    np.testing.assert_allclose(kept["force.x", "output"].numpy(force=True), (x * 2 + 1).numpy(force=True))
    assert (kept["force.x", "grad"] == 1).all()
    assert (grad == 2).all()
    block = hooks.edit(taps={"step": lambda value: value * 0, "force*": lambda value: value * 2})
    before = listeners.get()
    for _ in range(2):
        with block:
            assert energy(x).item() == 24
        assert listeners.get() == before
    assert hooks.tap("step", x) is x
    with hooks.capture(taps="step", what=("input", "output")) as kept:  # a tap has no input
        energy(x)
    assert list(kept) == [("step", "output", 0)]
    with pytest.raises(ArgumentError, match="name: expected a str"):
        hooks.tap(3, x)
    with pytest.raises(ArgumentError, match="value: expected a Tensor"):
        hooks.tap("a", 3)


def with_taps(block, x):
    with block:
        for name in ("used", "force", "mass", "force"):
            hooks.tap(name, x)


@pytest.mark.parametrize(
    "block",
    [
        lambda pattern: hooks.edit(taps={"used": lambda value: value, pattern: lambda value: value * 0}),
        lambda pattern: hooks.capture(taps=("used", pattern)),
    ],
    ids=["edit", "capture"],
)
def test_a_pattern_of_no_tap(block):
    """A block that ends without one that matches says so and names the nearest; "*" is for any."""
    x = lucid.ones(2, device=DEVICE)
    misspelt = block("forse")
    nearest = r"no tap .* matches 'forse': the nearest others are \['force'"
    for _ in range(2):  # each block stands for itself
        with pytest.warns(UserWarning, match=nearest) as warned:
            with_taps(misspelt, x)
        assert [warning.filename for warning in warned] == [__file__]
    with pytest.warns(UserWarning, match="matches '.*': it has no others"), misspelt:
        pass
    with warnings.catch_warnings(action="error"):
        with pytest.raises(UserWarning, match="'forse'"), misspelt:
            hooks.tap("used", x)
        with pytest.raises(ZeroDivisionError), misspelt:  # which may not have come to its taps
            1 / 0
        with block("*"), block("used"), block("u*"):
            hooks.tap("used", x)
        with hooks.capture(taps="*"), hooks.edit(taps={"*": lambda value: value}):
            pass
        for name in ("used", "forse"):
            assert hooks.tap(name, x) is x


def test_several_tools_on_one_tap():
    """Each is given what those before it have made of the value, the outermost first."""
    x = lucid.ones(2, device=DEVICE)
    with (
        hooks.capture(taps="*") as before,
        hooks.edit(taps={"a": lambda value: value + 1, "?": lambda value: value * 3}),
        hooks.edit(taps={"a": lambda value: None}),
        hooks.capture(taps="*") as after,
    ):
        assert hooks.tap("a", x).tolist() == [6, 6]
    assert (before["a"].tolist(), after["a"].tolist()) == ([1, 1], [6, 6])


@pytest.mark.parametrize("make", [lambda: hooks.capture(taps=["a", 3]), lambda: hooks.edit(taps={3: lambda x: x})])
def test_patterns_that_are_no_strings(make):
    """They are refused before anything is registered, and not where the first tap would be compared with them."""
    before = listeners.get()
    with pytest.raises(ArgumentError, match=r"taps.*3"), make():
        pass
    assert listeners.get() == before
