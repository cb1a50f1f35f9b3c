"""Reductions and running sums where a row of the table cannot reach: edges, ties, dtypes, mistakes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, IndexOutOfRangeError, ShapeError
from lucid.ops.reduction.cumulative import cumprod, cumsum, prod
from lucid.ops.reduction.extremes import amax, amin, argmax, argmin, max, min
from lucid.ops.reduction.norms import OrderError, cosine_similarity, logsumexp, norm, normalize
from lucid.ops.reduction.statistics import CorrectionError, median, std, var
from lucid.ops.reduction.sums import all, any, count_nonzero, mean, nansum, sum
from tests.device import DEVICE, shares_memory
from tests.gradients import flat, numbers
from tests.sample_rows.reduction import ROWS

ALONG = [sum, mean, prod, amax, amin, argmax, argmin, max, min, any, all, var, std, median, logsumexp, cumsum, cumprod]


def gradient(op, array, upstream, *, create_graph=False):
    """Return the gradient of an op at an array."""
    x = lucid.tensor(array, requires_grad=True)
    (grad,) = lucid.autograd.grad(op(x), [x], [lucid.tensor(upstream)], create_graph=create_graph)
    return numbers(grad)


@pytest.mark.parametrize("op", ALONG)
@pytest.mark.parametrize("dim", [-3, 2])
def test_dim_out_of_range(op, dim):
    """A dimension that does not exist is refused with the range and the number."""
    with pytest.raises(IndexOutOfRangeError, match=rf"expected to be in range of \[-2, 1\], but got {dim}"):
        op(lucid.ones(2, 3), dim)


@pytest.mark.parametrize("op", [sum, mean, amax, var, any])
def test_dim_twice(op):
    """A dimension that is named twice, in either way of counting, is refused."""
    with pytest.raises(ShapeError, match="dim 1 appears multiple times"):
        op(lucid.ones(2, 3), (1, -1))


@pytest.mark.parametrize("op", [amax, amin, max, min, argmax, argmin, median])
def test_no_extreme_of_nothing(op):
    """Where a dimension is empty there is no extreme; where others are, the result is empty."""
    with pytest.raises(IndexOutOfRangeError, match="reduction dim 1 to have non-zero size"):
        op(lucid.ones(2, 0), 1)
    if op is not median:  # NaN, as the mean
        with pytest.raises(IndexOutOfRangeError, match="non-zero size"):
            op(lucid.ones(2, 0))
    result = op(lucid.ones(2, 0), 0)
    assert (result.values if isinstance(result, tuple) else result).shape == (0,)


@pytest.mark.parametrize("op", [amax, argmin, max, min, median, logsumexp])
def test_complex_numbers_have_no_order(op):
    """Extremes of complex numbers are refused."""
    with pytest.raises(DtypeError, match="order"):
        op(lucid.tensor([1j, 2.0]), 0)


@pytest.mark.parametrize("op", [mean, lucid.nanmean, var, std, lucid.var_mean, lucid.std_mean, norm])
def test_fractions_of_integers_are_refused(op):
    """What has no integer result needs a floating-point input; the message names the dtype."""
    with pytest.raises(DtypeError, match=r"must be either a floating point or complex dtype\. Got: lucid.int64"):
        op(lucid.tensor([1, 2]))
    with pytest.raises(DtypeError, match="bool"):
        op(lucid.tensor([True]))


@pytest.mark.parametrize("dim", [0, 1, -1, (0, 2), None])
@pytest.mark.parametrize("keepdim", [False, True])
def test_nanmean_keeps_dimensions(dim, keepdim, rng):
    """The mean of the numbers among NaN is NumPy's, with the dimensions as asked; NaN have no gradient."""
    array = rng.standard_normal((3, 3, 3))
    array[rng.random((3, 3, 3)) < 0.3] = np.nan
    array[:, 0] = array[0, :] = array[:, :, 1] = 1.5
    expected = np.nanmean(array, dim, keepdims=keepdim)
    upstream = rng.standard_normal(expected.shape)

    def call(x):
        return lucid.nanmean(x, dim, keepdim)

    np.testing.assert_allclose(numbers(call(lucid.tensor(array))), expected, rtol=1e-12)
    share = upstream / (~np.isnan(array)).sum(dim, keepdims=keepdim)
    if not keepdim and dim is not None:
        share = np.expand_dims(share, dim)
    np.testing.assert_allclose(gradient(call, array, upstream), np.where(np.isnan(array), 0, share), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_nanmean_of_more_than_half_precision_counts(dtype):
    """Beyond 65504 numbers, the count has no half precision, the mean and its gradient are those of single."""
    x = lucid.full((2, 70000), 3.0, dtype=dtype, requires_grad=True)
    result = lucid.nanmean(x, 1)
    assert (result.dtype, result.tolist()) == (x.dtype, [3.0, 3.0])
    (result * 7e3).sum().backward()
    np.testing.assert_allclose(x.grad.float().cpu().numpy(), 0.1, rtol=1e-2)


def test_numbers_are_no_tensors():
    """A list in place of a tensor is refused."""
    with pytest.raises(DtypeError, match="expected a Tensor"):
        sum([1.0, 2.0])


@pytest.mark.parametrize("op", [sum, mean, prod, amax, amin, max, min, median, logsumexp, norm])
@pytest.mark.parametrize("dim", [0, -1, None])
def test_no_dimension(op, dim, rng):
    """A number is reduced to itself, over no dimension or over its dimension 0, and its gradient is the upstream."""
    if op is logsumexp and dim is None:
        dim = 0
    array, upstream = rng.uniform(0.5, 1, ()), rng.standard_normal(())
    settings = {"dim": dim}

    def call(x):
        out = op(x, **settings)
        return out.values if isinstance(out, tuple) else out

    out = call(lucid.tensor(array))
    assert out.shape == ()
    np.testing.assert_allclose(numbers(out), array, rtol=1e-15)
    np.testing.assert_allclose(gradient(call, array, upstream), upstream, rtol=1e-15)


@pytest.mark.parametrize("op", [amax, amin, lambda x: max(x), lambda x: min(x)])
def test_ties_share_the_gradient(op, rng):
    """Equal extremes each get an equal part of the gradient."""
    upstream = rng.standard_normal(())
    array = np.array([[2.0, 5.0, 5.0], [2.0, 3.0, 5.0], [2.0, 3.0, 4.0]])
    expected = (array == numbers(op(lucid.tensor(array)))) * upstream / 3
    np.testing.assert_allclose(gradient(op, array, upstream), expected, rtol=1e-15)


def test_the_first_of_ties_gets_the_gradient_along_a_dimension(rng):
    """With places, the value at the place that is returned gets the whole gradient."""
    array, upstream = np.array([[1.0, 3.0, 3.0], [4.0, 4.0, 2.0]]), rng.standard_normal(2)
    out = max(lucid.tensor(array), 1)
    assert out.indices.tolist() == [1, 0]
    expected = np.array([[0.0, upstream[0], 0.0], [upstream[1], 0.0, 0.0]])
    np.testing.assert_array_equal(gradient(lambda x: max(x, 1).values, array, upstream), expected)


def test_max_of_two_tensors():
    """A tensor in the place of the dimension asks for the elementwise extreme of the two."""
    a, b = lucid.tensor([1.0, 5.0]), lucid.tensor([3.0, 2.0])
    assert max(a, b).tolist() == [3.0, 5.0]
    assert min(a, b).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", [sum, mean, var, norm, lambda x: cumsum(x, 0)[-1]])
def test_half_types_accumulate_in_float32(op, dtype):
    """Ten thousand addends, whose running sum a half type cannot hold to one, give the rounded exact result."""
    x = lucid.tensor(np.linspace(0.1, 1.1, 10000)).to(getattr(lucid, dtype))
    exact = op(x.to(lucid.float64))
    got = op(x)
    assert got.dtype == x.dtype
    assert (
        float(got) == float(exact.to(x.dtype))
        or abs(float(got) / float(exact) - 1)
        < {
            "float16": 2**-11,
            "bfloat16": 2**-8,
        }[dtype]
    )


def test_nan_is_an_extreme():
    """Extremes are NaN where there is one, and so is the median; its place is the first of them."""
    x = lucid.tensor([[1.0, float("nan"), 9.0, float("nan")], [4.0, 2.0, 3.0, 1.0]])
    for op in (amax, amin):
        got = op(x, 1)
        assert np.isnan(numbers(got)[0])
        assert not np.isnan(numbers(got)[1])
    for op in (max, min, median):
        assert op(x, 1).indices.tolist()[0] == 1
    assert argmax(x, 1).tolist() == [1, 0]


def test_nansum_leaves_nan_out(rng):
    """NaN counts as 0 and gets no gradient."""
    array = rng.standard_normal((3, 4))
    array[1, 2] = np.nan
    upstream = rng.standard_normal(3)
    np.testing.assert_allclose(numbers(nansum(lucid.tensor(array), 1)), np.nansum(array, 1), rtol=1e-14)
    expected = np.where(np.isnan(array), 0, upstream[:, None])
    np.testing.assert_array_equal(gradient(lambda x: nansum(x, 1), array, upstream), expected)


@pytest.mark.parametrize("op", [norm, std, lambda x: norm(x, 3), lambda x: norm(x, 1.5), lambda x: norm(x, 0.5)])
def test_no_slope_at_zero_length(op, rng):
    """Where all elements are equal to zero the gradient is zero and not NaN, recorded or not."""
    for create_graph in (False, True):
        assert not gradient(op, np.zeros(5), rng.standard_normal(()), create_graph=create_graph).any()


def test_logsumexp_far_out(rng):
    """Large, small and infinite elements neither overflow nor give NaN."""
    inf = float("inf")
    x = lucid.tensor([[1000.0, 1000.0], [-1000.0, -1000.0], [-inf, -inf], [inf, 0.0], [-inf, 3.0]])
    expected = [1000 + np.log(2), -1000 + np.log(2), -inf, inf, 3.0]
    np.testing.assert_allclose(numbers(logsumexp(x, 1)), np.array(expected, np.float32), rtol=1e-6)


def test_correction_has_two_names():
    """`unbiased` and `correction` exclude each other; a bool in the place of `dim` is `unbiased`."""
    x = lucid.tensor([1.0, 2.0, 4.0])
    for unbiased, correction in itertools.product((True, False), (0, 1, 2.5)):
        with pytest.raises(CorrectionError, match="both unbiased and correction"):
            var(x, 0, unbiased, correction=correction)
    assert float(var(x, False)) == float(var(x, correction=0)) == pytest.approx(14 / 9)


@pytest.mark.parametrize("scale", [1e-35, 1e-25, 1e-18, 1e18, 1e25, 1e35])
def test_deviations_whose_squares_leave_the_range(scale, rng):
    """A deviation that float32 can hold is right, of all or along a dimension, also where no square of it would be."""
    x = (rng.standard_normal((3, 50)) * scale).astype(np.float32)
    for dim, keepdim in ((None, False), (1, False), (0, True)):
        expected = np.std(x.astype(np.float64), axis=dim, ddof=1, keepdims=keepdim)
        deviation, mean_too = (op(lucid.tensor(x), dim, keepdim=keepdim) for op in (std, lucid.std_mean))
        for got in (deviation, mean_too[0]):
            assert got.dtype is lucid.float32
            np.testing.assert_allclose(numbers(got), expected, rtol=1e-5)


def test_too_few_elements_for_a_variance():
    """With nothing left to divide by the variance is NaN, as 0 / 0, or infinite."""
    assert np.isnan(float(var(lucid.tensor([2.0]))))
    assert float(var(lucid.tensor([2.0, 3.0]), correction=2)) == float("inf")
    assert float(var(lucid.tensor([2.0, 3.0]), correction=5)) == float("inf"), "a divisor below 0 counts as 0"
    nothing = lucid.ones(0, 3, requires_grad=True)
    for whole in (var(nothing), var(nothing, 0), lucid.std(lucid.ones(3, 0), 1), lucid.var_mean(nothing)[0]):
        assert np.isnan(numbers(whole)).all()
    var(nothing, 0).sum().backward()
    assert nothing.grad.shape == (0, 3)


def test_norm_refuses_unknown_orders():
    """An order that is neither a number nor "fro" is refused."""
    with pytest.raises(OrderError, match="'nuc'"):
        norm(lucid.ones(2, 2), "nuc")


def test_zero_vectors_are_divided_by_eps():
    """A vector of length zero stays zero when normalised, and has cosine 0 with everything."""
    zero = lucid.zeros(1, 3)
    assert not numbers(normalize(zero)).any()
    assert float(cosine_similarity(zero, lucid.ones(1, 3))) == 0.0


@pytest.mark.parametrize("half", [lucid.float16, lucid.bfloat16])
def test_cosine_similarity_of_parallel_halves(half, rng):
    """Its gradient is that of float64, rounded, also where the terms cancel as the vectors are nearly parallel."""
    vector = rng.uniform(0.5, 2, (1, 6))
    one = lucid.tensor(vector, dtype=half)
    other = lucid.tensor(vector * rng.uniform(0.99, 1.01, (4, 6)), dtype=half)
    upstream = lucid.tensor(rng.standard_normal(4), dtype=half)
    found = []
    for dtype in (half, lucid.float64):
        inputs = [x.detach().to(dtype).requires_grad_() for x in (one, other)]
        grads = lucid.autograd.grad([cosine_similarity(*inputs)], inputs, [upstream.to(dtype)])
        found.append([g.to(lucid.float64).numpy(force=True) for g in grads])
    unit = {lucid.float16: 2.0**-11, lucid.bfloat16: 2.0**-8}[half]
    for got, exact in zip(*found, strict=True):
        # four dozen terms of at most 4 in float32
        np.testing.assert_allclose(got, exact, rtol=unit, atol=200 * 2.0**-23)


@pytest.mark.parametrize("op", [sum, prod, lambda x: cumsum(x, 0), lambda x: cumprod(x, 0)])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32"])
def test_integers_add_up_in_int64(op, dtype):
    """Sums and products of integers and bools are int64, so that small types do not overflow."""
    x = lucid.tensor([1, 1, 1]).to(getattr(lucid, dtype))
    assert op(x).dtype == lucid.int64


def test_sum_of_another_dtype_sends_back_the_own(rng):
    """With dtype= the gradient still has the dtype of the input."""
    x = lucid.tensor(rng.standard_normal(4).astype(np.float32), requires_grad=True)
    out = sum(x, dtype=lucid.float64)
    assert out.dtype == lucid.float64
    out.backward(lucid.tensor(rng.standard_normal(())))
    assert x.grad.dtype == lucid.float32
    assert sum(lucid.tensor([1.9, 1.9]), dtype=lucid.int64).tolist() == 2


def test_count_nonzero_of_a_view():
    """What is counted is what a view shows."""
    x = lucid.tensor([[1, 0, 2, 0], [0, 0, 3, 4]])
    assert count_nonzero(x[:, ::2], 1).tolist() == [2, 1]


def test_results_share_no_memory():
    """A reduction over nothing still is a copy."""
    x = lucid.ones(2, 1, requires_grad=True)
    for op in (sum, mean, amax, prod):
        out = op(x, 1)
        assert not shares_memory(out, x)
    number = lucid.tensor(1.5)
    for op in (sum, mean, amax, prod, lambda x: cumsum(x, 0), lambda x: cumprod(x, 0), lambda x: max(x, 0).values):
        assert not shares_memory(op(number), number)


KEEPING = [sum, mean, nansum, prod, amax, amin, argmax, argmin, max, min, any, all, var, std, median, logsumexp, norm]


@pytest.mark.parametrize("op", KEEPING)
def test_keepdim_is_a_bool(op):
    """A tensor, or a number that merely counts as True, was meant as something else."""
    x = lucid.ones(2, 2)
    for value in (lucid.tensor(True), lucid.ones(2), 1):
        with pytest.raises(TypeError, match="keepdim: expected a bool, got"):
            op(x, dim=0, keepdim=value)


@pytest.mark.parametrize(("scale", "upstream"), [(1e15, 1e30), (1e-15, 1e-30)])
def test_products_with_lengths_stay_in_range(scale, upstream):
    """Gradients of a length and of a deviation are upstream times a share, though x times upstream leaves the range."""
    x = lucid.tensor([3.0 * scale, -4.0 * scale], requires_grad=True)
    for out, shares in ((x.norm(), [0.6, -0.8]), (x.std(correction=0), [0.5, -0.5])):
        (grad,) = lucid.autograd.grad(out, x, lucid.tensor(upstream))
        np.testing.assert_allclose(numbers(grad) / upstream, shares, rtol=1e-5)


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.bfloat16], ids=str)
@pytest.mark.parametrize("sample", [pytest.param(s, id=s.name) for s in ROWS if "float16" in s.dtypes])
def test_halves_are_accumulated_in_float32(sample, dtype, rng):
    """What the dtype can hold comes out right where sums on the way are beyond it, or beyond its digits."""
    # some of 250,000 numbers, around 30; on a device, where the simulated one would take seconds, of a quarter
    times = 16 if DEVICE == "cpu" else 8
    arrays = [np.tile(30 + np.abs(array), (times,) * array.ndim) for array in sample.inputs(rng)]
    halves = [lucid.tensor(array).to(dtype) for array in arrays]
    got = flat(sample.op(*halves))
    expected = flat(sample.op(*[half.double() for half in halves]))
    for out, exact in zip(got, expected, strict=True):
        if out.dtype is not dtype:
            continue
        exact = numbers(exact)
        fits = (np.abs(exact) < 6e4) & (np.abs(exact) > 1e-4)
        error = np.abs(numbers(out)[fits].astype(np.float64) - exact[fits])
        assert (error <= 2 * lucid.finfo(dtype).eps * np.abs(exact[fits])).all()


