"""Activation functions."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from lucid.ops.activation import bias_activation, elu, gelu, glu, hard, mish, prelu, relu, sigmoid, soft
from tests.sample_rows.elementwise import no_rows, outside
from tests.samples import Sample

erf = np.vectorize(math.erf, otypes=[float])


def logistic(x):
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


def wide(*kinks):
    """Return what draws numbers on either side of kinks, none near to them or to zero."""

    def draw(rng):
        (x,) = outside(0.2)(rng)
        x = 2.5 * x
        for kink in kinks:
            x = np.where(np.abs(x - kink) < 0.1, x + 0.2, x)
        return (x,)

    return draw


def row(op, reference, inputs=outside(0.2), variant=None, **settings):
    """Return the row of an activation function that PyTorch has in its functional namespace."""
    name = op.__name__
    return Sample(
        name if variant is None else f"{name}:{variant}",
        lambda x: op(x, **settings),
        inputs,
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
    row(relu.hardtanh, lambda x: np.clip(x, -0.1, 0.1), variant="bounds", min_val=-0.1, max_val=0.1),
    row(relu.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    row(relu.leaky_relu, lambda x: np.where(x > 0, x, 1.5 * x), variant="steep", negative_slope=1.5),
    row(elu.elu, lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    row(elu.elu, lambda x: np.where(x > 0, x, 0.7 * (np.exp(x) - 1)), variant="alpha", alpha=0.7),
    row(elu.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1))),
    row(elu.celu, lambda x: np.where(x > 0, x, 0.5 * (np.exp(2 * x) - 1)), alpha=0.5),
    # PyTorch's slope is a float32 in float64 too
    dataclasses.replace(
        row(hard.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1), wide(-3, 3)), tolerance={"float64": 1e-7}
    ),
    row(hard.hardswish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), wide(-3, 3)),
    row(hard.hardshrink, lambda x: np.where(np.abs(x) > 1.1, x, 0), wide(-1.1, 1.1), lambd=1.1),
    row(hard.softshrink, lambda x: x - np.clip(x, -1.1, 1.1), wide(-1.1, 1.1), lambd=1.1),
    row(hard.threshold, lambda x: np.where(x > 0.6, x, -2), wide(0.6), threshold=0.6, value=-2.0),
    row(soft.softsign, lambda x: x / (1 + np.abs(x))),
    row(soft.tanhshrink, lambda x: x - np.tanh(x)),
    row(prelu.rrelu, lambda x: np.where(x > 0, x, 0.4 * x), lower=0.3, upper=0.5),
    *(
        Sample(
            f"prelu:{name}",
            prelu.prelu,
            lambda rng, shape=shape, count=count: (*outside(0.2, shape=shape)(rng), rng.uniform(-1, 1, count)),
            lambda x, w: np.where(x > 0, x, w.reshape(w.shape + (1,) * (x.ndim - 2) if w.size > 1 else ()) * x),
            lambda torch, x, w: torch.nn.functional.prelu(x, w),
            empty=lambda rng, count=count: (np.zeros((0, 3, 2)), rng.standard_normal(count)),
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
    # it jumps where 2 * x is 0.3, which no draw is near
    row(
        sigmoid.softplus,
        lambda x: np.where(2 * x > 0.3, x, np.log(1 + np.exp(2 * x)) / 2),
        variant="beta",
        beta=2,
        threshold=0.3,
    ),
    row(sigmoid.logsigmoid, lambda x: np.log(logistic(x))),
    row(mish.mish, lambda x: x * np.tanh(np.log(1 + np.exp(x)))),
    row(gelu.gelu, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    row(gelu.gelu, gelu_by_tanh, variant="tanh", approximate="tanh"),
    *map(of_sum, OF_SUM),
]
