"""What ops give at zeros of both signs, at infinity, at the edge of their domain, of no dimension and of size 1."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.nn import functional as F
from tests.gradients import check_gradient, numbers
from tests.samples import FLOATS

NAN = math.nan


def slope(op, at, dtype="float32"):
    """Return the gradient of an op at one number."""
    x = lucid.tensor([at], dtype=getattr(lucid, dtype), requires_grad=True)
    (grad,) = lucid.autograd.grad(op(x), [x], [lucid.ones(1, dtype=x.dtype)])
    return grad.item()


@pytest.mark.parametrize("count", [1, 7, 40])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "op",
    [
        lucid.relu,
        F.relu6,
        F.leaky_relu,
        lambda x: F.leaky_relu(x, 1.5),
        F.elu,
        F.gelu,
        lambda x: F.bias_activation(x, x[:1].expand(x.shape[0]), "relu"),
    ],
)
def test_zero_keeps_its_sign(op, dtype, count):
    """What passes a number on passes -0 on as -0 and 0 as 0, in arrays of any length and of no dimension."""
    for zero in (0.0, -0.0):
        x = lucid.full((count,), zero, dtype=getattr(lucid, dtype))
        expected = np.full(count, zero < 0 or math.copysign(1, zero) < 0)
        np.testing.assert_array_equal(np.signbit(numbers(op(x)).astype(np.float64)), expected)
    if op is lucid.relu:
        assert math.copysign(1, lucid.relu(lucid.tensor(-0.0, dtype=getattr(lucid, dtype))).item()) == -1


def written(index):
    """Return a function that writes to the places of a tensor of ones."""

    def write(zero, dtype):
        x = lucid.ones(3, dtype=dtype)
        x[index()] = zero
        return x[index()]

    return write


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize(
    "make",
    [
        lambda zero, dtype: lucid.tensor(zero, dtype=dtype),
        lambda zero, dtype: lucid.tensor([zero], dtype=dtype),
        lambda zero, dtype: lucid.as_tensor(np.array(zero)).to(dtype),
        lambda zero, dtype: lucid.tensor(zero, dtype=dtype, device="cpu").to(lucid.get_default_device()),
        lambda zero, dtype: lucid.full((), zero, dtype=dtype),
        lambda zero, dtype: lucid.ones(2, dtype=dtype).new_full((3,), zero),
        lambda zero, dtype: lucid.ones(2, dtype=dtype).fill_(zero),
        written(lambda: 1),
        written(lambda: slice(None)),
        written(lambda: lucid.tensor([0, 2])),
        written(lambda: lucid.tensor([True, False, True])),
    ],
)
def test_zero_is_written_with_its_sign(make, dtype):
    """A number that becomes a tensor, or is written into one, keeps the sign of zero."""
    for zero in (0.0, -0.0):
        x = make(zero, getattr(lucid, dtype))
        assert x.dtype == getattr(lucid, dtype)
        got = np.signbit(numbers(x).real.astype(np.float64))
        np.testing.assert_array_equal(got, np.full(x.shape, math.copysign(1, zero) < 0))


@pytest.mark.parametrize("negative_slope", [0.0, 0.01, 1.0, 1.5, -0.5])
def test_leaky_relu_bends_at_zero_whatever_its_slope(negative_slope):
    """Above zero the number itself, infinity too; below it times the slope."""
    x = [math.inf, 3e38, 2.0, -2.0, NAN]
    got = F.leaky_relu(lucid.tensor(x), negative_slope).tolist()
    np.testing.assert_array_equal(got, [math.inf, np.float32(3e38), 2.0, -2 * np.float32(negative_slope), NAN])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [F.elu, F.selu, F.celu, lambda x: F.celu(x, 0.5)])
def test_exponential_units_at_nan(op, dtype):
    """What is no number is bent nowhere: it stays NaN, and has the slope of what is above zero."""
    assert math.isnan(op(lucid.tensor(NAN, dtype=getattr(lucid, dtype))).item())
    assert slope(op, NAN, dtype) == slope(op, 1.0, dtype)


def test_gelu_at_infinity():
    """It goes to 0 from below and to infinity, with slopes of 0 and 1: no product of infinity and zero."""
    value = F.gelu(lucid.tensor([-math.inf, -1e4, math.inf])).tolist()
    assert value == [0.0, 0.0, math.inf]
    assert [math.copysign(1, each) for each in value[:2]] == [-1, -1]
    assert (slope(F.gelu, -math.inf), slope(F.gelu, math.inf)) == (0, 1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_erfinv_of_no_dimension(dtype):
    """A number gives what a vector of it does."""
    for value in (0.0, 0.5, -0.875, 1.0, -1.0, 2.0, NAN):
        vector = lucid.tensor([value], dtype=getattr(lucid, dtype))
        got, expected = lucid.erfinv(vector[0]), lucid.erfinv(vector)
        assert (got.shape, got.dtype) == ((), expected.dtype)
        np.testing.assert_array_equal(got.item(), expected.item())


def test_the_slope_of_acosh_is_that_of_its_formula():
    """1 / sqrt(x * x - 1), also below -1, where acosh is not a number; and infinity at both ends."""
    assert (slope(lucid.acosh, 1.0), slope(lucid.acosh, -1.0)) == (math.inf, math.inf)
    assert slope(lucid.acosh, -math.inf) == 0
    np.testing.assert_allclose([slope(lucid.acosh, x) for x in (2.0, -2.0)], 1 / math.sqrt(3), rtol=1e-6)
    assert math.isnan(slope(lucid.acosh, 0.5))
    np.testing.assert_allclose(slope(lucid.acosh, 1e30), 1e-30, rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_rest_of_zero_has_the_sign_of_other_rests(dtype):
    """That of the divisor in remainder, as in Python, and that of the dividend in fmod."""
    a = lucid.tensor([0.0, -0.0, 0.0, -0.0, 6.0, -6.0, 5.0], dtype=getattr(lucid, dtype))
    b = lucid.tensor([-math.inf, math.inf, -1.0, 1.0, -3.0, 3.0, -3.0], dtype=getattr(lucid, dtype))
    for op, last, signs in ((lucid.remainder, -1, b), (lucid.fmod, 2, a)):
        got = numbers(op(a, b)).astype(float)
        np.testing.assert_array_equal(got, [0, 0, 0, 0, 0, 0, last])
        np.testing.assert_array_equal(np.signbit(got), np.signbit(numbers(signs).astype(float)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rests_of_huge_numbers_are_exact(dtype):
    """However large the quotient: Python's whole numbers say what is left."""
    huge, small = np.array(1e30, dtype), np.array(7.0, dtype)
    expected = int(huge.item()) % 7
    for op in (lucid.remainder, lucid.fmod):
        assert op(lucid.tensor(huge), lucid.tensor(small)).item() == expected


