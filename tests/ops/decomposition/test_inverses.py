"""Singular matrices and gradients at them, `info`, dtypes and shapes that are refused, named tuples."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import lucid
from lucid import linalg
from lucid.errors import DtypeError, ShapeError
from tests.gradients import numbers

FACTORS = {
    "inv": linalg.inv,
    "det": linalg.det,
    "slogdet": linalg.slogdet,
    "cholesky": linalg.cholesky,
    "eigh": linalg.eigh,
    "eigvalsh": linalg.eigvalsh,
    "matrix_exp": linalg.matrix_exp,
}
ANY = {
    "svd": linalg.svd,
    "svdvals": linalg.svdvals,
    "qr": linalg.qr,
    "pinv": linalg.pinv,
    "lu_factor": linalg.lu_factor,
}


def stack(rng):
    """Return three matrices, of which the second is singular and the third indefinite."""
    regular = rng.standard_normal((3, 3)) + 4 * np.eye(3)
    return np.stack([regular @ regular.T, np.ones((3, 3)), np.diag([1.0, 1.0, -1.0])])


@pytest.mark.parametrize("name", ["inv", "solve", "lu_factor"])
def test_a_singular_matrix_is_named(name, rng):
    """The error says which matrix of the stack has no inverse, and of which row; it is a RuntimeError."""
    a = lucid.tensor(stack(rng).reshape(1, 3, 3, 3))
    call = getattr(linalg, name)
    with pytest.raises(linalg.LinAlgError, match=rf"linalg.{name}: \(batch element 0, 1\): .* element 2 of"):
        call(a, lucid.ones(3, 1, dtype=lucid.float64)) if name == "solve" else call(a)
    assert issubclass(linalg.LinAlgError, RuntimeError)


def test_a_matrix_that_is_not_positive_is_named(rng):
    """The error says which matrix of the stack is not positive-definite, and at which minor."""
    with pytest.raises(linalg.LinAlgError, match=r"cholesky: \(batch element 1\): .* order 2"):
        linalg.cholesky(lucid.tensor(stack(rng)))
    with pytest.raises(linalg.LinAlgError, match=r"cholesky: the matrix .* order 3"):
        linalg.cholesky(lucid.tensor(stack(rng)[2]))


def test_info_says_what_an_error_would(rng):
    """The forms in `_ex` give 0 for each matrix that is well, and its result, and raise only if asked."""
    array = stack(rng)
    a, b = lucid.tensor(array), lucid.tensor(rng.standard_normal((3, 3, 2)))
    inverse, info = linalg.inv_ex(a)
    assert info.tolist() == [0, 2, 0]
    assert info.dtype == lucid.int32
    for k in (0, 2):
        np.testing.assert_allclose(numbers(inverse[k]), np.linalg.inv(array[k]), rtol=1e-9, atol=1e-12)
    x, info = linalg.solve_ex(a, b)
    assert info.tolist() == [0, 2, 0]
    for k in (0, 2):
        np.testing.assert_allclose(numbers(x[k]), np.linalg.solve(array[k], numbers(b[k])), rtol=1e-9, atol=1e-12)
    factor, info = linalg.cholesky_ex(a)
    assert info.tolist() == [0, 2, 3]
    np.testing.assert_allclose(numbers(factor[0]), np.linalg.cholesky(array[0]), rtol=1e-9, atol=1e-12)
    assert linalg.lu_factor_ex(a).info.tolist() == [0, 2, 0]
    for call in (linalg.inv_ex, linalg.cholesky_ex, linalg.lu_factor_ex):
        with pytest.raises(linalg.LinAlgError, match="batch element 1"):
            call(a, check_errors=True)
    with pytest.raises(linalg.LinAlgError, match="batch element 1"):
        linalg.solve_ex(a, b, check_errors=True)


def cofactors(a):
    """Return the gradient of the determinant, each minor by itself."""
    n = len(a)
    out = np.empty_like(a)
    for i, j in itertools.product(range(n), range(n)):
        out[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
    return out


@pytest.mark.parametrize("rank", [4, 3, 2, 0])
def test_the_gradient_of_a_determinant_is_right_at_any_rank(rank, rng):
    """The determinant's gradient holds the cofactors, also where there is no inverse."""
    a = rng.standard_normal((4, rank)) @ rng.standard_normal((rank, 4))
    x = lucid.tensor(np.stack([a, 2 * a]), requires_grad=True)
    upstream = rng.standard_normal(2)
    linalg.det(x).backward(lucid.tensor(upstream))
    expected = upstream[:, None, None] * np.stack([cofactors(a), cofactors(2 * a)])
    np.testing.assert_allclose(numbers(x.grad), expected, rtol=0, atol=1e-10 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize(("n", "rank"), [(1, 0), (2, 2), (2, 1), (2, 0), (4, 4), (4, 3), (4, 2), (4, 1), (5, 3)])
def test_second_derivatives_of_a_determinant_at_any_rank(n, rank, kind, rng):
    """They are minors of two rows and columns less, without a division: cofactors are differenced in a direction."""

    def drawn(*shape):
        z = rng.standard_normal(shape)
        return z + 1j * rng.standard_normal(shape) if kind == "complex" else z

    a, along, weights = drawn(n, rank) @ drawn(rank, n), drawn(n, n), drawn(n, n)
    x = lucid.tensor(np.stack([a, 2 * a]), requires_grad=True)
    (first,) = lucid.autograd.grad(linalg.det(x).sum().real, x, create_graph=True)
    (second,) = lucid.autograd.grad((first * lucid.tensor(weights)).sum().real, x)
    for number, factor in zip(numbers(second), (1, 2), strict=True):
        # each minor is a polynomial of a low degree in the step, of which central differences lose a little
        up, down = (cofactors(factor * a + step * along) for step in (1e-4, -1e-4))
        expected = ((up - down) / 2e-4 * np.conj(weights)).sum().real
        assert (np.conj(number) * along).sum().real == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_second_derivatives_of_a_nearly_singular_determinant():
    """No digit is lost near a singular matrix: of two rows they are 1 and -1 at any matrix."""
    a = lucid.tensor([[1.0, 2.0], [2.0, 4.0 + 1e-14]], dtype=lucid.float64)
    expected = np.zeros((2, 2, 2, 2))
    expected[0, 0, 1, 1] = expected[1, 1, 0, 0] = 1
    expected[0, 1, 1, 0] = expected[1, 0, 0, 1] = -1
    np.testing.assert_allclose(numbers(lucid.func.hessian(linalg.det)(a)), expected, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_third_derivatives_of_a_determinant(n, rng):
    """Of a regular matrix the second ones are differentiated again, by the matrix and by the direction."""
    a, along, other, third = rng.standard_normal((4, n, n))

    def second(values):
        x = lucid.tensor(values, requires_grad=True)
        d = lucid.tensor(along, requires_grad=True)
        (first,) = lucid.autograd.grad(linalg.det(x), x, create_graph=True)
        (again,) = lucid.autograd.grad((first * d).sum(), x, create_graph=True)
        return (again * lucid.tensor(other)).sum(), x, d

    value, x, d = second(a)
    by_matrix, by_direction = lucid.autograd.grad(value, (x, d))
    up, down = (second(a + step * third)[0].item() for step in (1e-5, -1e-5))
    assert (numbers(by_matrix) * third).sum() == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-8)
    assert (numbers(by_direction) * along).sum() == pytest.approx(value.item(), rel=1e-9)


def test_a_determinant_of_zero():
    """Of a singular matrix the sign is 0 and the logarithm minus infinity; that of a negative determinant is NaN."""
    sign, size = linalg.slogdet(lucid.zeros(2, 2))
    assert (sign.item(), size.item()) == (0, -float("inf"))
    assert lucid.logdet(lucid.zeros(2, 2)).item() == -float("inf")
    assert np.isnan(lucid.logdet(-lucid.eye(3)).item())


@pytest.mark.parametrize("name", [*FACTORS, *ANY])
def test_other_dtypes_are_refused(name):
    """Half types and integers raise a DtypeError that names the function and the dtype."""
    call = {**FACTORS, **ANY}[name]
    for dtype in ("float16", "bfloat16", "int64"):
        with pytest.raises(DtypeError, match=rf"linalg.{name}: .*got lucid.{dtype}"):
            call(lucid.ones(2, 2, dtype=getattr(lucid, dtype)))


@pytest.mark.parametrize("name", FACTORS)
def test_other_shapes_are_refused(name):
    """What is not square, or no matrix, raises a ShapeError that shows the shape."""
    for shape in ((2, 3), (3,)):
        with pytest.raises(ShapeError, match=rf"linalg.{name}: .*got shape \[{shape[0]}"):
            FACTORS[name](lucid.ones(*shape))


def test_half_types_within_autocast():
    """Under autocast the matrices of half types are float32."""
    with lucid.autocast(lucid.get_default_device().type, dtype=lucid.bfloat16):
        assert linalg.inv(lucid.eye(2, dtype=lucid.bfloat16)).dtype == lucid.float32


def test_equations_that_do_not_fit(rng):
    """Operands of several dtypes and sizes are refused, and vectors on the left."""
    a = lucid.tensor(rng.standard_normal((3, 3)))
    with pytest.raises(ShapeError, match="does not fit"):
        linalg.solve(a, lucid.ones(2, 2, dtype=lucid.float64))
    with pytest.raises(DtypeError, match="one dtype"):
        linalg.solve(a, lucid.ones(3))
    with pytest.raises(ShapeError, match="must be matrices"):
        linalg.solve(a, lucid.ones(3, dtype=lucid.float64), left=False)
    with pytest.raises(ShapeError, match="leading dimensions"):
        linalg.solve(a.expand(2, 3, 3), lucid.ones(5, 3, 1, dtype=lucid.float64))


SOLVED = {
    "solve": lambda a, b, left: linalg.solve(a, b, left=left),
    "solve_triangular": lambda a, b, left: linalg.solve_triangular(a, b, upper=True, left=left),
    "lu_solve": lambda a, b, left: linalg.lu_solve(*linalg.lu_factor(a), b, left=left),
    "cholesky_solve": lambda a, b, left: lucid.cholesky_solve(b, a) if left else None,
}


@pytest.mark.parametrize("name", SOLVED)
def test_sides_that_do_not_fit_their_matrices(name):
    """Every system says which product does not fit, with both shapes, whichever side the matrix is on; so do stacks."""
    solve, eye = SOLVED[name], lucid.eye(3)
    for left, fits, others in ((True, (3, 2), ((2, 3), (4, 2), (1, 3))), (False, (2, 3), ((3, 2), (2, 4), (3, 1)))):
        if not left and name == "cholesky_solve":
            continue
        assert solve(eye, lucid.ones(fits), left).tolist() == lucid.ones(fits).tolist()
        equation = "A @ X = B" if left else "X @ A = B"
        for shape in others:
            words = f"{equation} does not fit: A has shape [3, 3], B has shape {list(shape)}"
            with pytest.raises(ShapeError, match=re.escape(words)):
                solve(eye, lucid.ones(shape), left)
        with pytest.raises(ShapeError):
            solve(eye.expand(2, 3, 3), lucid.ones(4, *fits), left)


def test_large_matrices(rng):
    """Elimination and substitution by columns give what LAPACK gives on some hundred rows."""
    a, b = rng.standard_normal((150, 150)), rng.standard_normal((150, 3))
    packed, pivots = linalg.lu_factor(lucid.tensor(a))
    x = linalg.lu_solve(packed, pivots, lucid.tensor(b))
    np.testing.assert_allclose(numbers(x), np.linalg.solve(a, b), rtol=1e-7, atol=1e-7)
    p, lower, upper = linalg.lu(lucid.tensor(a))
    np.testing.assert_allclose(numbers(p @ lower @ upper), a, rtol=1e-10, atol=1e-10)


def test_keywords_of_pytorch(rng):
    """The matrices are `A` and, as in `lucid`, also `input`; `out` takes results."""
    a = lucid.tensor(rng.standard_normal((3, 3)))
    out = lucid.empty(0, dtype=lucid.float64)
    assert lucid.inverse(input=a, out=out) is out
    np.testing.assert_array_equal(numbers(out), numbers(linalg.inv(A=a)))


@pytest.mark.parametrize("n", [0, 1])
def test_a_power_of_matrices_is_a_tensor_of_its_own(n):
    """What is written into a power 0 or 1 of a stack changes neither the stack nor another matrix of the power."""
    stack = lucid.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    power = lucid.matrix_power(stack, n)
    other = power[1].tolist()
    power[0].fill_(9.0)
    assert power[1].tolist() == other
    assert stack[0].tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("dtype", [lucid.float64, lucid.complex64])
def test_the_power_of_none_has_the_dtype_of_the_matrix(dtype):
    """A matrix to the power of 0 is the identity in the matrix's dtype."""
    assert lucid.matrix_power(lucid.ones(2, 2, dtype=dtype), 0).dtype is dtype


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize(("limits", "kept"), [({}, 1), ({"atol": 0.0}, 1), ({"atol": 1e-20}, 2), ({"atol": 1e-16}, 1)])
def test_an_absolute_tolerance_stands_alone(hermitian, limits, kept):
    """Above zero it replaces the relative one; at zero, or without it, what is below the eps of the largest is left."""
    a = lucid.tensor(np.diag([1.0, 1e-17]))
    assert linalg.matrix_rank(a, hermitian=hermitian, **limits).item() == kept
    expected = np.diag([1.0, 1e17 if kept == 2 else 0.0])
    np.testing.assert_allclose(numbers(linalg.pinv(a, hermitian=hermitian, **limits)), expected, rtol=1e-12)
