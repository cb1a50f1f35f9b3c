"""Tests that fail with some seeds, for `test_seeds.py`; pytest collects them only where it is told this file's name."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import lucid


@pytest.fixture(scope="module")
def shared():
    return lucid.rand(1, device="cpu").item()


def test_own_numbers(rng):
    """A quarter of the seeds fail."""
    assert rng.integers(4)


def test_own_numbers_and_a_folder(rng, tmp_path):
    """The same, where each run needs a setup."""
    assert rng.integers(4)


def test_shared_generator():
    assert lucid.rand(1, device="cpu").item() > 0.25


def test_shared_fixture(shared):
    assert shared > 0.25


@hypothesis.given(st.integers(0, 2**16))
@hypothesis.settings(max_examples=5)
def test_examples(number):
    assert number < 2**15 or number % 3


def test_no_numbers():
    """Nothing is drawn: a failure of its first run is all there is."""
    pytest.fail("once")


def test_seeded_itself():
    """What it draws is the same with each seed."""
    lucid.manual_seed(3)
    assert lucid.rand(1, device="cpu").item() < 0
    np.testing.assert_array_equal(lucid.initial_seed(), 3)
