"""SciPy's special functions on Tensors, by their names: values, also far out, and derivatives of both orders."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import lucid
from lucid.tensor.numpy_calls.by_scipy import HOLOMORPHIC, SLOPES, TO_COMPLEX
from lucid.tensor.numpy_calls.operands import NumpyCallError
from lucid.tensor.numpy_calls.special import SPECIAL

ufuncs = pytest.importorskip("scipy.special._ufuncs")

WHOLE = np.arange(5)
FIRST = {
    **{
        f"eval_{name}": (WHOLE,)
        for name in (
            "chebyc", "chebys", "chebyt", "chebyu", "hermite", "hermitenorm", "laguerre", "legendre", "sh_chebyt",
            "sh_chebyu", "sh_legendre",
        )
    },
    **{f"_spherical_{name}": (WHOLE,) for name in ("in", "jn", "kn", "yn")},
    **dict.fromkeys(("expn", "kn", "yn"), (WHOLE,)),
    **dict.fromkeys(("gammainc", "gammaincc", "gammainccinv", "gammaincinv"), (1.7,)),
    **{name: (np.array([-1.5, 0.0, 0.3, 1.0, 2.0]),) for name in ("iv", "ive", "jv", "jve", "kv", "kve", "yv", "yve")},
    **{f"hankel{name}": (np.array([-1.5, 0.0, 0.3, 1.0, 2.0]),) for name in ("1", "1e", "2", "2e")},
    **{name: (np.array([0.0, 0.3, 1.0, 2.0, 3.0]),) for name in ("struve", "modstruve")},
    **dict.fromkeys(("betainc", "betaincc", "betainccinv", "betaincinv"), (2.0, 0.7)),
    **dict.fromkeys(("chdtr", "chdtrc", "chdtri", "pdtr", "pdtrc", "stdtr", "stdtrit"), (3.0,)),
    **dict.fromkeys(("fdtr", "fdtrc", "fdtri"), (3.0, 5.0)),
    **dict.fromkeys(("binom", "huber", "owens_t", "poch", "pseudo_huber", "xlog1py", "xlogy"), (0.6,)),
    "_zeta": (2.5,), "beta": (0.8,), "eval_gegenbauer": (WHOLE, 0.7), "eval_genlaguerre": (WHOLE, 0.7),
    "eval_jacobi": (WHOLE, 0.7, -0.3), "hyp0f1": (1.3,), "hyp1f1": (0.4, 1.3), "hyp2f1": (0.4, -0.7, 1.3),
    "voigt_profile": (0.6, 0.8),
}  # fmt: skip
"""Parameters in front of the argument that is differentiated."""
LAST = {
    "_lambertw": (np.array([0, 1, -1, 2, 0]), 1e-12), "betaln": (1.3,), "boxcox": (0.4,), "boxcox1p": (0.4,),
    "ellipeinc": (0.3,), "ellipj": (0.3,), "ellipkinc": (0.3,), "inv_boxcox": (0.4,), "inv_boxcox1p": (0.4,),
    "kl_div": (0.6,), "rel_entr": (0.6,),
}  # fmt: skip
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
    "pseudo_huber": [0.0, 1e-12, 1e-3, 1e100],
    "cosm1": [0.0, 1e-9, 1e-3, 3.0],
    "boxcox1p": [0.0, 1e-12, 1e9],
    "inv_boxcox": [0.0, 1e-12, 1e9],
    "inv_boxcox1p": [0.0, 1e-12, 1e9],
    "sici": [1e-300, 1e-9, 1e3],
    "spence": [1 + 1e-9, 1.0, 1e9],
    "ellipk": [-1e4, 1e-300, 1 - 1e-9],
    "ellipe": [-1e4, 1e-300, 1 - 1e-9],
}
"""Arguments at which a formula ends, or where another one would overflow or lose digits."""


def called(name, x):
    """Return the ufunc of SciPy's, with what is beside `x`."""
    return combined(getattr(ufuncs, name)(*FIRST.get(name, ()), x, *LAST.get(name, ())))


def combined(result):
    """Return one real array of what may be several, and complex."""
    if isinstance(result, tuple):
        return sum(combined(each) * (k + 1) for k, each in enumerate(result))
    is_complex = result.is_complex() if isinstance(result, lucid.Tensor) else np.iscomplexobj(result)
    return result.real + result.imag * 2 if is_complex else result


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
    if not slope.requires_grad:
        assert name in FLAT
        return
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


FLAT = {"gammasgn"}
"""Those whose slope is zero wherever there is one."""
ENDS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan]
UNLIKE = {"gammaln", "i0", "i1", "kl_div"}
"""At an infinity another value than SciPy's, which has NaN where there is a limit."""


