"""`lucid.scipy.interpolate`: what its objects are, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import interpolate as theirs

import lucid
from lucid import numpy as lnp
from lucid.scipy import interpolate
from tests.scipy.checks import values

pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


@pytest.mark.parametrize(("method", "degree"), [("cubic", 3), ("quintic", 5)])
def test_splines_on_a_grid(method, degree, rng):
    """They are splines along one axis of splines along the other, and near to what SciPy finds by iteration."""
    x, y, v, p = np.arange(7.0), np.arange(6.0), rng.standard_normal((7, 6)), rng.uniform(0, 5, (5, 2))
    leaf, places = lucid.tensor(v, requires_grad=True), lucid.tensor(p, requires_grad=True)
    result = interpolate.RegularGridInterpolator((x, y), leaf, method)(places)
    along = theirs.make_interp_spline(x, v, degree)
    expected = [theirs.make_interp_spline(y, along(a), degree)(b) for a, b in p]
    np.testing.assert_allclose(values(result), expected, atol=1e-10)
    np.testing.assert_allclose(expected, theirs.RegularGridInterpolator((x, y), v, method)(p), atol=1e-3)
    lnp.sum(result).backward()
    slopes = [theirs.make_interp_spline(y, along(a, 1), degree)(b) for a, b in p]
    np.testing.assert_allclose(values(places.grad)[:, 0], slopes, atol=1e-9)


def test_objects_of_plain_samples(rng):
    """They are SciPy's own inside, with its methods, and may be called with what is recorded."""
    x, y, q = np.arange(8.0), rng.standard_normal(8), rng.uniform(0, 7, 5)
    leaf = lucid.tensor(q, requires_grad=True)
    for kind in ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator", "interp1d"):
        mine, other = getattr(interpolate, kind)(x, y), getattr(theirs, kind)(x, y)
        assert type(mine(q)) is np.ndarray
        np.testing.assert_array_equal(mine(q), other(q))
        assert type(mine(leaf)) is lnp.ndarray
        np.testing.assert_allclose(values(mine(leaf)), other(q), atol=1e-12)
    for make, settings in (("make_interp_spline", {"k": 5}), ("make_smoothing_spline", {"lam": 0.1})):
        spline = getattr(interpolate, make)(x, y, **settings)
        np.testing.assert_allclose(values(spline(leaf)), getattr(theirs, make)(x, y, **settings)(q), atol=1e-12)
    stairs = interpolate.interp1d(x, y, "previous", fill_value="extrapolate")
    np.testing.assert_array_equal(values(stairs(leaf + 4)), stairs(q + 4))
    spline = interpolate.CubicSpline(x, y)
    np.testing.assert_array_equal(spline.roots(), theirs.CubicSpline(x, y).roots())
    np.testing.assert_allclose(values(spline.derivative()(leaf)), theirs.CubicSpline(x, y)(q, 1), atol=1e-12)
    with pytest.raises(AttributeError, match="nothing"):
        spline.nothing


