"""What holds NaN or infinity has no factors: that is an error, or `info` says so, alone and in a batch."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import LinAlgError
from tests.gradients import numbers

NAN, INF = np.nan, np.inf
GOOD = [[2.0, 1.0], [1.0, 3.0]]
WRONG = {
    "nan": [[NAN, NAN], [NAN, NAN]],
    "first": [[NAN, 0.0], [0.0, 1.0]],
    "last": [[1.0, 0.0], [0.0, NAN]],
    "below": [[2.0, 0.0], [NAN, 1.0]],
    "infinity": [[INF, INF], [INF, INF]],
    "infinity and nan": [[2.0, 0.0], [INF, NAN]],
}
FINITE = {"infinite diagonal": [[INF, 0.0], [0.0, 1.0]], "negative": [[1.0, 0.0], [0.0, -INF]]}


def sides(a):
    return lucid.ones(*a.shape[:-1], 1, dtype=a.dtype, device=a.device)


L = lucid.linalg
ITERATIONS = {
    "svd": L.svd,
    "svdvals": L.svdvals,
    "eig": L.eig,
    "eigvals": L.eigvals,
    "eigh": L.eigh,
    "eigvalsh": L.eigvalsh,
    "pinv": L.pinv,
    "pinv of hermitian": lambda a: L.pinv(a, hermitian=True),
    "matrix_rank": L.matrix_rank,
    "lstsq": lambda a: L.lstsq(a, sides(a)),
    "cond": L.cond,
    "matrix_norm": lambda a: L.matrix_norm(a, 2),
    "nuclear norm": lambda a: L.matrix_norm(a, "nuc"),
}
SAID_BY_INFO = {"cholesky_ex": L.cholesky_ex, "cholesky_ex upper": lambda a: L.cholesky_ex(a.mH, upper=True)}
SAID_BY_VALUES = {
    "inv_ex": lambda a: L.inv_ex(a).inverse,
    "inv": L.inv,
    "solve": lambda a: L.solve(a, sides(a)),
    "det": L.det,
    "logdet": lambda a: lucid.logdet(a),
    "slogdet": lambda a: L.slogdet(a).logabsdet,
    "lu": lambda a: L.lu(a).U,
    "lu_factor": lambda a: L.lu_factor(a).LU,
    "qr": lambda a: L.qr(a).R,
}
each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
each_wrong = pytest.mark.parametrize("wrong", WRONG)


def made(wrong, dtype, at=None):
    """Return a matrix, or three of which that at a place is the wrong one."""
    matrix = {**WRONG, **FINITE}[wrong]
    matrices = matrix if at is None else [matrix if place == at else GOOD for place in range(3)]
    return lucid.tensor(np.array(matrices).astype(dtype))


@each_dtype
@pytest.mark.parametrize("wrong", [*WRONG, *FINITE])
@pytest.mark.parametrize("name", ITERATIONS)
def test_iterations_refuse_it(name, wrong, dtype):
    """A LinAlgError says which matrix of a batch it is."""
    with pytest.raises(LinAlgError, match=r"^the algorithm cannot converge: the input holds NaN or infinity"):
        ITERATIONS[name](made(wrong, dtype))
    with pytest.raises(LinAlgError, match=r"^\(batch element 1\): the algorithm cannot converge"):
        ITERATIONS[name](made(wrong, dtype, 1))


@each_dtype
@each_wrong
@pytest.mark.parametrize("name", SAID_BY_INFO)
def test_info_says_it(name, wrong, dtype):
    """It does not say so of the others of the batch, and what raises by it names the matrix."""
    assert SAID_BY_INFO[name](made(wrong, dtype)).info.item() > 0
    for at in range(3):
        factors, info = SAID_BY_INFO[name](made(wrong, dtype, at))
        assert [code > 0 for code in info.tolist()] == [place == at for place in range(3)]
        good = numbers(SAID_BY_INFO[name](lucid.tensor(np.array(GOOD).astype(dtype))).L)
        for place in {0, 1, 2} - {at}:
            np.testing.assert_allclose(numbers(factors)[place], good, rtol=1e-6)
        with pytest.raises(LinAlgError, match=rf"\(batch element {at}\): .* not positive-definite"):
            L.cholesky(made(wrong, dtype, at))
    with pytest.raises(LinAlgError, match="not positive-definite"):
        L.cholesky(made(wrong, dtype))


@each_dtype
@each_wrong
@pytest.mark.parametrize("name", SAID_BY_VALUES)
def test_values_say_it(name, wrong, dtype):
    """Where elimination goes through, what is made of it is no number; the others of the batch are as if alone."""
    call = SAID_BY_VALUES[name]
    assert not np.isfinite(numbers(call(made(wrong, dtype)))).all()
    for at in range(3):
        result = numbers(call(made(wrong, dtype, at)))
        good = numbers(call(lucid.tensor(np.array(GOOD).astype(dtype))))
        for place in range(3):
            if place == at:
                assert not np.isfinite(result[place]).all()
            else:
                np.testing.assert_allclose(result[place], good, rtol=1e-5)


@each_dtype
@each_wrong
def test_a_determinant_that_is_no_number_has_no_sign(wrong, dtype):
    """The sign of NaN is 0, that of a complex one NaN, as in PyTorch."""
    sign, logarithm = L.slogdet(made(wrong, dtype, 2))
    assert np.isnan(numbers(logarithm)[2])
    expected = [1.0, 1.0, NAN if dtype.startswith("complex") else 0.0]
    np.testing.assert_array_equal(numbers(sign).real, np.array(expected, numbers(sign).real.dtype))


@each_wrong
def test_gradients_of_determinants(wrong):
    """That of a matrix that is no number is none either, and those of the others of the batch are theirs."""
    a = made(wrong, "float64", 0).requires_grad_()
    (grad,) = lucid.autograd.grad(L.det(a).sum(), a)
    assert np.isnan(numbers(grad)[0]).all()
    np.testing.assert_allclose(numbers(grad)[1], [[3.0, -1.0], [-1.0, 2.0]])
