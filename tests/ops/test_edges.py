"""Ops at the edges of their range: infinities, NaN, nothing at all, and what leaves the range on the way only."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, IndexOutOfRangeError
from lucid.nn import functional as F
from lucid.ops.base.promotion import OperandTypeError
from lucid.ops.loss.regression import LossSettingError
from tests.device import DEVICE
from tests.gradients import check_gradient, numbers

NAN, INF = float("nan"), float("inf")
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def with_gradient(op, values, upstream=None, dtype="float32"):
    """Return what an op gives and the gradient of its input."""
    x = lucid.tensor(values, dtype=getattr(lucid, dtype), requires_grad=True)
    out = op(x)
    given = np.ones(out.shape) if upstream is None else upstream
    (grad,) = lucid.autograd.grad(out, x, lucid.tensor(given, dtype=out.dtype))
    return numbers(out).astype(float), numbers(grad).astype(float)


# ---- adaptive pooling ----


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("odd", [NAN, INF, -INF])
def test_adaptive_means_keep_to_their_parts(odd, dtype):
    """An element that is infinite or NaN is seen in the parts that hold it, and a gradient in its own part only."""
    x, g = np.ones((1, 7)), np.zeros((1, 3))
    x[0, 6], g[0, 0] = odd, odd
    out, grad = with_gradient(lambda t: F.adaptive_avg_pool1d(t, 3), x, g, dtype)
    np.testing.assert_array_equal(out, [[1, 1, odd]])
    np.testing.assert_array_equal(grad, [[odd, odd, odd, 0, 0, 0, 0]])
    x, g = np.ones((2, 6, 6)), np.zeros((2, 4, 4))
    x[1, 5, 5], g[1, 0, 0] = odd, odd
    out, grad = with_gradient(lambda t: F.adaptive_avg_pool2d(t, 4), x, g, dtype)
    expected, back = np.ones((2, 4, 4)), np.zeros((2, 6, 6))
    expected[1, 3, 3], back[1, :2, :2] = odd, odd
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(grad, back)


def test_adaptive_means_of_halves_come_back_into_range():
    """Sums of parts, and of the gradients of parts that share an element, may be beyond float16 on the way."""
    out, _ = with_gradient(lambda t: F.adaptive_avg_pool1d(t, 2), [[6e4, 6e4, -3e4, 0.0, 0.0]], dtype="float16")
    np.testing.assert_array_equal(out, [[3e4, -1e4]])
    upstream = np.zeros((1, 7, 7))
    upstream[0, :2, :2] = [[6e4, 6e4], [-6e4, 0.0]]
    _, grad = with_gradient(lambda t: F.adaptive_avg_pool2d(t, 7), np.ones((1, 2, 2)), upstream, "float16")
    np.testing.assert_array_equal(grad, [[[6e4, 0], [0, 0]]])


@pytest.mark.parametrize(("sizes", "parts"), [((7, 5), (3, 4)), ((3, 4), (7, 4)), ((11,), (4,))])
def test_adaptive_means_of_all_parts(sizes, parts, rng):
    """Each part has its mean, NaN or not, and gradients are the slopes, once and twice."""
    pool = F.adaptive_avg_pool2d if len(parts) == 2 else F.adaptive_avg_pool1d
    x = rng.standard_normal((2, *sizes))
    check_gradient(lambda t: pool(t, parts), [x], rng)
    check_gradient(lambda t: pool(t, parts) ** 2, [x], rng)
    x[1, *[size // 2 for size in sizes]] = NAN
    got = numbers(pool(lucid.tensor(x), parts))
    for part in np.ndindex(*parts):
        ranges = [slice(p * n // m, -(-(p + 1) * n // m)) for p, n, m in zip(part, sizes, parts, strict=True)]
        wanted = x[:, *ranges].reshape(2, -1).mean(1)
        np.testing.assert_allclose(got[:, *part], wanted, rtol=1e-14, atol=1e-15)


# ---- what leaves the range on the way only ----


@pytest.mark.parametrize("length", [4, 400])
def test_running_products_come_back(length):
    """A running product that leaves the range of float32 comes back into it, and gradients are right."""
    x = np.ones(length)
    x[[0, 1, -2, -1]] = 1e-30, 1e-30, 1e30, 1e30
    with np.errstate(over="ignore"):
        expected = np.cumprod(x).astype(np.float32)
    out, grad = with_gradient(lambda t: lucid.cumprod(t, 0), x)
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    slopes = [np.prod(x[:k]) * sum(np.prod(x[k + 1 : i + 1]) for i in range(k, length)) for k in (0, 1, length - 1)]
    np.testing.assert_allclose(grad[[0, 1, -1]], slopes, rtol=1e-5)


def test_products_of_the_others():
    """The gradient of a product is that of the others, also where the parts of it leave the range of float32."""
    _, grad = with_gradient(lambda t: lucid.prod(t, 0), [1e30, 1e30, 1e-30, 1e-30])
    np.testing.assert_allclose(grad, [1e-30, 1e-30, 1e30, 1e30], rtol=1e-6)


@pytest.mark.parametrize("scale", [1e20, 1e30, 1e-25, 1e-36])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_deviations_whose_squares_leave_the_range(dtype, scale, rng):
    """A standard deviation and its gradient are right although squares are infinite or zero in float32.

    Kernels take what is below the smallest normal number for zeros.
    """
    x = lucid.tensor(rng.standard_normal((3, 50)) * scale, dtype=getattr(lucid, dtype))
    wide = numbers(x).astype(float)
    centred, expected = wide - wide.mean(1, keepdims=True), wide.std(1, ddof=1)
    error = 1e-5 if dtype == "float32" else 2e-2
    vanishes = 0 if DEVICE == "cpu" else np.finfo(np.float32).tiny
    for op in (lambda t: lucid.std(t, 1), lambda t: lucid.std_mean(t, 1)[0]):
        out, grad = with_gradient(op, wide, dtype=dtype)
        np.testing.assert_allclose(out, expected, rtol=error, atol=vanishes)
        slack = error + 4 * vanishes / expected.min() / 49  # of a deviation, as a share of the gradient
        np.testing.assert_allclose(grad, centred / expected[:, None] / 49, atol=slack, rtol=0)
    whole = numbers(lucid.std(x)).astype(float)
    np.testing.assert_allclose(whole, wide.std(ddof=1), rtol=error, atol=vanishes)


@pytest.mark.parametrize("scales", [(1e-25, 1.0), (1.0, 1e25), (1e-25, 1.0, 1e25)])
def test_deviations_of_rows_of_other_sizes(scales, rng):
    """One row whose squares leave the range is right beside others whose squares do not; no row is no error."""
    x = lucid.tensor(rng.standard_normal((len(scales), 50)) * np.reshape(scales, (-1, 1)), dtype=lucid.float32)
    expected = numbers(x).astype(float).std(1, ddof=1)
    np.testing.assert_allclose(numbers(lucid.std(x, 1)), expected, rtol=1e-5)
    assert lucid.std(x[:0], 1).shape == (0,)


def test_deviation_of_many_squares_that_vanish():
    """Squares that float32 holds to a digit only make no sum that is taken for right, however many they are."""
    x = lucid.full((2**21,), 1.05e-22)
    x[::2] *= -1
    for out in (lucid.std(x), lucid.std(x.reshape(1, -1), 1)):
        np.testing.assert_allclose(numbers(out), 1.05e-22, rtol=1e-4)


def test_deviation_of_equals_and_of_infinities():
    """Equal elements have no deviation and give no gradient; an infinite one has none that is a number."""
    out, grad = with_gradient(lucid.std, [3.0, 3.0, 3.0])
    assert out == 0
    assert not grad.any()
    assert np.isnan(numbers(lucid.std(lucid.tensor([1.0, INF]))))
    x = lucid.tensor([3.0, 3.0], dtype=lucid.float64, requires_grad=True)
    (grad,) = lucid.autograd.grad(lucid.std(x) * x[0] ** 2, x, create_graph=True)
    assert grad.tolist() == [0.0, 0.0]
    # of the other factor, the derivative of which the deviation multiplies, nothing is left either
    assert lucid.autograd.grad(grad.sum(), x)[0].tolist() == [0.0, 0.0]


LENGTHS = {
    "norm 2": (lambda t: lucid.norm(t, 2, 1, True), 1.2e-5),
    "norm 3": (lambda t: lucid.norm(t, 3, 1, True), 1.2e-5),
    "norm 0.5": (lambda t: lucid.norm(t, 0.5, 1, True), 1e-2),
    "std": (lambda t: lucid.std(t, 1, keepdim=True), 1.2e-5),
    "std_mean": (lambda t: lucid.std_mean(t, 1, keepdim=True)[0], 1.2e-5),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_whose_reciprocals_leave_the_range(name, small, dtype, rng):
    """Where 1 / length is beyond float16, first and second derivatives of halves are those of float64, rounded."""
    op, length = LENGTHS[name][0], LENGTHS[name][1] if small else 1.0
    kind, error = getattr(lucid, dtype), 8e-3 if dtype == "float16" else 3e-2
    array = rng.uniform(0.5, 1, (3, 40)) * rng.choice([-1, 1], (3, 40))
    array *= length / numbers(op(lucid.tensor(array)))
    x, upstream = lucid.tensor(array, dtype=kind), lucid.tensor(rng.standard_normal((3, 1)), dtype=kind)
    direction = lucid.tensor(rng.standard_normal((3, 40)) * array, dtype=kind)

    def derivatives(a, create_graph):
        a = a.detach().requires_grad_()
        (first,) = lucid.autograd.grad(op(a), a, upstream.to(a.dtype), create_graph=create_graph)
        return [first, *(lucid.autograd.grad(first, a, direction.to(a.dtype)) if create_graph else ())]

    exact = [numbers(each) for each in derivatives(x.double(), create_graph=True)]
    for create_graph in (False, True):
        for got, wanted in zip(derivatives(x, create_graph), exact, strict=False):
            assert got.dtype == kind
            np.testing.assert_allclose(numbers(got).astype(float), wanted, rtol=0, atol=error * np.abs(wanted).max())


@pytest.mark.parametrize("op", [F.normalize, lambda t: F.cosine_similarity(t, t.detach().flip(1))])
def test_directions_of_short_vectors(op, rng):
    """What is made of lengths in float16 has finite gradients too where 1 / length is not."""
    x = lucid.tensor(rng.uniform(1e-6, 3e-6, (3, 40)) * rng.choice([-1, 1], (3, 40)), dtype=lucid.float16)
    upstream = rng.uniform(0.01, 0.02, op(x).shape)
    _, grad = with_gradient(op, numbers(x), upstream, "float16")
    _, wanted = with_gradient(op, numbers(x).astype(float), upstream.astype(np.float16).astype(float), "float64")
    np.testing.assert_allclose(grad, wanted, rtol=0, atol=2e-2 * np.abs(wanted).max())


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("bend", [0.5, 1.0])
def test_huber_of_huge_differences(dtype, bend):
    """Linear parts of losses are as large as the difference, not infinite; at NaN they are NaN, the slope of |d| 0."""
    limit = float(lucid.finfo(getattr(lucid, dtype)).max) * 0.75
    target = lucid.zeros(3, dtype=getattr(lucid, dtype))
    values = [limit, -limit, 0.5 * bend]
    for loss, factor in (
        (lambda t: F.smooth_l1_loss(t, target, reduction="none", beta=bend), 1.0),
        (lambda t: F.huber_loss(t, target, reduction="none", delta=bend), bend),
    ):
        out, grad = with_gradient(loss, values, dtype=dtype)
        np.testing.assert_allclose(out, [factor * limit, factor * limit, factor * bend / 8], rtol=1e-2)
        np.testing.assert_allclose(grad, [factor, -factor, factor / 2], rtol=1e-2)
        out, grad = with_gradient(loss, [NAN, INF, -INF], dtype=dtype)
        np.testing.assert_array_equal(out, [NAN, INF, INF])
        np.testing.assert_array_equal(grad, [NAN, factor, -factor])
    out, grad = with_gradient(lambda t: F.smooth_l1_loss(t, target, reduction="none", beta=16), values, dtype=dtype)
    np.testing.assert_allclose(out[:2], [limit, limit], rtol=1e-2)
    np.testing.assert_array_equal(grad[:2], [1, -1])
    out, grad = with_gradient(lambda t: F.l1_loss(t, target, reduction="none"), [NAN, INF, -2.0], dtype=dtype)
    np.testing.assert_array_equal(out, [NAN, INF, 2])
    np.testing.assert_array_equal(grad, [0, 1, -1])


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_bend_of_smooth_l1(dtype, beta):
    """The second derivative is 1 / beta below beta, and 0 from there on, where beta is 0, and at NaN."""
    kind = getattr(lucid, dtype)
    x = lucid.tensor([0.25, -0.25, 0.5, -0.5, 2.0, 0.0, NAN], dtype=kind, requires_grad=True)
    loss = F.smooth_l1_loss(x, lucid.zeros_like(x), reduction="sum", beta=beta)
    (first,) = lucid.autograd.grad(loss, x, create_graph=True)
    (second,) = lucid.autograd.grad(first, x, lucid.ones_like(x))
    assert second.tolist() == ([2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 0.0] if beta else [0.0] * 7)


# ---- losses of what is no probability, and of nothing ----


@pytest.mark.usefixtures("indices_are_read")
@pytest.mark.parametrize("wrong", [7.0, -1.0, INF, NAN])
def test_targets_that_are_no_probabilities(wrong):
    """Binary cross entropy refuses predictions and targets that are not between 0 and 1; on CUDA in debug mode."""
    half = lucid.tensor([0.5, 0.5])
    with pytest.raises(LossSettingError, match="elements of target should be between 0 and 1"):
        F.binary_cross_entropy(half, lucid.tensor([0.5, wrong]))
    with pytest.raises(LossSettingError, match="elements of input should be between 0 and 1"):
        F.binary_cross_entropy(lucid.tensor([0.5, wrong]), half)


def test_gradient_of_targets_at_infinite_logits():
    """The loss of a logit of minus infinity grows without bound with its target, whatever the weight of positives."""
    t = lucid.tensor([0.25, 0.25], requires_grad=True)
    logits, positive = lucid.tensor([-INF, INF]), lucid.tensor([0.5, 0.5])
    losses = F.binary_cross_entropy_with_logits(logits, t, reduction="none", pos_weight=positive)
    (grad,) = lucid.autograd.grad(losses, t, lucid.ones(2))
    np.testing.assert_array_equal(numbers(grad), [INF, -INF])


def test_losses_of_nothing():
    """A mean over no samples is NaN; the divergence is divided by the samples of the input, a number being one."""
    classes = lucid.zeros(0, dtype=lucid.int64)
    assert np.isnan(numbers(F.cross_entropy(lucid.ones(0, 3), classes)))
    assert numbers(F.cross_entropy(lucid.ones(0, 3), classes, reduction="sum")) == 0
    assert np.isnan(numbers(F.kl_div(lucid.ones(0, 3), lucid.ones(0, 3), reduction="batchmean")))
    number = F.kl_div(lucid.tensor(-1.0), lucid.tensor(0.5), reduction="batchmean")
    np.testing.assert_allclose(numbers(number), 0.5 * (np.log(0.5) + 1), rtol=1e-6)
    with pytest.warns(UserWarning, match="target size"):
        got = F.kl_div(lucid.zeros(1, 5), lucid.full((4, 5), 0.5), reduction="batchmean")
    np.testing.assert_allclose(numbers(got), 20 * 0.5 * np.log(0.5), rtol=1e-6)
    assert F.cross_entropy(lucid.ones(2, 0), lucid.ones(2, 0), label_smoothing=0.5).shape == ()


@pytest.mark.parametrize(("table", "index"), [((4, 0), (3,)), ((4, 2), (3, 0)), ((4, 0), (0,))])
def test_gradient_of_an_empty_embedding(table, index):
    """Where there are no rows or no columns, the gradient is zeros of the table's shape."""
    weight = lucid.ones(table, requires_grad=True)
    out = F.embedding(lucid.zeros(index, dtype=lucid.int64), weight)
    (grad,) = lucid.autograd.grad(out, weight, lucid.ones_like(out))
    assert grad.shape == table
    assert not numbers(grad).any()


