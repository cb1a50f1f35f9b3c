"""Reductions and reduced gradients of any shape and layout beside float64.

Errors are counted in roundings of the result's dtype, of what is summed up in it: of the sum of the sizes for a sum,
of the variance itself for a variance. So a large mean excuses nothing.
``python -m tests.stress.rounding`` goes through all of them.
"""

from __future__ import annotations

import argparse
import itertools
from typing import NamedTuple

import ml_dtypes
import numpy as np

import lucid
from lucid.autograd.base import wrap
from lucid.base import gpu
from lucid.nn import functional
from tests.gradients import numbers

EPSILONS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
# of these, the largest offset at which the spread of the numbers is still seen
OFFSETS = {"float64": (0.0, 1e3, 1e7), "float32": (0.0, 1e3, 1e7), "float16": (0.0, 1e3), "bfloat16": (0.0, 1e2)}
# Roundings that a result may be off by. NumPy adds up to 128 numbers eight at a time, and pairs of these sums;
# lucid up to 32 rows one after the other, groups of them, and groups of groups.
ALLOWED = 32
WIDTHS = 1, 2, 3, 8, 64
LENGTHS = 2, 3, 7, 64, 65, 256, 1000, 2**13 + 1, 2**14, 2**17, 2**20, 2**25
LAYOUTS = {
    "dense": lambda xp, a: a,
    "reversed": lambda xp, a: xp.ascontiguousarray(a[::-1])[::-1],
    "turned": lambda xp, a: xp.ascontiguousarray(a.T).T,
    "strided": lambda xp, a: xp.repeat(a, 2, 1)[:, ::2],
    "one row": lambda xp, a: xp.broadcast_to(a[:1], a.shape),
    "one column": lambda xp, a: xp.broadcast_to(a[:, :1], a.shape),
    "one number": lambda xp, a: xp.broadcast_to(a[:1, :1], a.shape),
}


class Row(NamedTuple):
    """A reduction of ``(n, w)`` numbers over the first dimension."""

    call: object
    """What lucid gives for a tensor."""
    exact: object
    """The same of float64 numbers."""
    size: object = None
    """What its roundings are counted in, of the numbers; None: the result itself."""
    spread: bool = False
    """Whether numbers that are all the same have no result that could be off."""
    allowed: int = ALLOWED


def size_of_sum(x):
    return np.abs(x).sum(0)


def centred(x):
    """Return the numbers less their mean, without the mean's rounding."""
    y = x - x.mean(0)
    return y - y.mean(0)


def variance(x, correction=1):
    return (centred(x) ** 2).sum(0) / (len(x) - correction)


# Layers normalise what is along the first dimension of what they are given: rows (w, n), channels of a batch (n, w),
# of an image (1, w, n), or of one whose channels are last; or all of it.
NORMS = {
    "layer_norm": lambda x, **rest: functional.layer_norm(x.T, (len(x),), **rest).T,
    "layer_norm of all": lambda x, **rest: functional.layer_norm(x, tuple(x.shape), **rest),
    "group_norm": lambda x, **rest: functional.group_norm(x.T[None], x.shape[1], **rest)[0].T,
    "group_norm of all": lambda x, **rest: functional.group_norm(x.T[None], 1, **rest)[0].T,
    "instance_norm": lambda x, **rest: functional.instance_norm(x.T[None], **rest)[0].T,
    "batch_norm": lambda x, **rest: functional.batch_norm(x, None, None, training=True, **rest),
    "batch_norm of an image": lambda x, **rest: (
        functional.batch_norm(x.T.contiguous()[None], None, None, training=True, **rest)[0].T
    ),
    "batch_norm, channels last": lambda x, **rest: (
        functional.batch_norm(x.contiguous()[None].transpose(1, 2), None, None, training=True, **rest)[0].T
    ),
}
EPS = 1e-5


def of_all(call):
    """Return what gives of all numbers, as of one column, what `call` gives of each column."""
    return lambda x: call(x.reshape(-1, 1))


def spread_of(norm, columns):
    """Return the variance that the numbers have when they are normalised, and what it should be."""

    def spread(x):
        y = numbers(norm(x, eps=EPS)).astype(np.longdouble)
        return lucid.tensor(columns(lambda y: variance(y, 0))(y).astype(np.float64), dtype=x.dtype)

    def exact(x):
        v = columns(lambda x: variance(x, 0))(x)
        return v / (v + np.longdouble(EPS))

    return Row(spread, exact, lambda x: 1, spread=True)


