"""Where the random numbers of a test come from: the seed of the run, and the test's name."""

from __future__ import annotations

import hashlib
import os
import random
import sys

import hypothesis
import numpy as np

import lucid
from lucid.base.random.generator import get_rng_states

VARIABLE = "LUCID_TEST_SEED"


def number_of(name):
    """Return the seed of a test, or of a fixture, from its name and the seed of the run."""
    words = f"{os.environ[VARIABLE]} {name}"
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "little")


def numbers_of(name):
    """Return the generator of a test."""
    return np.random.default_rng(number_of(name))


def seed_generators(name):
    """Let the generators that all share, of lucid, Python, NumPy and PyTorch, give the numbers of this test."""
    number = number_of(name)
    lucid.manual_seed(number)
    random.seed(number)
    np.random.seed(number % 2**32)  # noqa: NPY002  the stream that users draw from
    if torch := sys.modules.get("torch"):
        torch.default_generator.manual_seed(number)


def seed_examples(function, name):
    """Let hypothesis draw the examples of this test; others it would not see in another process or on another day."""
    if hypothesis.is_hypothesis_test(function):
        hypothesis.seed(number_of(name))(function)


def states():
    """Return what the generators that all share have come to, each by its name."""
    found = {device: state.tobytes() for device, state in get_rng_states().items()}
    _, keys, *rest = np.random.get_state()  # noqa: NPY002  the stream that users draw from
    found |= {"random": random.getstate(), "numpy": (keys.tobytes(), *rest)}
    if torch := sys.modules.get("torch"):
        found["torch"] = torch.default_generator.get_state().numpy().tobytes()
    return found
