"""Dropout of channels, and for self-normalising networks; that of elements is tried with the generators."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, ShapeError
from lucid.nn import functional as F
from lucid.ops.creation.random import ProbabilityError
from tests.gradients import numbers

LEAST = -1.7580993408473766
ALL = ("dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


def dropped(name, x, p, rng):
    """Return what a function makes of x in training, and the gradient, divided by what comes in."""
    x = lucid.tensor(x, requires_grad=True)
    upstream = rng.uniform(1, 2, x.shape)
    out = getattr(F, name)(x, p, True)
    out.backward(lucid.tensor(upstream))
    return numbers(out), numbers(x.grad) / upstream


@pytest.mark.parametrize(
    ("name", "shape", "lead"),
    [
        ("dropout1d", (40, 30, 2), 2),
        ("dropout1d", (900, 2), 1),
        ("dropout2d", (40, 30, 2, 3), 2),
        ("dropout2d", (40, 30, 2), 2),
        ("dropout3d", (40, 30, 2, 1, 2), 2),
        ("dropout3d", (900, 2, 2, 1), 1),
    ],
)
def test_whole_channels(name, shape, lead, rng):
    """All of a channel is zero, for a share p of them, or divided by 1 - p, and its gradient the same."""
    x = rng.uniform(1, 2, shape)
    out, grad = dropped(name, x, 0.3, rng)
    kept = out != 0
    channels = kept.reshape(*shape[:lead], -1)
    assert (channels.all(-1) | ~channels.any(-1)).all()
    assert abs(channels[..., 0].mean() - 0.7) < 5 * np.sqrt(0.21 / channels[..., 0].size)
    assert 0 < channels[0].mean() < 1 or lead == 1
    np.testing.assert_allclose(out, x * kept / 0.7, rtol=1e-14)
    np.testing.assert_allclose(grad, kept / 0.7, rtol=1e-14)


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout"])
@pytest.mark.parametrize("p", [0.2, 0.7])
def test_mean_and_variance_stay(name, p, rng):
    """The dropped are the least value of SELU, before a line that keeps mean 0 and variance 1, with its slope."""
    x = rng.standard_normal((300, 100, 2))
    out, grad = dropped(name, x, p, rng)
    slope = ((1 - p) * (1 + p * LEAST**2)) ** -0.5
    kept = grad != 0
    if name == "feature_alpha_dropout":
        assert (kept[..., 0] == kept[..., 1]).all()
    assert abs(kept.mean() - (1 - p)) < 0.015
    np.testing.assert_allclose(grad, slope * kept, rtol=1e-14)
    np.testing.assert_allclose(out, slope * (np.where(kept, x, LEAST) - p * LEAST), rtol=1e-12, atol=1e-12)
    assert abs(out.mean()) < 0.03
    assert abs(out.std() - 1) < 0.03


@pytest.mark.parametrize("name", ALL)
def test_ends_and_place(name, rng):
    """Evaluation and a p of 0 return the input, a p of 1 leaves zeros; in place the input is changed and returned."""
    function, shape = getattr(F, name), (3, 4, 2) if "3d" not in name else (3, 4, 2, 1)
    x = lucid.tensor(rng.standard_normal(shape), requires_grad=True)
    assert function(x, 0.5, False) is x
    assert function(x, 0.0, True) is x
    assert function(x) is x or name not in {"alpha_dropout", "feature_alpha_dropout"}
    out = function(x, 1.0, True)
    out.backward(lucid.tensor(rng.standard_normal(shape)))
    assert not numbers(out).any()
    assert not numbers(x.grad).any()
    y = x * 1.0
    lucid.manual_seed(3)
    assert function(y, 0.5, True, True) is y
    lucid.manual_seed(3)
    np.testing.assert_array_equal(numbers(y), numbers(function(x, 0.5, True)))
    for dtype in (lucid.float16, lucid.bfloat16, lucid.float32):
        assert function(x.to(dtype), 0.5, True).dtype is dtype


@pytest.mark.parametrize("name", ALL)
def test_mistakes(name):
    """Probabilities outside of 0 to 1, integers and other numbers of dimensions are refused."""
    function = getattr(F, name)
    with pytest.raises(ProbabilityError, match="between 0 and 1"):
        function(lucid.ones(2, 2, 2, 2), 1.5)
    with pytest.raises(DtypeError, match=f"{name}: expected a real floating-point tensor"):
        function(lucid.ones(2, 2, 2, 2, dtype=lucid.int64))
    if name != "alpha_dropout":
        with pytest.raises(ShapeError, match=rf"{name}: expected .*dimensions.* got shape \(2,\)"):
            function(lucid.ones(2), 0.5, True)
    if name in {"dropout1d", "dropout2d", "dropout3d"}:
        with pytest.raises(ShapeError, match=f"{name}: expected . or . dimensions"):
            function(lucid.ones(1, 1, 1, 1, 1, 1), 0.5, True)
