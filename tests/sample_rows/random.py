"""Dropout, and random tensors in the shape of others; each call restarts the generator, and so draws the same."""

from __future__ import annotations

import numpy as np

from lucid.ops.creation import random, sampling
from lucid.ops.creation.generators import manual_seed
from lucid.ops.layers import dropout
from tests.samples import Sample

SHAPE = (3, 4, 5)


def draw(rng):
    """Draw one array."""
    return (rng.standard_normal(SHAPE),)


def images(rng):
    """Draw images of two channels."""
    return (rng.standard_normal((2, 2, 3, 4)),)


def chances(rng):
    """Draw one matrix of probabilities."""
    return (rng.uniform(0.1, 0.9, (4, 5)),)


def seeded(op, *args, **settings):
    """Return the op with the generator restarted before each call."""

    def call(*tensors):
        manual_seed(5)
        return op(*tensors, *args, **settings)

    return call


def drawn(op, *args, inputs=draw, variant="", **settings):
    """Return the row of an op whose numbers have nothing to do with the elements' values or dtypes."""
    return Sample(
        op.__name__ + variant, seeded(op, *args, **settings), inputs, differentiable=False, dtypes=("float64",)
    )


ROWS = [
    Sample("dropout", seeded(dropout.dropout, 0.4), draw, empty=lambda rng: (np.zeros((0, 4)),)),
    Sample("dropout:all", seeded(dropout.dropout, 1.0), draw, np.zeros_like),
    Sample("dropout:eval", lambda x: dropout.dropout(x * 1, 0.4, training=False), draw, lambda x: x),
    Sample("dropout1d", seeded(dropout.dropout1d, 0.4), draw, empty=lambda rng: (np.zeros((0, 4, 2)),)),
    Sample("dropout2d:all", seeded(dropout.dropout2d, 1.0), images, np.zeros_like),
    Sample("dropout3d", seeded(dropout.dropout3d, 0.4), images),
    Sample("alpha_dropout", seeded(dropout.alpha_dropout, 0.4, True), draw, empty=lambda rng: (np.zeros((0, 4)),)),
    Sample("feature_alpha_dropout", seeded(dropout.feature_alpha_dropout, 0.4, True), draw),
    drawn(random.rand_like),
    drawn(random.randn_like),
    drawn(random.randint_like, 10),
    drawn(sampling.bernoulli, inputs=chances),
    drawn(sampling.bernoulli, 0.3, variant=":p"),
    drawn(sampling.normal, 0.5, inputs=chances),
    drawn(sampling.multinomial, 3, inputs=chances),
    drawn(sampling.multinomial, 8, inputs=chances, variant=":replacement", replacement=True),
]
