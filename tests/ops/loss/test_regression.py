"""Losses at their edges, on large arrays, and their mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, IndexOutOfRangeError, ShapeError
from lucid.nn.functional import gaussian_nll_loss, multi_margin_loss
from lucid.ops.base.rows import ROWS_BLOCK
from lucid.ops.loss.cross_entropy import SmoothingError, cross_entropy
from lucid.ops.loss.likelihood import nll_loss
from lucid.ops.loss.probability_loss import binary_cross_entropy, binary_cross_entropy_with_logits, kl_div
from lucid.ops.loss.regression import LossSettingError, ReductionError, huber_loss, l1_loss, mse_loss, smooth_l1_loss
from tests.device import DEVICE
from tests.gradients import numbers

PAIRS = [mse_loss, l1_loss, smooth_l1_loss, huber_loss, kl_div]
BINARY = [binary_cross_entropy, binary_cross_entropy_with_logits]
CLASSES = [nll_loss, cross_entropy]


@pytest.mark.parametrize("op", [*PAIRS, *BINARY])
def test_unknown_reductions(op):
    """A reduction of another name is refused by it."""
    x = lucid.ones(2)
    with pytest.raises(ReductionError, match="'average' is not a valid value for reduction"):
        op(x, x, reduction="average")


@pytest.mark.parametrize("op", PAIRS)
def test_other_sizes_are_broadcast_with_a_warning(op):
    """A target of another size is used as broadcast, after a warning with both sizes."""
    x, y = lucid.ones(3, 2), lucid.ones(2)
    with pytest.warns(UserWarning, match=r"target size \(\[2\]\) that is different to the input size \(\[3, 2\]\)"):
        assert op(x, y, reduction="none").shape == (3, 2)


@pytest.mark.parametrize("op", BINARY)
def test_other_sizes_are_refused(op):
    """Binary losses take a target of the size of the input only."""
    with pytest.raises(ShapeError, match=r"Target size \(\[2\]\) must be the same as input size \(\[3, 2\]\)"):
        op(lucid.ones(3, 2), lucid.ones(2))


@pytest.mark.parametrize("op", [*PAIRS, *BINARY, *CLASSES])
def test_integers_are_no_predictions(op):
    """Predictions are floating-point."""
    with pytest.raises(DtypeError, match=r"expected a real floating-point input, got lucid\.int64"):
        op(lucid.tensor([1, 2]), lucid.tensor([1, 2]))


@pytest.mark.parametrize("op", [*PAIRS, *BINARY])
def test_complex_numbers_are_no_truth(op):
    """Targets are real."""
    with pytest.raises(DtypeError, match=r"expected a real target, got lucid\.complex64"):
        op(lucid.ones(2), lucid.ones(2, dtype=lucid.complex64))


@pytest.mark.parametrize("op", [mse_loss, l1_loss])
@pytest.mark.parametrize("shape", [(3, 4), (4,), (3, 1)])
def test_a_weighed_mean_is_that_of_the_weights(op, shape, rng):
    """The mean of weighed errors is their sum over the sum of the weights of all of them, which have gradients too."""
    x, y, weight = (
        lucid.tensor(rng.uniform(0.5, 2, size), requires_grad=True, dtype=lucid.float64)
        for size in ((3, 4), (3, 4), shape)
    )
    loss, each = op(x, y, weight=weight), numbers(op(x, y, reduction="none"))
    full = np.broadcast_to(numbers(weight), (3, 4))
    np.testing.assert_allclose(numbers(loss), np.average(each, weights=full), rtol=1e-12)
    upstream = rng.standard_normal()
    loss.backward(lucid.tensor(upstream, dtype=lucid.float64))
    slopes = (each - np.average(each, weights=full)) / full.sum() * upstream
    axes = {(3, 4): (), (4,): 0, (3, 1): 1}[shape]
    np.testing.assert_allclose(numbers(weight.grad), slopes.sum(axes).reshape(shape), rtol=1e-10)


def test_no_kink_is_half_a_square(rng):
    """A huber loss whose delta is infinite is half of the squared error."""
    x, y = lucid.tensor(rng.standard_normal(5)), lucid.tensor(rng.standard_normal(5))
    np.testing.assert_allclose(numbers(huber_loss(x, y, delta=float("inf"))), 0.5 * numbers(mse_loss(x, y)), rtol=1e-6)


@pytest.mark.parametrize("op", CLASSES)
def test_rows_of_no_class_are_refused(op):
    """Logits of no classes have no loss, unless there are no logits."""
    with pytest.raises(ShapeError, match=r"at least one class, got an input of shape \[3, 0\]"):
        op(lucid.zeros(3, 0), lucid.tensor([-100, -100, -100]))
    smooth = {"label_smoothing": 0.5} if op is cross_entropy else {}
    assert op(lucid.zeros(0, 0), lucid.zeros(0, dtype=lucid.int64), reduction="sum", **smooth).item() == 0


def test_settings_out_of_range():
    """Kinks at negative sizes and too much smoothing are refused."""
    x = lucid.tensor([0.5, 2.0])
    with pytest.raises(LossSettingError, match="negative values for beta, got -1"):
        smooth_l1_loss(x, x, beta=-1)
    with pytest.raises(LossSettingError, match="negative values for beta, got nan"):
        smooth_l1_loss(x, x, beta=float("nan"))
    with pytest.raises(LossSettingError, match="non-positive values for delta, got 0"):
        huber_loss(x, x, delta=0)
    with pytest.raises(SmoothingError, match=r"between 0\.0 and 1\.0\. Got: 1\.5"):
        cross_entropy(lucid.ones(2, 3), lucid.tensor([0, 1]), label_smoothing=1.5)


@pytest.mark.cpu("a CUDA device does not look at the values of probabilities")
def test_probabilities_out_of_range():
    """Numbers beyond 0 and 1, and NaN, are no probabilities, neither in the input nor in the target."""
    good = lucid.tensor([0.5, 1.0])
    for number in (2.0, -0.5, float("nan")):
        wrong = lucid.tensor([0.5, number])
        for which, given in (("input", (wrong, good)), ("target", (good, wrong))):
            with pytest.raises(LossSettingError, match=f"all elements of {which} should be between 0 and 1"):
                binary_cross_entropy(*given)


@pytest.mark.usefixtures("indices_are_read")
@pytest.mark.parametrize("op", CLASSES)
def test_classes_that_do_not_exist(op):
    """Classes below 0 or from C on are refused by number, unless they are the one that is ignored."""
    x = lucid.zeros(2, 3)
    for wrong in (3, -1):
        with pytest.raises(IndexOutOfRangeError, match=f"Target {wrong} is out of bounds"):
            op(x, lucid.tensor([0, wrong]))
    assert op(x, lucid.tensor([0, 7]), ignore_index=7).shape == ()


@pytest.mark.parametrize("op", CLASSES)
def test_targets_that_do_not_fit(op):
    """Shapes and dtypes that do not fit the classes are refused with what fits."""
    x = lucid.zeros(2, 3)
    with pytest.raises(ShapeError, match=r"takes a target of shape \[2\], got \[3\]"):
        op(x, lucid.tensor([0, 1, 2]))
    with pytest.raises(DtypeError, match="target of integers"):
        op(x, lucid.tensor([0.0, 1.0]))


@pytest.mark.parametrize(
    ("op", "target"),
    [*[(op, [0, 1]) for op in (*CLASSES, multi_margin_loss)], (cross_entropy, [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])],
)
def test_weights_of_classes_that_do_not_fit(op, target):
    """Where each class has a weight, there is one for each, of the dtype of the input, also with probabilities."""
    x, target = lucid.zeros(2, 3), lucid.tensor(target)
    for shape in ((2,), (1,), (2, 3), (1, 3)):
        words = rf"all 3 classes or no classes but got weight tensor of shape: \{list(shape)}"
        with pytest.raises(ShapeError, match=words):
            op(x, target, weight=lucid.ones(*shape))
    with pytest.raises(DtypeError, match=r"lucid\.float32, got lucid\.float64"):
        op(x, target, weight=lucid.ones(3, dtype=lucid.float64))


def test_integers_are_no_distribution():
    """A target of the shape of the logits holds probabilities, so integers are refused."""
    with pytest.raises(DtypeError, match="Expected floating point type for target with class probabilities"):
        cross_entropy(lucid.zeros(2, 3), lucid.zeros(2, 3, dtype=lucid.int64))


@pytest.mark.parametrize("op", CLASSES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_nothing_counts(op, reduction, rng):
    """If every target is ignored, losses and gradients are 0, and the mean of none is NaN."""
    x = lucid.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    loss = op(x, lucid.tensor([-100, -100, -100]), reduction=reduction)
    if reduction == "mean":
        assert np.isnan(loss.item())
        return
    assert not numbers(loss).any()
    loss.backward(lucid.tensor(rng.standard_normal(loss.shape)))
    assert not numbers(x.grad).any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("columns", [3, 1000, ROWS_BLOCK + 1])
def test_many_blocks(dtype, columns, rng):
    """Logits in several blocks of rows, and rows longer than a block, give loss and gradient near to float64's."""
    rows = max(3, 2 * ROWS_BLOCK // columns + 1)
    x = lucid.tensor(2 * rng.standard_normal((rows, columns)), dtype=getattr(lucid, dtype), requires_grad=True)
    exact = x.detach().to(lucid.float64).requires_grad_()
    target, upstream = lucid.tensor(rng.integers(0, columns, rows)), rng.standard_normal(rows)
    got, expected = (cross_entropy(logits, target, reduction="none") for logits in (x, exact))
    assert got.dtype == x.dtype
    got.backward(lucid.tensor(upstream, dtype=x.dtype))
    expected.backward(lucid.tensor(upstream, dtype=x.dtype).to(lucid.float64))
    allowed = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6}[dtype]
    np.testing.assert_allclose(numbers(got).astype(np.float64), numbers(expected), rtol=allowed, atol=allowed)
    reference = numbers(exact.grad)
    np.testing.assert_allclose(
        numbers(x.grad).astype(np.float64), reference, rtol=0, atol=allowed * np.abs(reference).max()
    )