ENDLESS = {"hyp1f1", "hyp2f1"}
"""SciPy does not come to an end with these at some infinities."""


def as_tuple(result):
    """Return what a ufunc gives as a tuple, of one array too."""
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_ends(name):
    """Of zeros, infinities and NaN too, in each argument beside each in the others, the values are SciPy's."""
    function = getattr(ufuncs, name)
    operands = np.array(list(product(ENDS, repeat=function.nin))).T
    if name in UNLIKE:
        operands = operands[:, ~np.isinf(operands).any(0)]
    if name in ENDLESS:
        operands = operands[:, np.isfinite(operands).all(0)]
    arrays = list(operands)
    for place in range(function.nin):
        if function.types[0][place] == "l":
            arrays[place] = np.arange(operands.shape[1]) % 4
    if name == "_lambertw":
        arrays[2] = 1e-8
    with np.errstate(all="ignore"):
        wanted = function(*arrays)
        made = function(*[lucid.tensor(each) if isinstance(each, np.ndarray) else each for each in arrays])
    for one, other in zip(as_tuple(made), as_tuple(wanted), strict=True):
        np.testing.assert_allclose(one.numpy(force=True), other, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("name", sorted(SPECIAL.keys() - SLOPES.keys()))
def test_of_any_size(name, rng):
    """Of numbers of any size beside numbers of any other the values are SciPy's, within what their last bits make."""
    function = getattr(ufuncs, name)
    for dtype in (np.float64, np.float32):
        size = 10.0 ** rng.uniform(-10, 10, (function.nin, 40)) * rng.choice([-1, 1, 1], (function.nin, 40))
        arrays = list(size.astype(dtype))
        with np.errstate(all="ignore"):
            wanted, near = function(*arrays), 0.0
            for place, direction in product(range(function.nin), (-np.inf, np.inf)):
                moved = np.nextafter(arrays[place], dtype(direction))
                near = near + np.nan_to_num(np.abs(function(*arrays[:place], moved, *arrays[place + 1 :]) - wanted))
            made = function(*[lucid.tensor(each) for each in arrays]).numpy(force=True)
            limits = np.finfo(dtype)
            allowed = 32 * (np.abs(wanted) * limits.eps + near + limits.tiny)
            differs = ~(np.abs(made - wanted) <= allowed) & np.isfinite(wanted)
        assert not differs.any(), [dtype, *[each[differs] for each in (*arrays, made, wanted)]]


SLOPES_AT = {
    "ellipe": (0.0, -math.pi / 8),
    "ellipk": (0.0, math.pi / 8),
    "eval_hermite": (0.0, [0.0, 2, 0, -12, 0]),
    "pseudo_huber": (0.0, 0.0),
    "rgamma": ([-3.0, -2.0, -1.0, 0.0], [-6.0, 2, -1, 1]),
    "spence": (1.0, -1.0),
    "_spherical_jn": (0.0, [0, 1 / 3, 0, 0, 0]),
}
"""Where a formula may have a quotient of zeros or a pole, and the function has a slope."""


@pytest.mark.parametrize("name", SLOPES_AT)
def test_slopes_where_a_formula_ends(name):
    """At such a place the slope is the function's: of ``1 / gamma`` at ``-n``, say, ``(-1) ** n * n!``."""
    place, wanted = map(np.asarray, SLOPES_AT[name])
    x = lucid.tensor(np.broadcast_to(place, wanted.shape).astype(float), requires_grad=True)
    (slope,) = lucid.autograd.grad(called(name, x).sum(), x)
    np.testing.assert_allclose(slope.numpy(force=True), wanted, rtol=1e-12, atol=1e-14)


def test_degree_zero_is_flat():
    """A polynomial of degree 0 has no slope, outside of its interval too."""
    x = lucid.tensor([-3.5, 0.5, 3.5], dtype=lucid.float64, requires_grad=True)
    for name in (name for name in SPECIAL if name.startswith("eval_")):
        made = getattr(ufuncs, name)(0, *FIRST[name][1:], x)
        assert lucid.autograd.grad(made.sum(), x)[0].tolist() == [0.0] * 3, name


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_integers(name):
    """Of integers beside each other the values are SciPy's, and no whole numbers unless they are."""
    function = getattr(ufuncs, name)
    operands = np.array(list(product([1, 2, 3], repeat=function.nin))).T
    with np.errstate(all="ignore"):
        wanted = function(*operands)
        made = function(*[lucid.tensor(each) for each in operands])
    for one, other in zip(*[out if isinstance(out, tuple) else (out,) for out in (made, wanted)], strict=True):
        assert one.is_floating_point() or one.is_complex()
        np.testing.assert_allclose(one.numpy(force=True), other, rtol=3e-6, atol=1e-6)


def test_what_has_no_slope_is_refused():
    """Parameters that require grad, other ufuncs and other libraries' are refused, by SciPy's name."""
    x = lucid.tensor([0.5], requires_grad=True)
    with pytest.raises(NumpyCallError, match=r"scipy.special.gammainc: only its last argument can be differentiated"):
        ufuncs.gammainc(x, 0.3)
    with pytest.raises(NumpyCallError, match=r"scipy.special.jv: only its last argument can be differentiated"):
        ufuncs.jv(x, 0.3)
    with pytest.raises(NumpyCallError, match=r"scipy.special.ellipj: only its first argument can be differentiated"):
        ufuncs.ellipj(0.3, x)
    with pytest.raises(NumpyCallError, match=r"scipy.special.ive: with a Tensor that requires grad the numbers must"):
        ufuncs.ive(0.3, x * 1j)
    with pytest.raises(NumpyCallError, match=r"scipy.special.airye has no op in lucid"):
        ufuncs.airye(x)
    with pytest.raises(NumpyCallError, match="has no op in lucid"):
        np.frompyfunc(lambda x: x, 1, 1)(x)


@pytest.mark.parametrize("name", sorted(SLOPES))
def test_constants_are_scipys(name):
    """Of what requires no grad too, the result is a Tensor, in its dtype."""
    beside = [
        [each[:2].astype("f" if each.dtype.kind == "f" else "l") if np.ndim(each) else each for each in t.get(name, ())]
        for t in (FIRST, LAST)
    ]
    wanted = lucid.complex64 if name in TO_COMPLEX else lucid.float32
    for made in as_tuple(getattr(ufuncs, name)(*beside[0], lucid.tensor([0.25, 0.5]), *beside[1])):
        assert isinstance(made, lucid.Tensor)
        assert made.dtype is wanted
        assert not made.requires_grad


@pytest.mark.parametrize("name", sorted(HOLOMORPHIC))
def test_slopes_of_complex_numbers(name, rng):
    """Of a holomorphic function the gradient is the conjugate of the derivative, by differences in two directions."""
    array = rng.uniform(0.15, 0.85, 5) + 1j * rng.uniform(0.15, 0.85, 5)
    x = lucid.tensor(array, requires_grad=True)
    made = called(name, x)
    np.testing.assert_allclose(made.numpy(force=True), called(name, array), rtol=1e-11)
    (slope,) = lucid.autograd.grad(made.sum(), x)
    step = 1e-6
    difference = sum(
        part * (called(name, array + step * part) - called(name, array - step * part)) / (2 * step) for part in (1, 1j)
    )
    np.testing.assert_allclose(slope.numpy(force=True), difference, rtol=1e-6, atol=1e-7)


def test_the_slope_of_a_limit():
    """At 1, where the slope of `spence` is a limit, so is its own slope: that of differences on either side."""
    x = lucid.tensor([1 - 1e-5, 1.0, 1 + 1e-5], dtype=lucid.float64, requires_grad=True)
    (slope,) = lucid.autograd.grad(SPECIAL["spence"](x).sum(), x, create_graph=True)
    (second,) = lucid.autograd.grad(slope.sum(), x)
    below, at, above = slope.tolist()
    assert at == -1.0
    assert second[1].item() == pytest.approx((above - below) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("name", ["boxcox", "boxcox1p"])
@pytest.mark.parametrize("degree", [0.0, 1e-39, -1e-35])
def test_box_cox_near_the_logarithm(name, degree, rng):
    """At a degree of 0, and beside it, the slopes by degree are those of the series: powers of the logarithm."""
    array = rng.uniform(0.5, 3, 5)
    logarithm = np.log(array) if name == "boxcox" else np.log1p(array)
    x, lmbda = (lucid.tensor(each, requires_grad=True) for each in (array, np.full(5, degree)))
    made = getattr(ufuncs, name)(x, lmbda)
    by_x, slope = lucid.autograd.grad(made.sum(), (x, lmbda), create_graph=True)
    (bend,) = lucid.autograd.grad(slope.sum(), lmbda)
    inner = array if name == "boxcox" else 1 + array
    for got, wanted in ((made, logarithm), (by_x, 1 / inner), (slope, logarithm**2 / 2), (bend, logarithm**3 / 3)):
        np.testing.assert_allclose(got.numpy(force=True), wanted, rtol=1e-12)
