"""Operands of sparse matrices: lists with recorded elements, and whole numbers and bools in differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import lucid
from lucid.scipy import sparse
from lucid.scipy.sparse import operands
from tests.device import DEVICE
from tests.gradients import check_gradient
from tests.scipy.sparse.test_matrices import COLUMNS, ROWS, dense, draw, on_device, tensors


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, bool])
@pytest.mark.parametrize("is_recorded", [False, True])
def test_differences_from_whole_numbers(rng, dtype, is_recorded):
    """They are those of the common dtype: unsigned numbers and bools, which have no negative ones, are cast first."""
    values, other = draw(rng, 7), rng.integers(0, 3, (5, 5)).astype(dtype)
    places = on_device(ROWS), on_device(COLUMNS)
    A = sparse.coo_matrix((lucid.tensor(values, requires_grad=is_recorded), places), shape=(5, 5))
    wanted = scipy.sparse.coo_matrix((values, (ROWS, COLUMNS)), shape=(5, 5)).toarray() - other.astype(float)
    B = sparse.csc_matrix(on_device(other).astype(float)).astype(dtype) if DEVICE == "cpu" else None
    pairs = [(A, on_device(other)), *([] if B is None else [(A, B), (A, scipy.sparse.csr_array(other))])]
    for one, two in pairs:
        np.testing.assert_allclose(dense(one - two), wanted, rtol=1e-12)
        np.testing.assert_allclose(dense(two - one), -wanted, rtol=1e-12)
    if B is not None:
        same = B - sparse.csc_matrix(other.T)
        wanted = scipy.sparse.csc_matrix(other) - scipy.sparse.csc_matrix(other.T)
        assert same.dtype == wanted.dtype
        np.testing.assert_array_equal(dense(same), wanted.toarray())


LISTS = {
    "A @ list": lambda A, t: A @ [t[0], t[1], t[2]],
    "A @ columns": lambda A, t: A @ [[t[0], 1.0], [t[1], t[0]], [2.0, t[2]]],
    "list @ A": lambda A, t: [t[0], t[1], t[2]] @ A,
    "multiply": lambda A, t: A.multiply([[t[0], t[1], t[2]]]),
    "A + lists": lambda A, t: A + [[t[0], t[1], t[2]]] * 3,
    "A - lists": lambda A, t: A - [[t[0], t[1], t[2]]] * 3,
    "A / lists": lambda A, t: A / [[t[0], t[1], t[2]]],
    "values": lambda A, t: type(A)(([t[0], t[1], t[2]], A.nonzero()), shape=(3, 3)),
    "dense": lambda A, t: type(A)([[t[0], t[1], t[2]]] * 3),
    "spsolve": lambda A, t: sparse.linalg.spsolve(A, [t[0], t[1], t[2]]),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_recorded_elements(rng, name):
    """Their elements get the gradients that a tensor made of them has, also beside values that are not recorded."""
    A = sparse.csc_matrix(on_device(np.diag(rng.uniform(1, 2, 3))))

    def op(t):
        return tensors(LISTS[name](A, t))

    check_gradient(op, [rng.uniform(1, 2, 3)], rng)


def test_lists_of_recorded_elements_are_not_written(rng):
    """What is written into a matrix is refused where it would lose its gradient, also in a list."""
    A, t = sparse.csr_matrix(on_device(draw(rng, 2, 2))), lucid.tensor(draw(rng, 2), requires_grad=True)
    for value in ([t[0], t[1]], [[t[0], t[1]]], t):
        with pytest.raises(operands.SparseCallError, match=r"csr_matrix\[...\] = value has no rule"):
            A[0, [0, 1]] = value


REMEDIES = {
    "an element": (lambda A, x: A.__setitem__((0, 0), x[0]), r"\[...\] = value has no rule.*coo_matrix\(\(np.stack"),
    "lil_matrix": (lambda A, x: sparse.lil_matrix(A), r"lil_matrix has no rule.*collect rows, columns and values"),
    "eliminate_zeros": (lambda A, x: A.eliminate_zeros(), r"csr_matrix.eliminate_zeros has no rule.*leave it out"),
    "setdiag": (lambda A, x: A.setdiag(x), r"setdiag has no rule.*A \+ diags\(x - A.diagonal"),
    "spdiags": (lambda A, x: sparse.spdiags(x, 0, 3, 3), r"spdiags has no rule.*use diags\("),
    "dia_array": (lambda A, x: sparse.dia_array((x[None], [0]), shape=(3, 3)), r"dia_array has no rule.*use diags\("),
    "splu": (lambda A, x: sparse.linalg.splu(A), r"linalg.splu has no rule.*use spsolve\(A, b\)"),
    "kron": (lambda A, x: sparse.kron(A, A), r"kron has no rule.*compute it of A.toarray\(\)"),
}


@pytest.mark.parametrize("name", REMEDIES)
def test_remedies(rng, name):
    """The error of an operation without a rule says what is recorded in its place."""
    x = lucid.tensor(draw(rng, 3), requires_grad=True)
    call, message = REMEDIES[name]
    with pytest.raises(operands.SparseCallError, match=message):
        call(sparse.csr_matrix((x, (ROWS[:3], COLUMNS[:3])), shape=(5, 5)), x)