def test_certainty_is_not_rounded_away():
    """Logits of any size give the loss of their distances, to the rounding of 1 and not of the logits."""
    x = lucid.tensor([[5000.0, 4990.0]])
    assert cross_entropy(x, lucid.tensor([0])).item() == pytest.approx(np.log1p(np.exp(-10.0)), abs=2**-23)


def test_sure_and_wrong(rng):
    """Probabilities 0 and 1 cost 100 where they are wrong, and logits of any size cost their size."""
    sure = lucid.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    truth = lucid.tensor([0.0, 1.0, 1.0, 0.0])
    losses = binary_cross_entropy(sure, truth, reduction="none")
    assert losses.tolist() == [0.0, 0.0, 100.0, 100.0]
    losses.backward(lucid.tensor(rng.standard_normal(4).astype(np.float32)))
    assert np.isfinite(numbers(sure.grad)).all()
    logits = lucid.tensor([-1000.0, 1000.0, -1000.0, 1000.0])
    assert binary_cross_entropy_with_logits(logits, truth, reduction="none").tolist() == [0.0, 0.0, 1000.0, 1000.0]


def test_slopes_near_certainty():
    """The gradient is (x - t) / (x * (1 - x)) for the smallest probabilities too, and ends where that is 1e-12."""
    x = lucid.tensor([1e-9, 1e-9, 1e-11, 0.0, 0.0], dtype=lucid.float64, requires_grad=True)
    truth = lucid.tensor([0.0, 1.0, 1.0, 1.0, 0.0], dtype=lucid.float64)
    binary_cross_entropy(x, truth, reduction="sum").backward()
    np.testing.assert_allclose(numbers(x.grad), [1.0, -1e9, -1e11, -1e12, 0.0], rtol=1e-8)


