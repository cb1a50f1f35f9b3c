"""Activation functions."""

from __future__ import annotations

import math

import numpy as np

from lucid.ops.activation import bias_activation, gelu, mish, relu, sigmoid
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


def gelu_by_tanh(x):
    """Return gelu by its formula with tanh."""
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


# Of the activations after a bias: the function, and PyTorch's name of it and settings.
OF_SUM = {
    "relu": (lambda x: np.where(x > 0, x, 0), "relu", {}),
    "gelu": (lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, "gelu", {}),
    "gelu_tanh": (gelu_by_tanh, "gelu", {"approximate": "tanh"}),
    "silu": (lambda x: x * logistic(x), "silu", {}),
    "tanh": (np.tanh, "tanh", {}),
    "sigmoid": (logistic, "sigmoid", {}),
}


def sum_and_bias(rng):
    """Draw an input and a bias whose sum stays clear of zero."""
    (total,) = outside(0.2)(rng)
    bias = rng.uniform(-2, 2, total.shape[-1])
    return total - bias, bias


def of_sum(name):
    """Return the row of an activation function after a bias."""
    reference, theirs, settings = OF_SUM[name]
    return Sample(
        f"bias_activation:{name}",
        lambda x, bias: bias_activation.bias_activation(x, bias, name),
        sum_and_bias,
        lambda x, bias: reference(x + bias),
        lambda torch, x, bias: getattr(torch.nn.functional, theirs)(x + bias, **settings),
        empty=lambda rng: (np.zeros((0, 4)), rng.standard_normal(4)),
    )


ROWS = [
    row(relu.relu, lambda x: np.where(x > 0, x, 0)),
    row(relu.relu6, lambda x: np.clip(x, 0, 6)),
    row(relu.hardtanh, lambda x: np.clip(x, -0.1, 0.1), "bounds", min_val=-0.1, max_val=0.1),
    row(relu.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    row(relu.leaky_relu, lambda x: np.where(x > 0, x, 1.5 * x), "steep", negative_slope=1.5),
    row(relu.elu, lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    row(relu.elu, lambda x: np.where(x > 0, x, 0.7 * (np.exp(x) - 1)), "alpha", alpha=0.7),
    row(sigmoid.sigmoid, logistic),
    row(sigmoid.silu, lambda x: x * logistic(x)),
    row(sigmoid.softplus, lambda x: np.log(1 + np.exp(x))),
    # it jumps where 2 * x is 0.3, which no draw is near
    row(
        sigmoid.softplus,
        lambda x: np.where(2 * x > 0.3, x, np.log(1 + np.exp(2 * x)) / 2),
        "beta",
        beta=2,
        threshold=0.3,
    ),
    row(sigmoid.logsigmoid, lambda x: np.log(logistic(x))),
    row(mish.mish, lambda x: x * np.tanh(np.log(1 + np.exp(x)))),
    row(gelu.gelu, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    row(gelu.gelu, gelu_by_tanh, "tanh", approximate="tanh"),
    *map(of_sum, OF_SUM),
]