def test_places_outside(rng):
    """NaN, fills, periods and errors stand where SciPy has them."""
    x, y, q = np.arange(5.0), rng.standard_normal(5), np.array([-1.5, 0.5, 4.0, 9.25])
    leaf = lucid.tensor(y, requires_grad=True)
    turned = np.append(y[:-1], y[0])
    for call in (
        lambda l, y: l.CubicSpline(x, y, extrapolate=False)(q),
        lambda l, y: l.CubicSpline(x, y)(q, extrapolate="periodic"),
        lambda l, y: l.Akima1DInterpolator(x, y)(q),
        lambda l, y: l.BSpline([0, 0, 1, 2, 3, 4, 4.0], y, 1, extrapolate=False)(q),
        lambda l, y: l.interp1d(x, y, bounds_error=False)(q),
        lambda l, y: l.interp1d(x, y, "previous", fill_value="extrapolate")(q),
        lambda l, y: l.interp1d(x, y, "next", fill_value="extrapolate")(q),
        lambda l, y: l.interp1d(x, y, bounds_error=False, fill_value=(1.0, 2.0))(q),
        lambda l, y: l.CubicSpline(x, y)([np.nan, np.inf, 1.0], 3),
        lambda l, y: l.CubicSpline(x, y)([np.nan, 1.0], 4),
        lambda l, y: l.BSpline([0, 0, 1, 2, 3, 4, 4.0], y, 1)([np.nan, 1.5], 1),
        lambda l, y: l.RegularGridInterpolator((x, x[:2]), np.outer([1, 1, 1, 1, 1], [1, 1]) * y[:2])([2.5, 0.5]),
    ):
        result, expected = values(call(interpolate, leaf)), call(theirs, y)
        np.testing.assert_allclose(result, expected, atol=1e-12)
        assert result.shape == expected.shape
    periodic = interpolate.CubicSpline(x, lucid.tensor(turned, requires_grad=True), bc_type="periodic")
    other = theirs.CubicSpline(x, turned, bc_type="periodic")
    np.testing.assert_allclose(values(periodic(q)), other(q), atol=1e-12)
    np.testing.assert_allclose(values(periodic.integrate(-3.3, 9.1)), other.integrate(-3.3, 9.1), atol=1e-11)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y: interpolate.BSpline(range(9), y, 3).derivative(4), r"Order of derivative \(n = 4\) must be <="),
        (lambda y: interpolate.CubicSpline(range(5), y).roots(), r"scipy.interpolate.CubicSpline.roots has no rule"),
        (lambda y: interpolate.make_interp_spline(range(5), y, bc_type="periodic"), r"only|cannot be used"),
        (lambda y: interpolate.splrep(np.arange(5), y), r"scipy.interpolate.splrep has no counterpart"),
        (lambda y: interpolate.CubicSpline([0, 1, 1, 2, 3], y), r"strictly increasing"),
        (lambda y: interpolate.CubicSpline([0, 1, np.nan, 2, 3], y), r"`x` must contain only finite values"),
        (lambda y: interpolate.PchipInterpolator(range(5), y / 0), r"`y` must contain only finite values"),
        (lambda y: interpolate.Akima1DInterpolator(range(5), y * 1j), r"only works with real values"),
        (lambda y: interpolate.interp1d(range(5), y, fill_value=0.0)(7.0), r"outside the interpolation range"),
        (lambda y: interpolate.interp1d(range(5), y, fill_value="end"), r"fill_value: expected numbers"),
        (lambda y: interpolate.interp1d(range(5), y, 5), r"must have at least 6 entries, got 5"),
        (lambda y: interpolate.interp1d(range(5), y, "steps"), r"steps is unsupported: expected a degree or one of"),
        (lambda y: interpolate.RegularGridInterpolator((range(5),), y)([[np.nan]]), r"out of bounds in dimension 0"),
        (lambda y: interpolate.CubicSpline(range(4), y), r"length of `y`"),
        (lambda y: interpolate.CubicHermiteSpline([0, 1], y, np.ones(5)), r"length of `y`"),
        (lambda y: interpolate.CubicHermiteSpline(range(5), y, np.ones(4)), r"shapes of `y` and `dydx` must be"),
        (
            lambda y: interpolate.RegularGridInterpolator((range(5),), y)([[1.0]], nu=[1]),
            r"Can only compute derivatives for methods slinear, cubic, quintic, got 'linear'",
        ),
        (
            lambda y: interpolate.RegularGridInterpolator((range(5),), y, "slinear")([[1.0]], nu=[1, 0]),
            r"nu: expected an order for each of the 1 dimensions, got \[1, 0\]",
        ),
        (lambda y: interpolate.CubicSpline(range(5), y, bc_type="flat"), r"bc_type=flat is not allowed"),
        (lambda y: interpolate.interp1d(range(5), y)(7.0), r"outside the interpolation range"),
        (lambda y: interpolate.RegularGridInterpolator((range(5),), y)([[9.0]]), r"out of bounds in dimension 0"),
        (
            lambda y: interpolate.RegularGridInterpolator((range(5),), y, "pchip")([[1.0]]),
            r"the method can be 'linear'",
        ),
    ],
)
def test_what_is_refused(call, message):
    """What cannot be recorded is a TypeError by its name; what SciPy refuses is refused as SciPy does."""
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=message):
        call(lucid.tensor(np.arange(5.0), requires_grad=True))


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (lambda l, x, y: l.CubicSpline(x, y), "extrapolate", False),
        (lambda l, x, y: l.PPoly(y[None, 1:], x), "c", np.zeros((1, 4))),
        (lambda l, x, y: l.BSpline([0, 0, 0, 1, 2, 4, 4, 4.0], y, 2), "extrapolate", False),
        (lambda l, x, y: l.interp1d(x, y, bounds_error=False), "fill_value", 7.0),
        (lambda l, x, y: l.interp1d(x, y, bounds_error=False), "fill_value", (7.0, 8.0)),
        (lambda l, x, y: l.RegularGridInterpolator((x,), y, bounds_error=False), "fill_value", 3.0),
        (lambda l, x, y: l.RegularGridInterpolator((x,), y, bounds_error=False, fill_value=0.0), "method", "nearest"),
    ],
)
def test_attributes_that_are_set(make, name, value, rng):
    """They say what SciPy's say, of plain samples and places and of recorded ones."""
    x, y, q = np.arange(5.0), rng.standard_normal(5), np.array([0.3, 2.6, 9.0])
    expected, plain = make(theirs, x, y), make(interpolate, x, y)
    recorded = make(interpolate, x, lucid.tensor(y, requires_grad=True))
    for each in (expected, plain, recorded):
        setattr(each, name, value)
    places = q[:, None] if hasattr(expected, "grid") else q
    wanted = expected(places)
    for result in (plain(places), plain(lucid.tensor(places, requires_grad=True)), recorded(places)):
        np.testing.assert_allclose(values(result), wanted, atol=1e-12)