def test_impossible_is_not_punished():
    """Where the truth has no probability the divergence is 0, whatever was predicted."""
    out = kl_div(lucid.tensor([-1.0, -2.0]), lucid.tensor([0.0, 1.0]), reduction="none")
    assert out.tolist() == [0.0, 2.0]


def test_the_divergence_of_one_number_is_a_batch_of_one():
    """Without a dimension there is nothing to divide by."""
    out = kl_div(lucid.tensor(-1.0), lucid.tensor(1.0), reduction="batchmean")
    assert out.shape == ()
    assert out.item() == 1.0


def test_equal_numbers_have_no_slope(rng):
    """At a difference of zero the absolute error has gradient 0."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    l1_loss(x, x.detach(), reduction="sum").backward(lucid.tensor(rng.standard_normal(())))
    assert not numbers(x.grad).any()


@pytest.mark.parametrize("weighted", [False, True])
def test_smooth_labels_beside_a_large_mean(weighted, rng):
    """What all logits of a row have in common takes no digits from the loss and its gradient."""
    logits, targets = rng.standard_normal((4, 10)), rng.integers(0, 10, 4)
    weight = rng.uniform(0.5, 2, 10) if weighted else None
    near = (logits + 10_000).astype(np.float32)

    def loss(array, dtype):
        x = lucid.tensor(array, dtype=dtype, device=DEVICE, requires_grad=True)
        own = None if weight is None else lucid.tensor(weight, dtype=dtype, device=DEVICE)
        out = cross_entropy(x, lucid.tensor(targets, device=DEVICE), own, label_smoothing=0.7)
        out.backward()
        return numbers(out), numbers(x.grad)

    # by hand, of what is left without the mean
    wide, each = near.astype(np.float64) - 10_000, np.ones(10) if weight is None else weight
    surprise = np.log(np.exp(wide).sum(1, keepdims=True)) - wide
    hard = (each[targets] * surprise[np.arange(4), targets]).sum()
    expected = (0.3 * hard + 0.7 / 10 * (surprise * each).sum()) / each[targets].sum()
    got, gradient = loss(near, lucid.float32)
    np.testing.assert_allclose(got, expected, rtol=2e-5)
    np.testing.assert_allclose(gradient, loss(near.astype(np.float64), lucid.float64)[1], rtol=2e-5, atol=1e-6)


def test_smooth_labels_beside_an_infinite_logit():
    """An impossible class, the first, has an infinite share in a smoothed loss; the gradient is that of the rest."""
    x = lucid.tensor([[-np.inf, 1.0, 2.0], [0.0, 1.0, 2.0]], dtype=lucid.float64, requires_grad=True)
    out = cross_entropy(x, lucid.tensor([1, 1]), label_smoothing=0.3, reduction="none")
    high = 1 / (1 + np.exp(-1))
    whole = np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum()
    other = 0.7 * -np.log(whole[1]) - 0.1 * np.log(whole).sum()
    np.testing.assert_allclose(numbers(out), [np.inf, other], rtol=1e-12)
    out.backward(lucid.tensor([2.0, 3.0], dtype=lucid.float64))
    spread = np.array([0.1, 0.8, 0.1])
    expected = [2 * (np.array([0, 1 - high, high]) - spread), 3 * (whole - spread)]
    np.testing.assert_allclose(numbers(x.grad), expected, rtol=1e-12)


def test_variances_below_eps():
    """They count as eps, in the loss and in its gradients, but the gradient reaches them as if they were it."""
    x, variance = (lucid.tensor(v, dtype=lucid.float64, requires_grad=True) for v in ([0.5, -1.0, 2.0], [1e-9, 0.0, 2]))
    target, upstream = np.array([1.0, 1.0, 1.0]), np.array([1.0, -2.0, 3.0])
    out = gaussian_nll_loss(x, lucid.tensor(target), variance, eps=0.01, reduction="none")
    out.backward(lucid.tensor(upstream))
    used, distance = np.array([0.01, 0.01, 2.0]), numbers(x) - target
    np.testing.assert_allclose(numbers(out), (np.log(used) + distance**2 / used) / 2, rtol=1e-12)
    np.testing.assert_allclose(numbers(variance.grad), upstream * (1 / used - distance**2 / used**2) / 2, rtol=1e-12)
    np.testing.assert_allclose(numbers(x.grad), upstream * distance / used, rtol=1e-12)


def test_a_difference_that_is_no_number_has_no_slope():
    """Of an absolute error its gradient is 0, as that of the absolute value of NaN."""
    x = lucid.tensor([np.inf, np.nan, 3.0], requires_grad=True)
    l1_loss(x, lucid.tensor([np.inf, 1.0, 1.0]), reduction="sum").backward()
    assert x.grad.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.usefixtures("indices_are_read")
@pytest.mark.parametrize("number", [-1e-3, -2.0])
def test_variances_below_zero(number):
    """They are refused as a number, and as one of several."""
    x = lucid.ones(2, 3)
    for variance in (number, lucid.full((2, 3), number), lucid.tensor([[1.0], [number]])):
        with pytest.raises(LossSettingError, match="gaussian_nll_loss: var has negative"):
            gaussian_nll_loss(x, x, variance)
    assert gaussian_nll_loss(x, x, 0.0, eps=1.0).item() == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_a_kink_bends_on_its_inner_side_alone(sign):
    """At a difference of exactly `beta` the second derivative is 0, below it is that of the parabola."""
    for distance, bend in ((0.5, 0.0), (0.25, 2.0), (0.75, 0.0)):
        x = lucid.tensor([sign * distance], dtype=lucid.float64, requires_grad=True)
        loss = smooth_l1_loss(x, lucid.zeros(1, dtype=lucid.float64), reduction="sum", beta=0.5)
        (slope,) = lucid.autograd.grad(loss, x, create_graph=True)
        assert slope.item() == sign * min(distance / 0.5, 1)
        assert lucid.autograd.grad(slope, x)[0].item() == bend


@pytest.mark.filterwarnings("ignore:.*target size")
def test_a_batch_is_that_of_the_input(rng):
    """`batchmean` of `kl_div` divides by the rows of the input, also where the target has more."""
    x, target = lucid.tensor(np.log(rng.random((1, 3)))), lucid.tensor(rng.random((4, 3)))
    total = kl_div(x, target, reduction="sum").item()
    assert kl_div(x, target, reduction="batchmean").item() == pytest.approx(total, rel=1e-12)
    whole = kl_div(x.expand(4, 3), target, reduction="batchmean").item()
    assert whole == pytest.approx(total / 4, rel=1e-12)
