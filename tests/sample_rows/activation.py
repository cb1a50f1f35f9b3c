"""Activation functions."""

from __future__ import annotations

import math

import numpy as np

from lucid.ops import activation, gelu, mish, sigmoid
from tests.sample_rows.elementwise import no_rows, outside
from tests.samples import Sample

erf = np.vectorize(math.erf, otypes=[float])


def logistic(x):
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


def row(op, reference, variant=None, **settings):
    """Return the row of an activation function that PyTorch has in its functional namespace."""
    name = op.__name__
    return Sample(
        name if variant is None else f"{name}:{variant}",
        lambda x: op(x, **settings),
        outside(0.2),
        reference,
        lambda torch, x: getattr(torch.nn.functional, name)(x, **settings),
        empty=no_rows(1),
    )


ROWS = [
    row(activation.relu, lambda x: np.where(x > 0, x, 0)),
    row(activation.relu6, lambda x: np.clip(x, 0, 6)),
    row(activation.hardtanh, lambda x: np.clip(x, -0.1, 0.1), "bounds", min_val=-0.1, max_val=0.1),
    row(activation.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    row(activation.leaky_relu, lambda x: np.where(x > 0, x, 1.5 * x), "steep", negative_slope=1.5),
    row(activation.elu, lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    row(activation.elu, lambda x: np.where(x > 0, x, 0.7 * (np.exp(x) - 1)), "alpha", alpha=0.7),
    row(sigmoid.sigmoid, logistic),
    row(sigmoid.silu, lambda x: x * logistic(x)),
    row(sigmoid.softplus, lambda x: np.log(1 + np.exp(x))),
    row(sigmoid.softplus, lambda x: np.where(2 * x > 1, x, np.log(1 + np.exp(2 * x)) / 2), "beta", beta=2, threshold=1),
    row(sigmoid.logsigmoid, lambda x: np.log(logistic(x))),
    row(mish.mish, lambda x: x * np.tanh(np.log(1 + np.exp(x)))),
    row(gelu.gelu, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    row(
        gelu.gelu,
        lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
        "tanh",
        approximate="tanh",
    ),
]