def test_attributes_of_what_is_plain_and_of_what_is_recorded(rng):
    """A plain object refuses what it would not record; a recorded one lacks, or refuses, what SciPy's alone has."""
    x, y = np.arange(5.0), rng.standard_normal(5)
    leaf = lucid.tensor(y, requires_grad=True)
    with pytest.raises(TypeError, match=r"PPoly.c: the object is made of plain arrays, and would not record it"):
        interpolate.PPoly(y[None, 1:], x).c = leaf[None, 1:]
    assert interpolate.BSpline([0, 0, 1, 2, 2.0], np.ones((2, 3)), 1, axis=-1).axis == 1
    for assume_sorted in (True, False):
        np.testing.assert_array_equal(values(interpolate.interp1d(x, leaf, assume_sorted=assume_sorted).y), y)
    spline = interpolate.CubicSpline(x, leaf)
    assert not hasattr(spline, "roots")
    assert getattr(spline, "nothing", None) is None


@pytest.mark.parametrize("assume_sorted", [True, False])
def test_samples_that_are_written_to(assume_sorted, rng):
    """`interp1d` copies its samples unless it is told not to; gradients pass through the copy."""
    x, leaf = np.arange(4.0), lucid.tensor(np.arange(4.0), requires_grad=True)
    function = interpolate.interp1d(x, leaf, assume_sorted=assume_sorted)
    (gradient,) = lucid.autograd.grad(function(1.5), leaf)
    with lucid.no_grad():
        leaf.mul_(10)
    assert function(1.5).item() == 1.5
    np.testing.assert_array_equal(values(gradient), [0, 0.5, 0.5, 0])
    shared = interpolate.interp1d(x, leaf, copy=False, assume_sorted=True)
    with lucid.no_grad():
        leaf.mul_(10)
    assert shared(1.5).item() == 150.0


def test_places_that_decrease(rng):
    """`PPoly` takes them as SciPy's does, of plain coefficients and of recorded ones."""
    c, x = rng.standard_normal((2, 3)), np.array([2.0, 1.0, 0.5, -1.0])
    q = np.array([-2.0, -1.0, 0.3, 0.5, 0.7, 1.0, 1.7, 2.0, 3.0])
    other, leaf = theirs.PPoly(c, x), lucid.tensor(c, requires_grad=True)
    for mine in (interpolate.PPoly(c, x), interpolate.PPoly(leaf, x)):
        places = lucid.tensor(q, requires_grad=True)
        np.testing.assert_allclose(values(mine(places)), other(q), atol=1e-12)
        np.testing.assert_allclose(values(mine.derivative()(places)), other.derivative()(q), atol=1e-12)
        np.testing.assert_allclose(values(mine.antiderivative()(places)), other.antiderivative()(q), atol=1e-12)
        np.testing.assert_allclose(values(mine(places, extrapolate=False)), other(q, extrapolate=False), atol=1e-12)
    with pytest.raises(ValueError, match=r"strictly increasing or decreasing"):
        interpolate.PPoly(leaf, [0.0, 2, 1, 3])
    with pytest.raises(ValueError, match=r"axis=1 must be between 0 and 0"):
        interpolate.PPoly(leaf, x, axis=1)


