"""Tools of distributions: triangles as vectors, and values that are kept."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from lucid.errors import ShapeError
from tests.device import DEVICE


def numbers(value):
    """Return float64 numbers on the device under test."""
    return lucid.tensor(np.array(value), dtype=lucid.float64, device=DEVICE)


def test_triangles():
    """A vector becomes a triangle and again that vector, with each diagonal; other lengths are refused."""
    for diag in (-1, 0, 1):
        count = {-1: 3, 0: 6, 1: 8}[diag]
        vector = numbers(np.arange(count) + 1.0)
        matrix = vec_to_tril_matrix(vector, diag)
        assert tuple(matrix.shape) == (3, 3)
        assert (tril_matrix_to_vec(matrix, diag) == vector).all()
    with pytest.raises(ShapeError, match="as many elements as a triangle has, got 2"):
        vec_to_tril_matrix(numbers([1.0, 2.0]))
    with pytest.raises(ShapeError, match="expected diag from -2 to 1, got 5"):
        tril_matrix_to_vec(numbers([[1.0, 0.0], [0.0, 1.0]]), 5)
    with pytest.raises(ShapeError, match="expected one dimension or more, got a number"):
        vec_to_tril_matrix(numbers(1.0))


@pytest.mark.parametrize("diag", [-3, -1, 0, 1, 2, 5])
def test_sizes_of_triangles(diag):
    """The size of a matrix is found of each number of elements, of none the largest without any."""
    held = [np.tril(np.ones((n, n)), diag).sum() for n in range(40)]
    for count in (*range(60), int(held[35])):
        sizes = [n for n in range(40) if held[n] == count]
        if sizes:
            assert vec_to_tril_matrix(numbers(np.ones(count)), diag).shape == (sizes[-1], sizes[-1])
        else:
            with pytest.raises(ShapeError, match=f"as many elements as a triangle has, got {count}"):
                vec_to_tril_matrix(numbers(np.ones(count)), diag)
    # a search that counts the rows of each size takes minutes here
    assert vec_to_tril_matrix(numbers(np.ones(held_by(300, diag))), diag).shape == (300, 300)


def held_by(size, diag):
    """Return how many elements a triangle holds."""
    return int(np.tri(size, k=diag).sum())