def running(norm, which, rows):
    """Return what gives the statistics that one batch leaves, of as many channels as `rows` makes of the numbers."""

    def call(x):
        x = rows(x)
        statistics = [lucid.zeros(x.shape[1], dtype=x.dtype, device=x.device) for _ in range(2)]
        norm(x, *statistics, momentum=1.0)
        return statistics[which]

    return call


def batch(x, mean, var, momentum):
    return functional.batch_norm(x, mean, var, training=True, momentum=momentum)


def pairs(x):
    """Return an instance for each row, of each of whose channels one number is that of the row and one is 0."""
    return lucid.stack([x, lucid.zeros_like(x)], dim=2)


RUNNING = {
    "running_var": Row(running(batch, 1, lambda x: x), variance, spread=True),
    "running_var of an image": Row(running(batch, 1, lambda x: x.T.contiguous()[None]), variance, spread=True),
    "running_var, channels last": Row(
        running(batch, 1, lambda x: x.contiguous()[None].transpose(1, 2)), variance, spread=True
    ),
    "running_var of an instance": Row(running(functional.instance_norm, 1, lambda x: x.T[None]), variance, spread=True),
    "running_var of instances": Row(running(functional.instance_norm, 1, pairs), lambda x: (x**2).mean(0) / 2),
    "running_mean of instances": Row(
        running(functional.instance_norm, 0, pairs), lambda x: x.mean(0) / 2, lambda x: np.abs(x).mean(0)
    ),
}


def mean_row(call, part=lambda x: x):
    """Return the row of a mean, of all rows or a part of them."""
    return Row(call, lambda x: part(x).mean(0), lambda x: np.abs(part(x)).mean(0))


def losses(x):
    """Return the logarithm of the sum of exponentials of each row, and in what its roundings are counted."""
    most = x.max(1)
    return np.log(np.exp(x - most[:, None]).sum(1)) + most, np.abs(most) + np.log(x.shape[1]) + 1


