"""Calls of `scipy.interpolate`."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import gcrotmk

from tests.scipy.checks import Row, between, complex_of, increasing, off_grid

X, Y, Q = increasing(8), (8, 2), off_grid(0, 7, 3, 4, step=0.5)
BEYOND = off_grid(-4, 11, 9, step=0.5)
ENDS = ((1, [0.3, 0.2]), (2, [0.1, 0.0]))
KNOTS = [0, 0, 0, 0, 1, 2, 2.5, 4, 4, 4, 4.0]
GRID = [0, 0.2, 0.33, 0.5, 0.8, 1.0], [1, 0.8, 0.7, 0.5, 0.33, 0.1, 0]
HALVES, MIDDLES = ([0, 1, 2, 3], [3, 2, 1]), [[0.5, 1.5], [1.5, 2.5], [2.5, 1.0], [0, 2.5]]


def turning(n):
    """Return what gives samples that rise and fall, so that no choice of a slope is near to another."""
    values = np.array(
        [[0.3, 1.0], [1.2, 0.1], [0.7, 0.5], [-0.5, -0.4], [-1.0, 1.2], [0.4, 0.9], [0.9, 2.0], [2.6, 1.4]]
    )
    return lambda rng: values[:n]


STAIRS = np.arange(8.0), np.array([0.0, 1, 1, 1, 1, 3, 3, 3])


def block(rng):
    """Return samples of which each is a matrix."""
    return turning(8)(rng)[:, :, None] * np.array([1.0, -0.5, 2.0])


def closed(l, x, y, q):
    """Return a periodic spline's values, of samples of which the last is the first again."""
    return l.CubicSpline(x, y[[*range(len(y)), 0]], bc_type="periodic")(q)


def inside(*shape, scale=1.0):
    """Return what draws places on the grid, away from its lines."""
    return lambda rng: rng.choice([0.05, 0.15, 0.27, 0.42, 0.6, 0.75, 0.9], shape) * scale


def of_samples(name, n=8, **settings):
    """Return a row of an interpolator's values, with gradients by places, values and where it is asked."""
    chooses = name in {"PchipInterpolator", "Akima1DInterpolator"}
    samples = ((lambda rng: np.arange(n) * 0.5), turning(n)) if chooses else (increasing(n), (n, 2))
    return Row(
        name,
        lambda l, x, y, q: getattr(l, name)(x, y, **settings)(q),
        (*samples, Q),
        n == 8 and not settings,
    )


PIECEWISE = [
    *[of_samples("CubicSpline", n, bc_type=b) for b in ("not-a-knot", "natural", ENDS) for n in (2, 3, 8)],
    of_samples("CubicSpline"),
    *[Row("CubicSpline", closed, (increasing(n), (n - 1, 2), between(0.2, 0.3, 5)), n == 8) for n in (3, 4, 5, 8)],
    Row("CubicSpline", closed, (lambda rng: np.arange(5.0), (4, 2), Q)),
    Row("CubicSpline", lambda l, x, y, q: l.CubicSpline(x, y, axis=1)(q), (X, (2, 8), Q)),
    *[Row("CubicSpline", lambda l, x, y, q, n=n: l.CubicSpline(x, y)(q, nu=n), (X, Y, Q)) for n in (1, 2)],
    Row("CubicSpline", lambda l, x, y, q: l.CubicSpline(x, y, axis=1).derivative()(q), (X, (2, 8), Q)),
    *[
        Row("CubicSpline", lambda l, x, y, q, nu=nu: l.CubicSpline(x, y).antiderivative(nu)(q), (X, Y, Q))
        for nu in (2, 0, -1, -2)
    ],
    Row("CubicSpline", lambda l, x, y, a: l.CubicSpline(x, y).integrate(a, 3.2), (X, Y, between(0.5, 1))),
    Row("CubicSpline", lambda l, x, y, q: l.CubicSpline(x, y)(q), (X, complex_of(8), Q)),
    Row("CubicSpline", lambda l, x, y: l.CubicSpline(x, y).c, (X, Y)),
    Row("CubicHermiteSpline", lambda l, x, y, d, q: l.CubicHermiteSpline(x, y, d)(q), (X, Y, Y, Q)),
    *[of_samples("PchipInterpolator", n) for n in (2, 3, 8)],
    *[
        of_samples("Akima1DInterpolator", n, extrapolate=True, method=m)
        for n, m in ((3, "akima"), (8, "akima"), (8, "makima"))
    ],
    Row("PPoly", lambda l, c, x, q: l.PPoly(c, x)(q), ((3, 7), X, Q), True),
    Row("PPoly", lambda l, c, x, q: l.PPoly(c, x, "periodic", 1)(q), ((2, 3, 7), X, BEYOND)),
    *[
        Row("PPoly", lambda l, c, x, q, e=e: l.PPoly(c, -x, e)(-q, 1), ((3, 7), X, BEYOND), is_flat=not e)
        for e in (True, False, "periodic")
    ],
    Row("PPoly", lambda l, c, q: l.PPoly(c, [2.0, 1, 0])(q), ((3, 2), off_grid(-1, 3, 9))),
    Row("PPoly", lambda l, c: l.PPoly(c, [2.0, 1, 0])([0.0, 1, 2]), ((3, 2),)),
    Row("PPoly", lambda l, c, x: l.PPoly(c, -x).derivative()(-0.7), ((3, 7), X)),
    Row("PPoly", lambda l, c, x, a: l.PPoly(c, -x).integrate(-a, -3.2), ((3, 7), X, between(0.6, 0.7))),
    Row("CubicSpline", lambda l, x, y, q: l.CubicSpline(x, y, extrapolate=True)(q), (X, Y, BEYOND)),
    Row(
        "CubicHermiteSpline",
        lambda l, x, y, d, q: l.CubicHermiteSpline(x, y, d, 1, "periodic")(q),
        (X, (2, 8), (2, 8), BEYOND),
    ),
    *[
        Row(
            name,
            lambda l, x, y, q, n=name: getattr(l, n)(x, y, axis=1, extrapolate=True)(q),
            (lambda rng: np.arange(8) * 0.5, lambda rng: turning(8)(rng).T, BEYOND),
        )
        for name in ("PchipInterpolator", "Akima1DInterpolator")
    ],
    # a line, of which no slope is nearer than another
    Row(
        "Akima1DInterpolator",
        lambda l, q: l.Akima1DInterpolator(*[0 * q[:8] + each for each in STAIRS])(q),
        (between(0.1, 6.9, 9),),
    ),
    *[
        Row(
            name,
            lambda l, x, y, q, n=name, k=k, d=d: getattr(l, n)(x, y, axis=k).derivative(d)(q),
            (lambda rng: np.arange(8) * 0.5, lambda rng, k=k: np.moveaxis(block(rng), 0, k), between(0.3, 3.2, 4)),
        )
        for name in ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator")
        for k, d in ((1, 0), (2, 1), (-1, 0), (1, -1))
    ],
    Row(
        "PPoly",
        lambda l, c, x, q: l.PPoly(c, x, "periodic").antiderivative()(q),
        ((3, 7), X, between(0.1, 3, 4)),
    ),
    *[
        Row("PPoly", lambda l, c, x, b, o=o, e=e: l.PPoly(c, x, o).integrate(-0.3, b, e), ((3, 7), X, between(4, 5)))
        for o, e in ((False, True), (True, None), ("periodic", True), (True, "periodic"))
    ],
]

