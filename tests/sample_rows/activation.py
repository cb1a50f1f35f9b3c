"""Activation functions."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from lucid.ops.activation import bias_activation, elu, gelu, glu, hard, mish, prelu, relu, sigmoid, soft
from tests.sample_rows.elementwise import between, no_rows
from tests.samples import Sample, kinks

erf = np.vectorize(math.erf, otypes=[float])


def logistic(x):
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


def row(op, reference, inputs=between((-2, 2)), variant=None, places=(), **settings):
    """Return the row of an activation function that PyTorch has in its functional namespace, with its kinks."""
    name = op.__name__
    return Sample(
        name if variant is None else f"{name}:{variant}",
        lambda x: op(x, **settings),
        inputs,
        reference,
        lambda torch, x: getattr(torch.nn.functional, name)(x, **settings),
        empty=no_rows(1),
        gaps=kinks(*places),
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


def of_sum(name):
    """Return the row of an activation function after a bias."""
    reference, theirs, settings = OF_SUM[name]
    return Sample(
        f"bias_activation:{name}",
        lambda x, bias: bias_activation.bias_activation(x, bias, name),
        lambda rng: (rng.uniform(-4, 4, (3, 4)), rng.uniform(-2, 2, 4)),
        lambda x, bias: reference(x + bias),
        lambda torch, x, bias: getattr(torch.nn.functional, theirs)(x + bias, **settings),
        empty=lambda rng: (np.zeros((0, 4)), rng.standard_normal(4)),
        gaps=lambda x, bias: (x + bias,),
    )


ROWS = [
    row(relu.relu, lambda x: np.where(x > 0, x, 0), places=(0,)),
    row(relu.relu6, lambda x: np.clip(x, 0, 6), between((-8, 8)), places=(0, 6)),
    row(
        relu.hardtanh,
        lambda x: np.clip(x, -0.3, 0.3),
        variant="bounds",
        places=(-0.3, 0.3),
        min_val=-0.3,
        max_val=0.3,
    ),
    row(relu.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), places=(0,)),
    row(relu.leaky_relu, lambda x: np.where(x > 0, x, 1.5 * x), variant="steep", places=(0,), negative_slope=1.5),
    row(elu.elu, lambda x: np.where(x > 0, x, np.exp(x) - 1), places=(0,)),
    row(elu.elu, lambda x: np.where(x > 0, x, 0.7 * (np.exp(x) - 1)), variant="alpha", places=(0,), alpha=0.7),
    row(
        elu.selu,
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1)),
        places=(0,),
    ),
    row(elu.celu, lambda x: np.where(x > 0, x, 0.5 * (np.exp(2 * x) - 1)), places=(0,), alpha=0.5),
    # PyTorch's slope is a float32 in float64 too
    dataclasses.replace(
        row(hard.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1), between((-5, 5)), places=(-3, 3)),
        tolerance={"float64": 1e-7},
    ),
    row(hard.hardswish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), between((-5, 5)), places=(-3, 3)),
    row(hard.hardshrink, lambda x: np.where(np.abs(x) > 1.1, x, 0), places=(-1.1, 1.1), lambd=1.1),
    row(hard.softshrink, lambda x: x - np.clip(x, -1.1, 1.1), places=(-1.1, 1.1), lambd=1.1),
    row(hard.threshold, lambda x: np.where(x > 0.6, x, -2), places=(0.6,), threshold=0.6, value=-2.0),
    row(soft.softsign, lambda x: x / (1 + np.abs(x)), places=(0,)),
    row(soft.tanhshrink, lambda x: x - np.tanh(x), places=(0,)),
    row(prelu.rrelu, lambda x: np.where(x > 0, x, 0.4 * x), places=(0,), lower=0.3, upper=0.5),
    *(
        Sample(
            f"prelu:{name}",
            prelu.prelu,
            lambda rng, shape=shape, count=count: (rng.uniform(-2, 2, shape), rng.uniform(-1, 1, count)),
            lambda x, w: np.where(x > 0, x, w.reshape(w.shape + (1,) * (x.ndim - 2) if w.size > 1 else ()) * x),
            lambda torch, x, w: torch.nn.functional.prelu(x, w),
            empty=lambda rng, count=count: (np.zeros((0, 3, 2)), rng.standard_normal(count)),
            gaps=kinks(0),
        )
        for name, shape, count in (
            ("one", (4, 3), (1,)),
            ("number", (5,), ()),
            ("channels", (4, 3), (3,)),
            ("images", (2, 3, 4), (3,)),
        )
    ),
    *(
        Sample(
            f"glu:{dim}",
            lambda x, dim=dim: glu.glu(x, dim),
            lambda rng: (rng.standard_normal((4, 3, 2)),),
            lambda x, dim=dim: np.split(x, 2, dim)[0] * logistic(np.split(x, 2, dim)[1]),
            lambda torch, x, dim=dim: torch.nn.functional.glu(x, dim),
            empty=lambda rng: (np.zeros((0, 4, 2)),),
        )
        for dim in (0, -1)
    ),
    row(sigmoid.sigmoid, logistic),
    row(sigmoid.silu, lambda x: x * logistic(x)),
    row(sigmoid.softplus, lambda x: np.log(1 + np.exp(x))),
    # it jumps where 2 * x is 0.3
    row(
        sigmoid.softplus,
        lambda x: np.where(2 * x > 0.3, x, np.log(1 + np.exp(2 * x)) / 2),
        variant="beta",
        places=(0.15,),
        beta=2,
        threshold=0.3,
    ),
    row(sigmoid.logsigmoid, lambda x: np.log(logistic(x))),
    row(mish.mish, lambda x: x * np.tanh(np.log(1 + np.exp(x)))),
    row(gelu.gelu, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    row(gelu.gelu, gelu_by_tanh, variant="tanh", approximate="tanh"),
    *map(of_sum, OF_SUM),
]