def test_counts_of_a_histogram_are_numpys(rng):
    """The end of the last bin is in it, whether the range is that of the elements or given; what is outside is not."""
    x = rng.integers(0, 9, 60).astype(np.float32)
    np.testing.assert_array_equal(numbers(lucid.histc(lucid.tensor(x), 4)), np.histogram(x, 4)[0])
    given = lucid.histc(lucid.tensor(x), 4, 2, 6)
    np.testing.assert_array_equal(numbers(given), np.histogram(x, 4, (2, 6))[0])


@pytest.mark.parametrize("order", [float("inf"), -float("inf")])
def test_no_largest_and_no_smallest_size_of_nothing(order):
    """A norm of infinite order is an extreme, which needs an element; one of another order is 0."""
    with pytest.raises(IndexOutOfRangeError, match=r"^norm.*reduction dim 1 to have non-zero size"):
        norm(lucid.ones(2, 0), order, 1)
    assert norm(lucid.ones(0, 2), order, 1).shape == (0,)
    assert norm(lucid.ones(2, 0), 3, 1).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32"])
def test_tests_over_no_dimension(dtype):
    """An empty tuple names no dimension, where other reductions take all: each element is tested."""
    x = lucid.tensor([[2, 0], [1, 3]], dtype=getattr(lucid, dtype))
    for test in (all, any):
        for keepdim in (False, True):
            found = test(x, (), keepdim)
            assert found.tolist() == [[1, 0], [1, 1]]
            assert found.dtype == (lucid.uint8 if dtype == "uint8" else lucid.bool)
    assert float(sum(x, ())) == float(sum(x))


@pytest.mark.parametrize("variables", [1, 2])
def test_covariances_of_many_observations_are_sums_of_parts(variables, rng):
    """Of a million numbers they are within 8 roundings; a rest that fills no part counts too, and so do gradients."""
    x = rng.standard_normal((variables, 2**20 + 3)).astype(np.float32)
    wanted = np.cov(x.astype(np.float64))
    assert np.abs(numbers(lucid.cov(lucid.tensor(x))) - wanted).max() < 8 * 2.0**-24 * np.abs(wanted).max()
    short = lucid.tensor(x[:, : 2**14 + 5].astype(np.float64), requires_grad=True)
    upstream = lucid.tensor(rng.standard_normal((variables, variables)).squeeze())
    (slope,) = lucid.autograd.grad(lucid.cov(short), short, upstream)
    centred = numbers(short) - numbers(short).mean(1, keepdims=True)
    both = np.atleast_2d(numbers(upstream) + numbers(upstream).T)
    np.testing.assert_allclose(numbers(slope), both @ centred / (centred.shape[1] - 1), rtol=1e-9, atol=1e-15)
