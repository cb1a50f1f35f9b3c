"""Calls of `scipy.ndimage`."""

from __future__ import annotations

import numpy as np

from tests.scipy.checks import Row, between, complex_of, off_grid, spaced

MODES = ("reflect", "mirror", "constant", "nearest", "wrap")
SPLINE_MODES = (*MODES, "grid-wrap", "grid-constant")
IMAGE, PLACES = (7, 6), off_grid(-4, 10, 2, 4, 5)
LONG = off_grid(-3, 52, 2, 6)


def mapped(l, x):
    """Return what a mapping with arguments of its own gives, of all settings."""

    def places(index, a, *, b):
        return index[0] * a + b, index[1] * 0.9

    return l.geometric_transform(x, places, (9, 4), None, 2, "constant", 0.3, False, (0.9,), {"b": 0.1})


FILTERS = [
    *[
        Row(
            "correlate", lambda l, x, w, m=m: l.correlate(x, w, mode=m, cval=0.7, origin=(1, -1)), (IMAGE, (3, 4)), True
        )
        for m in MODES
    ],
    *[
        Row("convolve", lambda l, x, w, m=m: l.convolve(x, w, mode=m, cval=0.7, origin=[1, -2]), (IMAGE, (3, 4)))
        for m in MODES
    ],
    Row("correlate", lambda l, x, w: l.correlate(x, w, axes=(1, 0), origin=(0, 1)), (IMAGE, (2, 3))),
    Row("correlate", lambda l, x, w: l.correlate(x, w, axes=(2, 0), origin=(1, 0)), ((4, 3, 5), (2, 3))),
    Row(
        "correlate",
        lambda l, x, w: l.correlate(x, w, cval=1j, mode="constant"),
        (complex_of(5, 4), complex_of(2, 3)),
        True,
    ),
    Row("convolve", lambda l, x, w: l.convolve(x, w), ((5, 4), complex_of(3, 2))),
    Row("correlate1d", lambda l, x, w: l.correlate1d(x, w, axis=0), (IMAGE, (4,))),
    Row("convolve1d", lambda l, x, w: l.convolve1d(x, w, 0, mode="wrap"), (IMAGE, (4,))),
    *[Row("gaussian_filter", lambda l, x, m=m: l.gaussian_filter(x, 1.5, mode=m, cval=0.3), (IMAGE,)) for m in MODES],
    Row("gaussian_filter", lambda l, x: l.gaussian_filter(x, [1.5, 0.7], [1, 0], axes=(1, 0), truncate=3), (IMAGE,)),
    Row("gaussian_filter", lambda l, x: l.gaussian_filter(x, 1.0, mode=["wrap", "mirror"], radius=[2, 3]), (IMAGE,)),
    *[Row("gaussian_filter1d", lambda l, x, o=o: l.gaussian_filter1d(x, 1.5, order=o), (IMAGE,)) for o in range(4)],
    Row("gaussian_laplace", lambda l, x: l.gaussian_laplace(x, 1.2, truncate=2.0), (IMAGE,)),
    Row("gaussian_gradient_magnitude", lambda l, x: l.gaussian_gradient_magnitude(x, [1.2, 0.8]), (IMAGE,)),
    *[Row(name, lambda l, x, n=name: getattr(l, n)(x), (IMAGE,)) for name in ("laplace", "sobel", "prewitt")],
    Row("uniform_filter", lambda l, x: l.uniform_filter(x, [2, 3], origin=[0, 1]), (IMAGE,)),
    Row("uniform_filter1d", lambda l, x: l.uniform_filter1d(x, 3, 0, mode="nearest"), (IMAGE,)),
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x, 3, mode="nearest"), (spaced(*IMAGE),))
        for name in ("maximum_filter", "minimum_filter", "median_filter")
    ],
    Row("convolve", lambda l, x, w: l.convolve(x, w, axes=(0,)), (IMAGE, (3,))),
    *[
        Row(
            name,
            lambda l, x, w, n=name, o=o: getattr(l, n)(x, w, 0, mode="constant", cval=0.7, origin=o),
            (IMAGE, (4,)),
        )
        for name, o in (("correlate1d", 1), ("convolve1d", -2))
    ],
    Row("gaussian_filter1d", lambda l, x: l.gaussian_filter1d(x, 1.5, 0, 1, None, "constant", 0.3, 3.0), (IMAGE,)),
    Row("gaussian_filter1d", lambda l, x: l.gaussian_filter1d(x, 1.5, radius=2), (IMAGE,)),
    Row("uniform_filter1d", lambda l, x: l.uniform_filter1d(x, 3, 0, None, "constant", 0.5, 1), (IMAGE,)),
    Row("uniform_filter", lambda l, x: l.uniform_filter(x, 4, None, "constant", 0.5, -2, axes=(0,)), (IMAGE,)),
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x, 0, None, ["constant", "wrap"], 0.4), (IMAGE,))
        for name in ("prewitt", "sobel")
    ],
    Row("laplace", lambda l, x: l.laplace(x, None, "constant", 0.4, axes=(1,)), (IMAGE,)),
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x, 1.2, None, "constant", 0.4, axes=(0,), truncate=2.0), (IMAGE,))
        for name in ("gaussian_laplace", "gaussian_gradient_magnitude")
    ],
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x, [1.2, 0.8], mode=["wrap", "constant"], axes=(1, 0)), (IMAGE,))
        for name in ("gaussian_laplace", "gaussian_gradient_magnitude")
    ],
    Row("gaussian_laplace", lambda l, x: l.gaussian_laplace(x, [1.2, 0.8], axes=(2, 0)), ((4, 3, 5),)),
    *[
        Row(name, lambda l, x, n=name, s=s: getattr(l, n)(x, mode="constant", cval=0.31, **s), (spaced(*IMAGE),))
        for name in ("maximum_filter", "minimum_filter", "median_filter")
        for s in (
            {"footprint": [[1, 0, 1], [1, 1, 0]], "origin": (-1, 1)},
            {"size": 4, "origin": 1, "axes": (0,)},
        )
    ],
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x, axis=1, mode="constant", cval=0.4), (IMAGE,))
        for name in ("sobel", "prewitt")
    ],
    Row("gaussian_gradient_magnitude", lambda l, x: l.gaussian_gradient_magnitude(x, 0.8, mode="mirror"), (IMAGE,)),
    *[
        Row(name, lambda l, x, n=name, m=m: getattr(l, n)(x, 4, 0, mode=m, cval=0.3, origin=1), (spaced(*IMAGE),))
        for name in ("maximum_filter1d", "minimum_filter1d")
        for m in ("wrap", "constant")
    ],
    *[
        Row("percentile_filter", lambda l, x, p=p: l.percentile_filter(x, p, (2, 4)), (spaced(*IMAGE),))
        for p in (0, 30, 100, -20)
    ],
    *[Row("rank_filter", lambda l, x, r=r: l.rank_filter(x, r, 3), (spaced(*IMAGE),)) for r in (0, 2, -1)],
    *[
        Row(
            name,
            lambda l, x, n=name: getattr(l, n)(
                x, 1, footprint=[[1, 0, 1]], mode="constant", cval=0.3, origin=(0, -1), axes=(1, 0)
            ),
            (spaced(*IMAGE),),
        )
        for name in ("rank_filter", "percentile_filter")
    ],
    *[
        Row(name, lambda l, x, n=name, a=a: getattr(l, n)(x, size=(4, 3), origin=(0, 1), axes=a), (spaced(4, 3, 5),))
        for name in ("maximum_filter", "minimum_filter", "median_filter", "uniform_filter")
        for a in ((2, 0), (0, 1))
    ],
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x, size=(4, 3), origin=(0, 1), axes=(1, 0)), (spaced(*IMAGE),))
        for name in ("maximum_filter", "median_filter")
    ],
    Row("maximum_filter", lambda l, x: l.maximum_filter(x, footprint=[[1, 0, 1], [1, 1, 0]]), (spaced(*IMAGE),)),
]

