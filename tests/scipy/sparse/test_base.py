"""What a sparse matrix keeps: nothing of it is set in vain, and nothing leaves the graph unseen."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import lucid
from lucid import numpy as lnp
from lucid.scipy import sparse
from tests.device import DEVICE
from tests.scipy.sparse.test_matrices import dense, draw, on_device

PLACES = np.array([0, 0, 1]), np.array([2, 0, 1])


def recorded(rng, form="csr"):
    """Return a matrix of 2 by 3 whose first row is not sorted, and its values."""
    values = draw(rng, 3)
    parts = [PLACES] if form == "coo" else [PLACES[1], np.array([0, 2, 3])]
    made = getattr(sparse, f"{form}_matrix")((lucid.tensor(values, requires_grad=True), *parts), shape=(2, 3))
    return made, values


@pytest.mark.parametrize("name", ["row", "col", "indices", "indptr", "coords", "shape", "dtype"])
def test_what_is_constant_is_not_set(rng, name):
    """An assignment that would be ignored is refused; values are set, and so are attributes of a subclass."""

    class Named(sparse.csr_matrix):
        pass

    for A in (recorded(rng)[0], recorded(rng, "coo")[0], Named(recorded(rng)[0])):
        before = dense(A)
        with pytest.raises(AttributeError, match=rf"{name} cannot be set, expected data: .* make another matrix"):
            setattr(A, name, PLACES[0])
        np.testing.assert_array_equal(dense(A), before)
        A.data = A.data * 2
        np.testing.assert_array_equal(dense(A), 2 * before)
    A.title = "own"
    assert A.title == "own"


@pytest.mark.parametrize("mode", [lucid.enable_grad, lucid.no_grad])
def test_orders_keep_the_gradient(rng, mode):
    """What only sorts, or adds up what is repeated, changes no value, and hangs on no mode."""
    values = draw(rng, 4)
    rows, columns = np.array([1, 0, 0, 0]), np.array([0, 2, 1, 1])
    wanted = scipy.sparse.coo_matrix((values, (rows, columns)), shape=(2, 3)).toarray()
    v = lucid.tensor(values, requires_grad=True)
    A = sparse.coo_matrix((v, (on_device(rows), on_device(columns))), shape=(2, 3))
    with mode():
        A.sum_duplicates()
    assert (A.nnz, A.requires_grad) == (3, True)
    (A @ lucid.tensor([1.0, 10.0, 100.0], dtype=lucid.float64)).sum().backward()
    np.testing.assert_array_equal(dense(v.grad), [1.0, 100.0, 10.0, 10.0])
    np.testing.assert_allclose(dense(A), wanted)
    v = lucid.tensor(values[:3], requires_grad=True)
    B = sparse.csr_matrix((v, on_device(PLACES[1]), on_device(np.array([0, 2, 3]))), shape=(2, 3))
    sorted_copy = B.sorted_indices()
    with mode():
        B.sort_indices()
    for matrix in (B, sorted_copy):
        assert matrix.requires_grad
        np.testing.assert_array_equal(dense(matrix.indices), [0, 2, 1])
        np.testing.assert_allclose(dense(matrix.data), values[[1, 0, 2]])
    (B @ lucid.tensor([1.0, 10.0, 100.0], dtype=lucid.float64)).sum().backward()
    np.testing.assert_array_equal(dense(v.grad), [100.0, 1.0, 10.0])


@pytest.mark.cpu("CuPy's matrices have fewer of these methods")
def test_values_of_a_recorded_matrix_are_not_written_without_gradients(rng):
    """A write under `no_grad` would take the matrix from the graph for good: it is refused, and nothing is changed."""
    A, _ = recorded(rng)
    before = dense(A)
    with lucid.no_grad():
        for change in (
            lambda: A.setdiag(2.0), lambda: A.eliminate_zeros(), lambda: A.__setitem__((0, 1), 2.0),
            lambda: A.__imul__(2), lambda: A.__itruediv__(2),
        ):  # fmt: skip
            with pytest.raises(TypeError, match=r"has no rule, .* and a value requires grad"):
                change()
    assert A.requires_grad
    np.testing.assert_array_equal(dense(A), before)


def test_in_place_products_with_numbers(rng):
    """Another name of the matrix sees ``*=`` and ``/=``, which keep the dtype and the gradient."""
    A, values = recorded(rng)
    v, B = A.data, A
    A *= 3
    A /= lucid.tensor(2.0, dtype=lucid.float64)
    assert A is B
    np.testing.assert_allclose(dense(B.data), values * 3 / 2)
    B.sum().backward()
    np.testing.assert_allclose(dense(v.grad), np.full(3, 1.5))
    plain = sparse.csr_matrix(scipy.sparse.csr_matrix(np.eye(3, dtype=np.float32))).to(DEVICE)
    same = plain
    same /= 4
    assert plain.dtype == np.float32
    np.testing.assert_array_equal(dense(plain), np.eye(3) / 4)
    bools = sparse.csr_matrix(scipy.sparse.csr_matrix(np.eye(3, dtype=bool)))
    with pytest.raises(TypeError, match=r"expected what fits into bool in place, got float64: use A = A \* x"):
        bools *= 2.5
    M = D = sparse.csr_matrix(np.eye(2))
    M *= np.ones((2, 2))
    assert M is not D


def test_an_index_may_be_a_tensor(rng):
    """Tensors of integers and of bools are indices, of recorded matrices too."""
    A, _ = recorded(rng)
    whole = dense(A)
    for key, same in (
        (lucid.tensor([1, 0]), np.array([1, 0])),
        (lucid.tensor([False, True]), np.array([False, True])),
        ((slice(None), lucid.tensor([2, 1])), (slice(None), np.array([2, 1]))),
    ):
        for matrix in (A, A.detach()):
            np.testing.assert_array_equal(dense(matrix[key]), whole[same])


@pytest.mark.cpu("CuPy's matrices have fewer of these methods")
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_methods_of_scipys_take_lucids_matrices(rng):
    """Other matrices, and tensors, are arguments of SciPy's methods; what requires grad is refused."""
    A, _ = recorded(rng)
    B, C = A.detach(), A.detach() * -1
    np.testing.assert_array_equal(dense(B.maximum(C)), np.maximum(dense(B), dense(C)))
    with pytest.raises(TypeError, match=r"csr_matrix.maximum has no rule"):
        B.maximum(A)
    B[lucid.tensor([0, 1]), 0] = lucid.tensor([5.0, 6.0])
    np.testing.assert_array_equal(dense(B)[:, 0], [5.0, 6.0])


