"""SciPy's special functions on Tensors, by their names: values, also far out, and derivatives of both orders."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import lucid
from lucid.tensor.numpy_calls.by_scipy import SLOPES
from lucid.tensor.numpy_calls.rule import NumpyCallError
from lucid.tensor.numpy_calls.special import SPECIAL

ufuncs = pytest.importorskip("scipy.special._ufuncs")

FIRST = {
    "betainc": (2.0, 0.7), "betaincc": (2.0, 0.7), "chdtr": (3.0,), "chdtrc": (3.0,), "fdtr": (3.0, 5.0),
    "fdtrc": (3.0, 5.0), "gammainc": (1.7,), "gammaincc": (1.7,), "stdtr": (3.0,), "xlog1py": (0.6,), "xlogy": (0.6,),
}  # fmt: skip
"""Parameters in front of the argument that is differentiated."""
LAST = {"betaln": (1.3,), "boxcox": (0.4,), "kl_div": (0.6,), "rel_entr": (0.6,)}
"""Those behind it."""
FAR = {
    "log_ndtr": [-1e4, -38.0, -10.1, -10.0, -9.9, -1.0, 0.0, 3.0, 9.0],
    "ndtri": [1e-300, 1e-20, 1e-5, 0.5, 0.999, 1 - 1e-15, 0.0, 1.0, -0.5, 1.5],
    "i0e": [-1e5, -50.1, -49.9, 0.0, 1.0, 700.0],
    "i1e": [-1e5, -50.1, -49.9, 0.0, 1.0, 700.0],
    "exprel": [0.0, 1e-12, -40.0, 30.0],
    "rel_entr": [0.0, -1.0, np.nan],
    "kl_div": [0.0, -1.0, np.nan],
    "boxcox": [0.0, 1.0, 1e3],
    "log_expit": [-800.0, 0.0, 40.0],
}
"""Arguments at which a formula ends, or where another one would overflow or lose digits."""


def called(name, x):
    """Return the ufunc of SciPy's, with what is beside `x`."""
    return getattr(ufuncs, name)(*FIRST.get(name, ()), x, *LAST.get(name, ()))


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_values_and_derivatives(name, rng):
    """A ufunc of SciPy's has SciPy's values, the slope of differences, and the slope of that."""
    array = rng.uniform(0.15, 0.85, 5)
    x = lucid.tensor(array, requires_grad=True)
    made = called(name, x)
    np.testing.assert_allclose(made.numpy(force=True), called(name, array), rtol=1e-11)
    (slope,) = lucid.autograd.grad(made.sum(), x, create_graph=True)
    step = 1e-6
    difference = (called(name, array + step) - called(name, array - step)) / (2 * step)
    np.testing.assert_allclose(slope.numpy(force=True), difference, rtol=1e-6, atol=1e-7)
    (bend,) = lucid.autograd.grad(slope.sum(), x)

    def slope_at(place):
        moved = lucid.tensor(place, requires_grad=True)
        return lucid.autograd.grad(called(name, moved).sum(), moved)[0].numpy(force=True)

    step = 1e-5
    difference = (slope_at(array + step) - slope_at(array - step)) / (2 * step)
    np.testing.assert_allclose(bend.numpy(force=True), difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(FAR))
def test_far_out(name):
    """Values are SciPy's far out too, and slopes are numbers where SciPy's value is one."""
    array = np.array(FAR[name])
    x = lucid.tensor(array, requires_grad=True)
    with np.errstate(all="ignore"):
        wanted = called(name, array)
    made = called(name, x)
    np.testing.assert_allclose(made.numpy(force=True), wanted, rtol=2e-14, atol=1e-16)
    made.sum().backward()
    inside = np.isfinite(wanted) & (array != 0)
    assert np.isfinite(x.grad.numpy(force=True)[inside]).all()


ENDS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan]
UNLIKE = {"betaln", "gammaln", "i0", "i1", "kl_div"}
"""At an infinity another value than SciPy's, which has NaN where there is a limit; `betaln` is of positive numbers."""


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_ends(name):
    """Of zeros, infinities and NaN too, in each argument beside each in the others, the values are SciPy's."""
    function = getattr(ufuncs, name)
    operands = np.array(list(product(ENDS, repeat=function.nin))).T
    if name in UNLIKE:
        operands = operands[:, ~np.isinf(operands).any(0) & ((operands > 0).all(0) | (name != "betaln"))]
    with np.errstate(all="ignore"):
        wanted = function(*operands)
        made = function(*[lucid.tensor(each) for each in operands])
    np.testing.assert_allclose(made.numpy(force=True), wanted, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_integers(name):
    """Of integers beside each other the values are SciPy's, and no whole numbers unless they are."""
    function = getattr(ufuncs, name)
    operands = np.array(list(product([1, 2, 3], repeat=function.nin))).T
    with np.errstate(all="ignore"):
        wanted = function(*operands)
        made = function(*[lucid.tensor(each) for each in operands])
    assert made.is_floating_point()
    np.testing.assert_allclose(made.numpy(force=True), wanted, rtol=3e-6, atol=1e-6)


def test_what_has_no_slope_is_refused():
    """Parameters that require grad, other ufuncs and other libraries' are refused, by SciPy's name."""
    x = lucid.tensor([0.5], requires_grad=True)
    with pytest.raises(NumpyCallError, match=r"scipy.special.gammainc: only its last argument can be differentiated"):
        ufuncs.gammainc(x, 0.3)
    with pytest.raises(NumpyCallError, match=r"scipy.special.airy has no op in lucid"):
        ufuncs.airy(x)
    with pytest.raises(NumpyCallError, match="has no op in lucid"):
        np.frompyfunc(lambda x: x, 1, 1)(x)


@pytest.mark.parametrize("name", sorted(SLOPES))
def test_constants_are_scipys(name):
    """Of what requires no grad too, the result is a Tensor, in its dtype."""
    made = called(name, lucid.tensor([0.25, 0.5]))
    assert isinstance(made, lucid.Tensor)
    assert made.dtype is lucid.float32
    assert not made.requires_grad
