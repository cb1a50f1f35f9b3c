"""Views by slices with negative steps."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import LucidError
from lucid.ops.index.steps import stepped
from tests.device import shares_memory
from tests.gradients import numbers


def drawn(rng, size):
    """Return a part of an index of a dimension of that size, half of the time a slice with a negative step."""
    kind = rng.integers(6)
    if kind == 0:
        return int(rng.integers(-size, size))
    ends = [None if rng.integers(3) == 0 else int(rng.integers(-size - 2, size + 3)) for _ in range(2)]
    return slice(*ends, int(rng.integers(-3, 0)) if kind > 2 else int(rng.integers(1, 4)))


def test_indices_with_negative_steps(rng):
    """What NumPy gives, in the tensor's memory; None where no step is negative, or an array is in the index."""
    values = rng.standard_normal((3, 4, 5, 2))
    x = lucid.tensor(values)
    tried = 0
    for _ in range(400):
        parts = [drawn(rng, size) for size in values.shape[: rng.integers(1, 5)]]
        if len(parts) < 4 and rng.integers(2):
            at = int(rng.integers(len(parts) + 1))
            parts[at:] = [..., *(drawn(rng, size) for size in values.shape[4 - len(parts) + at :])]
        for _ in range(rng.integers(3)):
            parts.insert(int(rng.integers(len(parts) + 1)), None)
        index = tuple(parts) if len(parts) > 1 or rng.integers(2) else parts[0]
        view = stepped(x, index)
        if not any(isinstance(part, slice) and part.step < 0 for part in parts):
            assert view is None
            continue
        tried += 1
        expected = values[index]
        assert view.shape == expected.shape, index
        np.testing.assert_array_equal(numbers(view), expected)
        assert not expected.size or shares_memory(view, x)
    assert tried > 200
    for index in (slice(None), (..., None), ([0, 1], slice(None, None, -1)), (True, slice(None, None, -1)), 0):
        assert stepped(x, index) is None
    with pytest.raises((LucidError, IndexError)):
        stepped(x, (slice(None, None, -1),) * 5)
