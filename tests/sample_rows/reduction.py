"""Sums, means, extremes, products, variances and norms over dimensions, and running sums and products."""

from __future__ import annotations

import math

import numpy as np

from lucid.ops.reduction import cumulative, extremes, norms, statistics
from lucid.ops.reduction import sums as reduction
from tests.samples import Sample

SHAPE = (3, 4, 5)
# the forms in which dimensions are named: all, one, one from the end, several, several kept
DIMS = {
    "": (None, False),
    ":dim": (1, False),
    ":last": (-1, True),
    ":dims": ((0, 2), False),
    ":dims_kept": ((0, -1), True),
}


def draw(rng):
    """Draw one array whose sums are no small differences of large numbers."""
    return (rng.standard_normal(SHAPE) + 1,)


def draw_ones(rng):
    """Draw one array of numbers around 1, whose products stay in range."""
    return (rng.uniform(0.5, 1.5, SHAPE) * rng.choice([-1.0, 1.0], SHAPE),)


def draw_zeros(rng):
    """Draw one array with a zero in some columns and two zeros in others."""
    (x,) = draw_ones(rng)
    x[0, 1, 2] = x[1, 0, 1] = x[2, 3, 1] = x[0, :2, 4] = 0
    return (x,)


def draw_zero(rng):
    """Draw one array with one zero."""
    (x,) = draw_ones(rng)
    x[1, 2, 3] = 0
    return (x,)


def draw_clear(rng):
    """Draw one array of sizes away from zero, all different."""
    sizes = rng.permutation(np.linspace(0.3, 2.0, math.prod(SHAPE))).reshape(SHAPE)
    return (sizes * rng.choice([-1.0, 1.0], SHAPE),)


def draw_complex(rng):
    """Draw one complex array."""
    return (rng.standard_normal(SHAPE) + 1j * rng.standard_normal(SHAPE) + 1,)


def draw_flags(rng):
    """Draw one array of bools, with columns of one kind."""
    x = rng.random(SHAPE) < 0.5
    x[0, :, 0], x[:, 1, :] = True, False
    return (x,)


def no_rows(_rng):
    """Draw an array without elements."""
    return (np.zeros((0, 4, 5)),)


def no_columns(_rng):
    """Draw an array without elements, of which reductions of the last dimension have results."""
    return (np.zeros((3, 4, 0)),)


def over(op, reference, inputs=draw, names=tuple(DIMS), **settings):
    """Return the rows of an op that takes `dim` and `keepdim`, in each of the forms."""
    name = op.__name__
    variant = "".join(f":{key}={value}" for key, value in settings.items())

    def row(form):
        dim, keepdim = DIMS[form]
        axes = dim if dim is not None else (0, 1, 2)
        return Sample(
            name + variant + form,
            lambda x: op(x, dim=dim, keepdim=keepdim, **settings),
            inputs,
            lambda x: reference(x, axes, keepdim),
            lambda torch, x: getattr(torch, name)(x, dim=axes, keepdim=keepdim, **settings),
        )

    return [row(form) for form in names]


def plain(op, reference, inputs=draw, **settings):
    """Return the rows of NumPy's function of the same arguments."""
    return over(op, lambda x, axes, keepdim: reference(x, axis=axes, keepdims=keepdim), inputs, **settings)


def tests(op, reference):
    """Return the rows of a test of bools."""

    def row(form):
        dim, keepdim = DIMS[form]
        return Sample(
            f"{op.__name__}{form}",
            lambda x: op(x, dim, keepdim),
            draw_flags,
            lambda x: reference(x, axis=dim, keepdims=keepdim),
            lambda torch, x: (
                getattr(torch, op.__name__)(x) if dim is None else getattr(torch, op.__name__)(x, dim, keepdim)
            ),
            differentiable=False,
        )

    return [row(form) for form in DIMS]


def places(op, reference):
    """Return the rows of a search for a place."""
    return [
        Sample(
            f"{op.__name__}{form}",
            lambda x, dim=dim, keepdim=keepdim: op(x, dim, keepdim),
            draw_clear,
            lambda x, dim=dim, keepdim=keepdim: reference(x, axis=dim, keepdims=keepdim),
            lambda torch, x, dim=dim, keepdim=keepdim: getattr(torch, op.__name__)(x, dim, keepdim),
            differentiable=False,
        )
        for form, dim, keepdim in (("", None, False), (":dim", 1, False), (":last", -1, True), (":kept", None, True))
    ]


