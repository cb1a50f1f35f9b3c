"""Slopes below zero that are learned or drawn: at zero, in their range, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.nn import functional as F
from tests.gradients import numbers


def test_rrelu_draws_a_slope_for_each_element():
    """In training slopes lie evenly between the bounds, and are those of the gradient; in evaluation there is one."""
    lucid.manual_seed(1)
    x = lucid.full((4000,), -2.0, requires_grad=True)
    out = F.rrelu(x, 0.25, 0.75, training=True)
    (slopes,) = lucid.autograd.grad(out.sum(), x)
    np.testing.assert_array_equal(numbers(out), -2 * numbers(slopes))
    counts, _ = np.histogram(numbers(slopes), 10, (0.25, 0.75))
    assert counts.sum() == 4000
    assert np.abs(counts - 400).max() < 100
    np.testing.assert_array_equal(numbers(F.rrelu(x, 0.25, 0.75)), -1)
    np.testing.assert_array_equal(numbers(F.rrelu(-x, 0.25, 0.75, training=True)), 2)


def test_the_slope_at_zero(rng):
    """At zero the gradient of the input is the slope, and that of the slope zero."""
    x, w = lucid.zeros(3, requires_grad=True), lucid.tensor([0.25], requires_grad=True)
    upstream = rng.standard_normal(3)
    gx, gw = lucid.autograd.grad(F.prelu(x, w), (x, w), lucid.tensor(upstream, dtype=x.dtype))
    np.testing.assert_allclose(numbers(gx), 0.25 * upstream, rtol=1e-6)
    np.testing.assert_array_equal(numbers(gw), 0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.prelu(lucid.ones(2, 3), lucid.ones(2)), ShapeError, "2 elements.*3 channels"),
        (lambda: F.prelu(lucid.ones(3), lucid.ones(3)), ShapeError, "1 channels"),
        (lambda: F.prelu(lucid.ones(2, 3), lucid.ones(1, 3)), ShapeError, "scalar or 1D"),
        (lambda: F.prelu(lucid.ones(2), lucid.ones(1, dtype=lucid.float64)), DtypeError, "float32, got.*float64"),
        (lambda: F.prelu(lucid.ones(2, dtype=lucid.int64), lucid.ones(1)), DtypeError, "int64"),
        (lambda: F.rrelu(lucid.ones(2), 0.5, 0.25), SettingError, "lower <= upper, got 0.5 and 0.25"),
        (lambda: F.rrelu(lucid.ones(2), 0.25, float("inf")), SettingError, "finite lower <= upper, got 0.25 and inf"),
        (lambda: F.rrelu(lucid.ones(2), -1e308, 1e308), SettingError, "finite lower <= upper"),
        (lambda: lucid.nn.RReLU(0.5, 0.25), SettingError, "lower <= upper, got 0.5 and 0.25"),
        (lambda: lucid.nn.CELU(0), SettingError, "other than 0"),
        (lambda: F.celu(lucid.ones(2), 0), SettingError, "not 0"),
        (lambda: lucid.nn.Softshrink(-0.1), SettingError, "got float -0.1"),
        (lambda: F.softshrink(lucid.ones(2), -0.1), SettingError, "found to be -0.1"),
        (lambda: F.glu(lucid.ones(2, 3)), ShapeError, "must be even, but dimension 1 is size 3"),
        (lambda: F.glu(lucid.tensor(1.0)), ShapeError, "0-dimensional"),
        (lambda: lucid.nn.Softmax2d()(lucid.ones(2, 3)), ShapeError, "3D or 4D"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, text):
    """Shapes, dtypes and settings that do not fit raise an error that names both sides."""
    with pytest.raises(error, match=text):
        call()


FUNCTIONS = {
    "relu_": (),
    "leaky_relu_": (0.2,),
    "hardtanh_": (-0.5, 0.7),
    "elu_": (0.6,),
    "selu_": (),
    "celu_": (0.6,),
    "threshold_": (0.3, -2.0),
    "rrelu_": (0.2, 0.4),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_change_their_input(name, rng):
    """A function with `_` returns its input, changed; gradients are those of the function, and a leaf is refused."""
    array, upstream = rng.standard_normal((3, 4)), lucid.tensor(rng.standard_normal((3, 4)))
    found = []
    for change in (getattr(F, name), getattr(F, name.rstrip("_"))):
        leaf = lucid.tensor(array, requires_grad=True)
        x = leaf * 1
        out = change(x, *FUNCTIONS[name])
        assert (out is x) == (change is getattr(F, name))
        found.append((numbers(out), numbers(lucid.autograd.grad(out, leaf, upstream)[0])))
    for got, expected in zip(*found, strict=True):
        np.testing.assert_array_equal(got, expected)
    with pytest.raises(lucid.errors.InplaceError):
        getattr(F, name)(lucid.tensor(array, requires_grad=True), *FUNCTIONS[name])
