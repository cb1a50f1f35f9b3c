"""Cross entropy and the negative log-likelihood on a CUDA device, against the CPU in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lucid
from lucid.autograd.base import wrap
from lucid.autograd.recording.namespace import PRIMITIVES
from lucid.nn import functional as F
from tests.kernels.layouts import LAYOUTS
from tests.kernels.near import FLOATS, assert_near, on_device, rounded

pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)
every_reduction = pytest.mark.parametrize("reduction", ["none", "mean", "sum"])

SHAPES = [(1, 1), (5, 3), (33, 10), (70, 32), (4, 1025), (2, 4096), (300, 4)]


def both(loss, x, target, weight, dtype, rng, lay=lambda array: array, **settings):
    """Compare loss and gradient of the two devices, of logits that lie as `lay` puts them."""
    results = {}
    upstream = None
    for device, kind in (("cpu", "float64"), ("cuda", dtype)):
        options = {"dtype": getattr(lucid, kind), "device": device}
        logits = wrap(lay(lucid.tensor(x, **options).array)).requires_grad_()
        weights = None if weight is None else lucid.tensor(weight, **options)
        out = loss(logits, lucid.tensor(target, device=device), weights, **settings)
        upstream = rounded(rng.standard_normal(out.shape), dtype) if upstream is None else upstream
        out.backward(lucid.tensor(upstream, **options))
        results[device] = out.detach().array, logits.grad.array
    for got, wanted in zip(results["cuda"], results["cpu"], strict=True):
        assert_near(got, wanted, dtype, slack=4)


@every_float
@every_reduction
@pytest.mark.parametrize("shape", SHAPES)
def test_cross_entropy(shape, reduction, dtype, rng):
    """Loss and gradient of rows of every length, few and many, are those of the CPU."""
    x = rounded(2 * rng.standard_normal(shape), dtype)
    target = rng.integers(0, shape[1], shape[0])
    both(F.cross_entropy, x, target, None, dtype, rng, reduction=reduction)


@every_float
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, dtype, rng):
    """Rows are read whatever their strides, and wherever they begin."""
    x = rounded(2 * rng.standard_normal((32, 32)), dtype)
    rows, classes = LAYOUTS[layout](x).shape
    both(F.cross_entropy, x, rng.integers(0, classes, rows), None, dtype, rng, LAYOUTS[layout], reduction="none")


@every_reduction
@pytest.mark.parametrize(("weighed", "smoothing"), list(itertools.product([False, True], [0.0, 0.1, 1.0])))
def test_weights_smoothing_and_ignored_rows(weighed, smoothing, reduction, rng):
    """Weights of classes, smoothing and rows that do not count meet in every combination."""
    x = rounded(rng.standard_normal((33, 10)), "float32")
    target = rng.integers(0, 10, 33)
    target[::5] = -100
    weight = rounded(rng.uniform(0.5, 2, 10), "float32") if weighed else None
    both(F.cross_entropy, x, target, weight, "float32", rng, reduction=reduction, label_smoothing=smoothing)


@every_float
@every_reduction
def test_nll_loss(reduction, dtype, rng):
    """The negative log-likelihood reads one element of a row and gives it its gradient."""
    x = rounded(-rng.uniform(0.5, 3, (33, 7)), dtype)
    target = rng.integers(0, 7, 33)
    target[3] = 2**40
    weight = rounded(rng.uniform(0.5, 2, 7), dtype)
    both(F.nll_loss, x, target, weight, dtype, rng, reduction=reduction, ignore_index=2**40)


def test_classes_in_the_middle(rng):
    """Logits (N, C, d) are read where they lie, with classes apart in memory."""
    x = rounded(rng.standard_normal((4, 5, 6)), "float32")
    both(F.cross_entropy, x, rng.integers(0, 5, (4, 6)), None, "float32", rng)


def test_columns_apart(rng):
    """The kernels take rows and classes of any stride."""
    x = rounded(rng.standard_normal((20, 16)), "float32")
    target = lucid.tensor(rng.integers(0, 10, 8), device="cuda").array
    settings = {"ignore_index": -100, "label_smoothing": 0.1, "reduction": "mean"}
    turned = on_device(x, "float32").array.T[::2, 5:15]
    copied = on_device(np.ascontiguousarray(x.T[::2, 5:15]), "float32").array
    kernel, kernel_grad = PRIMITIVES["cross_entropy"].kernel, PRIMITIVES["cross_entropy_grad"].kernel
    one, other = kernel(turned, target, None, **settings), kernel(copied, target, None, **settings)
    for got, wanted in zip(one, other, strict=True):
        np.testing.assert_allclose(got.get(), wanted.get(), rtol=1e-6)
    grads = [kernel_grad(out[0], a, target, None, *out[1:], **settings) for a, out in ((turned, one), (copied, other))]
    np.testing.assert_allclose(grads[0].get(), grads[1].get(), rtol=1e-5, atol=1e-7)


def test_target_that_is_no_class():
    """Such a row is NaN, and nothing outside of the logits is read; the other rows are untouched."""
    x = lucid.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]], device="cuda", requires_grad=True)
    target = lucid.tensor([1, 7, -1], device="cuda")
    for loss in (F.cross_entropy, F.nll_loss):
        out = loss(x, target, reduction="none")
        np.testing.assert_array_equal(np.isnan(out.detach().cpu().numpy()), [False, True, True])
    F.cross_entropy(x, target, reduction="none").sum().backward()
    assert np.isfinite(x.grad.cpu().numpy()[0]).all()


def test_nothing_counts(rng):
    """The mean over no rows, or over rows that do not count, is NaN; the sum is 0."""
    x = lucid.tensor(rng.standard_normal((3, 4)), device="cuda")
    ignored = lucid.full((3,), -100, dtype=lucid.int64, device="cuda")
    for logits, target in ((x, ignored), (x[:0], ignored[:0])):
        assert np.isnan(F.cross_entropy(logits, target).item())
        assert F.cross_entropy(logits, target, reduction="sum").item() == 0


def test_infinite_logits(rng):
    """Impossible classes cost nothing; an impossible target costs infinity; as on the CPU."""
    x = rng.standard_normal((4, 5)).astype(np.float32)
    x[0, 1], x[1, 2], x[2] = -np.inf, -np.inf, -np.inf
    target = np.array([0, 2, 0, 1])
    here = F.cross_entropy(lucid.tensor(x), lucid.tensor(target), reduction="none")
    there = F.cross_entropy(lucid.tensor(x, device="cuda"), lucid.tensor(target, device="cuda"), reduction="none")
    np.testing.assert_allclose(there.cpu().numpy(), here.numpy(), rtol=1e-5)