SPLINES = [
    *[
        Row("make_interp_spline", lambda l, x, y, q, k=k: l.make_interp_spline(x, y, k)(q), (X, Y, Q), k == 3)
        for k in (1, 2, 3, 4, 5)
    ],
    *[
        Row("make_interp_spline", lambda l, x, y, q, b=b: l.make_interp_spline(x, y, bc_type=b)(q), (X, Y, Q))
        for b in ("natural", "clamped", ([(1, [0.1, 0.2])], [(2, [0, 0.3])]))
    ],
    Row("make_interp_spline", lambda l, x, y, q: l.make_interp_spline(x, y, axis=1)(q, 1), (X, (2, 8), Q)),
    Row("make_interp_spline", lambda l, y: l.make_interp_spline([0, 1, 2, 3], y, 0)([0.5, 3.0, 4.0]), ((4,),)),
    Row("BSpline", lambda l, c, q: l.BSpline(KNOTS, c, 3)(q), ((7, 2), Q), True),
    Row("BSpline", lambda l, t, c, q: l.BSpline(t, c, 2)(q), (increasing(10), (7, 2), Q)),
    *[
        Row("BSpline", lambda l, c, q, nu=nu: l.BSpline(KNOTS, c, 3).derivative(nu)(q), ((7, 2), Q), is_flat=nu == 3)
        for nu in (0, 1, 2, 3, -1)
    ],
    *[
        Row("BSpline", lambda l, c, q, nu=nu: l.BSpline(KNOTS, c, 3).antiderivative(nu)(q), ((7, 2), Q))
        for nu in (0, 1, 2, -2)
    ],
    Row("BSpline", lambda l, c: l.BSpline(KNOTS, c, 3).integrate(0.3, 3.0), ((7, 2),)),
    Row("BSpline", lambda l, t, c, q: l.BSpline(t, c, 2, "periodic", 1)(q), (increasing(10), (2, 7), BEYOND)),
    *[
        Row("BSpline", lambda l, c, q, k=k: l.BSpline(KNOTS, c, 3, axis=k)(q), (shape, between(0.1, 3.9, 4)))
        for k, shape in ((1, (2, 7, 3)), (2, (2, 3, 7)), (-1, (2, 3, 7)))
    ],
    Row(
        "make_interp_spline",
        lambda l, x, y, q: l.make_interp_spline(x, y, axis=-1)(q),
        (X, (2, 3, 8), between(0.1, 3.4, 4)),
    ),
    *[
        Row("BSpline", lambda l, t, c, e=e: l.BSpline(t, c, 2, e).integrate(0.7, 4.3), (increasing(10), (7, 2)))
        for e in (True, False)
    ],
    Row(
        "make_interp_spline",
        lambda l, x, y, q: l.make_interp_spline(x, y, 3, [-0.1] * 4 + [1, 1.5, 2, 2.5] + [3.7] * 4)(q),
        (X, Y, Q),
    ),
]