# ---- extremes and medians ----


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [lucid.max, lucid.min, lucid.amax, lucid.amin, lucid.median])
def test_nans_share_the_gradient(op, dtype):
    """Where the result is NaN, the NaNs share its gradient evenly, and NumPy does not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out, grad = with_gradient(op, [[1.0, NAN, 2.0], [NAN, 3.0, INF]], 4.0, dtype)
    assert np.isnan(out)
    np.testing.assert_array_equal(grad, [[0, 2, 0], [2, 0, 0]])


@pytest.mark.parametrize("op", [lucid.amax, lucid.amin])
def test_nans_share_the_gradient_of_their_row(op):
    """Along a dimension the rows without a NaN are as ever, and infinities are numbers."""
    _, grad = with_gradient(lambda t: op(t, 1), [[1.0, NAN, 1.0], [INF, INF, INF], [2.0, 2.0, 2.0]], [1.0, 3.0, 3.0])
    np.testing.assert_array_equal(grad, [[0, 1, 0], [1, 1, 1], [1, 1, 1]])


@pytest.mark.parametrize("p", [INF, -INF])
def test_infinite_norm_of_nan(p):
    """The norm is NaN, and as |x| has slope 0 at NaN, nothing gets a gradient."""
    out, grad = with_gradient(lambda t: lucid.norm(t, p), [1.0, NAN, 2.0])
    assert np.isnan(out)
    np.testing.assert_array_equal(grad, [0, 0, 0])


@pytest.mark.parametrize("dtype", FLOATS)
def test_ties_of_a_median(dtype):
    """Without a dimension, all that are equal to the median share its gradient, as those of an extreme do."""
    out, grad = with_gradient(lucid.median, [[1.0, 2.0, 4.0], [2.0, 5.0, 1.0]], 3.0, dtype)
    assert out == 2
    np.testing.assert_array_equal(grad, [[0, 1.5, 0], [1.5, 0, 0]])


def test_median_of_nothing():
    """It is NaN, with an empty gradient; integers have no NaN, and along a dimension there is no place."""
    out, grad = with_gradient(lucid.median, np.zeros((0, 3)))
    assert np.isnan(out)
    assert grad.shape == (0, 3)
    for wrong in (lambda: lucid.zeros(0, dtype=lucid.int64).median(), lambda: lucid.zeros(0, 3).median(0)):
        with pytest.raises(IndexOutOfRangeError, match="non-zero size"):
            wrong()


def test_slopes_of_a_median(rng):
    """The gradient of the median of all elements is its slope, once and twice."""
    check_gradient(lambda t: lucid.median(t) ** 2, [rng.permutation(30).reshape(5, 6) / 7], rng)


# ---- spread and mean in one node ----


@pytest.mark.parametrize("op", [lucid.var_mean, lucid.std_mean])
def test_spread_and_mean_are_one_node(op, rng):
    """Both outputs come from one node, whose gradient is the slope whichever of them it comes through."""
    x = lucid.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    spread, mean = op(x, 1)
    assert spread.grad_fn is mean.grad_fn
    assert spread.grad_fn.name() == ("VarMeanBackward0" if op is lucid.var_mean else "StdMeanBackward0")
    assert (spread.output_nr, mean.output_nr) == (0, 1)
    array = rng.standard_normal((3, 4))
    for pick in (lambda both: both, lambda both: both[0], lambda both: both[1], lambda both: both[0] * both[1]):
        for settings in ({"dim": 1}, {}, {"dim": (0, 1), "correction": 0, "keepdim": True}):
            check_gradient(lambda t, pick=pick, settings=settings: pick(op(t, **settings)), [array], rng)


# ---- powers ----


@pytest.mark.parametrize("dtype", FLOATS)
def test_half_power_of_infinity_and_zero(dtype):
    """A tensor as exponent gives a power and not a root, however it is broadcast: inf of -inf, 0.0 of -0.0."""
    kind = getattr(lucid, dtype)
    base = np.array([[-INF, -0.0, 4.0], [INF, 0.0, -1.0]])
    expected = np.array([[INF, 0.0, 2.0], [INF, 0.0, NAN]])
    for exponent in (0.5, [0.5], [[0.5], [0.5]], [0.5, 0.5, 0.5]):
        got = numbers(lucid.tensor(base, dtype=kind) ** lucid.tensor(exponent, dtype=kind)).astype(float)
        np.testing.assert_array_equal(got, expected)
        assert not np.signbit(got[0, 1])
    assert numbers(lucid.tensor(-INF, dtype=kind) ** lucid.tensor(0.5, dtype=kind)) == INF


@pytest.mark.parametrize("dtype", FLOATS)
def test_half_power_beside_others(dtype):
    """Of an exponent that repeats 0.5 in its memory, or in some rows only, each element counts for itself."""
    kind = getattr(lucid, dtype)
    base = lucid.tensor([[-INF, -0.0, 4.0], [-INF, -0.0, 4.0]], dtype=kind)
    for exponent, second in (
        (lucid.tensor(0.5, dtype=kind).expand(2, 3), [INF, 0.0, 2.0]),
        (lucid.tensor([[0.5], [1.0]], dtype=kind), [-INF, -0.0, 4.0]),
    ):
        got = numbers(base**exponent).astype(float)
        np.testing.assert_array_equal(got, [[INF, 0.0, 2.0], second])
        np.testing.assert_array_equal(np.signbit(got[:, 1]), [False, np.signbit(second[1])])


@pytest.mark.parametrize("dtype", FLOATS)
def test_second_derivative_of_a_half_power(dtype):
    """An exponent of 0.5 has PyTorch's derivatives, 0.5 * x ** -0.5 and -0.25 * x ** -1.5, as a number or a tensor."""
    kind = getattr(lucid, dtype)
    for exponent in (0.5, lucid.tensor(0.5, dtype=kind), lucid.full((3,), 0.5, dtype=kind)):
        x = lucid.tensor([0.25, 1.0, 4.0], dtype=kind, requires_grad=True)
        (first,) = lucid.autograd.grad(x**exponent, x, lucid.ones_like(x), create_graph=True)
        (second,) = lucid.autograd.grad(first, x, lucid.ones_like(x))
        assert (first.tolist(), second.tolist()) == ([1.0, 0.5, 0.25], [-2.0, -0.25, -0.03125])


