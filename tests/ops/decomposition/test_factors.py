"""Exponentials to the last digit, orders of products, permutations of cycles, and parts that are left out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import lucid
from lucid import linalg
from lucid.ops.decomposition import chains
from tests.gradients import numbers
from tests.pieces.memory import traced


def test_a_chain_is_multiplied_in_the_cheapest_order(monkeypatch):
    """The textbook's six matrices of 30, 35, 15, 5, 10, 20 and 25 take 15,125 multiplications, and no order fewer."""
    sizes, spent = (30, 35, 15, 5, 10, 20, 25), 0
    matmul = chains.matmul

    def counted(a, b):
        nonlocal spent
        spent += a.shape[0] * a.shape[1] * b.shape[1]
        return matmul(a, b)

    monkeypatch.setattr(chains, "matmul", counted)
    linalg.multi_dot([lucid.ones(*shape) for shape in itertools.pairwise(sizes)])
    assert spent == 15_125


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponentials_have_the_digits_of_their_dtype(dtype):
    """Where no squaring is needed, up to a norm of 1, what is left of the series is below the dtype's precision."""
    found = numbers(linalg.matrix_exp(lucid.tensor([[[1.0]], [[-1.0]]], dtype=getattr(lucid, dtype))))
    np.testing.assert_allclose(found[:, 0, 0], [math.e, 1 / math.e], rtol=4 * np.finfo(dtype).eps, atol=0)


def test_what_is_not_finite_stays_in_its_matrix(rng):
    """Of a stack whose first matrices hold NaN and infinity, the last has its exponential all the same."""
    a = rng.standard_normal((3, 2, 2))
    a[0, 0, 1], a[1, 1, 0] = math.nan, math.inf
    found = numbers(linalg.matrix_exp(lucid.tensor(a)))
    values, vectors = np.linalg.eig(a[2])
    np.testing.assert_allclose(found[2], vectors @ np.diag(np.exp(values)) @ np.linalg.inv(vectors), rtol=1e-8)
    assert not np.isfinite(found[:2]).all((1, 2)).any()


def test_a_long_gradient_of_an_exponential_keeps_its_digits(rng):
    """The gradient is linear in what comes from above: of a scaled loss it is as much longer, in both orders."""
    a, upstream, aside = (lucid.tensor(rng.standard_normal((2, 3, 3)), dtype=lucid.float32) for _ in range(3))

    def gradients(factor):
        x = a.clone().requires_grad_()
        (first,) = lucid.autograd.grad(linalg.matrix_exp(x), x, upstream * factor, create_graph=True)
        (second,) = lucid.autograd.grad(first, x, aside)
        return numbers(first) / factor, numbers(second) / factor

    for short, long in zip(gradients(1.0), gradients(2.0**30), strict=True):
        np.testing.assert_allclose(long, short, rtol=1e-4, atol=1e-4 * abs(short).max())