def test_small_samples(rng):
    """Slopes of `PchipInterpolator` are those of the samples, however small these are."""
    y = np.array([0, 1.0, 1.5, 4, 4.2])
    small = interpolate.PchipInterpolator(np.arange(5.0), lucid.tensor(y * 1e-170, requires_grad=True))
    np.testing.assert_allclose(
        values(small([0.5, 1.5])) * 1e170, theirs.PchipInterpolator(np.arange(5.0), y)([0.5, 1.5])
    )


def test_functions_of_splines_and_class_methods(rng):
    """They are SciPy's own of plain objects, and make objects of the classes here, which take recorded places."""
    x, y, q = np.arange(6.0), rng.standard_normal(6), np.array([0.5, 2.5])
    spline, other = interpolate.make_interp_spline(x, y), theirs.make_interp_spline(x, y)
    np.testing.assert_allclose(interpolate.splev(q, spline), theirs.splev(q, other))
    pairs = [
        (interpolate.splder(spline), theirs.splder(other)),
        (interpolate.PPoly.from_spline(spline), theirs.PPoly.from_spline(other)),
        (spline.insert_knot(1.3), other.insert_knot(1.3)),
        (interpolate.BSpline.basis_element([0, 1, 2, 3]), theirs.BSpline.basis_element([0, 1, 2, 3])),
    ]
    for mine, wanted in pairs:
        assert isinstance(mine, interpolate.BSpline | interpolate.PPoly)
        np.testing.assert_allclose(values(mine(lucid.tensor(q, requires_grad=True))), wanted(q), atol=1e-12)
    recorded = interpolate.make_interp_spline(x, lucid.tensor(y, requires_grad=True))
    for call in (lambda: interpolate.splev(q, recorded), lambda: interpolate.PPoly.from_spline(recorded)):
        with pytest.raises(TypeError, match=r"an object that is recorded has no rule"):
            call()
    with pytest.raises(AttributeError, match=r"type object 'BSpline' has no attribute 'nothing'"):
        interpolate.BSpline.nothing


