"""Normalisation over features, batches, groups and instances."""

from __future__ import annotations

import numpy as np

from lucid.ops.layers import batch_normalisation, normalisation
from tests.samples import Sample

SHAPE = (3, 4, 5)
EPS = 1e-5


def draw(*affine, shape=SHAPE):
    """Return what draws an input whose spread is of the order of 1, and parameters of the shapes `affine`."""

    def inputs(rng):
        return (rng.standard_normal(shape) * 2 + 1, *[rng.uniform(0.5, 1.5, size) for size in affine])

    return inputs


def standard(x, axes, weight=1.0, bias=0.0, eps=EPS):
    """Return values of mean 0 and variance 1, scaled and moved."""
    mean, spread = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(spread + eps) * weight + bias


def channels(x, *parameters):
    """Return parameters of the channels as they meet the input."""
    return [p.reshape(1, -1, *[1] * (x.ndim - 2)) for p in parameters]


def features(name, op, reference, torch, *affine):
    """Return a row of a normalisation over the last dimensions."""
    return Sample(name, op, draw(*affine), reference, torch)


def of_groups(x, groups, *parameters):
    """Return the group norm."""
    split = x.reshape(x.shape[0], groups, -1)
    out = standard(split, 2).reshape(x.shape)
    weight, bias = channels(x, *parameters)
    return out * weight + bias


def batch_rows(shape):
    """Return the rows of batch norm on inputs of one shape."""
    axes = (0, *range(2, len(shape)))
    parameters = (shape[1],), (shape[1],)
    form = "".join(map(str, shape))

    def with_statistics(rng):
        x, weight, bias = draw(*parameters, shape=shape)(rng)
        return x, np.linspace(0.5, 1.5, shape[1]), np.linspace(2.0, 4.0, shape[1]), weight, bias

    def evaluated(x, *of_channels):
        mean, spread, weight, bias = channels(x, *of_channels)
        return (x - mean) / np.sqrt(spread + EPS) * weight + bias

    return [
        Sample(
            f"batch_norm:{form}",
            lambda x, w, b: batch_normalisation.batch_norm(x, None, None, w, b, training=True),
            draw(*parameters, shape=shape),
            lambda x, w, b: standard(x, axes, *channels(x, w, b)),
            lambda torch, x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, training=True),
        ),
        Sample(
            f"batch_norm:{form}:plain",
            lambda x: batch_normalisation.batch_norm(x, None, None, training=True),
            draw(shape=shape),
            lambda x: standard(x, axes),
            lambda torch, x: torch.nn.functional.batch_norm(x, None, None, training=True),
        ),
        Sample(
            f"batch_norm:{form}:eval",
            batch_normalisation.batch_norm,
            with_statistics,
            evaluated,
            lambda torch, *arguments: torch.nn.functional.batch_norm(*arguments),
            constants=(1, 2),
        ),
    ]


def by_neighbours(x, size, alpha, beta, k):
    """Return the local response norm, one channel after the other."""
    out = np.empty_like(x)
    for channel in range(x.shape[1]):
        first = max(channel - size // 2, 0)
        squares = (x[:, first : channel + (size - 1) // 2 + 1] ** 2).sum(1)
        out[:, channel] = x[:, channel] / (k + alpha / size * squares) ** beta
    return out


ROWS = [
    features(
        "layer_norm",
        lambda x, w, b: normalisation.layer_norm(x, 5, w, b),
        lambda x, w, b: standard(x, -1, w, b),
        lambda torch, x, w, b: torch.nn.functional.layer_norm(x, (5,), w, b),
        (5,),
        (5,),
    ),
    features(
        "layer_norm:dims",
        lambda x, w, b: normalisation.layer_norm(x, (4, 5), w, b, eps=0.1),
        lambda x, w, b: standard(x, (1, 2), w, b, 0.1),
        lambda torch, x, w, b: torch.nn.functional.layer_norm(x, (4, 5), w, b, 0.1),
        (4, 5),
        (4, 5),
    ),
    features(
        "layer_norm:plain",
        lambda x: normalisation.layer_norm(x, 5),
        lambda x: standard(x, -1),
        lambda torch, x: torch.nn.functional.layer_norm(x, (5,)),
    ),
    features(
        "layer_norm:weight",
        lambda x, w: normalisation.layer_norm(x, 5, w),
        lambda x, w: standard(x, -1, w),
        lambda torch, x, w: torch.nn.functional.layer_norm(x, (5,), w),
        (5,),
    ),
    features(
        "rms_norm",
        lambda x, w: normalisation.rms_norm(x, 5, w, eps=EPS),
        lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * w,
        lambda torch, x, w: torch.nn.functional.rms_norm(x, (5,), w, EPS),
        (5,),
    ),
    features(
        "rms_norm:dims",
        lambda x: normalisation.rms_norm(x, (4, 5), eps=EPS),
        lambda x: x / np.sqrt((x * x).mean((1, 2), keepdims=True) + EPS),
        lambda torch, x: torch.nn.functional.rms_norm(x, (4, 5), eps=EPS),
    ),
    *batch_rows((6, 4)),
    *batch_rows((3, 4, 5)),
    *batch_rows((3, 4, 2, 3)),
    *[
        Sample(
            f"group_norm:{groups}",
            lambda x, w, b, groups=groups: normalisation.group_norm(x, groups, w, b),
            draw((4,), (4,), shape=(3, 4, 2, 3)),
            lambda x, w, b, groups=groups: of_groups(x, groups, w, b),
            lambda torch, x, w, b, groups=groups: torch.nn.functional.group_norm(x, groups, w, b),
        )
        for groups in (1, 2, 4)
    ],
    Sample(
        "instance_norm",
        lambda x, w, b: batch_normalisation.instance_norm(x, None, None, w, b),
        draw((4,), (4,)),
        lambda x, w, b: standard(x, 2, *channels(x, w, b)),
        lambda torch, x, w, b: torch.nn.functional.instance_norm(x, None, None, w, b),
    ),
    *[
        Sample(
            f"local_response_norm:{size}",
            lambda x, size=size: normalisation.local_response_norm(x, size, 0.5, 0.6, 1.5),
            draw(shape=shape),
            lambda x, size=size: by_neighbours(x, size, 0.5, 0.6, 1.5),
            lambda torch, x, size=size: torch.nn.functional.local_response_norm(x, size, 0.5, 0.6, 1.5),
            empty=lambda rng: (rng.standard_normal((2, 0, 3)),),
        )
        for size, shape in ((2, (2, 5, 3)), (3, (2, 6, 2, 2)))
    ],
]
