"""Vectors that are not determined, and what does not converge."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import linalg
from lucid.errors import NotDifferentiableError, SettingError
from tests.gradients import numbers


def test_a_loss_of_the_phase_is_refused(rng):
    """Complex vectors have any factor of size 1: a loss that depends on it has no gradient, and says so."""
    a = rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3))
    x = lucid.tensor(a, requires_grad=True)
    weight = lucid.tensor(rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3)))
    with pytest.raises(NotDifferentiableError, match="phase"):
        (linalg.svd(x).U * weight).real.sum().backward()
    with pytest.raises(NotDifferentiableError, match="phase"):
        (linalg.eigh(x + x.mH).eigenvectors * weight).real.sum().backward()
    with pytest.raises(NotDifferentiableError, match="phase"):
        (linalg.eig(x).eigenvectors * weight).real.sum().backward()


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_eigenvectors_have_the_length_one_and_the_gradient_that_it_leaves(kind, rng):
    """Of a matrix of any kind ``A @ V = V @ diag(w)``, and gradients by differences of NumPy's values, weighed."""
    a = rng.standard_normal((4, 4)) + (1j * rng.standard_normal((4, 4)) if kind == "complex" else 0)
    weights = rng.standard_normal(4) + 1j * rng.standard_normal(4), rng.standard_normal((4, 4))
    x = lucid.tensor(a, requires_grad=True)
    values, vectors = linalg.eig(x)
    w, v = numbers(values), numbers(vectors)
    np.testing.assert_allclose(a @ v, v * w, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(numbers(linalg.eigvals(x)), w, rtol=1e-12)
    loss = (values * lucid.tensor(weights[0])).real.sum() + (vectors.abs() * lucid.tensor(weights[1])).sum()
    (grad,) = lucid.autograd.grad(loss, x)
    along = rng.standard_normal((4, 4)) + (1j * rng.standard_normal((4, 4)) if kind == "complex" else 0)

    def at(step):
        w, v = np.linalg.eig(a + step * along)
        return (w * weights[0]).real.sum() + (abs(v) * weights[1]).sum()

    slope = (at(1e-6) - at(-1e-6)) / 2e-6
    np.testing.assert_allclose(np.vdot(along, numbers(grad)).real, slope, rtol=1e-6)


@pytest.mark.cpu("a device's library chooses signs of its own")
@pytest.mark.parametrize("name", ["eigh", "eigvalsh"])
def test_upper_triangles_give_what_numpy_gives_of_them(name, rng):
    """Values and vectors, with their signs, are LAPACK's for the triangle that is read."""
    a = rng.standard_normal((2, 4, 4)) + 1j * rng.standard_normal((2, 4, 4))
    for word in ("L", "U"):
        found, expected = getattr(linalg, name)(lucid.tensor(a), word), getattr(np.linalg, name)(a, word)
        for one, other in zip(*[(r if name == "eigh" else (r,)) for r in (found, expected)], strict=True):
            np.testing.assert_allclose(numbers(one), other, rtol=1e-10, atol=1e-12)


def test_equal_values_have_gradients_without_vectors():
    """Singular values, eigenvalues, norms and pseudoinverses have gradients where values are equal."""
    x = lucid.eye(3, dtype=lucid.float64).requires_grad_()
    for call in (linalg.svdvals, linalg.eigvalsh, lambda a: linalg.matrix_norm(a, "nuc"), linalg.pinv):
        (grad,) = lucid.autograd.grad(call(x).sum(), x)
        assert np.isfinite(numbers(grad)).all()


@pytest.mark.parametrize("name", ["svd", "svdvals", "eig", "eigvals", "eigh", "eigvalsh"])
def test_what_is_not_finite_does_not_converge(name):
    """NaN raises a LinAlgError, or gives NaN."""
    a = lucid.full((3, 3), float("nan"))
    try:
        result = getattr(linalg, name)(a)
    except linalg.LinAlgError as error:
        assert "converge" in str(error)  # noqa: PT017 - it may not raise
    else:
        values = result if isinstance(result, lucid.Tensor) else result[1 if name == "svd" else 0]
        assert np.isnan(numbers(values)).all()


def test_the_gradient_of_eigenvalues_is_that_of_the_whole_matrix(rng):
    """The gradient of a Hermitian matrix is Hermitian, though one triangle is read."""
    a = rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4))
    x = lucid.tensor(a + a.conj().T, requires_grad=True)
    values, vectors = linalg.eigh(x)
    weight = lucid.tensor(rng.standard_normal((4, 4)))
    (vectors.abs() * weight).sum().backward(retain_graph=True)
    values.backward(lucid.tensor(rng.standard_normal(4)))
    grad = numbers(x.grad)
    np.testing.assert_allclose(grad, grad.conj().T, rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 3, 0)])