REDUCTIONS = {
    "sum": Row(lambda x: x.sum(0), lambda x: x.sum(0), size_of_sum),
    "sum of all": Row(lambda x: x.sum(), lambda x: x.sum(), lambda x: np.abs(x).sum()),
    "sum of columns": Row(lambda x: x.sum(1), lambda x: x.sum(1), lambda x: np.abs(x).sum(1)),
    "nansum": Row(lambda x: x.nansum(0), lambda x: x.sum(0), size_of_sum),
    "mean": mean_row(lambda x: x.mean(0)),
    "var": Row(lambda x: x.var(0), variance, spread=True),
    "var of all": Row(lambda x: x.var(), lambda x: variance(x.reshape(-1)), spread=True),
    "std": Row(lambda x: x.std(0, correction=0), lambda x: np.sqrt(variance(x, 0)), spread=True),
    "var_mean": Row(lambda x: lucid.var_mean(x, 0)[0], variance, spread=True),
    "cov": Row(
        lambda x: lucid.cov(x.T),
        lambda x: np.squeeze(np.cov(centred(x).T.astype(np.float64), bias=False)),
        lambda x: np.squeeze(np.sqrt(np.outer(*[variance(x)] * 2))),
        spread=True,
        # a product of matrices, in the order of BLAS
        allowed=8 * ALLOWED,
    ),
    "norm": Row(lambda x: lucid.linalg.vector_norm(x, dim=0), lambda x: np.sqrt((x**2).sum(0))),
    "norm of all": Row(lambda x: lucid.linalg.vector_norm(x), lambda x: np.sqrt((x**2).sum())),
    "norm of sizes": Row(lambda x: lucid.linalg.vector_norm(x, 1, 0), lambda x: np.abs(x).sum(0)),
    "logsumexp": Row(
        lambda x: lucid.logsumexp(x, 0),
        lambda x: np.log(np.exp(x - x.max(0)).sum(0)) + x.max(0),
        lambda x: np.abs(x.max(0)) + np.log(len(x)) + 1,
    ),
    "cumsum": Row(lambda x: x.cumsum(0)[-1], lambda x: x.sum(0), size_of_sum),
    "cumsum of columns": Row(lambda x: x.cumsum(1)[:, -1], lambda x: x.sum(1), lambda x: np.abs(x).sum(1)),
    "cross_entropy": Row(
        lambda x: functional.cross_entropy(x, lucid.zeros(len(x), dtype=lucid.int64, device=x.device)),
        lambda x: (losses(x)[0] - x[:, 0]).mean(),
        lambda x: (losses(x)[1] + np.abs(x[:, 0])).mean(),
    ),
    "embedding_bag": Row(
        lambda x: functional.embedding_bag(
            lucid.arange(len(x), device=x.device), x, lucid.zeros(1, dtype=lucid.int64, device=x.device), mode="sum"
        )[0],
        lambda x: x.sum(0),
        size_of_sum,
    ),
    "avg_pool": mean_row(lambda x: functional.avg_pool1d(x.T[None], len(x))[0, :, 0]),
    "avg_pool, one window beside another": mean_row(
        lambda x: functional.avg_pool1d(x[:1001].T[None], len(x[1:1001]), 1)[0, :, 1], lambda x: x[1:1001]
    ),
    "adaptive_avg_pool of unequal parts": mean_row(
        lambda x: functional.adaptive_avg_pool1d(x.T[None], 2)[0, :, 0], lambda x: x[: (len(x) + 1) // 2]
    ),
    "adaptive_avg_pool": mean_row(lambda x: functional.adaptive_avg_pool1d(x.T[None], 1)[0, :, 0]),
    "cdist": Row(lambda x: lucid.cdist(x.T, lucid.zeros_like(x.T[:1]), p=1.0)[:, 0], lambda x: np.abs(x).sum(0)),
    **RUNNING,
    **{name: spread_of(norm, of_all if "all" in name else lambda f: f) for name, norm in NORMS.items()},
}


def through(layer):
    """Return what gives the gradient of the first tensor that `layer` makes for a shape, whose upstream is `x`."""

    def call(x):
        parameter, out = layer(x)
        return lucid.autograd.grad(out, parameter, x)[0]

    return call


def ones(x, *shape):
    return lucid.ones(*shape, dtype=x.dtype, device=x.device, requires_grad=True)


def bias_of_linear(x):
    bias = ones(x, x.shape[1])
    return bias, functional.linear(lucid.zeros_like(x[:, :1]), lucid.zeros_like(x[:1].T), bias)


def bias_of_convolution(x):
    bias = ones(x, x.shape[1])
    return bias, functional.conv1d(lucid.zeros_like(x[:, :1, None]), lucid.zeros_like(x[:1].T[..., None]), bias)[..., 0]


def bias_of(norm):
    """Return what makes the bias of a normalisation, and its output."""

    def layer(x):
        bias = ones(x, x.shape[1])
        return bias, norm(x, ones(x, x.shape[1]), bias)

    return layer


def weight_of(norm):
    """Return the row of the gradient of a weight: of numbers normalised to about 1 and -1, in turns along `x`."""

    def turns(x):
        return (-1.0) ** (np.add.outer(*[np.arange(size) for size in x.shape]))

    def layer(x):
        weight = ones(x, x.shape[1])
        return weight, norm(lucid.tensor(turns(x), dtype=x.dtype, device=x.device), weight, None)

    def normalised(x):
        axis = 1 if norm is layer_norm else 0
        p = turns(x).astype(np.longdouble)
        return (p - p.mean(axis, keepdims=True)) / np.sqrt(p.var(axis, keepdims=True) + np.longdouble(EPS))

    return Row(
        through(layer),
        lambda x: (x * normalised(x)).sum(0),
        lambda x: np.abs(x * normalised(x)).sum(0) + size_of_sum(x),
    )


def layer_norm(x, weight, bias):
    return functional.layer_norm(x, (x.shape[1],), weight, bias, EPS)


def batch_norm(x, weight, bias):
    return functional.batch_norm(x, None, None, weight, bias, True, eps=EPS)


def batch_norm_of_an_image(x, weight, bias):
    return functional.batch_norm(x.T[None], None, None, weight, bias, True, eps=EPS)[0].T


def group_norm(x, weight, bias):
    return functional.group_norm(x.T[None], x.shape[1], weight, bias, EPS)[0].T


def weight_of_depthwise(x):
    weight = ones(x, x.shape[1], 1, 1)
    return weight, functional.conv1d(lucid.ones_like(x.T[None]), weight, groups=x.shape[1])[0].T


def expanded(x):
    bias = ones(x, x.shape[1])
    return bias, bias.expand(*x.shape)


def added(x):
    bias = ones(x, x.shape[1])
    return bias, lucid.zeros_like(x) + bias


def multiplied(x):
    factor = ones(x, x.shape[1])
    return factor, lucid.ones_like(x) * factor


LAYERS = layer_norm, batch_norm, batch_norm_of_an_image, group_norm
GRADIENTS = {
    "expand": through(expanded),
    "add": through(added),
    "mul": through(multiplied),
    "bias of linear": through(bias_of_linear),
    "bias of a convolution": through(bias_of_convolution),
    **{f"bias of {norm.__name__}": through(bias_of(norm)) for norm in LAYERS},
}
ROWS = {
    **REDUCTIONS,
    **{name: Row(call, lambda x: x.sum(0), size_of_sum) for name, call in GRADIENTS.items()},
    **{f"weight of {norm.__name__}": weight_of(norm) for norm in LAYERS},
    "weight of a depthwise convolution": Row(
        lambda x: through(weight_of_depthwise)(x)[:, 0, 0],
        lambda x: x.sum(0),
        size_of_sum,
        allowed=2 * ALLOWED,  # BLAS adds up 2,048 numbers in as few as 16 sums
    ),
}


def arrays(length, width, dtype, offset, rng):
    """Return numbers of a dtype around an offset, in NumPy's memory."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return (rng.standard_normal((length, width), np.float32) + np.float64(offset)).astype(kind)


def errors_of(row, array, layout, device):
    """Return by how many roundings of its dtype the result is off, at most; 0 where it has no size."""
    xp = np if device == "cpu" else gpu.cupy()
    # in numbers of more digits; columns that lie together are summed in pairs: 2**20 additions in a row round by more
    # than a float64's last place
    wide = np.longdouble if array.dtype == np.float64 else np.float64
    known = LAYOUTS[layout](np, array).astype(wide, order="F")
    tensor = wrap(LAYOUTS[layout](xp, lucid.tensor(array, device=device).array))
    result = row.call(tensor)
    expected = row.exact(known)
    size = expected if row.size is None else row.size(known)
    if np.abs(expected).max() > float(ml_dtypes.finfo(result.array.dtype).max):
        return 0.0
    off = np.abs(numbers(result).astype(wide) - expected)
    rounding = EPSILONS[str(result.dtype).removeprefix("lucid.")]
    if row.spread and row.size is None and layout in {"one row", "one number"}:
        return float(off.max() / rounding / np.square(np.abs(known).max()))
    return float((off[off > 0] / rounding / np.broadcast_to(size, off.shape)[off > 0]).max(initial=0.0))


def cases(largest):
    """Yield shapes, dtypes, offsets and layouts, up to that many numbers; over 2**16 in one layout each, in turn."""
    turns = itertools.cycle(LAYOUTS)
    for length, width, dtype in itertools.product(LENGTHS, WIDTHS, EPSILONS):
        if length * width <= largest:
            for offset in OFFSETS[dtype]:
                for layout in LAYOUTS if length * width <= 2**16 else [next(turns)]:
                    yield length, width, dtype, offset, layout


def worst_of(name, largest, device, rng, first=0, step=1):
    """Return the largest error of a row over the cases, or those at each `step` from the first on, and its case."""
    worst, place, made, array = 0.0, None, None, None
    for *make, layout in itertools.islice(cases(largest), first, None, step):
        if make != made:
            made, array = make, arrays(*make, rng)
        error = errors_of(ROWS[name], array, layout, device)
        if worst == worst and not error <= worst:  # what is NaN is the worst
            worst, place = error, (*make, layout)
    return worst, place


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=25, help="log2 of how many numbers at most, 25 by default")
    parser.add_argument("--device", default="cpu", help="where they lie, cpu by default")
    parser.add_argument("rows", nargs="*", help="some of the rows; all by default")
    options = parser.parse_args()
    failed = 0
    for name in options.rows or ROWS:
        worst, place = worst_of(name, 2**options.size, options.device, np.random.default_rng(0))
        failed += not worst <= ROWS[name].allowed
        print(f"{name:24}{worst:12.2f}  {place}", flush=True)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
