"""Sparse systems: SciPy's solutions, and their gradients to the second order."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse.linalg

import lucid
from lucid.errors import ShapeError
from lucid.scipy import sparse
from tests.device import DEVICE
from tests.gradients import check_gradient, check_second_derivative
from tests.scipy.sparse.test_matrices import dense, draw, tensors

ROWS, COLUMNS = np.array([0, 1, 2, 3, 0, 1, 2, 0]), np.array([0, 1, 2, 3, 1, 2, 3, 3])


def system(values, form="csr", *, is_symmetric=False):
    """Return a matrix that can be solved: of its upper triangle, with eight on the diagonal."""
    A = sparse.coo_matrix((values, (ROWS, COLUMNS)), shape=(4, 4))
    A = A + A.conj().T if is_symmetric else A
    return (A + (8 * sparse.eye(4)).to(DEVICE)).asformat(form)


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_spsolve(rng, form, dtype):
    """The solution of one right side and of several is SciPy's, in its shape, and has gradients of both operands."""
    values = draw(rng, 8, dtype=dtype)
    for shape in ((4,), (4, 1), (4, 3)):
        b = draw(rng, *shape, dtype=dtype)
        wanted = scipy.sparse.linalg.spsolve(system(lucid.tensor(values).array, form).to("cpu").to_scipy().tocsc(), b)
        recorded = sparse.linalg.spsolve(system(lucid.tensor(values, requires_grad=True), form), lucid.tensor(b))
        plain = sparse.linalg.spsolve(system(lucid.tensor(values).array, form), lucid.tensor(b))
        for solution in (dense(recorded), dense(plain)):
            np.testing.assert_allclose(solution, wanted, rtol=1e-10)
            assert solution.shape == wanted.shape
        assert (recorded.requires_grad, isinstance(plain, lucid.Tensor)) == (True, False)

        def op(v, right):
            return tensors(sparse.linalg.spsolve(system(v, form), right))

        check_gradient(op, [values, b], rng)
    check_second_derivative(op, [values, b], rng)


def test_conjugate_gradients(rng):
    """The solution's gradients are those of the system, whatever the steps were; SciPy's number of them is told."""
    values, b = draw(rng, 8), draw(rng, 4)

    def op(v, right):
        return tensors(sparse.linalg.cg(system(v, is_symmetric=True), right, rtol=1e-14)[0])

    A = system(lucid.tensor(values, requires_grad=True), is_symmetric=True)
    x, info = sparse.linalg.cg(A, lucid.tensor(b), rtol=1e-14)
    assert info == 0
    np.testing.assert_allclose(dense(A) @ dense(x), b)
    assert sparse.linalg.cg(A, lucid.tensor(b), rtol=1e-14, maxiter=1)[1] == 1
    check_gradient(op, [values, b], rng)
    check_second_derivative(op, [values, b], rng)


def test_what_cg_calls(rng):
    """It tells of the steps to the solution; those to its gradients, of another system, are no business of it."""
    A, steps = system(lucid.tensor(draw(rng, 8), requires_grad=True), is_symmetric=True), []
    x, _ = sparse.linalg.cg(A, lucid.tensor(draw(rng, 4, 2)), callback=lambda x: steps.append(dense(x).copy()))
    count = len(steps)
    assert count > 2
    x.sum().backward()
    assert len(steps) == count
    np.testing.assert_allclose(steps[-1], dense(x)[:, 1])


def test_gradients_of_any_size(rng):
    """An `atol` that is meant for the right side does not end the steps to a gradient that is much smaller."""
    values, b = draw(rng, 8), draw(rng, 4)
    A = system(lucid.tensor(values, requires_grad=True), is_symmetric=True)
    right = lucid.tensor(b, requires_grad=True)
    x, _ = sparse.linalg.cg(A, right, rtol=0.0, atol=1e-10)
    (gradient,) = lucid.autograd.grad(1e-12 * x.sum(), right)
    np.testing.assert_allclose(1e12 * dense(gradient), np.linalg.solve(dense(A), np.ones(4)), rtol=1e-8)


def test_steps_to_gradients(rng):
    """A solution that few steps reach has gradients that take more; those that are not reached are told."""
    root, w = draw(rng, 20, 20), draw(rng, 20)
    for matrix, is_reached in ((root @ root.T + np.eye(20), True), (np.diag(10.0 ** np.arange(-20, 20, 2)), False)):
        # one step reaches the solution for an eigenvector
        right = lucid.tensor(np.linalg.eigh(matrix)[1][:, -1], requires_grad=True)
        x, info = sparse.linalg.cg(sparse.csr_matrix(matrix).to(DEVICE), right, rtol=1e-10, maxiter=2)
        assert info == 0
        if is_reached:
            (gradient,) = lucid.autograd.grad((x * lucid.tensor(w)).sum(), right)
            np.testing.assert_allclose(dense(gradient), np.linalg.solve(matrix, w), rtol=1e-6)
        else:
            with pytest.warns(UserWarning, match=r"cg: a gradient has not converged to rtol=1e-10 in 200 steps"):
                x.sum().backward()