# ---- shapes ----


def test_squeeze_of_several():
    """Dimensions to leave out can stand one after the other, as well as in a tuple."""
    x = lucid.zeros(1, 3, 1, 2, requires_grad=True)
    assert x.squeeze(0, 1).shape == (3, 1, 2)
    assert x.squeeze(0, -2).shape == x.squeeze((0, -2)).shape == (3, 2)
    assert lucid.autograd.grad(x.squeeze(0, 2), x, lucid.ones(3, 2))[0].shape == x.shape


@pytest.mark.parametrize("name", ["vstack", "hstack", "concatenate", "stack"])
def test_numpy_joins_the_slices_of_one_tensor(name, rng):
    """For NumPy a tensor is the sequence of its slices; for lucid, as for PyTorch, it is no sequence."""
    array = rng.standard_normal((2, 1, 3))
    x = lucid.tensor(array, requires_grad=True)
    got = getattr(np, name)(x)
    assert got.requires_grad
    np.testing.assert_array_equal(numbers(got), getattr(np, name)(array))
    with pytest.raises(OperandTypeError, match=r"expected a sequence of Tensors, got one of shape \[2, 1, 3\]"):
        getattr(lucid, name)(x)


@pytest.mark.parametrize("name", ["var", "std"])
def test_numpy_spread_has_numpys_correction(name, rng):
    """NumPy divides by the number of elements; its `ddof` and `correction` are taken too."""
    array = rng.standard_normal((3, 4))
    x = lucid.tensor(array, requires_grad=True)
    for settings in ({}, {"axis": 1}, {"ddof": 1}, {"axis": 0, "correction": 1, "keepdims": True}):
        got = getattr(np, name)(x, **settings)
        assert got.requires_grad
        np.testing.assert_allclose(numbers(got), getattr(np, name)(array, **settings), rtol=1e-12)


@pytest.mark.parametrize("op", [lucid.erf, lucid.erfc, lucid.erfinv, lambda x: lucid.atan2(x, 1.0)])
def test_functions_of_real_numbers_refuse_complex_ones(op):
    """What is computed by approximations for real numbers gives no wrong number for a complex one."""
    with pytest.raises(DtypeError, match=r"got a tensor of lucid.complex64, which it is not defined on"):
        op(lucid.tensor([0.1 + 0.2j], dtype=lucid.complex64))
