"""Slopes of SciPy's special functions where their formulas end: at zeros and poles, and beside them."""

from __future__ import annotations

import math
import warnings
from itertools import product

import numpy as np
import pytest

import lucid
from lucid.tensor.numpy_calls.by_scipy import SLOPES
from lucid.tensor.numpy_calls.special import SPECIAL

ufuncs = pytest.importorskip("scipy.special._ufuncs")

INF, LOG_2 = math.inf, math.log(2)

SMALL = [1e-30, 1e-20, 1e-12, 1e-8, 1e-4, 0.3]
PLACES = np.array(
    [0.0, *SMALL, *np.negative(SMALL), *[n + d for n in (-3, -2, -1, 1, 2, 6) for d in (0, 1e-8, -1e-4)], 40]
)
BESIDE = [0.0, 0.5, 1.0, 2.0, -1.5, 5.0]
OTHERS = {"_lambertw": [1e-12], "voigt_profile": [1e-6, 0.5, 2.0]}
"""What others are: a tolerance, and widths of which one must not be zero."""
STEPS = np.array([10.0**-k for k in range(2, 9)])


LIMITS = {
    "log_ndtr": {(0.0,): (0.7978845608028654, -0.6366197723675814)},
    "exprel": {(0.0,): (1 / 2, 1 / 3), (1e-12,): (0.5, 1 / 3), (800.0,): (INF, INF), (INF,): (INF, None)},
    "boxcox": {
        (2.0, 0.0): (LOG_2**2 / 2, LOG_2**3 / 3),
        (2.0, 1e-12): (LOG_2**2 / 2, LOG_2**3 / 3),
        (0.0, 0.3): (1 / 0.09, -2 / 0.027),
        (0.0, 1.0): (1.0, -2.0),
        (0.0, 2.0): (0.25, -0.25),
        (INF, -0.5): (4.0, 16.0),
    },
    "boxcox1p": {(1.0, 0.0): (LOG_2**2 / 2, LOG_2**3 / 3), (-1.0, 2.0): (0.25, -0.25)},
    "inv_boxcox": {(0.5, 0.0): (-math.exp(0.5) / 8, math.exp(0.5) * (1 / 12 + 1 / 64))},
    "inv_boxcox1p": {(0.5, 0.0): (-math.exp(0.5) / 8, math.exp(0.5) * (1 / 12 + 1 / 64))},
    "j1": {(0.0,): (0.5, 0.0)},
    "sici": {(0.0,): (1.0, 0.0), (1e-9,): (1.0, -1e-9 / 3)},
    "shichi": {(0.0,): (1.0, 0.0), (1e-9,): (1.0, 1e-9 / 3)},
    "spence": {(1 + 2.0**-30,): (-1 + 2.0**-31, 0.5 - 2.0**-29 / 3)},
    "dawsn": {(1e9,): (-5e-19, 1e-27)},
    "erfcx": {(1e9,): (-1e-18 / math.sqrt(math.pi), 2e-27 / math.sqrt(math.pi))},
    "stdtr": {(INF, 0.5): (math.exp(-0.125) / math.sqrt(2 * math.pi), None)},
    "cbrt": {(0.0,): (INF, None)},
    "y1": {(0.0,): (INF, None)},
    "k0e": {(0.0,): (-INF, None)},
    "rgamma": {(INF,): (0.0, None)},
    "eval_chebyu": {(0.0, -1.5): (0.0, 0.0)},
    "voigt_profile": {(2.0, 0.0, 0.5): (3.75 / (math.pi * 4.25**2), None)},
    "binom": {(5.0, 6.0): (-1 / 6, None)},
    "hyp1f1": {(-2.0, -2.0, 0.9): (1.9, 1.0), (-1.0, -1.0, 0.9): (1.0, 0.0), (-1.0, 2.0, 0.9): (-0.5, 0.0)},
    "eval_jacobi": {(1.0, -2.0, -0.5, 9.0): (-0.25, 0.0)},
    "eval_gegenbauer": {(1.0, -1.5, 0.3): (-3.0, 0.0)},
    "eval_genlaguerre": {(1.0, -2.0, 0.3): (-1.0, 0.0)},
    # of Stirling's formula, at the top of the densities
    "gammainc": {(2.0, INF): (0.0, None), (1.0, 0.0): (1.0, -1.0), (1e12, 1e12): (1 / math.sqrt(2e12 * math.pi), None)},
    "betainc": {
        (1e12, 1e12, 0.5): (2e6 / math.sqrt(math.pi), None),
        (3.0, 1.0, 1.0): (3.0, 6.0),
        (1.0, 3.0, 0.0): (3.0, -6.0),
    },
    "pdtr": {(1e12, 1e12): (-1 / math.sqrt(2e12 * math.pi), None)},
    "fdtr": {(2e12, 2e12, 1.0): (5e5 / math.sqrt(math.pi), None), (4.0, 2.0, INF): (0.0, None)},
}
"""By the arguments, the slope by the last of them, and its slope."""