def along(op, place, value):
    """Return the rows of an op that gives values and their places."""

    def reference(x, dim, keepdim):
        at = np.expand_dims(place(x, dim), dim)
        values = np.take_along_axis(x, at, dim)
        return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))

    rows = [Sample(op.__name__, op, draw_clear, value, lambda torch, x: getattr(torch, op.__name__)(x))]
    for form, dim, keepdim in (("dim", 1, False), ("last", -1, True)):
        rows.append(
            Sample(
                f"{op.__name__}:{form}",
                lambda x, dim=dim, keepdim=keepdim: op(x, dim, keepdim),
                draw_clear,
                lambda x, dim=dim, keepdim=keepdim: reference(x, dim, keepdim),
                lambda torch, x, dim=dim, keepdim=keepdim: getattr(torch, op.__name__)(x, dim, keepdim),
            )
        )
    return rows


def lower_median(x, axis):
    """Return where the lower median is."""
    return np.take(np.argsort(x, axis), (x.shape[axis] - 1) // 2, axis)


def spreads(op, reference):
    """Return the rows of a variance or deviation."""
    return [
        *over(op, lambda x, axes, keepdim: reference(x, axis=axes, keepdims=keepdim, ddof=1)),
        *over(op, lambda x, axes, keepdim: reference(x, axis=axes, keepdims=keepdim), names=("", ":dim"), correction=0),
    ]


def both(op, reference):
    """Return the row of a variance or deviation with the mean."""
    return Sample(
        op.__name__,
        lambda x: op(x, 1, keepdim=True),
        draw,
        lambda x: (reference(x, axis=1, keepdims=True, ddof=1), x.mean(1, keepdims=True)),
        lambda torch, x: getattr(torch, op.__name__)(x, 1, keepdim=True),
    )


def lengths(p):
    """Return the rows of a norm."""

    def reference(x, axes, keepdim):
        size = np.abs(x)
        if math.isinf(p):
            return (size.max if p > 0 else size.min)(axis=axes, keepdims=keepdim)
        return (size**p).sum(axis=axes, keepdims=keepdim) ** (1 / p)

    def row(form):
        dim, keepdim = DIMS[form]
        axes = dim if dim is not None else (0, 1, 2)
        return Sample(
            f"norm:p={p}{form}",
            lambda x: norms.norm(x, p, dim, keepdim),
            draw_clear,
            lambda x: reference(x, axes, keepdim),
            lambda torch, x: torch.linalg.vector_norm(x, p, axes, keepdim),
            # the power of a sum of powers: a relative error grows by the power
            tolerance={"float16": 2e-2, "bfloat16": 1e-1, "float32": 2e-5} if p < 1 else {},
        )

    return [row(form) for form in DIMS]


def log_sum(x, axes, keepdim):
    """Return the logarithm of the sum of exponentials."""
    return np.log(np.exp(x).sum(axis=axes, keepdims=keepdim))


def unit(x):
    """Return the rows of the second dimension at length 1."""
    return x / np.sqrt((x * x).sum(1, keepdims=True))


def empty(name, op, reference, inputs):
    """Return a row of an op on arrays of which one has no elements."""
    return Sample(f"{name}:empty", op, draw_clear, reference, empty=inputs)


ROWS = [
    *plain(reduction.sum, np.sum),
    *plain(reduction.mean, np.mean),
    *plain(reduction.nansum, np.nansum),
    *plain(extremes.amax, np.amax, draw_clear),
    *plain(extremes.amin, np.amin, draw_clear),
    *over(norms.logsumexp, log_sum),
    *spreads(statistics.var, np.var),
    *spreads(statistics.std, np.std),
    both(statistics.var_mean, np.var),
    both(statistics.std_mean, np.std),
    *tests(reduction.any, np.any),
    *tests(reduction.all, np.all),
    *places(extremes.argmax, np.argmax),
    *places(extremes.argmin, np.argmin),
    *along(extremes.max, np.argmax, np.max),
    *along(extremes.min, np.argmin, np.min),
    *along(statistics.median, lower_median, lambda x: np.sort(x, None)[(x.size - 1) // 2]),
    *[found for p in (0.5, 1, 1.5, 2, 3, math.inf, -math.inf) for found in lengths(p)],
    Sample(
        "norm:p=0",
        lambda x: norms.norm(x, 0, 1),
        draw_zeros,
        lambda x: (x != 0).sum(1).astype(float),
        lambda torch, x: torch.linalg.vector_norm(x, 0, 1),
        twice=False,
    ),
    Sample(
        "norm:fro",
        norms.norm,
        draw_clear,
        lambda x: np.sqrt((x * x).sum()),
        lambda torch, x: torch.norm(x),
    ),
    Sample("sum:complex", lambda x: reduction.sum(x, 1), draw_complex, lambda x: x.sum(1), lambda torch, x: x.sum(1)),
    Sample("mean:complex", reduction.mean, draw_complex, np.mean, lambda torch, x: x.mean()),
    Sample(
        "sum:dtype",
        lambda x: reduction.sum(x, 0, dtype="float64"),
        draw,
        lambda x: x.sum(0),
        lambda torch, x: x.sum(0, dtype=torch.float64),
        dtypes=("float64",),
    ),
    Sample(
        "sum:integers",
        reduction.sum,
        lambda rng: (rng.integers(0, 100, SHAPE, np.uint8),),
        lambda x: x.sum(dtype=np.int64),
        lambda torch, x: x.sum(),
        differentiable=False,
    ),
    Sample(
        "count_nonzero",
        reduction.count_nonzero,
        draw_zeros,
        np.count_nonzero,
        lambda torch, x: torch.count_nonzero(x),
        differentiable=False,
    ),
    Sample(
        "count_nonzero:dim",
        lambda x: reduction.count_nonzero(x, 1),
        draw_zeros,
        lambda x: np.count_nonzero(x, 1),
        lambda torch, x: torch.count_nonzero(x, 1),
        differentiable=False,
    ),
    empty("sum", lambda x: reduction.sum(x, 0), lambda x: x.sum(0), no_rows),
    empty("sum_all", reduction.sum, np.sum, no_columns),
    empty("mean", lambda x: reduction.mean(x, 1), lambda x: x.mean(1), no_columns),
    empty("amax", lambda x: extremes.amax(x, 1), lambda x: x.max(1), no_columns),
    empty("max", lambda x: extremes.max(x, 1).values, lambda x: x.max(1), no_columns),
    empty("norm", lambda x: norms.norm(x, 2, 0), lambda x: np.sqrt((x * x).sum(0)), no_rows),
    empty("var", lambda x: statistics.var(x, 1), lambda x: x.var(1, ddof=1), no_columns),
    empty("prod", lambda x: cumulative.prod(x, 0), lambda x: x.prod(0), no_rows),
    empty("cumsum", lambda x: cumulative.cumsum(x, 0), lambda x: x.cumsum(0), no_rows),
    empty("cumprod", lambda x: cumulative.cumprod(x, 0), lambda x: x.cumprod(0), no_rows),
    *[
        Sample(
            f"prod{form}:{kind}",
            lambda x, dim=dim, keepdim=keepdim: cumulative.prod(x, dim, keepdim),
            inputs,
            lambda x, dim=dim, keepdim=keepdim: x.prod(axis=dim, keepdims=keepdim),
            lambda torch, x, dim=dim, keepdim=keepdim: torch.prod(x) if dim is None else torch.prod(x, dim, keepdim),
            # a factor of rounding errors for each factor of the product
            tolerance={"float16": 2e-2, "bfloat16": 1e-1, "float32": 2e-5},
        )
        for kind, inputs in (("factors", draw_ones), ("zero", draw_zero), ("zeros", draw_zeros))
        for form, dim, keepdim in (("", None, False), (":dim", 1, False), (":last", -1, True))
        if form or kind != "zeros"
    ],
    Sample("prod:complex", lambda x: cumulative.prod(x, 1), draw_complex, lambda x: x.prod(1)),
    *[
        Sample(
            f"{op.__name__}:{kind}:{dim}",
            lambda x, op=op, dim=dim: op(x, dim),
            inputs,
            lambda x, reference=reference, dim=dim: reference(x, axis=dim),
            lambda torch, x, op=op, dim=dim: getattr(torch, op.__name__)(x, dim),
        )
        for op, reference in ((cumulative.cumsum, np.cumsum), (cumulative.cumprod, np.cumprod))
        for kind, inputs in (("factors", draw_ones), ("zeros", draw_zeros))
        for dim in (0, -1)
    ],
    Sample("cumsum:complex", lambda x: cumulative.cumsum(x, 1), draw_complex, lambda x: x.cumsum(1)),
    Sample(
        "normalize",
        norms.normalize,
        draw,
        unit,
        lambda torch, x: torch.nn.functional.normalize(x),
    ),
    Sample(
        "cosine_similarity",
        norms.cosine_similarity,
        lambda rng: (rng.standard_normal(SHAPE), rng.standard_normal((4, 5))),
        lambda x, y: (unit(x) * unit(np.broadcast_to(y, x.shape))).sum(1),
        lambda torch, x, y: torch.nn.functional.cosine_similarity(x, y),
    ),
]
