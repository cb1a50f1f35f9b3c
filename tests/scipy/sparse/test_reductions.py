"""Sums and means: SciPy's numbers in one class of arrays, recorded or not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import lucid
from lucid.base import gpu
from lucid.scipy import sparse
from tests.device import DEVICE
from tests.scipy.sparse.test_matrices import dense, draw, on_device


@pytest.mark.parametrize("family", ["matrix", "array"])
def test_bools_are_counted(family):
    """Sums of bools are numbers, along an axis too, and means are shares."""
    own = getattr(scipy.sparse, f"csr_{family}")(np.array([[1, 1, 0], [0, 1, 1]], bool))
    A = getattr(sparse, f"csr_{family}")(own).to(DEVICE)
    for axis in (0, 1, None):
        for result, wanted in ((A.sum(axis), own.sum(axis)), (A.mean(axis), own.mean(axis))):
            np.testing.assert_array_equal(dense(result), wanted)
            if family == "array" or DEVICE == "cpu":
                assert result.dtype == wanted.dtype


def test_no_result_hangs_on_requires_grad(rng):
    """Sums along an axis, and dense matrices, are arrays and no np.matrix: ``*`` means the same with gradients."""
    values, places = draw(rng, 3), (np.array([0, 0, 1]), np.array([0, 2, 1]))
    plain = sparse.csr_matrix((on_device(values), places), shape=(2, 3))
    recorded = sparse.csr_matrix((lucid.tensor(values, requires_grad=True), places), shape=(2, 3))
    two = on_device(np.array([[1.0], [2.0]]))
    for call in (lambda A: A.sum(0) * two, lambda A: A.mean(axis=0) * two, lambda A: A.todense() * A.todense()):
        assert type(call(plain)) is (np.ndarray if DEVICE == "cpu" else gpu.cupy().ndarray)
        np.testing.assert_allclose(dense(call(plain)), dense(call(recorded)))


def test_axes_that_are_none():
    """An axis out of range, one twice and none at all are refused, of all matrices."""
    A = sparse.csr_matrix(np.eye(2))
    for matrix in (A, sparse.csr_matrix(lucid.eye(2, requires_grad=True))):
        for axis in (2, -3, (0, 0), (0, -2), ()):
            for call in (matrix.sum, matrix.mean):
                with pytest.raises(ValueError, match=r"expected one axis of -2 to 1, or two that differ, got"):
                    call(axis=axis)