def test_norm(rng):
    """The norm of Frobenius is recorded, of sums of repeated elements; others are SciPy's own."""
    values, places = draw(rng, 3), (np.array([0, 0, 1]), np.array([1, 1, 0]))

    def op(v):
        return tensors(sparse.linalg.norm(sparse.coo_matrix((v, places), shape=(2, 2))))

    check_gradient(op, [values], rng)
    A = scipy.sparse.coo_matrix((values, places))
    np.testing.assert_allclose(dense(op(lucid.tensor(values))), scipy.sparse.linalg.norm(A))
    assert sparse.linalg.norm(sparse.csr_matrix(A), 1) == scipy.sparse.linalg.norm(A, 1)
    with pytest.raises(TypeError, match=r"norm.ord=1, axis=None. has no rule"):
        sparse.linalg.norm(sparse.csr_matrix((lucid.tensor(values, requires_grad=True), places)), 1)


@pytest.mark.parametrize("solve", [sparse.linalg.spsolve, lambda A, b: sparse.linalg.cg(A, b, rtol=1e-14)[0]])
def test_dense_systems(rng, solve):
    """A dense matrix is solved as by SciPy, and all its elements have gradients, zeros too."""
    numbers, b = np.diag([2.0, 4.0, 8.0]), draw(rng, 3)
    numbers[0, 1] = numbers[1, 0] = 1.0
    for A in (numbers.tolist(), lucid.tensor(numbers)):
        np.testing.assert_allclose(dense(solve(A, lucid.tensor(b))), np.linalg.solve(numbers, b))

    def op(matrix, right):
        return tensors(solve(matrix, right))

    x = op(A := lucid.tensor(numbers, requires_grad=True), lucid.tensor(b))
    x.sum().backward()
    adjoint = np.linalg.solve(numbers.T, np.ones(3))
    np.testing.assert_allclose(dense(A.grad), -np.outer(adjoint, np.linalg.solve(numbers, b)), rtol=1e-10)
    if solve is sparse.linalg.spsolve:
        check_gradient(op, [numbers, b], rng)


@pytest.mark.cpu("SciPy's own operators")
def test_operands_of_scipys_solvers(rng):
    """A `LinearOperator`, a sparse right side and a dense matrix of `norm` are SciPy's own business."""
    A, b = scipy.sparse.csc_matrix(np.diag([2.0, 4.0])), draw(rng, 2)
    operator = scipy.sparse.linalg.aslinearoperator(A)
    np.testing.assert_allclose(sparse.linalg.cg(operator, b)[0], b / [2.0, 4.0])
    solution = sparse.linalg.spsolve(A, sparse.csc_matrix(A))
    assert sparse.issparse(solution)
    np.testing.assert_allclose(dense(solution), np.eye(2))
    right = lucid.tensor(b, requires_grad=True)
    for call in (
        lambda: sparse.linalg.cg(operator, right),
        lambda: sparse.linalg.spsolve(lucid.eye(2, requires_grad=True), A),
    ):
        with pytest.raises(TypeError, match=r"linalg.(cg|spsolve) has no rule"):
            call()
    with pytest.raises(TypeError, match=r"input is not sparse. use numpy.linalg.norm"):
        sparse.linalg.norm(np.eye(2))


def test_refusals(rng):
    """Sizes that do not fit, and operands of other functions that require grad, are refused."""
    A = system(lucid.tensor(draw(rng, 8), requires_grad=True))
    for call in (sparse.linalg.spsolve, sparse.linalg.cg):
        with pytest.raises(ShapeError, match=r"expected a square matrix and a right side that fits"):
            call(A, lucid.ones(3))
    with pytest.raises(TypeError, match=r"linalg.splu has no rule"):
        sparse.linalg.splu(A)
    with pytest.raises(TypeError, match=r"cg with x0 or M that requires grad has no rule"):
        sparse.linalg.cg(A, lucid.ones(4), M=A)


def test_powers_that_are_none(rng):
    """Recorded matrices have whole powers from 0 on, of square ones; others are refused as by SciPy."""
    values = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    square, wide = (sparse.csr_matrix((values, ([0, 1, 2], [2, 0, 1])), shape=(3, n)) for n in (3, 4))
    for matrix, power in ((square, 1.5), (square, -1), (wide, 2)):
        with pytest.raises(ValueError, match="expected a square matrix and a whole power of 0 or more"):
            matrix**power
    np.testing.assert_array_equal(lucid.tensor((square**0).toarray()).numpy(force=True), np.eye(3))
    # of elements, the power 0 would fill the matrix
    for refused in (lambda: sparse.csr_array(square) ** 0, lambda: square.power(0)):
        with pytest.raises(NotImplementedError, match="zero power is not supported"):
            refused()