def places_of(name):
    """Return the places of the arguments that have a slope, from the end."""
    return sorted(SLOPES.get(name, range(-getattr(ufuncs, name).nin, 0)))


UNKNOWN = {"cotdg", "hankel1", "hankel1e", "hankel2", "hankel2e"}
"""Of these SciPy's values beside 0 are not exact: an angle is rounded, or a real part beside what is infinite."""


def cases(name, place):
    """Return arguments, one array for each: what is differentiated at `PLACES`, beside each of some others."""
    function = getattr(ufuncs, name)
    kinds = function.types[0][: function.nin]
    others = OTHERS.get(name, BESIDE if function.nin < 4 else BESIDE[:3])
    places = PLACES[PLACES >= 0] if name.startswith(("_spherical", "voigt")) else PLACES
    grids = [
        places if k == function.nin + place else range(4) if kind == "l" else others for k, kind in enumerate(kinds)
    ]
    return [np.array(each, int if kind == "l" else float) for each, kind in zip(zip(*product(*grids)), kinds)]


def real(name, *arrays):
    """Return SciPy's result, of several the first, of complex ones the real part."""
    with np.errstate(all="ignore"):
        result = getattr(ufuncs, name)(*arrays)
    return np.real(result[0] if isinstance(result, tuple) else result)


def differences(name, arrays, place):
    """Return the slope by the best of central differences, and how far off it may be."""

    def moved(step):
        return real(name, *[each + step if k == len(arrays) + place else each for k, each in enumerate(arrays)])

    x, best, error = arrays[place], np.nan, np.inf
    here = moved(0.0)
    for scale, step in product((np.abs(x), np.abs(x - np.rint(x)), 1.0), STEPS):
        # what the sum rounds is no part of the step
        h = np.abs((x + scale * step) - x)
        with np.errstate(all="ignore"):
            above, below = moved(h), moved(-h)
            wide, near = (above - below) / (2 * h), (moved(h / 2) - moved(-h / 2)) / h
            off = np.abs(wide - near) + (1e-14 * (np.abs(above) + np.abs(below)) + 1e-16) / h
            off = off + 1e-15 * np.abs(x) * np.abs(near) / h
            # beside a corner, or a pole, the slopes of both sides differ
            off = np.where(np.abs(above + below - 2 * here) / h < 0.01 * (np.abs(near) + 1), off, np.inf)
        is_better = off < error
        best, error = np.where(is_better, near, best), np.where(is_better, off, error)
    return best, error


@pytest.mark.parametrize("name", sorted(SPECIAL.keys() - UNKNOWN))
def test_slopes_by_differences(name):
    """In each argument, at zeros, poles and beside them, and in both dtypes, the slope is that of differences."""
    for place in places_of(name):
        arrays = cases(name, place)
        for dtype in (lucid.float64, lucid.float32):
            tensors = [
                lucid.tensor(
                    each, dtype=dtype if each.dtype.kind == "f" else lucid.int64, requires_grad=k == len(arrays) + place
                )
                for k, each in enumerate(arrays)
            ]
            x = tensors[place]
            made = SPECIAL[name](*tensors)
            made = made[0] if isinstance(made, tuple) else made
            made = made.real if made.is_complex() else made
            (slope,) = lucid.autograd.grad(made.sum(), x)
            got = slope.numpy(force=True)
            taken = [each.numpy(force=True).astype(np.float64 if each.is_floating_point() else int) for each in tensors]
            wanted, error = differences(name, taken, place)
            tolerance, tiny, largest = (1e-6, 0.0, 1e300) if dtype is lucid.float64 else (1e-3, 1e-6, 1e35)
            is_known = (error < 1e-4 * np.abs(wanted) + 1e-9) & (np.abs(wanted) < largest)
            is_known &= np.isfinite(made.numpy(force=True))
            is_off = is_known & ~(np.abs(got - wanted) <= 30 * error + tolerance * np.abs(wanted) + tiny)
            assert not is_off.any(), [name, place, dtype, *[each[is_off][:6] for each in (*taken, got, wanted, error)]]


@pytest.mark.parametrize("name", LIMITS)
def test_slopes_at_limits(name):
    """The slope, and its own, are the known ones where differences do not reach, or are not exact enough."""
    for arguments, (wanted, bend) in LIMITS[name].items():
        *others, x = [lucid.tensor(each, dtype=lucid.float64) for each in arguments]
        made = SPECIAL[name](*others, x.requires_grad_())
        (slope,) = lucid.autograd.grad(made[0] if isinstance(made, tuple) else made, x, create_graph=True)
        assert slope.item() == pytest.approx(wanted, rel=1e-12), arguments
        if bend is not None:
            assert lucid.autograd.grad(slope, x)[0].item() == pytest.approx(bend, rel=1e-8, abs=1e-40), arguments


