"""Cross entropy with probabilities of the classes, in each form of input."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.nn import functional
from tests.gradients import numbers


@pytest.mark.parametrize("shape", [(4,), (3, 4), (3, 4, 2), (2, 4, 3, 2)])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_classes_lie_along_the_second_dimension(shape, smoothing, weighted, rng):
    """The loss is -sum of w p log softmax(x) over the classes: along dimension 1, or the only one."""
    x, p, weight = rng.standard_normal(shape), rng.random(shape), rng.uniform(1, 2, 4)
    axis = 0 if len(shape) == 1 else 1
    shares = np.exp(x) / np.exp(x).sum(axis, keepdims=True)
    mixed = p * (1 - smoothing) + smoothing / 4
    along = weight.reshape([4 if dim == axis else 1 for dim in range(len(shape))]) if weighted else 1.0
    wanted = -(along * mixed * np.log(shares)).sum(axis)
    tensors = [lucid.tensor(each) for each in (x, p)]
    given = {"weight": lucid.tensor(weight) if weighted else None, "label_smoothing": smoothing}
    for reduction, reduced in (("none", wanted), ("sum", wanted.sum()), ("mean", wanted.sum() / wanted.size)):
        got = functional.cross_entropy(*tensors, reduction=reduction, **given)
        np.testing.assert_allclose(numbers(got), reduced, rtol=1e-12)
