"""What all processes can draw, and say about each other."""

from __future__ import annotations

import os

import numpy as np
import pytest

import lucid
from lucid import distributed as dist
from tests.seeds.drawing import VARIABLE


def drawn(*numbers):
    """Return a generator that is the same in each process which names the same numbers."""
    return np.random.default_rng([int(os.environ.get(VARIABLE, "0")), *numbers])


def bits(*tensors):
    """Return the bytes of tensors."""
    return b"".join(tensor.array.tobytes() for tensor in tensors)


def same_everywhere(*tensors):
    """Tell whether tensors have the same bits in all processes."""
    mine = lucid.tensor(np.frombuffer(bits(*tensors), np.uint8).copy())
    first = mine.clone()
    dist.broadcast(first, 0)
    return bool((mine == first).all())


def refused(error, call, *words):
    """Call what has to raise, with these words in its message."""
    with pytest.raises(error) as raised:
        call()
    assert all(word in str(raised.value) for word in words), str(raised.value)