def test_halves_are_computed_in_float32():
    """What would overflow or vanish on the way in float16 does not: each result is rounded once."""

    def half(*values):
        return lucid.tensor(values, dtype=lucid.float16)

    assert lucid.add(half(60000.0), half(-40000.0), alpha=2).tolist() == [-20000.0]
    assert lucid.sub(half(60000.0), half(40000.0), alpha=2).tolist() == [-20000.0]
    assert lucid.addcmul(half(-60000.0), half(300.0), half(300.0)).tolist() == [30000.0]
    assert lucid.addcdiv(half(-60000.0), half(300.0), half(2.0**-9), value=0.5).tolist() == [16800.0]
    assert lucid.lerp(half(-60000.0), half(60000.0), 0.25).tolist() == [-30000.0]
    assert lucid.round(half(60000.0), decimals=2).tolist() == [60000.0]


@pytest.mark.parametrize(("of_a", "of_b"), [((2, 1, 5), (3, 5, 4)), ((2, 3, 5), (1, 5, 4)), ((2, 1, 5), (3, 1, 4))])
def test_tensordot_repeats_what_has_size_1(of_a, of_b, rng):
    """A dimension of size 1, of either operand, is summed with all of the other's, as if repeated."""
    x, y = rng.standard_normal(of_a), rng.standard_normal(of_b)
    wide = np.broadcast_shapes(of_a[1:], of_b[:2])
    expected = np.tensordot(np.broadcast_to(x, (2, *wide)), np.broadcast_to(y, (*wide, 4)), 2)
    for dims in (2, ([1, 2], [0, 1]), ([2, 1], [1, 0])):
        np.testing.assert_allclose(numbers(lucid.tensordot(lucid.tensor(x), lucid.tensor(y), dims)), expected)
    check_gradient(lambda a, b: lucid.tensordot(a, b, 2), [x, y], rng)


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 3.0]])
def test_where_no_target_counts_the_mean_is_nan_and_the_gradient_zero(weight, smoothing):
    """A row of ignore_index has no gradient, also where the sum of the weights is zero."""
    weight = weight and lucid.tensor(weight)
    losses = [
        lambda x, t: F.cross_entropy(x, t, weight, label_smoothing=smoothing),
        lambda x, t: F.nll_loss(x, t, weight),
    ]
    for loss in losses:
        x = lucid.tensor([[0.5, -1.0, 2.0], [1.0, 3.0, -2.0]], requires_grad=True)
        none = loss(x, lucid.tensor([-100, -100]))
        assert math.isnan(none.item())
        assert lucid.autograd.grad(none, x)[0].tolist() == [[0.0] * 3] * 2
    weight = lucid.tensor([0.0, 1.0, 1.0])
    for loss in losses:
        x = lucid.tensor([[0.5, -1.0, 2.0], [1.0, 3.0, -2.0]], requires_grad=True)
        (grad,) = lucid.autograd.grad(loss(x, lucid.tensor([-100, 0])), x)
        assert grad.tolist()[0] == [0.0] * 3
        assert math.isnan(grad.tolist()[1][0])


@pytest.mark.parametrize(("op", "kept"), [(lucid.index_add, 1.0), (lucid.index_copy, 0.0)])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_source_of_no_dimension_is_one_slice(op, kept, shape):
    """A number is added or copied to one place, and both gradients have their shapes."""
    x, source = lucid.ones(*shape, requires_grad=True), lucid.tensor(2.0, requires_grad=True)
    out = op(x, 0, lucid.tensor([0]), source)
    assert out.reshape(-1)[0].item() == kept + 2
    of_x, of_source = lucid.autograd.grad(out, [x, source], [lucid.full(shape, 3.0)])
    assert (of_x.shape, of_x.reshape(-1)[0].item()) == (shape, 3 * kept)
    assert (of_source.shape, of_source.item()) == ((), 3.0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_attention_to_no_keys(dtype):
    """Queries without keys get zeros, as those that may look at nothing do, and gradients of zero."""
    settings = {"dtype": getattr(lucid, dtype), "requires_grad": True}
    query, key, value = (lucid.ones(*shape, **settings) for shape in ((2, 3), (0, 3), (0, 4)))
    out = F.scaled_dot_product_attention(query, key, value)
    assert (out.tolist(), out.dtype) == ([[0.0] * 4] * 2, query.dtype)
    out.backward(lucid.ones_like(out))
    assert (query.grad.tolist(), key.grad.shape, value.grad.shape) == ([[0.0] * 3] * 2, (0, 3), (0, 4))