REFUSED = {
    "falling knots": lambda l, y: l.BSpline([0, 1, 3, 2, 4, 5, 6.0], y[:4], 2),
    "knots at one place": lambda l, y: l.BSpline(np.ones(7), y[:4], 2),
    "NaN among knots": lambda l, y: l.BSpline([0, 1, 2, np.nan, 4, 5, 6], y[:4], 2),
    "few knots": lambda l, y: l.BSpline(np.arange(4.0), y[:1], 2),
    "half a degree": lambda l, y: l.BSpline(np.arange(7.0), y[:4], 2.5),
    "falling knots of samples": lambda l, y: l.make_interp_spline(range(6), y, 3, t=[0, 0, 0, 0, 3, 2, 5, 5, 5, 5.0]),
    "samples outside": lambda l, y: l.make_interp_spline(range(6), y, 3, t=[1, 1, 1, 1, 2, 3, 4, 4, 4, 4.0]),
    "negative degree": lambda l, y: l.make_interp_spline(range(6), y, -1),
    "negative degree of a table": lambda l, y: l.interp1d(range(6), y, -1),
    "repeated samples": lambda l, y: l.interp1d([0, 1, 1, 2, 3, 4], y, "cubic"),
    "negative derivative": lambda l, y: l.BSpline(np.arange(9.0), y[:5], 3)([3.3], -1),
    "complex places": lambda l, y: l.CubicSpline(np.arange(6) + 0j, y),
    "no coefficients": lambda l, y: l.PPoly(y[:0, None] * np.ones(5), range(6)),
    "no interval": lambda l, y: l.PPoly(y[:2, None][:, :0], [1.0]),
    "negative derivative of a grid": lambda l, y: l.RegularGridInterpolator((range(6),), y, "cubic")([[0.3]], nu=(-1,)),
    "complex fill": lambda l, y: l.RegularGridInterpolator((range(6),), y, bounds_error=False, fill_value=1j),
    "fill for each place": lambda l, y: l.interp1d(range(6), y, bounds_error=False, fill_value=np.arange(3.0)),
    "list of two fills": lambda l, y: l.interp1d(range(6), y, bounds_error=False, fill_value=[1.0, 2.0]),
    "matrix of fills": lambda l, y: l.interp1d(range(6), y, bounds_error=False, fill_value=(np.ones((1, 1)), 1.0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_scipy_refuses_too(name, rng):
    """What SciPy refuses of plain arrays is refused of recorded ones: it has no number."""
    y = rng.standard_normal(6)
    for package, samples in ((theirs, y), (interpolate, y), (interpolate, lucid.tensor(y, requires_grad=True))):
        with pytest.raises((ValueError, TypeError, NotImplementedError)):
            REFUSED[name](package, samples)


def test_a_refused_fill_changes_nothing(rng):
    """An object keeps its treatment of places outside where another one is refused."""
    y = lucid.tensor(rng.standard_normal(5), requires_grad=True)
    table = interpolate.interp1d(range(5), y, bounds_error=False, fill_value=(1.0, 2.0))
    for value in ("extrap", [1.0, 2.0]):
        with pytest.raises(ValueError, match=r"fill_value: expected"):
            table.fill_value = value
        assert values(table([-1.0, 7.0])).tolist() == [1.0, 2.0]
        assert table.fill_value == (1.0, 2.0)
    table = interpolate.interp1d(range(5), y, bounds_error=True)
    with pytest.raises(ValueError, match=r"Cannot extrapolate and raise"):
        table.fill_value = "extrapolate"
    table.bounds_error = False
    assert np.isnan(values(table(-1.0)))


def test_fills_that_broadcast(rng):
    """A fill is that of one sample, whatever places there are, and has a gradient."""
    y = rng.standard_normal((2, 5, 3))
    for fill in (np.arange(3.0), (np.ones((2, 1)), 7.0), np.ones((2, 3))):
        mine = interpolate.interp1d(range(5), lucid.tensor(y, requires_grad=True), "nearest", 1, True, False, fill)
        expected = theirs.interp1d(range(5), y, "nearest", 1, True, False, fill)
        np.testing.assert_array_equal(values(mine([-1, 7.0, 2])), expected([-1, 7.0, 2]))
    places = lucid.tensor(np.arange(5.0), requires_grad=True)
    whole = interpolate.RegularGridInterpolator((places,), np.arange(5), bounds_error=False)
    assert np.isnan(values(whole([[7.0], [2.5]]))).tolist() == [True, False]
    leaf = lucid.tensor([9.0], dtype=lucid.float64, requires_grad=True)
    table = interpolate.interp1d(range(5), y[0, :, 0], bounds_error=False, fill_value=leaf)
    assert table(7.0).shape == ()
    lnp.sum(table([-1.0, 2.0, 7.0])).backward()
    assert leaf.grad.tolist() == [2.0]


def test_coefficients_of_derivatives_and_integrals(rng):
    """They are as many as the knots, as SciPy has them, so that other functions of splines take them."""
    t, c = np.sort(rng.standard_normal(9)), rng.standard_normal((5, 2))
    mine, expected = interpolate.BSpline(t, lucid.tensor(c, requires_grad=True), 3), theirs.BSpline(t, c, 3)
    for order in (-2, -1, 0, 1, 2, 3):
        one, other = mine.derivative(order), expected.derivative(order)
        assert one.k == other.k
        np.testing.assert_allclose(values(one.c), other.c, atol=1e-12)
        np.testing.assert_allclose(values(one.t), other.t)
    assert interpolate.make_interp_spline([2.0], lucid.tensor([3.0], requires_grad=True), 0)(2.0).item() == 3.0