@pytest.mark.cpu("an array of CuPy's is seen by no look without a wait")
def test_arrays_that_are_written_to_are_noticed(rng):
    """Backward refuses an operand of somebody else's that was changed since: a dense one, or a matrix's values."""
    v, x = (lucid.tensor(draw(rng, 3), requires_grad=True) for _ in range(2))
    array, own = draw(rng, 3), scipy.sparse.csr_matrix((draw(rng, 3), PLACES), shape=(2, 3))
    system = scipy.sparse.csc_matrix(np.diag([1.0, 2.0, 4.0]))
    for result, changed in (
        (sparse.csr_matrix((v, PLACES), shape=(2, 3)) @ array, array),
        (own @ x, own.data),
        (sparse.linalg.spsolve(system, x), system.data),
    ):
        total = lnp.sum(result)
        changed *= 2
        with pytest.raises(lucid.errors.InplaceError, match="was written to after the call"):
            total.backward()


def test_two_arrays_give_arrays():
    """Quotients and products of two plain arrays are arrays, on a device too."""
    A = sparse.csr_array(scipy.sparse.csr_array(np.diag([1.0, 2.0, 3.0]))).to(DEVICE)
    assert type(A @ A) is sparse.csr_array
    np.testing.assert_array_equal(dense((A @ A) * np.ones((3, 3)) if DEVICE == "cpu" else A @ A), np.diag([1, 4, 9]))
