"""Constructors: arguments of SciPy's forms, and those that SciPy refuses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import lucid
from lucid import numpy as lnp
from lucid.scipy import sparse
from tests.device import DEVICE
from tests.scipy.sparse.test_matrices import dense, draw, on_device


def test_room_to_spare(rng):
    """What lies behind the last row, or column, is no part of the matrix, and has no gradient."""
    values, parts = draw(rng, 5), (np.array([0, 2, 1, 0, 0]), np.array([0, 2, 3]))
    for form, shape in (("csr", (2, 3)), ("csc", (3, 2))):
        wanted = getattr(scipy.sparse, f"{form}_matrix")((values, *parts), shape=shape)
        v = lucid.tensor(values, requires_grad=True)
        for data in (v, on_device(values)):
            A = getattr(sparse, f"{form}_matrix")((data, *map(on_device, parts)), shape=shape)
            assert A.nnz == 3
            for result, expected in (
                (A.sum(), wanted.sum()), (A.mean(), wanted.mean()), (A, wanted.toarray()),
                (sparse.linalg.norm(A), scipy.sparse.linalg.norm(wanted)),
            ):  # fmt: skip
                np.testing.assert_allclose(dense(result), expected)
            if data is v:
                (A @ lucid.ones(shape[1], dtype=lucid.float64)).sum().backward()
        np.testing.assert_array_equal(dense(v.grad), [1.0, 1.0, 1.0, 0.0, 0.0])


def test_tuples_of_another_length():
    """COO has rows and columns in one tuple; other forms are refused, as by SciPy."""
    data, rows, columns = np.ones(3), np.array([0, 0, 1]), np.array([0, 2, 1])
    with pytest.raises(TypeError, match=r"a coo matrix: expected \(data, \(rows, columns\)\), got a tuple of 3"):
        sparse.coo_matrix((data, rows, columns))
    with pytest.raises(TypeError, match=r"or \(data, indices, indptr\), got a tuple of 4"):
        sparse.csr_matrix((data, rows, columns, columns))


def test_a_vector_is_a_matrix_of_one_row(rng):
    """A `_matrix` of a vector has one row, as SciPy's has; an array has two dimensions."""
    values = draw(rng, 4)
    v = lucid.tensor(values, requires_grad=True)
    for vector in (v, on_device(values), values.tolist()):
        np.testing.assert_array_equal(dense(sparse.csc_matrix(vector)), values[None])
    (sparse.csr_matrix(v) * 2).sum().backward()
    np.testing.assert_array_equal(dense(v.grad), np.full(4, 2.0))
    with pytest.raises(ValueError, match=r"expected a matrix, got shape \(4,\)"):
        sparse.csr_array(v)


MAKERS = {
    "a copy": lambda S: sparse.csr_matrix(S, copy=True),
    "a matrix": lambda S: sparse.csr_matrix(S),
    "an array": lambda S: sparse.csr_array(S),
    "copy": lambda S: sparse.csr_matrix(S).copy(),
    "times a number": lambda S: sparse.csr_matrix(S) * 1.0,
    "transposed": lambda S: sparse.csr_matrix(S).T,
    "parts": lambda S: sparse.csr_matrix((S.data.copy(), S.indices, S.indptr), shape=S.shape),
    "recorded parts": lambda S: sparse.csr_matrix(
        (lucid.tensor(S.data, requires_grad=True), S.indices, S.indptr), shape=S.shape
    ).detach(),
    "tril": lambda S: sparse.tril(S, k=5),
    "vstack": lambda S: sparse.vstack([S]),
    "triples": lambda S: sparse.coo_matrix((S.data.copy(), (np.zeros(3, np.int32), S.indices)), S.shape),
}


@pytest.mark.cpu("SciPy's own matrices")
@pytest.mark.parametrize("name", MAKERS)
def test_elements_stay_where_they_are(name):
    """Neither SciPy, which sorts a matrix in place, nor somebody who writes into index arrays, moves an element."""
    S = scipy.sparse.csr_matrix(
        (np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1], np.int32), np.array([0, 2, 3], np.int32)), shape=(2, 3)
    )
    A = MAKERS[name](S)
    before = A.toarray()
    S.sort_indices()
    np.testing.assert_array_equal(A.toarray(), before)
    S.indices[:] = 1
    np.testing.assert_array_equal(A.toarray(), before)
    for part in ("row", "col") if A.format == "coo" else ("indices", "indptr"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(A, part)[0] = 1


@pytest.mark.cpu("NumPy's own classes")
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_numpys_matrix_is_an_array(rng):
    """Operands of the class np.matrix give the numbers that arrays of the same elements give."""
    S = scipy.sparse.csr_matrix(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    recorded = sparse.csr_matrix((lucid.tensor(S.data, requires_grad=True), S.indices, S.indptr), shape=S.shape)
    column, row, whole = np.matrix(draw(rng, 2, 1)), np.matrix(draw(rng, 1, 2)), np.matrix(draw(rng, 2, 3))
    for A in (sparse.csr_matrix(S), recorded):
        for result, wanted in (
            (A.multiply(1 / A.sum(axis=1)), S.multiply(1 / S.sum(axis=1))),
            (A.multiply(column), S.multiply(column)), (A / column, S / column),
            (row @ A, row @ S), (row * A, row * S), (A @ whole.T, S @ whole.T), (A - whole, S - whole),
        ):  # fmt: skip
            np.testing.assert_allclose(dense(result), wanted.toarray() if hasattr(wanted, "toarray") else wanted)
    np.testing.assert_array_equal(dense(sparse.csr_matrix(whole)), whole)
    system = scipy.sparse.csc_matrix(np.diag([2.0, 4.0]))
    np.testing.assert_allclose(sparse.linalg.spsolve(system, column), [column[0, 0] / 2, column[1, 0] / 4])


CONVERSIONS = {
    "csr of places": lambda lib, v, i: lib.csr_matrix((v, (i, i)), shape=(3, 3)),
    "csc of places": lambda lib, v, i: lib.csc_array((v, (i, i)), shape=(3, 3)),
    "csr of coo": lambda lib, v, i: lib.coo_matrix((v, (i, i)), shape=(3, 3)).tocsr(),
    "csc of csr": lambda lib, v, i: lib.csr_array((v, i, np.arange(4)), shape=(3, 3)).tocsc(),
    "csr of parts": lambda lib, v, i: lib.csr_matrix((v, i, np.arange(4)), shape=(3, 3)),
    "coo": lambda lib, v, i: lib.coo_matrix((v, (i, i)), shape=(3, 3)),
    "coo of csr": lambda lib, v, i: lib.csr_matrix((v, i, np.arange(4)), shape=(3, 3)).asformat("coo"),
}


@pytest.mark.parametrize("form", CONVERSIONS)
@pytest.mark.parametrize("kind", ["plain", "to be filled", "recorded"])
def test_values_that_are_filled_again_change_what_shares_them(form, kind):
    """An array of values that is written to changes the matrices that share it in SciPy, and no others."""
    index, before, after = np.arange(3), np.array([4.0, 5.0, 6.0]), np.array([1.0, 2.0, 3.0])
    values = before.copy()
    S = CONVERSIONS[form](scipy.sparse, values, index)
    values[:] = after
    x = lnp.asarray(lucid.tensor(before, device=DEVICE, requires_grad=True))
    v = {"plain": on_device(before), "to be filled": lnp.array(on_device(before), like=x), "recorded": x * 1}[kind]
    A = CONVERSIONS[form](sparse, v, on_device(index))
    v[:] = on_device(after)
    np.testing.assert_array_equal(dense(A), S.toarray())