@pytest.mark.parametrize("adjoint", [False, True])
def test_solving_by_factors_of_a_cycle(adjoint, rng):
    """Rows that went around in a cycle of three come back the other way round in the equation with the adjoint."""
    a = np.roll(4 * np.eye(3), 1, 0) + rng.uniform(-0.5, 0.5, (3, 3))
    b = rng.standard_normal((3, 2))
    x = linalg.lu_solve(*linalg.lu_factor(lucid.tensor(a)), lucid.tensor(b), adjoint=adjoint)
    np.testing.assert_allclose(numbers(x), np.linalg.solve(a.T if adjoint else a, b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("is_complex", [False, True])
def test_products_of_reflections(is_complex, rng):
    """They are those of the matrices 1 - tau v v^H in their order; turned, of their adjoints in the other one."""

    def draw(*shape):
        return rng.standard_normal(shape) + 1j * rng.standard_normal(shape) * is_complex

    a, tau, x = draw(4, 3), draw(3), draw(4, 4)
    a, tau, x = (array if is_complex else array.real for array in (a, tau, x))
    q = np.eye(4)
    for k in range(3):
        v = np.concatenate([np.zeros(k), [1.0], a[k + 1 :, k]])
        q = q @ (np.eye(4) - tau[k] * np.outer(v, v.conj()))
    given = lucid.tensor(a), lucid.tensor(tau)
    np.testing.assert_allclose(numbers(linalg.householder_product(*given)), q[:, :3], rtol=1e-10, atol=1e-10)
    for turned, matrix in ((False, q), (True, q.conj().T)):
        for left, expected in ((True, matrix @ x), (False, x @ matrix)):
            found = lucid.ormqr(*given, lucid.tensor(x), left, turned)
            np.testing.assert_allclose(numbers(found), expected, rtol=1e-10, atol=1e-10)


def test_svd_without_vectors_has_zeros_in_their_place(rng):
    """`lucid.svd` gives square zeros for U and V where these are not computed: U of the rows, V of the columns."""
    a = rng.standard_normal((2, 4, 3))
    u, s, v = lucid.svd(lucid.tensor(a), compute_uv=False)
    np.testing.assert_array_equal(numbers(u), np.zeros((2, 4, 4)))
    np.testing.assert_array_equal(numbers(v), np.zeros((2, 3, 3)))
    np.testing.assert_allclose(numbers(s), np.linalg.svd(a, compute_uv=False), rtol=1e-12, atol=0)


def test_the_upper_triangle_gives_the_same_vectors(rng):
    """Of a complex matrix whose lower triangle is not its own, UPLO "U" gives vectors that solve the upper one's."""
    a = rng.standard_normal((2, 4, 4)) + 1j * rng.standard_normal((2, 4, 4))
    whole = np.triu(a, 1) + np.triu(a, 1).conj().swapaxes(-1, -2) + np.eye(4) * a.real
    values, vectors = (numbers(part) for part in linalg.eigh(lucid.tensor(np.triu(whole)), "U"))
    np.testing.assert_allclose(whole @ vectors, vectors * values[:, None], rtol=0, atol=1e-12)
    np.testing.assert_allclose(numbers(linalg.eigvalsh(lucid.tensor(np.triu(whole)), "U")), values, rtol=0, atol=1e-12)


def test_info_of_cholesky_is_the_first_minor(rng):
    """Minors behind the first that is not positive, which are none either, do not count, in any matrix of a stack."""
    below = np.tril(rng.standard_normal((4, 4)), -1)
    signs = [[1.0, -1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [-1.0, 1.0, -1.0, 1.0], [1.0, 1.0, -1.0, 1.0]]
    lower = below + np.eye(4)
    a = np.stack([lower @ np.diag(sign) @ lower.T for sign in signs])
    assert linalg.cholesky_ex(lucid.tensor(a)).info.tolist() == [2, 0, 1, 3]


def test_a_tolerance_of_zero_leaves_nothing_out():
    """With ``tol=0`` every singular value above zero counts in a rank, however small beside the largest."""
    a = lucid.tensor(np.diag([1.0, 1e-200, 0.0]))
    assert [linalg.matrix_rank(a, tol=tol).item() for tol in (0.0, 1e-100, None)] == [2, 1, 1]


def test_residuals_are_left_out_where_one_rank_is_short(rng):
    """Of a stack of least squares there are sums of what is left only if all matrices have full rank."""
    a, b = rng.standard_normal((2, 4, 2)), rng.standard_normal((2, 4, 3))
    found = linalg.lstsq(lucid.tensor(a), lucid.tensor(b), driver="gelsd")
    expected = [np.linalg.lstsq(*both, rcond=None)[1] for both in zip(a, b, strict=True)]
    np.testing.assert_allclose(numbers(found.residuals), expected, rtol=1e-10, atol=0)
    a[0, :, 1] = a[0, :, 0]
    short = linalg.lstsq(lucid.tensor(a), lucid.tensor(b), driver="gelsd")
    assert (short.rank.tolist(), short.residuals.numel()) == ([1, 2], 0)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
@pytest.mark.parametrize("p", [None, 2, -2])
def test_conditions_by_singular_values(shape, p, rng):
    """Of these orders any matrix has one, tall and wide ones too."""
    a = rng.standard_normal(shape)
    np.testing.assert_allclose(numbers(linalg.cond(lucid.tensor(a), p)), np.linalg.cond(a, p), rtol=1e-12)


@pytest.mark.parametrize("p", [1, -1, math.inf, -math.inf, "fro", "nuc"])
def test_conditions_of_singular_matrices_are_infinite(p, rng):
    """In a stack, too, where the others have theirs, by every norm that an inverse is needed for."""
    regular = rng.standard_normal((3, 3)) + 4 * np.eye(3)
    a = np.stack([regular, np.ones((3, 3)), np.diag([1.0, 0.0, 2.0]), np.zeros((3, 3))])
    found = numbers(linalg.cond(lucid.tensor(a), p))
    np.testing.assert_allclose(found, [np.linalg.cond(regular, p), *[math.inf] * 3], rtol=1e-12)


def test_eigenvalues_below_zero_count_by_their_size(rng):
    """The rank and the pseudoinverse of a Hermitian matrix leave out what is small beside the largest in size."""
    q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    a = q @ np.diag([-2.0, 0.5, 1e-20]) @ q.T
    a = np.tril(a) + np.tril(a, -1).T
    assert linalg.matrix_rank(lucid.tensor(a), hermitian=True).item() == 2
    expected = q @ np.diag([-0.5, 2.0, 0.0]) @ q.T
    np.testing.assert_allclose(numbers(linalg.pinv(lucid.tensor(a), hermitian=True)), expected, rtol=0, atol=1e-12)
    a = np.diag([-2.0, 1e-20, 1e-20])
    assert linalg.matrix_rank(lucid.tensor(a), hermitian=True).item() == 1
    np.testing.assert_array_equal(numbers(linalg.pinv(lucid.tensor(a), hermitian=True)), np.diag([-0.5, 0.0, 0.0]))


@pytest.mark.parametrize(("stack", "sides"), [((), (2,)), ((2,), ()), ((2, 1), (3,))])
def test_equations_with_singular_matrices_broadcast(stack, sides, rng):
    """The forms that do not raise give the others' solutions beside singular matrices, for stacks that broadcast."""
    a, b = rng.standard_normal((*stack, 3, 3)) + 4 * np.eye(3), rng.standard_normal((*sides, 3, 2))
    a[(0,) * len(stack)] = np.ones((3, 3))
    x, info = linalg.solve_ex(lucid.tensor(a), lucid.tensor(b))
    assert numbers(info).astype(bool).sum() == 1
    assert x.shape == (*np.broadcast_shapes(stack, sides), 3, 2)
    if stack:
        np.testing.assert_allclose(numbers(x)[1], np.linalg.solve(a[1], b), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "cholesky",
        "inv",
        "det",
        "slogdet",
        "lu",
        "qr",
        "svd",
        "svdvals",
        "eig",
        "eigh",
        "eigvalsh",
        "pinv",
        "matrix_exp",
    ],
)
def test_operands_stay_as_they_are(name, shape, turned, rng):
    """Libraries work in place: what they get is a copy, of rows and of columns, of one matrix and of a stack."""
    a = rng.standard_normal(shape)
    a = a @ a.swapaxes(-1, -2) + 4 * np.eye(3)
    x = lucid.tensor(a)
    getattr(linalg, name)(x.mT if turned else x)
    np.testing.assert_array_equal(numbers(x), a)
    b = lucid.tensor(rng.standard_normal(shape))
    before = numbers(b).copy()
    for solved in (linalg.solve(x, b), linalg.solve_triangular(x, b, upper=True)):
        assert np.isfinite(numbers(solved)).all()
        np.testing.assert_array_equal(numbers(b), before)
        np.testing.assert_array_equal(numbers(x), a)


@pytest.mark.parametrize("driver", ["gels", "gelsd", "gelss"])
@pytest.mark.parametrize("rows", [2, 3, 4])
def test_what_is_left_is_told_of_more_equations_than_unknowns(rows, driver, rng):
    """Sums of squares are given where there are more rows than columns, and no numbers elsewhere, as NumPy does."""
    a, b = rng.standard_normal((rows, 3)), rng.standard_normal((rows, 2))
    found = numbers(linalg.lstsq(lucid.tensor(a), lucid.tensor(b), driver=driver).residuals)
    expected = np.linalg.lstsq(a, b, rcond=None)[1]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_stack_is_each_of_its_parts(rng):
    """Of stacks of matrices, and of vectors beside them, each answer is that of the parts on their own."""
    a, square = rng.standard_normal((3, 5, 2)), rng.standard_normal((3, 4, 4)) + 4 * np.eye(4)
    y, b, sides = rng.standard_normal((3, 5)), rng.standard_normal((3, 4)), rng.standard_normal((3, 4, 2))
    symmetric = square + square.transpose(0, 2, 1)
    calls = [
        *[(lambda a, y, d=d: linalg.lstsq(a, y, driver=d), (a, y)) for d in ("gels", "gelsd", "gelsy")],
        (lambda a, y: linalg.lstsq(a, y.unsqueeze(-1), driver="gelsd"), (a, y)),
        (linalg.solve, (square, b)), (linalg.solve, (square, sides)), (linalg.solve_ex, (square, sides)),
        (lambda m, s: linalg.solve(m, s.mT, left=False), (square, sides)),
        (lambda m, s: linalg.solve_triangular(m, s, upper=True), (square, sides)),
        (linalg.pinv, (a,)), (linalg.matrix_rank, (a,)), (linalg.cond, (a,)), (linalg.svdvals, (a,)),
        (linalg.slogdet, (square,)), (linalg.inv, (square,)), (lambda m: linalg.matrix_power(m, -3), (square,)),
        (linalg.matrix_exp, (square / 8,)), (linalg.eigvalsh, (symmetric,)), (linalg.lu_factor, (square,)),
        (lambda m, s: linalg.lu_solve(*linalg.lu_factor(m), s), (square, sides)),
        (lambda m: linalg.matrix_norm(m, "nuc"), (a,)), (lambda m: linalg.matrix_norm(m, 1), (a,)),
        (lambda m, s: lucid.cholesky_solve(s, linalg.cholesky(m @ m.mT)), (square, sides)),
    ]  # fmt: skip

    def answers(call, operands):
        found = call(*map(lucid.tensor, operands))
        return [numbers(each) for each in (found if isinstance(found, tuple) else (found,))]

    for number, (call, operands) in enumerate(calls):
        parts = [answers(call, [each[k] for each in operands]) for k in range(3)]
        for made, *expected in zip(answers(call, operands), *parts, strict=True):
            if expected[0].size:
                np.testing.assert_allclose(made, np.stack(expected), rtol=1e-9, atol=1e-12, err_msg=str(number))


def test_memory_of_the_gradient_of_qr(rng):
    """The gradient takes memory for five more matrices at most."""
    a = lucid.tensor(rng.standard_normal((400, 400)), dtype=lucid.float32, device="cpu", requires_grad=True)
    for _ in range(2):  # the first pass makes what is kept
        q, r = linalg.qr(a)
        total = q.sum() + r.sum()
        with traced() as memory:
            lucid.autograd.grad(total, a)
    assert memory.most < 5.5 * a.array.nbytes
