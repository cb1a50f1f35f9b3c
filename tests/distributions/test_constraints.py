"""Constraints say of each event whether it is in their set."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.distributions import Distribution, constraints
from lucid.errors import SettingError, ShapeError
from tests.device import DEVICE
from tests.distributions.samples import of

REAL, ABOVE, SHARES = constraints.real, constraints.positive, constraints.simplex
# by row: the constraint, a value with a batch in which some events fit, and which
PIECES = {
    "cat": (constraints.cat([SHARES, SHARES], -1, [2, 3]), [[0.5, 0.5, 0.2, 0.3, 0.5], [0.5, 0.4, 0, 0, 1]], [1, 0]),
    "cat of a batch": (
        constraints.cat([SHARES, REAL], -2, [1, 2]),
        [[[0.5, 0.5], [3, 4], [5, 6]], [[1, 1], [0, np.nan], [0, 0]]],
        [[1, 1, 1], [0, 0, 1]],
    ),
    "cat of numbers": (constraints.cat([REAL, ABOVE], -1), [[-1, 1], [1, -1]], [[1, 1], [1, 0]]),
    "stack": (constraints.stack([REAL, ABOVE], -1), [[1, -1], [-1, 1], [np.nan, 1]], [0, 1, 0]),
    "stack of vectors": (
        constraints.stack([SHARES, SHARES], -2),
        [[[0.5, 0.5, 0], [1, 0, 0]], [[0.5, 0.5, 0], [1, 1, 0]], [[2, 0, 0], [0, 1, 0]]],
        [1, 0, 0],
    ),
    "stack of columns": (
        constraints.stack([SHARES, REAL], -1),
        [[[0.5, 3], [0.5, 4], [0, 5]], [[0.5, 3], [0.6, 4], [0, 5]]],
        [1, 0],
    ),
    "stack of a batch": (constraints.stack([REAL, ABOVE], 0), [[-1, 1], [1, -1]], [[1, 1], [1, 0]]),
}


@pytest.mark.parametrize("row", PIECES)
def test_events_of_pieces(row):
    """Pieces of one event are all in their sets, pieces that are events of their own one by one."""
    constraint, value, met = PIECES[row]
    found = constraint.check(of(value))
    assert found.shape == np.shape(value)[: np.ndim(value) - constraint.event_dim]
    assert found.tolist() == np.array(met, bool).tolist()


VECTORS = [constraints.one_hot, constraints.simplex, constraints.multinomial(3), constraints.real_vector]
MATRICES = [
    constraints.lower_triangular, constraints.lower_cholesky, constraints.corr_cholesky, constraints.square,
    constraints.symmetric, constraints.positive_semidefinite, constraints.positive_definite,
]  # fmt: skip


@pytest.mark.parametrize("constraint", [*VECTORS, *MATRICES], ids=repr)
def test_events_have_dimensions(constraint):
    """A value with fewer dimensions than an event is refused, and whole numbers have a verdict as others."""
    for dims in range(constraint.event_dim):
        with pytest.raises(ShapeError, match=f"values of at least {constraint.event_dim} dimensions, got {dims}"):
            constraint.check(lucid.ones(*(1 for _ in range(dims)), device=DEVICE))
    for value in ([[0, 1], [1, 0]], [[1, 0], [0, 1]], [[1, 2], [2, 1]]):
        given = lucid.tensor(value, device=DEVICE)
        assert constraint.check(given).tolist() == constraint.check(given.double()).tolist()


class _AboveTwo(constraints.greater_than):
    """With a bound of the class."""

    lower_bound = 2.0

    def __init__(self):
        pass


class _Within(constraints.interval):
    """With bounds that are computed, and another attribute."""

    lower_bound = property(lambda self: self.about - 1)
    upper_bound = property(lambda self: self.about + 1)

    def __init__(self, about):
        self.about = about


@pytest.mark.parametrize(
    ("constraint", "words"), [(_AboveTwo(), "above 2"), (_Within(3.0), "between 2 and 4")], ids=["class", "property"]
)
def test_bounds_of_a_subclass_are_named(constraint, words):
    """Messages show them wherever they are kept."""

    class OfOne(Distribution):
        arg_constraints = property(lambda self: {"level": constraint})

        def __init__(self, level):
            self._set(True, level=level)

    OfOne(of(2.5))
    with pytest.raises(SettingError, match=f"OfOne: expected level {words}, got"):
        OfOne(of(-1.0))
