"""Generators: their copies, how often they were seeded, and one that takes the place of the default one."""

from __future__ import annotations

import contextlib
import copy
import pickle

import pytest

import lucid
from lucid.base.random.generator import (
    Generator,
    default_generator,
    default_generator_for,
    use_generator,
    watch_draws,
)
from tests.pieces import in_threads, raising


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies(duplicate):
    """A copy goes on where the generator is, in a stream of its own."""
    generator = Generator("cpu", 5).manual_seed(7)
    generator.reserve(3)
    copied = duplicate(generator)
    assert repr(copied) == repr(generator)
    assert copied.restarts == generator.restarts == 1
    copied.reserve(1)
    assert repr(copied) != repr(generator)


def test_restarts():
    """Seeding is counted; going back to a state is not."""
    generator = Generator("cpu", 5)
    state = generator.get_state()
    generator.manual_seed(5)
    generator.seed()
    generator.set_state(state)
    assert generator.restarts == 2


def test_another_in_the_place_of_the_default_one():
    """It serves draws, seeds and states of its thread alone; afterwards the default one does, untouched."""
    own = Generator("cpu", 5)
    before = repr(default_generator)
    with use_generator(lambda: own):
        assert default_generator_for("cpu") is own
        lucid.rand(3, device="cpu")
        lucid.manual_seed(6)
        assert lucid.initial_seed() == own.initial_seed() == 6
        state = lucid.get_rng_state()
        first = lucid.rand(3, device="cpu")
        lucid.set_rng_state(state)
        assert lucid.equal(lucid.rand(3, device="cpu"), first)
        seen = []
        in_threads(lambda: seen.append(default_generator_for("cpu")))
        assert seen == [default_generator]
    assert repr(default_generator) == before
    assert default_generator_for("cpu") is default_generator


def test_the_outer_one_comes_back():
    """Behind a block inside of another, also one that ends by an error, the outer block's generator draws again."""
    outer, inner = Generator(), Generator()
    with use_generator(lambda: outer):
        for error in (None, KeyError):
            with contextlib.suppress(KeyError), use_generator(lambda: inner):
                assert default_generator_for("cpu") is inner
                if error:
                    raise error
            assert default_generator_for("cpu") is outer
    assert default_generator_for("cpu") is default_generator


def test_watchers_see_each_draw_before_it():
    """Outer ones first, each with the generator in the state before the draw; what one raises keeps it there."""
    generator, seen = Generator("cpu", seed=3), []
    before = generator.get_state()

    with watch_draws(lambda watched: seen.append(("outer", watched))):
        with watch_draws(lambda watched: seen.append(("inner", watched))):
            generator.reserve(2)
        with watch_draws(raising(KeyError("mine"))), pytest.raises(KeyError, match="mine"):
            generator.reserve(5)
    generator.reserve(0)
    assert seen == [("outer", generator), ("inner", generator), ("outer", generator)]
    after = generator.get_state()
    generator.set_state(before)
    generator.reserve(2)
    assert (generator.get_state() == after).all()


def test_a_state_is_its_callers():
    """It can be written to, and that changes neither the generator nor a state that is asked for later."""
    generator = Generator("cpu", seed=5)
    state, same = generator.get_state(), generator.get_state()
    state[8:] = 0
    assert (generator.get_state() == same).all()
    assert generator.initial_seed() == 5
    generator.set_state(state)
    assert generator.initial_seed() == 0