@pytest.mark.parametrize("order", ["fro", "nuc", 1, 2, float("inf")])
def test_norms_of_nothing_are_sums_of_nothing(shape, order):
    """The norm of an empty matrix is 0, of every order that has a largest or a sum, and so is its condition."""
    x = lucid.zeros(shape, dtype=lucid.float64, requires_grad=True)
    out = linalg.matrix_norm(x, order)
    np.testing.assert_array_equal(numbers(out), np.zeros(shape[:-2]))
    assert linalg.matrix_norm(x, order, keepdim=True).shape == (*shape[:-2], 1, 1)
    assert linalg.cond(x, order).shape == shape[:-2]
    (grad,) = lucid.autograd.grad(out.sum(), x)
    assert grad.shape == shape


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, float("inf")])
def test_the_condition_of_a_singular_matrix_is_infinite(rng, order):
    """It is, in a stack too, of which the others have their own."""
    regular = rng.standard_normal((3, 3)) + 3 * np.eye(3)
    found = numbers(linalg.cond(lucid.tensor(np.stack([np.ones((3, 3)), regular])), order))
    assert found[0] == np.inf
    np.testing.assert_allclose(found[1], np.linalg.cond(regular, order), rtol=1e-10)


def test_rcond_is_the_relative_limit(rng):
    """It stands for `rtol`, as number and as tensor, and not beside one; least squares by "gels" do not look at it."""
    a = lucid.tensor(rng.standard_normal((4, 3)) * [1.0, 1.0, 1e-3])
    for limit in (0.1, lucid.tensor(0.1)):
        np.testing.assert_allclose(numbers(linalg.pinv(a, limit)), np.linalg.pinv(numbers(a), 0.1), atol=1e-10)
    with pytest.raises(SettingError, match="rcond stands for rtol"):
        linalg.pinv(a, 0.1, rtol=0.1)
    b = lucid.tensor(rng.standard_normal((4, 2)))
    np.testing.assert_allclose(
        numbers(linalg.lstsq(a, b, 0.1, driver="gels").solution), np.linalg.lstsq(numbers(a), numbers(b))[0], atol=1e-8
    )
    np.testing.assert_allclose(
        numbers(linalg.lstsq(a, b, 0.1, driver="gelsd").solution),
        np.linalg.lstsq(numbers(a), numbers(b), 0.1)[0],
        atol=1e-8,
    )


def test_named_tuples():
    """Results have PyTorch's names."""
    a = lucid.eye(2)
    assert linalg.svd(a)._fields == ("U", "S", "Vh")
    assert lucid.svd(a)._fields == ("U", "S", "V")
    assert linalg.eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.qr(a)._fields == ("Q", "R")
    assert linalg.slogdet(a)._fields == ("sign", "logabsdet")
    assert linalg.lu(a)._fields == ("P", "L", "U")
    assert linalg.lu_factor(a)._fields == ("LU", "pivots")
    assert linalg.lu_factor_ex(a)._fields == ("LU", "pivots", "info")
    assert linalg.inv_ex(a)._fields == ("inverse", "info")
    assert linalg.solve_ex(a, a)._fields == ("result", "info")
    assert linalg.cholesky_ex(a)._fields == ("L", "info")
    assert linalg.lstsq(a, a)._fields == ("solution", "residuals", "rank", "singular_values")
    assert lucid.geqrf(a)._fields == ("a", "tau")


@pytest.mark.parametrize("call", [lambda a: linalg.qr(a, "complete").R, lambda a: linalg.qr(a, "r").R, lucid.geqrf])
def test_factors_without_a_derivative(call, rng):
    """Backward through what has no derivative raises."""
    x = lucid.tensor(rng.standard_normal((4, 2)), requires_grad=True)
    out = call(x)
    with pytest.raises(NotDifferentiableError, match="no derivative"):
        (out if isinstance(out, lucid.Tensor) else out[0]).sum().backward()


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 3, 5), (2, 5, 3)])
def test_vectors_that_a_full_decomposition_adds_change_no_gradient(shape, rng):
    """A loss of what the reduced one has too has the same gradient, of tall and of wide matrices."""
    x = lucid.tensor(rng.standard_normal(shape), requires_grad=True)
    k, weights = min(shape[-2:]), lucid.tensor(rng.standard_normal(shape))
    of_values, of_vectors = [], []
    for full in (False, True):
        u, s, vh = linalg.svd(x, full)
        of_values.append(numbers(lucid.autograd.grad((s**3).sum(), x, retain_graph=True)[0]))
        whole = (u[..., :k] * (s * s).unsqueeze(-2)) @ vh[..., :k, :]
        of_vectors.append(numbers(lucid.autograd.grad((whole * weights).sum(), x)[0]))
    np.testing.assert_allclose(*of_values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(*of_vectors, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["eigh", "eigvalsh"])
@pytest.mark.parametrize("part", ["L", "U"])
def test_the_gradient_reads_the_part_that_the_values_do(name, part, rng):
    """What lies in the other triangle changes neither the eigenvalues nor their gradient."""
    whole = rng.standard_normal((4, 4))
    whole = whole + whole.T
    other = rng.standard_normal((4, 4))
    half = np.tril(whole) + np.triu(other, 1) if part == "L" else np.triu(whole) + np.tril(other, -1)
    upstream, outcomes = lucid.tensor(rng.standard_normal(4)), []
    for matrix in (whole, half):
        x = lucid.tensor(matrix, requires_grad=True)
        result = getattr(lucid.linalg, name)(x, UPLO=part)
        values = result if name == "eigvalsh" else result[0]
        outcomes.append([numbers(values), numbers(lucid.autograd.grad(values, x, upstream)[0])])
    for got, wanted in zip(*reversed(outcomes), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)
