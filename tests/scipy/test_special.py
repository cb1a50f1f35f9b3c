"""`lucid.scipy.special`: values of SciPy's, and gradients of differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special as theirs

import lucid
from lucid.scipy import special
from lucid.tensor.numpy_calls.definition import NumpyCallError
from tests.scipy.checks import by_name, check_all, values
from tests.scipy.other_rows import SPECIAL

ROWS = by_name(SPECIAL)
pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


@pytest.mark.parametrize("name", ROWS)
def test_values_and_gradients(name, rng):
    """Of each call what SciPy gives, in its dtype, and the slope along a random direction of all its arrays."""
    check_all(ROWS[name], "special", rng)


def test_sums_of_what_is_infinite():
    """Of exponentials none of which, or not all, are finite: SciPy's sums, and the shares as slopes."""
    x = np.array([[-np.inf, -np.inf, -np.inf], [0.5, -np.inf, 1.5], [np.inf, 0.0, 1.0], [-np.inf, np.inf, np.inf]])
    leaf = lucid.tensor(x, requires_grad=True)
    for settings in ({"axis": 1}, {"axis": 1, "b": [1.0, 0.0, 2.0]}, {"axis": (0, 1)}):
        result, expected = special.logsumexp(leaf, **settings), theirs.logsumexp(x, **settings)
        np.testing.assert_allclose(values(result), expected, rtol=1e-12)
    (gradient,) = lucid.autograd.grad(special.logsumexp(leaf, axis=1)[1], leaf)
    np.testing.assert_allclose(values(gradient)[1], theirs.softmax(x[1]), atol=1e-12)


def test_what_has_no_gradient_is_refused():
    """Orders that require grad, and numbers for which there is no rule, are refused by SciPy's name."""
    x = lucid.tensor([1.5], requires_grad=True)
    for call, words in (
        (lambda: special.zeta(x), r"scipy.special.zeta: with a Tensor q must be given"),
        (lambda: special.zeta(x, 2.0), r"scipy.special.zeta: only its last argument"),
        (lambda: special.jvp(x, 2.0), r"scipy.special.jvp: with a Tensor the order v must not require grad"),
        (lambda: special.spherical_kn(1, -x), r"scipy.special.spherical_kn: with a Tensor z must not be negative"),
        (lambda: special.comb(x, 1, exact=True), r"scipy.special.comb: .* got exact"),
    ):
        with pytest.raises(NumpyCallError, match=words):
            call()


def test_counts_outside_of_what_can_be_chosen():
    """Where nothing can be chosen the count is SciPy's, 0, and so are its slopes; below zero there is no factorial."""
    N, k = np.array([2.0, 2.0, -1.0, 3.0, np.nan, 5.0]), np.array([3.0, -1.0, 0.0, 3.0, 1.0, 0.0])
    for name in ("comb", "perm"):
        leaves = [lucid.tensor(each, requires_grad=True) for each in (N, k)]
        made = getattr(special, name)(*leaves)
        np.testing.assert_array_equal(values(made), getattr(theirs, name)(N, k))
        for grad in lucid.autograd.grad(made.sum(), leaves):
            assert np.isfinite(values(grad)).all()
            assert not values(grad)[:3].any()
    n = np.array([-1.0, -0.5, 0.0, 3.0, np.inf])
    leaf = lucid.tensor(n, requires_grad=True)
    np.testing.assert_array_equal(values(special.factorial(leaf)), theirs.factorial(n))