IN_SINGLE = {
    "gammainc": (1e6, 1.001e6), "gammaincc": (1e5, 1.001e5), "betainc": (1e5, 1e5, 0.5), "betaincc": (1e4, 1e4, 0.5),
    "chdtr": (1e6, 1.001e6), "fdtr": (1e6, 1e6, 1.0), "pdtr": (1e6, 1e6), "struve": (50.0, 50.0),
    "modstruve": (20.0, 20.0), "voigt_profile": (25.0, 0.125, -0.5), "k0e": (200.0,), "stdtr": (1e6, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_SINGLE)
def test_slopes_in_single_precision(name):
    """In all arguments the slope has the digits of the dtype, also where it is a difference of near numbers."""
    for place in places_of(name):
        arrays = [np.array(each) for each in IN_SINGLE[name]]
        leaves = [lucid.tensor(each, dtype=lucid.float32) for each in arrays]
        leaves[place].requires_grad_()
        (slope,) = lucid.autograd.grad(SPECIAL[name](*leaves), leaves[place])
        wanted, error = differences(name, [each.numpy(force=True).astype(float) for each in leaves], place)
        assert slope.dtype == lucid.float32
        np.testing.assert_allclose(slope.item(), wanted, rtol=1e-6, atol=30 * error, err_msg=f"{name} {place}")


def test_slopes_by_the_first_argument():
    """At ends of a domain and at zeros beside poles, the slope by the first argument is the function's."""
    rows = [
        *[("boxcox", (0.0, 1.0), 1.0), ("boxcox1p", (-1.0, 2.0), 0.0), ("boxcox1p", (-1.0, 1.0), 1.0)],
        *[("inv_boxcox", (-1.0, 1.0), 1.0), ("inv_boxcox1p", (-2.0, 0.5), 0.0), ("pseudo_huber", (0.0, 2.0), 2.0)],
        *[("poch", (0.0, 2.0), 1.0), ("poch", (-1.0, 2.0), -1.0), ("poch", (-3.0, 2.0), -5.0)],
        *[("binom", (0.0, 2.0), -0.5), ("beta", (0.5, -0.5), math.gamma(0.5) * math.gamma(-0.5))],
    ]
    for name, (first, other), wanted in rows:
        x = lucid.tensor(first, dtype=lucid.float64, requires_grad=True)
        made = SPECIAL[name](x, lucid.tensor(other, dtype=lucid.float64))
        assert lucid.autograd.grad(made, x)[0].item() == pytest.approx(wanted, rel=1e-12), (name, first, other)


@pytest.mark.parametrize("name", ["expn", "kn", "yn"])
@pytest.mark.parametrize("order", [0.7, 1.0, 2.7])
def test_slopes_of_orders_that_are_truncated(name, order):
    """The slope, and its own, are those of the order that SciPy computes with, the one without its fraction."""
    taken = []
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # SciPy's, of the truncation
        for each in (order, float(int(order))):
            x = lucid.tensor([0.3, 2.0], dtype=lucid.float64, requires_grad=True)
            (slope,) = lucid.autograd.grad(SPECIAL[name](each, x).sum(), x, create_graph=True)
            taken.append([slope.numpy(force=True), lucid.autograd.grad(slope.sum(), x)[0].numpy(force=True)])
            wanted, _ = differences(name, [np.full(2, float(int(order))), x.numpy(force=True)], -1)
            np.testing.assert_allclose(slope.numpy(force=True), wanted, rtol=1e-7)
    np.testing.assert_array_equal(*taken)


@pytest.mark.parametrize("name", ["fresnel", "sici", "shichi", "airy"])
def test_results_that_are_not_used(name):
    """Of several results each has its own slope, whatever those of the others are: at 0 some are infinite."""
    x = lucid.tensor(0.0, dtype=lucid.float64, requires_grad=True)
    wanted = {"fresnel": [0, 1], "sici": [1, INF], "shichi": [1, INF]}.get(name)
    wanted = wanted or [ufuncs.airy(0.0)[1], 0.0, ufuncs.airy(0.0)[3], 0.0]
    for place, slope in enumerate(wanted):
        assert lucid.autograd.grad(SPECIAL[name](x)[place], x)[0].item() == pytest.approx(slope)


@pytest.mark.parametrize("a", [20.0, 33.0, 60.0, 200.0])
def test_densities_of_large_parameters(a):
    """The slope of `gammainc` and `betainc` by their argument is the density, to eleven digits."""
    special = pytest.importorskip("scipy.special")
    for share in (0.8, 1.0, 1.3):
        x = lucid.tensor(a * share, dtype=lucid.float64, requires_grad=True)
        special.gammainc(a, x).backward()
        density = math.exp((a - 1) * math.log(a * share) - a * share - math.lgamma(a))
        assert x.grad.item() == pytest.approx(density, rel=1e-11)
        p = lucid.tensor(share / 2, dtype=lucid.float64, requires_grad=True)
        special.betainc(a, a + 1, p).backward()
        ways = math.lgamma(2 * a + 1) - math.lgamma(a) - math.lgamma(a + 1)
        density = math.exp((a - 1) * math.log(share / 2) + a * math.log1p(-share / 2) + ways)
        assert p.grad.item() == pytest.approx(density, rel=1e-11)