TABLES = [
    *[
        of_samples("interp1d", kind=k, axis=0, fill_value="extrapolate")
        for k in ("linear", "slinear", "quadratic", "cubic", 3)
    ],
    *[
        Row(
            "interp1d",
            lambda l, y, k=k: l.interp1d(range(8), y, k, 0, True, False, (1.0, 2.0))([-1, 1.5, 2.2, 3, 9]),
            (Y,),
        )
        for k in ("nearest", "nearest-up", "previous", "next", "zero")
    ],
    Row("interp1d", lambda l, y: l.interp1d([3, 1, 0, 2], y)([0.3, 1.0, 2.9]), ((2, 4),)),
    *[
        Row(
            "RegularGridInterpolator",
            lambda l, a, b, v, p, m=m: l.RegularGridInterpolator((a, b), v, m)(p),
            (lambda rng: np.array(GRID[0]), lambda rng: np.array(GRID[1]), (6, 7, 2), inside(9, 2)),
        )
        for m in ("linear", "slinear")
    ],
    *[
        Row("RegularGridInterpolator", lambda l, v, p, f=f: l.RegularGridInterpolator(GRID, v, "linear", False, f)(p), (
            (6, 7, 2), inside(3, 4, 2, scale=1.5)), f is None)
        for f in (3.0, None)
    ],
    Row("RegularGridInterpolator", lambda l, v: l.RegularGridInterpolator(GRID, v, "nearest")((0.5, 0.4)), ((6, 7),)),
    Row("RegularGridInterpolator", lambda l, v: l.RegularGridInterpolator(HALVES, v, "nearest")(MIDDLES), ((4, 3),)),
    *[
        Row("RegularGridInterpolator", lambda l, v, m=m: l.RegularGridInterpolator(([1.0], GRID[1]), v, m)(
            [[1.0, 0.23], [1.0, 0.55]]), ((1, 7),))
        for m in ("linear", "nearest")
    ],
    *[
        Row("RegularGridInterpolator", lambda l, v, p, o=o: l.RegularGridInterpolator(GRID, v, "slinear")(p, nu=o), (
            (6, 7, 2), inside(9, 2)))
        for o in ((0, 1), (1, 1), [0, 0])
    ],
    Row("RegularGridInterpolator", lambda l, v: l.RegularGridInterpolator(GRID, v)(([0.5, 0.4],)), ((6, 7),)),
    Row(
        "RegularGridInterpolator",
        lambda l, v: l.RegularGridInterpolator(
            ([0, 1, 2, 3], [0, 1, 2, 3, 4]), v, "cubic", solver=gcrotmk, solver_args={"rtol": 1e-14},
        )(MIDDLES, nu=[1, 0]),
        ((4, 5),),
        tolerance=1e-6,
    ),
    Row("interp1d", lambda l, y: l.interp1d([0, 1, 2, 3], y, assume_sorted=True)([0.3, 1.0, 2.9]), ((2, 4),)),
    Row("interpn", lambda l, v, p: l.interpn(GRID, v, p), ((6, 7), inside(9, 2))),
    *[
        Row("interpn", lambda l, v, x, y, m=m: l.interpn(GRID, v, (x, y), m), (
            shape, between(0.1, 0.3, *xs), between(0.1, 0.3, *ys)))
        for m, shape, xs, ys in (
            ("linear", (6, 7), (), ()), ("slinear", (6, 7, 2), (), ()), ("linear", (6, 7), (2, 1), (3,)))
    ],
    *[
        Row("BSpline", lambda l, c, k=k, t=t, o=o: l.BSpline(t, c, k)([-1.0, 0.0, 0.5, 1.0, 2.5, 3.0, 3.5], o), (
            (len(t) - k - 1,),))
        for k, t in ((1, [0] * 3 + [1] + [3] * 3), (2, [0] * 4 + [1, 1, 2] + [3] * 5), (2, [0] * 3 + [1] * 3 + [3] * 3))
        for o in (0, 1, 2)
    ],
    Row("make_interp_spline", lambda l, y: l.make_interp_spline(range(4), y, 0).antiderivative()([2.5, 3, 4]), ((4,),)),
    Row("make_interp_spline", lambda l, y: l.make_interp_spline([0, 1, 2, 3], y, 0).integrate(0.5, 2.5), ((4,),)),
    Row("interpn", lambda l, v: l.interpn(GRID, v, (0.3, 0.5), "nearest"), ((6, 7),)),
    Row("interpn", lambda l, v: l.interpn(([0, 1, 2, 3],), v, ([0.3, 0.5],)), ((4,),)),
    Row("interpn", lambda l, v, p: l.interpn(GRID, v, p, "slinear", False, 2.0), ((6, 7), inside(9, 2, scale=1.5))),
]  # fmt: skip
