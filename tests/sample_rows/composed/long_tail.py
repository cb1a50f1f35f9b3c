"""Rows of what is asked for less often: composed products, order, differences, angles, parts of copies."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np

import lucid
from tests.samples import Sample

WIDE = ("float32", "float64")
SHAPE = (3, 4)
PLACES = np.array([[0, 2, 1, 0], [2, 2, 0, 1]])


def normal(*shapes):
    """Return what draws an array for each shape."""
    return lambda rng: tuple(rng.standard_normal(shape) for shape in shapes)


def distinct(*shapes):
    """Return what draws arrays of which no two elements are near each other."""

    def draw(rng):
        count = sum(math.prod(shape) for shape in shapes)
        values = iter(rng.permutation(count) * 0.25 - count / 8 + 0.1)
        return tuple(np.array([next(values) for _ in range(math.prod(s))]).reshape(s) for s in shapes)

    return draw


def row(name, inputs, reference=None, *settings, empty=None, **more):
    """Return a row of a function whose settings follow its tensors, as in PyTorch."""
    short, keywords = name.partition(":")[0], {}
    if settings and isinstance(settings[-1], dict):
        *settings, keywords = settings
    return Sample(
        name,
        lambda *tensors: getattr(lucid, short)(*tensors, *settings, **keywords),
        inputs,
        reference,
        lambda t, *tensors: getattr(t, short)(*tensors, *settings, **keywords),
        empty=empty,
        **more,
    )


def of_list(name, inputs, reference):
    """Return a row of a function of a sequence of tensors."""
    return Sample(
        name,
        lambda *tensors: getattr(lucid, name)(tensors),
        inputs,
        reference,
        lambda t, *tensors: getattr(t, name)(tensors),
    )


def scattered(name, reduce, include_self, reference):
    """Return a row of a scatter with a reduction."""

    def call(module, x, src):
        index = module.tensor(PLACES, device=x.device)
        return module.scatter_reduce(x, 0, index, src, reduce, include_self=include_self)

    return Sample(
        name,
        lambda x, src: call(lucid, x, src),
        distinct(SHAPE, (2, 4)),
        lambda x, src: combined(x, src, include_self=include_self, by=reference),
        call,
        tolerance=COARSE,
    )


def combined(x, src, *, include_self, by):
    """Return what a scatter combines, one place after the other."""
    met = {place: ([x[place]] if include_self else []) for place in np.ndindex(x.shape)}
    for i, j in np.ndindex(PLACES.shape):
        met[PLACES[i, j], j].append(src[i, j])
    return np.array([by(met[place]) if met[place] else x[place] for place in np.ndindex(x.shape)]).reshape(x.shape)


def put_parts(part):
    """Return the reference of a copy of the first array in which a part is the second."""

    def reference(x, src):
        out = x.copy()
        part(out)[...] = src
        return out

    return reference


def diagonal(x):
    """Return the diagonal of a matrix as a view that can be written to."""
    return np.lib.stride_tricks.as_strided(x, (min(x.shape),), (x.strides[0] + x.strides[1],))


def strided(x):
    """Return every other element of the first four as a view."""
    return x.reshape(-1)[1:5:2]


def running(x, better):
    """Return the extremes so far along the last dimension, and their places: the last of equal ones."""
    places = np.zeros(x.shape, np.int64)
    for row_, out in zip(x.reshape(-1, x.shape[-1]), places.reshape(-1, x.shape[-1]), strict=True):
        for j in range(1, len(row_)):
            out[j] = j if better(row_[j], row_[out[j - 1]]) else out[j - 1]
    return np.take_along_axis(x, places, -1), places


def ranked(x, k):
    """Return the k-th smallest element along the last dimension, and its place."""
    place = np.argsort(x, -1, kind="stable")[..., k - 1]
    return np.take_along_axis(x, place[..., None], -1)[..., 0], place


def clear_of_zero(*shapes):
    """Return what draws arrays of either sign, clear of zero."""
    return lambda rng: tuple(rng.choice([-1.0, 1.0], s) * rng.uniform(0.3, 2.0, s) for s in shapes)


def within(low, high, *shapes):
    """Return what draws arrays between two bounds."""
    return lambda rng: tuple(rng.uniform(low, high, s) for s in shapes)


def whole(low, high, *shapes):
    """Return what draws arrays of integers."""
    return lambda rng: tuple(rng.integers(low, high, s) for s in shapes)


def logistic_sums(x):
    """Return the logarithms of sums of exponentials so far, along the last dimension."""
    return np.log(np.cumsum(np.exp(x), -1))


NOTHING, NOTHINGS = normal((0, 4)), normal((0, 4), (0, 4))
# of what is composed half types round each step
COARSE = {"float16": 2e-2, "bfloat16": 1e-1}
FLAT = {"differentiable": False, "twice": False}

ROWS = [
    # ---- elementwise ----
    row("deg2rad", normal(SHAPE), np.deg2rad, empty=NOTHING),
    row("rad2deg", normal(SHAPE), np.rad2deg, empty=NOTHING),
    row("sinc", clear_of_zero(SHAPE), np.sinc, empty=NOTHING, tolerance=COARSE),
    row("hypot", clear_of_zero(SHAPE, SHAPE), np.hypot, empty=NOTHINGS, broadcasts=True),
    row(
        "logaddexp2", normal(SHAPE, SHAPE), np.logaddexp2, empty=NOTHINGS, broadcasts=True,
        tolerance=COARSE,
    ),
    row(
        "xlogy", within(0.5, 3, SHAPE, SHAPE), lambda a, b: a * np.log(b), empty=NOTHINGS, broadcasts=True,
        tolerance=COARSE,
    ),
    row(
        "logit", within(0.1, 0.4, SHAPE), lambda x: np.log(x / (1 - x)), empty=NOTHING,
        tolerance=COARSE,
    ),
    row(
        "logit:eps", within(0.1, 0.4, SHAPE), lambda x: np.log(np.maximum(x, 0.05) / (1 - np.maximum(x, 0.05))), 0.05,
        tolerance=COARSE,
    ),
    row("copysign", clear_of_zero(SHAPE, SHAPE), np.copysign, empty=NOTHINGS, broadcasts=True),
    row("fmax", distinct(SHAPE, SHAPE), np.fmax, empty=NOTHINGS, broadcasts=True),
    row("fmin", distinct(SHAPE, SHAPE), np.fmin, empty=NOTHINGS, broadcasts=True),
    row("heaviside", distinct(SHAPE, SHAPE), np.heaviside, broadcasts=True, **FLAT),
    row("nextafter", normal(SHAPE, SHAPE), dtypes=WIDE, broadcasts=True, twice=False),
    row("isposinf", lambda rng: (np.array([[1.0, np.inf, -np.inf, np.nan]]),), np.isposinf, empty=NOTHING, **FLAT),
    row("isneginf", lambda rng: (np.array([[1.0, np.inf, -np.inf, np.nan]]),), np.isneginf, empty=NOTHING, **FLAT),
    row("isreal", normal(SHAPE), np.isreal, empty=NOTHING, **FLAT),
    row("signbit", lambda rng: (np.array([[1.0, -0.0, -np.inf, 0.0]]),), np.signbit, empty=NOTHING, **FLAT),
    row("signbit:integers", whole(-3, 3, SHAPE), np.signbit, **FLAT),
    row("gcd", whole(-30, 30, SHAPE, SHAPE), np.gcd, broadcasts=True, **FLAT),
    row("lcm", whole(-10, 10, SHAPE, SHAPE), np.lcm, broadcasts=True, **FLAT),
    row("ldexp", normal(SHAPE, SHAPE), lambda a, b: a * 2.0**b, broadcasts=True, tolerance=COARSE),
    row("float_power", within(0.5, 2, SHAPE, SHAPE), np.power, dtypes=("float64",), broadcasts=True),
    # ---- shapes ----
    row("atleast_1d", normal(()), lambda x: x.reshape(1)),
    row("atleast_2d", normal((3,)), lambda x: x.reshape(1, 3)),
    row("atleast_3d", normal((3, 4)), lambda x: x.reshape(3, 4, 1)),
    of_list("column_stack", normal((3,), (3, 2), (3,)), lambda *x: np.column_stack(x)),
    of_list("dstack", normal((3,), (1, 3, 2)), lambda *x: np.dstack(x)),
    row(
        "block_diag",
        normal((2, 3), (), (2,)),
        lambda a, b, c: np.block(
            [[a, np.zeros((2, 3))], [np.zeros((1, 3)), b, np.zeros((1, 2))], [np.zeros((1, 4)), c]]
        ),
    ),
    row("cartesian_prod", normal((2,), (3,)), lambda a, b: np.array(list(itertools.product(a, b)))),
    row("combinations", normal((4,)), lambda x: np.array(list(itertools.combinations(x, 2)))),
    row(
        "combinations:repeated",
        normal((3,)),
        lambda x: np.array(list(itertools.combinations_with_replacement(x, 3))),
        3,
        True,
    ),
    row("split_with_sizes", normal((5, 2)), lambda x: [x[:2], x[2:]], [2, 3]),
    row("hsplit", normal((2, 4)), lambda x: np.hsplit(x, 2), 2),
    row("hsplit:vector", normal((4,)), lambda x: np.hsplit(x, 2), 2),
    row("vsplit", normal((4, 2)), lambda x: np.vsplit(x, [1, 3]), (1, 3)),
    row("dsplit", normal((2, 1, 4)), lambda x: np.dsplit(x, 2), 2),
    Sample(
        "sum_to_size",
        lambda x: x.sum_to_size(3, 1),
        normal((2, 3, 4)),
        lambda x: x.sum((0, 2), keepdims=False).reshape(3, 1),
        lambda t, x: x.sum_to_size(3, 1),
    ),
    # ---- copies with other parts ----
    row("select_scatter", normal(SHAPE, (3,)), put_parts(lambda x: x[:, 2]), 1, 2),
    row("slice_scatter", normal(SHAPE, (3, 2)), put_parts(lambda x: x[:, 1::2]), 1, 1, None, 2),
    row("diagonal_scatter", normal(SHAPE, (3,)), put_parts(diagonal)),
    # PyTorch's has the gradients of the two exchanged
    Sample(
        "as_strided_scatter", lambda x, src: lucid.as_strided_scatter(x, src, (2,), (2,), 1), normal(SHAPE, (2,)),
        put_parts(strided),
    ),
    Sample(
        "put",
        lambda x, src: x.put(lucid.tensor([[1, -1]], device=x.device), src),
        normal(SHAPE, (2,)),
        put_parts(lambda x: x.reshape(-1)[1::10]),
        lambda t, x, src: x.put(t.tensor([[1, -1]]), src.reshape(1, 2)),
    ),
    scattered("scatter_reduce:sum", "sum", True, sum),
    scattered("scatter_reduce:sum of others", "sum", False, sum),
    scattered("scatter_reduce:prod", "prod", True, math.prod),
    scattered("scatter_reduce:prod of others", "prod", False, math.prod),
    scattered("scatter_reduce:mean", "mean", True, statistics.fmean),
    scattered("scatter_reduce:mean of others", "mean", False, statistics.fmean),
    scattered("scatter_reduce:amax", "amax", True, max),
    scattered("scatter_reduce:amin of others", "amin", False, min),
    Sample(
        "index_reduce",
        lambda x, src: lucid.index_reduce(x, 1, lucid.tensor([2, 0, 2], device=x.device), src, "amax"),
        distinct(SHAPE, (3, 3)),
        lambda x, src: np.stack(
            [np.maximum(x[:, 0], src[:, 1]), x[:, 1], np.maximum(x[:, 2], src[:, ::2].max(1)), x[:, 3]], 1
        ),
        lambda t, x, src: x.scatter_reduce(1, t.tensor([2, 0, 2]).expand(3, 3), src, "amax"),
    ),
    # ---- products ----
    row("addmv", normal((2,), (2, 3), (3,)), lambda x, a, v: 2 * x + a @ v / 2, {"beta": 2.0, "alpha": 0.5}),
    row("addr", normal((2, 3), (2,), (3,)), lambda x, a, b: 2 * x + np.outer(a, b) / 2, {"beta": 2.0, "alpha": 0.5}),
    row("addbmm", normal((2, 3), (4, 2, 5), (4, 5, 3)), lambda x, a, b: x + (a @ b).sum(0)),
    row("vdot", normal((5,), (5,)), np.vdot),
    row("kron", normal((2, 3), (3, 2)), np.kron),
    row("kron:of other ranks", normal((3,), (2, 1, 2)), np.kron),
    Sample(
        "cross", lucid.cross, normal((2, 3), (2, 3)), lambda a, b: np.cross(a, b),
        lambda t, a, b: t.linalg.cross(a, b), tolerance=COARSE,
    ),
    Sample(
        "cross:of a dimension", lambda a, b: lucid.cross(a, b, 0), normal((3, 2), (3, 1)),
        lambda a, b: np.cross(a, b, axis=0), lambda t, a, b: t.linalg.cross(a, b, dim=0), tolerance=COARSE,
    ),
    row("trace", normal((3, 4)), np.trace),
    row("matrix_power", normal((2, 3, 3)), lambda x: x @ x @ x @ x @ x, 5, tolerance=COARSE),
    row("matrix_power:none", normal((2, 2)), lambda x: np.eye(2), 0, **FLAT),
    Sample(
        "vander", lucid.vander, clear_of_zero((4,)), np.vander, lambda t, x: x[:, None] ** t.arange(len(x) - 1, -1, -1),
        tolerance=COARSE,
    ),
    Sample(
        "vander:rising", lambda x: lucid.vander(x, 3, True), clear_of_zero((4,)),
        lambda x: np.vander(x, 3, increasing=True), lambda t, x: x[:, None] ** t.arange(3),
    ),
    row("adjoint", normal((2, 3, 4)), lambda x: x.swapaxes(-1, -2)),
    # ---- reductions ----
    row("diff", normal((2, 5)), np.diff),
    Sample(
        "diff:twice, with more", lambda x, p: lucid.diff(x, 2, 1, p), normal((2, 3), (2, 1)),
        lambda x, p: np.diff(x, 2, 1, p), lambda t, x, p: t.diff(x, 2, 1, p), tolerance=COARSE,
    ),
    row("trapezoid", normal((2, 5)), lambda y: np.trapezoid(y, axis=0), {"dim": 0}),
    row("trapezoid:places", normal((2, 5), (5,)), np.trapezoid, tolerance=COARSE),
    row("cumulative_trapezoid", normal((2, 5)), lambda y: np.cumsum(y[:, 1:] + y[:, :-1], 1), {"dx": 2.0}),
    row("cummax", distinct((3, 7)), lambda x: running(x, np.greater_equal), -1),
    row("cummin", distinct((3, 7)), lambda x: running(x, np.less_equal), -1),
    row("logcumsumexp", normal((3, 5)), logistic_sums, -1, tolerance=COARSE),
    row("kthvalue", distinct((3, 5)), lambda x: ranked(x, 2), 2),
    row("msort", distinct((5, 2)), lambda x: np.sort(x, 0)),
    row("mode", distinct((3, 5)), lambda x: ranked(x, 1)),
    row(
        "mode:of integers", lambda rng: (np.array([[1, 2, 2, 0, 1], [3, 1, 1, 3, 0]]),),
        lambda x: (x[:, 1] - [1, 0], np.array([4, 2])), **FLAT,
    ),
    row("nanmedian", distinct((3, 4)), lambda x: ranked(x, 2), 1),
    row("nanmedian:of all", distinct((3, 5)), np.nanmedian),
    row("nanmean", normal(SHAPE), lambda x: np.nanmean(x, 1), 1),
    row("aminmax", distinct(SHAPE), lambda x: (x.min(1), x.max(1)), {"dim": 1}),
    row("quantile", distinct((3, 5)), lambda x: np.quantile(x, 0.3, axis=1), 0.3, 1, dtypes=WIDE),
    row("quantile:of all", distinct((3, 5)), lambda x: np.quantile(x, 0.7, method="midpoint"), 0.7, {
        "interpolation": "midpoint"}, dtypes=WIDE),
    row(
        "nanquantile", distinct((3, 5)), lambda x: np.quantile(x, 0.3, axis=0, keepdims=True), 0.3, 0, True,
        dtypes=WIDE,
    ),
    row("cov", normal((3, 6)), np.cov, tolerance=COARSE),
    row("cov:of one", normal((6,)), lambda x: np.cov(x, ddof=0), {"correction": 0}, tolerance=COARSE),
    Sample(
        "cov:weighted", lambda x, f, a: lucid.cov(x, fweights=f, aweights=a),
        lambda rng: (rng.standard_normal((3, 6)), rng.integers(1, 4, 6), rng.uniform(0.5, 1.5, 6)),
        lambda x, f, a: np.cov(x, fweights=f, aweights=a), lambda t, x, f, a: t.cov(x, fweights=f, aweights=a),
        tolerance=COARSE, constants=(2,),
    ),
    row("corrcoef", normal((3, 6)), np.corrcoef, tolerance={"float16": 8e-3, "bfloat16": 6e-2, "float32": 1e-5}),
    row(
        "renorm",
        lambda rng: (rng.standard_normal((3, 4)) * np.array([[5.0], [0.1], [5.0]]),),
        lambda x: x * np.where(np.abs(x).sum(1) > 2, 2 / (np.abs(x).sum(1) + 1e-7), 1)[:, None],
        1.0,
        0,
        2.0,
    ),
    row("histc", normal((20,)), lambda x: np.histogram(x, 5, (-1, 1))[0], 5, -1.0, 1.0, dtypes=WIDE, **FLAT),
    row("isin", whole(0, 9, (3, 4), (5,)), np.isin, **FLAT),
    Sample(
        "bucketize", lambda x: lucid.bucketize(x, lucid.tensor([1, 3, 5], device=x.device)), whole(0, 9, (3, 4)),
        lambda x: np.searchsorted([1, 3, 5], x), lambda t, x: t.bucketize(x, t.tensor([1, 3, 5])), **FLAT,
    ),
    row("unique_consecutive", lambda rng: (np.array([1, 1, 2, 2, 2, 1]),), lambda x: (
        np.array([1, 2, 1]), np.array([0, 0, 1, 1, 1, 2]), np.array([2, 3, 1])), True, True, **FLAT),
]  # fmt: skip
