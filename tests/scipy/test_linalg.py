"""`lucid.scipy.linalg`: what its rows do not say; and the dtypes of all modules."""

from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np
import pytest
import scipy.linalg

import lucid
from lucid import numpy as lnp
from lucid.errors import NotDifferentiableError
from lucid.scipy import integrate, linalg, ndimage, signal
from tests.scipy.checks import values

pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


OF_EACH_DTYPE = """
signal.fftconvolve(x, y) | signal.oaconvolve(x, y) | signal.convolve(x, y) | signal.detrend(x) | signal.resample(x, 5)
signal.savgol_filter(x, 3, 1) | signal.detrend(x, type="constant") | signal.medfilt(x) | fft.fft(x) | fft.irfft(x)
fft.ifft(x, 5) | fft.hfft(x) | fft.irfftn(x) | fft.dct(x) | ndimage.gaussian_filter(x, 1) | ndimage.laplace(x)
ndimage.maximum_filter(x, 2) | ndimage.median_filter(x, 3) | ndimage.shift(x, 0.5) | ndimage.spline_filter(x)
linalg.norm(x) | linalg.norm(x[:0]) | special.logsumexp(x, b=2) | special.logsumexp(x, b=y) | integrate.trapezoid(y, x)
integrate.trapezoid(x, y) | integrate.cumulative_trapezoid(x, initial=0) | special.softmax(x) | integrate.simpson(x)
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of SciPy from 1.18 on, about norms of halves
@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_each_dtype_beside_what_is_recorded(dtype, rng):
    """Of half precision and integers, too, the dtype is SciPy's, or both sides refuse."""
    for other in "bBqfd":
        values, beside = rng.uniform(1, 2, 4).astype(dtype), np.array([1, 3, 4, 2]).astype(other)
        for call in (call.strip() for line in OF_EACH_DTYPE.strip().splitlines() for call in line.split("|")):
            wanted = outcome("scipy", call, x=values, y=beside)
            got = outcome("lucid.scipy", call, x=lnp.asarray(lucid.tensor(values, requires_grad=True)), y=beside)
            assert (wanted is None) is (got is None), (call, other, wanted, got)
            if wanted is not None:
                assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), (call, other)
                tolerance = 1e-2 if dtype == "e" else 2e-6
                np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=call)


def outcome(package, call, **arrays):
    """Return the result of a call of a package as an array, or None where it refuses."""
    name = call.partition(".")[0]
    try:
        result = eval(call, {name: import_module(f"{package}.{name}"), **arrays})
    except (RuntimeError, ValueError, TypeError):
        return None
    return result.detach().numpy() if isinstance(result, lucid.Tensor) else np.asarray(result)


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_determinants_of_single_precision(size):
    """They are products of double precision, which neither over- nor underflow, and so are their gradients."""
    a = np.stack([np.diag([size, size])] * 2).astype("f")
    leaf = lucid.tensor(a, requires_grad=True)
    result = linalg.det(leaf)
    np.testing.assert_allclose(result.detach().numpy(), scipy.linalg.det(a.astype(float)), rtol=1e-12)
    (gradient,) = lucid.autograd.grad(result, leaf, lucid.ones(2, dtype=lucid.float64))
    assert gradient.dtype == lucid.float32
    np.testing.assert_allclose(gradient.numpy(), a, rtol=1e-6)


