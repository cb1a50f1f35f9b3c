"""Softmax against PyTorch where rows cannot reach: infinities, NaN, no dimension."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.pieces import agree, differentiated

INF = float("inf")


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_infinities(name, dim, rng):
    """Infinite elements, whole rows of them and NaN give PyTorch's values and gradients."""
    array = np.array([[1.0, -INF, 2.0], [-INF, -INF, -INF], [INF, 0.0, 1.0], [np.nan, 0.0, 1.0], [0.5, 0.25, 4.0]])
    upstream = rng.standard_normal(array.shape)
    program = lambda lib: differentiated(lib, lambda x: getattr(lib, name)(x, dim), [array], upstream)
    agree(program, 1e-13, 1e-15)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_no_dimension(name):
    """A number is the only one along its dimension 0."""
    for dim in (0, -1):
        agree(lambda lib, dim=dim: [getattr(lib, name)(lib.tensor(3.0), dim)], 0.0)