TRANSFORMS = [
    *[
        Row(
            "map_coordinates",
            lambda l, x, c, m=m, o=o: l.map_coordinates(x, c, order=o, mode=m, cval=0.3),
            (IMAGE, PLACES),
            o == 3 and m in {"mirror", "grid-constant"},
            is_flat=m in {"wrap", "constant"} and o < 2,
        )
        for m in SPLINE_MODES
        for o in range(6)
        if (o, m) in {(0, "nearest"), (1, "constant"), (1, "reflect"), (2, "wrap"), (4, "grid-constant"), (5, "mirror")}
        or o == 3
    ],
    *[
        Row("map_coordinates", lambda l, x, c, m=m: l.map_coordinates(x, c, order=5, mode=m), ((50, 50), LONG))
        for m in ("mirror", "nearest", "grid-wrap")
    ],
    Row("map_coordinates", lambda l, x, c: l.map_coordinates(x, c, prefilter=False, mode="nearest"), (IMAGE, PLACES)),
    Row("map_coordinates", lambda l, x, c: l.map_coordinates(x, c, mode="grid-mirror"), (complex_of(7, 6), PLACES)),
    Row("spline_filter", lambda l, x: l.spline_filter(x), (IMAGE,)),
    Row("spline_filter", lambda l, x: l.spline_filter(x, 2, np.float32, "reflect"), (IMAGE,), False, 1e-6, True),
    Row("spline_filter1d", lambda l, x: l.spline_filter1d(x, output=np.float32), (IMAGE,), False, 1e-6, True),
    Row("spline_filter1d", lambda l, x: l.spline_filter1d(x, 4, 0, mode="grid-wrap"), ((60, 2),), True),
    Row(
        "affine_transform",
        lambda l, x, a, b: l.affine_transform(x, a, b, output_shape=(5, 4), mode="reflect"),
        (IMAGE, (2, 2), between(1.0, 4.0, 2)),
        True,
    ),
    Row(
        "affine_transform",
        lambda l, x, a, b: l.affine_transform(x, a, b, output_shape=(5, 4), mode="nearest"),
        (IMAGE, between(0.3, 0.9, 2), between(0.1, 0.9, 2)),
    ),
    Row(
        "affine_transform",
        lambda l, x: l.affine_transform(x, [[0.9, 0.2, 0.3], [-0.2, 0.8, 1.1], [0, 0, 1]], mode="grid-wrap", order=1),
        (IMAGE,),
    ),
    Row(
        "affine_transform",
        lambda l, x: l.affine_transform(x, [[0.9, 0.2], [-0.2, 0.8]], [0.3, 2.1], cval=0.7, prefilter=False),
        (IMAGE,),
    ),
    Row("shift", lambda l, x, b: l.shift(x, b, mode="grid-wrap"), (IMAGE, (2,)), True),
    Row("shift", lambda l, x: l.shift(x, [1.3, -0.4], None, 2, "nearest", prefilter=False), (IMAGE,)),
    Row("zoom", lambda l, x: l.zoom(x, [1.7, 0.6], cval=0.7, prefilter=False, mode="grid-constant"), (IMAGE,)),
    Row("rotate", lambda l, x: l.rotate(x, 30.0, order=2, prefilter=False), (IMAGE,)),
    Row("shift", lambda l, x: l.shift(x, 1.3, cval=2), (IMAGE,)),
    *[Row("zoom", lambda l, x, m=m: l.zoom(x, [1.7, 0.6], mode=m), (IMAGE,)) for m in SPLINE_MODES],
    Row("zoom", lambda l, x: l.zoom(x, 2, order=1, mode="grid-constant", grid_mode=True), (IMAGE,)),
    Row("rotate", lambda l, x: l.rotate(x, 30.0), (IMAGE,)),
    Row("rotate", lambda l, x: l.rotate(x, -90, cval=1.0), (IMAGE,)),
    Row("rotate", lambda l, x: l.rotate(x, -20, axes=(0, 2), reshape=False, mode="nearest"), ((4, 5, 3),)),
    Row(
        "geometric_transform", lambda l, x: l.geometric_transform(x, lambda i: (i[0] * 0.7 + 0.1, i[1] * 0.9)), (IMAGE,)
    ),
    Row("geometric_transform", mapped, (IMAGE,)),
]