def test_matrices_of_half_precision(rng):
    """LAPACK's functions take them in single precision, as SciPy's do."""
    a, b = (np.eye(3) * 4 + rng.uniform(0, 1, (3, 3))).astype("e"), rng.uniform(1, 2, 3).astype("e")
    for call in (
        lambda l, a: l.inv(a), lambda l, a: l.expm(a), lambda l, a: l.pinv(a), lambda l, a: l.solve(a, b),
        lambda l, a: l.solve_triangular(a, b), lambda l, a: l.cholesky(a + a.T), lambda l, a: l.cho_solve((a, True), b),
        lambda l, a: l.eigh(a)[0], lambda l, a: l.eigvalsh(a), lambda l, a: l.svd(a)[1], lambda l, a: l.svdvals(a),
    ):  # fmt: skip
        result = call(linalg, lnp.asarray(lucid.tensor(a, requires_grad=True)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of SciPy 1.18, which casts them itself
            expected = call(scipy.linalg, a)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-4)


def test_what_scipy_has_none_of():
    """Filters along no axis leave an array as it is; matrices are no vectors; the first integral is 0, also of NaN."""
    x = lnp.asarray(lucid.tensor(2.0, requires_grad=True))
    for y in (ndimage.laplace(x), ndimage.gaussian_laplace(x, 1), ndimage.gaussian_gradient_magnitude(x, 1)):
        assert y.item() == 2.0
        assert y is not x
    square = lucid.ones(2, 2, requires_grad=True)
    for function in (linalg.toeplitz, linalg.hankel):
        with pytest.raises(ValueError, match="expected vectors"):
            function(square)
    with pytest.raises(TypeError, match="expected real numbers"):
        signal.savgol_filter(lucid.ones(5, dtype=lucid.complex64, requires_grad=True), 3, 1)
    integral = integrate.cumulative_trapezoid(lucid.tensor([np.nan, 1.0], requires_grad=True), initial=0)
    assert integral[0].item() == 0.0


def test_eigenvectors_have_the_signs_of_scipys_driver(rng):
    """Of each eigenvector's signs, or phases, it is SciPy's; degenerate ones stay what they are, and finite."""
    for k in range(2, 12):
        for part in (0, 1j):
            a = rng.standard_normal((k, k)) + part * rng.standard_normal((k, k))
            for lower, one in ((True, a), (False, a.astype("F" if part else "f"))):
                wanted = scipy.linalg.eigh(one, lower=lower)
                for made, other in zip(
                    linalg.eigh(lucid.tensor(one, requires_grad=True), lower=lower), wanted, strict=True
                ):
                    np.testing.assert_allclose(made.detach().numpy(), other, atol=1e-10 if lower else 1e-4)
                    assert made.dtype == other.dtype
    same = linalg.eigh(lnp.asarray(lucid.eye(3, requires_grad=True)))[1]
    np.testing.assert_array_equal(abs(same.detach().numpy()), np.eye(3))


@pytest.mark.parametrize("shape", [(0,), (0, 2), (4, 0)])
def test_no_equation(shape):
    """Of no equation, or of no right side, the solution is empty, and so are the gradients."""
    diagonals = lucid.tensor(np.ones((3, shape[0])), requires_grad=True)
    right = lucid.tensor(np.zeros(shape), requires_grad=True)
    solution = linalg.solve_banded((1, 1), diagonals, right)
    assert solution.shape == scipy.linalg.solve_banded((1, 1), np.ones((3, shape[0])), np.zeros(shape)).shape
    lnp.sum(solution).backward()
    assert (tuple(right.grad.shape), tuple(diagonals.grad.shape)) == (shape, (3, shape[0]))


def test_singular_triangles():
    """A zero on the diagonal that is read raises, as in SciPy; `cho_solve` divides by it there, too."""
    a, b = np.array([[1.0, 1.0], [1.0, 0.0]]), np.ones(2)
    leaf = lucid.tensor(a, requires_grad=True)
    for package, matrix in ((scipy.linalg, a), (linalg, leaf), (linalg, lnp.stack([leaf, leaf]))):
        with pytest.raises(ValueError, match=r"singular.*(diagonal 1|element 1 of its diagonal)"):
            package.solve_triangular(matrix, b, lower=True)
    assert values(linalg.solve_triangular(leaf, b, lower=True, unit_diagonal=True)).tolist() == [1, 0]
    np.testing.assert_array_equal(values(linalg.cho_solve((leaf, True), b)), scipy.linalg.cho_solve((a, True), b))


def test_banded_systems_of_several_right_sides(rng):
    """The equations of one matrix are solved for vectors, matrices and batches of these."""
    diagonals = rng.standard_normal((3, 4))
    diagonals[1] += 4
    for shape in ((4,), (4, 2), (3, 4, 2)):
        b = rng.standard_normal(shape)
        result = linalg.solve_banded((1, 1), lucid.tensor(diagonals, requires_grad=True), b)
        np.testing.assert_allclose(values(result), scipy.linalg.solve_banded((1, 1), diagonals, b), atol=1e-14)


def test_least_squares_that_are_singular():
    """The rank is SciPy's, and nothing remains of equations that are fewer than unknowns or of one rank."""
    a, b = np.outer([1.0, 2, 3, 4], [1.0, 1]), np.array([1.0, 0, 0, 0])
    for mine, other in zip(linalg.lstsq(lucid.tensor(a, requires_grad=True), b), scipy.linalg.lstsq(a, b), strict=True):
        np.testing.assert_allclose(values(mine), other, atol=1e-14)


def test_modes_of_qr():
    """Those without a derivative or a rule are refused with what to take."""
    leaf = lucid.tensor(np.eye(4)[:, :2], requires_grad=True)
    with pytest.raises(TypeError, match=r"the mode can be 'full', 'economic' or 'r', got 'raw'"):
        linalg.qr(leaf, mode="raw")
    with pytest.raises(TypeError, match=r"pivoting"):
        linalg.qr(leaf, pivoting=True)
    with pytest.raises(NotDifferentiableError, match=r"mode='complete' has no derivative"):
        linalg.qr(leaf)[0].sum().backward()


def test_the_cutoff_of_single_precision():
    """Singular values below the precision of the dtype count as zero, as in SciPy."""
    for dtype in (np.float32, np.float64):
        a, b = np.diag([1.0, 0.5, 3e-8]).astype(dtype), np.ones(3, dtype)
        x, _, rank, _ = linalg.lstsq(lucid.tensor(a, requires_grad=True), b)
        expected = scipy.linalg.lstsq(a, b)
        assert int(rank) == expected[2] == (2 if dtype == np.float32 else 3)
        np.testing.assert_allclose(x.detach().numpy(), expected[0], rtol=1e-5)
