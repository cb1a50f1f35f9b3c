"""What rows of samples cannot say of less common functions: NaN, ties, infinities, weights, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from tests.device import shares_memory

NAN, INF = math.nan, math.inf


def leaf(*values):
    return lucid.tensor(values, dtype=lucid.float64, requires_grad=True)


def test_extremes_so_far_of_equal_elements_and_nan():
    """Of equal elements the last one's place is given; a NaN stays, at its last place."""
    values, indices = lucid.cummax(lucid.tensor([1.0, 1.0, 0.0, 1.0, NAN, 2.0, NAN, 3.0]), 0)
    assert indices.tolist() == [0, 1, 1, 3, 4, 4, 6, 6]
    np.testing.assert_array_equal(values.tolist(), [1, 1, 1, 1, NAN, NAN, NAN, NAN])
    assert lucid.cummin(lucid.tensor([1, 1, 2, 0, 0]), 0).indices.tolist() == [0, 1, 1, 3, 4]
    assert [part.item() for part in lucid.cummin(lucid.tensor(2.0), 0)] == [2.0, 0]


@pytest.mark.parametrize("include_self", [True, False])
def test_what_is_scattered_shares_the_gradient_of_an_extreme(include_self):
    """Equal ones share it, what was there only where it counts; three equal ones give their value to the last bit."""
    x, src = leaf(5.0, 0.1, 7.0), leaf(5.0, 5.0, 0.1, 0.1)
    out = lucid.scatter_reduce(x, 0, lucid.tensor([0, 0, 1, 1]), src, "amax", include_self=include_self)
    assert out.tolist() == [5.0, 0.1, 7.0]
    out.backward(lucid.tensor([6.0, 6.0, 6.0], dtype=lucid.float64))
    own, come = ([2.0, 2.0, 6.0], [2.0] * 4) if include_self else ([0.0, 0.0, 6.0], [3.0] * 4)
    np.testing.assert_allclose(x.grad.tolist(), own)
    np.testing.assert_allclose(src.grad.tolist(), come)


@pytest.mark.parametrize("include_self", [True, False])
def test_gradients_of_scattered_products_with_zeros(include_self):
    """Each is the product of the others that meet, itself one or several zeros; nothing comes to the last place."""
    index = lucid.tensor([2, 0, 0, 1, 1, 0, 2])
    x = lucid.tensor([2.0, 3.0, 5.0, 7.0], dtype=lucid.float64, requires_grad=True)
    src = lucid.tensor([4.0, 0.0, 6.0, 0.0, 0.0, -1.0, 8.0], dtype=lucid.float64, requires_grad=True)
    out = lucid.scatter_reduce(x, 0, index, src, "prod", include_self=include_self)
    own = 5.0 if include_self else 1.0
    assert out.tolist() == [0.0, 0.0, 32.0 * own, 7.0]
    out.backward(lucid.tensor([1.0, 1.0, 2.0, 3.0], dtype=lucid.float64))
    first = 2.0 if include_self else 1.0
    assert src.grad.tolist() == [16 * own, -6 * first, 0.0, 0.0, 0.0, 0.0, 8 * own]
    assert x.grad.tolist() == [0.0, 0.0, 64.0 if include_self else 0.0, 3.0]
    assert (
        lucid.ones(3).scatter_reduce(0, lucid.zeros(0, dtype=lucid.int64), lucid.ones(0), "prod").tolist() == [1.0] * 3
    )
    assert lucid.tensor([3, 5]).index_reduce(0, lucid.tensor([1, 1]), lucid.tensor([2, 7]), "prod").tolist() == [3, 70]


def test_a_scattered_nan_is_the_extreme():
    """Whatever else meets there, in either direction; unknown reductions and bools are refused."""
    index, src = lucid.tensor([0, 0, 1]), lucid.tensor([NAN, 9.0, 1.0])
    for reduce in ("amax", "amin"):
        np.testing.assert_array_equal(lucid.zeros(2).scatter_reduce(0, index, src, reduce).tolist()[0], NAN)
    with pytest.raises(ValueError, match="sum, prod, mean, amax, amin, got 'max'"):
        lucid.zeros(2).scatter_reduce(0, index, src, "max")
    with pytest.raises(TypeError, match="real numbers"):
        lucid.zeros(2).bool().scatter_reduce(0, index, src.bool(), "amax")


def test_members():
    """Nothing is among no elements, NaN among none, numbers may stand on either side, dtypes are promoted."""
    x = lucid.tensor([1.0, NAN])
    assert lucid.isin(x, lucid.zeros(0)).tolist() == [False, False]
    assert lucid.isin(x, lucid.zeros(0), invert=True).tolist() == [True, True]
    assert lucid.isin(x, x).tolist() == [True, False]
    assert lucid.isin(2, lucid.tensor([1, 2])).item() is True
    assert lucid.isin(lucid.tensor([1, 2]), lucid.tensor([1.5, 2.0])).tolist() == [False, True]


def test_weighed_covariances(rng):
    """Frequencies and weights are NumPy's, together too, with any correction; complex variables are conjugated."""
    x = rng.standard_normal((2, 4))
    often, heavy = rng.integers(1, 4, 4), rng.uniform(0.5, 2, 4)
    f, a = lucid.tensor(often), lucid.tensor(heavy)
    for correction in (0, 1, 2):
        got = lucid.cov(lucid.tensor(x), correction=correction, fweights=f, aweights=a)
        expected = np.cov(x, ddof=correction, fweights=often, aweights=heavy)
        np.testing.assert_allclose(got.numpy(force=True), expected)
    only = lucid.cov(lucid.tensor(x), fweights=f).numpy(force=True)
    np.testing.assert_allclose(only, np.cov(x, fweights=often))
    z = x + 1j * rng.standard_normal((2, 4))
    np.testing.assert_allclose(lucid.cov(lucid.tensor(z)).numpy(force=True), np.cov(z))
    with pytest.raises(ValueError, match="fweights to be 4 integers"):
        lucid.cov(lucid.tensor(x), fweights=a)


@pytest.mark.parametrize("correction", [4, 5, 7])
def test_covariances_of_too_few_observations(correction, rng):
    """Where none are left to divide by the sums are divided by 0, as in NumPy, and never by less."""
    x = rng.standard_normal((2, 4))
    sums = np.cov(x, ddof=0) * 4
    expected = np.copysign(INF, sums)
    for settings in ({}, {"fweights": lucid.ones(4).long()}, {"aweights": lucid.ones(4)}):
        found = lucid.cov(lucid.tensor(x), correction=correction, **settings)
        np.testing.assert_array_equal(found.numpy(force=True), expected)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_places_of_samples_that_are_broadcast(dim, rng):
    """Of fewer dimensions than the samples, the places are those of the last ones; one dimension is that of `dim`."""
    y = rng.standard_normal((3, 3, 3))
    for shape in ((3,), (3, 3, 3)) if dim == 0 else ((3,), (3, 3), (3, 3, 3)):
        x = rng.standard_normal(shape)
        found = lucid.trapezoid(lucid.tensor(y), lucid.tensor(x), dim=dim)
        line = x.reshape([-1 if d == dim % 3 else 1 for d in range(3)]) if len(shape) == 1 else x
        expected = np.trapezoid(y, np.broadcast_to(line, y.shape), axis=dim)
        np.testing.assert_allclose(found.numpy(force=True), expected, rtol=1e-12)
        running = lucid.cumulative_trapezoid(lucid.tensor(y), lucid.tensor(x), dim=dim)
        np.testing.assert_allclose(running.select(dim, -1).numpy(force=True), expected, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 2.0, -3.0])
def test_a_histogram_of_no_range(value):
    """Bounds that are one number other than 0 reach one to each side of it; both 0, the data say the range."""
    x = lucid.tensor([value - 0.75, value - 0.25, value, value + 0.75, value + 2.0])
    low, high = (value - 1, value + 1) if value else (value - 0.75, value + 2.0)
    expected, _ = np.histogram(x.numpy(force=True), 4, (low, high))
    assert lucid.histc(x, 4, value, value).tolist() == expected.tolist()


ALIKE = [
    lambda x: lucid.matrix_power(x, 1),
    lambda x: lucid.linalg.matrix_power(x, 1),
    lambda x: lucid.diff(x, 0),
    lambda x: lucid.logcumsumexp(x[:1], 0),
    lambda x: lucid.cumsum(x[:1], 0),
    lambda x: lucid.cumprod(x[:1], 0),
    lambda x: lucid.cummax(x[:1], 0).values,
    lambda x: lucid.rot90(x, 4),
    lambda x: lucid.roll(x, 0),
    lambda x: lucid.flip(x, ()),
    lambda x: lucid.diag(x),
    lambda x: lucid.tril(x, 5),
    lambda x: lucid.tile(x, 1),
    lambda x: lucid.repeat_interleave(x, 1, 0),
    lambda x: lucid.cat([x]),
    lambda x: lucid.nn.functional.pad(x, (0, 0)),
    lambda x: lucid.nn.functional.pad(x, (0, 0), "circular"),
    lambda x: lucid.sort(x[0, 0]).values,
    lambda x: lucid.kthvalue(x[0, 0], 1).values,
    lambda x: lucid.median(x[0, 0], 0).values,
    lambda x: lucid.index_select(x, 0, lucid.tensor([0, 1])),
    lambda x: lucid.pow(x, 1),
    lambda x: lucid.clamp(x, -9, 9),
    lambda x: lucid.floor(x.long()),
    lambda x: lucid.round(x.long()),
    lambda x: lucid.nan_to_num(x.long()),
]
# of complex numbers, which some ops take as they are
ALIKE_COMPLEX = [
    lambda x: lucid.fft.fftn(x, dim=()),
    lambda x: lucid.fft.ifftn(x, dim=()),
    lambda x: lucid.matrix_power(x, 1),
    lambda x: lucid.cumsum(x[:1], 0),
    lambda x: lucid.pow(x, 1),
    lambda x: lucid.sgn(x),
    lambda x: lucid.complex(x.real, x.imag),
]


@pytest.mark.parametrize(
    ("dtype", "call"),
    [*((lucid.float32, call) for call in ALIKE), *((lucid.complex64, call) for call in ALIKE_COMPLEX)],
)
def test_a_result_that_changes_nothing_is_no_alias(dtype, call):
    """An op that has nothing to do returns a tensor of its own: what is written to it is not seen in the operand."""
    x = lucid.ones(2, 2, dtype=dtype)
    out = call(x)
    assert not shares_memory(out, x)
    out.fill_(7)
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_products_of_complex_vectors(rng):
    """The first vector of `vdot` is conjugated, and so is `adjoint`."""
    a, b = rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3))
    np.testing.assert_allclose(lucid.vdot(lucid.tensor(a), lucid.tensor(b)).item(), np.vdot(a, b))
    np.testing.assert_array_equal(lucid.tensor(a[None]).adjoint().numpy(force=True), a[None].conj().T)


def test_elementwise_functions_at_their_edges():
    """Products with logarithms at 0, slopes at the origin, and the other one of NaN."""
    a = lucid.tensor([0.0, 0.0, 0.0, 0.0, 1.0])
    b = lucid.tensor([0.0, INF, NAN, -1.0, 0.0])
    np.testing.assert_array_equal(lucid.xlogy(a, b).tolist(), [0, 0, NAN, 0, -INF])
    x = leaf(0.0, 1.0)
    lucid.sinc(x).sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [0.0, -1.0])
    for op in (lucid.fmax, lucid.fmin):
        one, other = leaf(NAN, 1.0, 2.0), leaf(1.0, NAN, 2.0)
        out = op(one, other)
        assert out.tolist() == [1.0, 1.0, 2.0]
        out.sum().backward()
        assert (one.grad.tolist(), other.grad.tolist()) == ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0])
    assert lucid.logit(lucid.tensor([-1.0, 2.0]), eps=0.25).tolist() == pytest.approx([-math.log(3), math.log(3)])
    sizes = lucid.tensor([2.0, -0.0]).copysign(lucid.tensor([-0.0, 1.0]))
    assert sizes.tolist() == [-2.0, 0.0]
    assert math.copysign(1, sizes[1].item()) == 1


@pytest.mark.usefixtures("indices_are_read")
def test_levels_of_quantiles():
    """A vector of levels comes first in the shape; NaN makes all NaN unless it is skipped; 0 and 1 are ends."""
    x = lucid.tensor([[1.0, 2.0, 4.0], [NAN, 3.0, 5.0]])
    levels = lucid.tensor([0.0, 0.5, 1.0])
    np.testing.assert_array_equal(x.quantile(levels, 1).tolist(), [[1, NAN], [2, NAN], [4, NAN]])
    assert x.nanquantile(levels, 1).tolist() == [[1, 3], [2, 4], [4, 5]]
    assert x.nanquantile(levels, 1, keepdim=True).shape == (3, 2, 1)
    for name, value in (("lower", 2.0), ("higher", 4.0), ("nearest", 4.0), ("midpoint", 3.0), ("linear", 3.2)):
        assert x[0].quantile(0.8, interpolation=name).item() == pytest.approx(value)
    with pytest.raises(ValueError, match=r"q must be in the range \[0, 1\] but got 2"):
        x.quantile(2.0)
    for q in (-0.5, 1.5, NAN):
        with pytest.raises(ValueError, match=r"q must be in the range \[0, 1\] but got tensor"):
            x.quantile(lucid.tensor([0.5, q]))
    with pytest.raises(TypeError, match=r"quantile: q: expected a number .*, got list"):
        x.quantile([0.5])
    np.testing.assert_array_equal(lucid.tensor([NAN, NAN]).nanmedian().item(), NAN)


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.float32, lucid.float64])
def test_sinc_near_zero_and_of_large_numbers(dtype):
    """Near zero the slope is that of the series, at zero and of subnormal numbers, too; halves do not overflow."""
    tiny = {lucid.float16: 2.0**-24, lucid.float32: 2.0**-120, lucid.float64: 1e-300}[dtype]
    values = [0.0, tiny, -tiny, 0.0099, 0.0101, -0.5, 445.5, 49120.0]
    x = lucid.tensor(values, dtype=dtype, requires_grad=True)
    exact = np.array(x.tolist())
    out = lucid.sinc(x)
    (slope,) = lucid.autograd.grad(out.sum(), x, create_graph=True)
    t = np.pi * exact
    with np.errstate(all="ignore"):
        formula = np.where(np.abs(t) < 0.01, -t / 3 * np.pi, np.pi * (t * np.cos(t) - np.sin(t)) / t**2)
    rough = {lucid.float16: 1e-3, lucid.float32: 1e-5, lucid.float64: 1e-9}[dtype]
    far = 1e-3 if dtype != lucid.float64 else 1e-9
    np.testing.assert_allclose(out.tolist(), np.sinc(exact), rtol=rough, atol=far * 1e-3)
    np.testing.assert_allclose(slope.tolist()[:6], formula[:6], rtol=30 * rough, atol=2 * tiny)
    (bend,) = lucid.autograd.grad(slope[0], x)
    np.testing.assert_allclose(bend.tolist()[0], -(np.pi**2) / 3, rtol=rough)


def test_xlogy_of_zero_is_zero_without_a_sign():
    """0 times any logarithm is 0, not -0; a product that is not one of zero keeps its sign; dtypes stay."""
    x = lucid.tensor([0.0, 0.0, -0.0, 0.0, -1e-40], dtype=lucid.float64)
    out = lucid.xlogy(x, lucid.tensor([0.5, 0.0, 2.0, math.inf, 2.0], dtype=lucid.float64))
    assert not np.signbit(out.tolist()[:4]).any()
    assert out.tolist()[:4] == [0, 0, 0, 0]
    assert out.tolist()[4] < 0
    assert lucid.xlogy(x.half(), x.half()).dtype == lucid.float16
    slope = lucid.zeros(1, requires_grad=True)
    lucid.xlogy(slope, lucid.tensor([2.0])).sum().backward()
    np.testing.assert_allclose(slope.grad.tolist(), [math.log(2)], rtol=1e-6)


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_an_extreme_is_the_same_with_and_without_a_gradient(reduce):
    """-0 keeps its sign, huge equal ones do not overflow, infinities stay; the gradient goes to the NaNs alone."""
    x = lucid.tensor([-0.0, 3e38, INF, 1.0], requires_grad=True)
    src = lucid.tensor([-0.0, 3e38, INF, NAN], requires_grad=True)
    place = lucid.arange(4)
    out = lucid.scatter_reduce(x, 0, place, src, reduce)
    wanted = np.array([-0.0, 3e38, INF, NAN], np.float32)
    np.testing.assert_array_equal(out.tolist(), wanted)
    assert np.signbit(out.tolist()[0])
    out.backward(lucid.tensor([2.0, 2.0, 2.0, 2.0]))
    assert x.grad.tolist() == [1.0, 1.0, 1.0, 0.0]
    assert src.grad.tolist() == [1.0, 1.0, 1.0, 2.0]


def test_the_median_of_all_but_nan_shares_its_gradient():
    """Equal elements share it evenly, as those of median; a NaN has none; the value is the same as without."""
    x = lucid.tensor([0.1, NAN, 0.1, 5.0, 0.1, -1.0], requires_grad=True)
    out = lucid.nanmedian(x)
    assert out.item() == x.detach()[0].item()
    out.backward()
    np.testing.assert_allclose(x.grad.tolist(), [1 / 3, 0, 1 / 3, 0, 1 / 3, 0], rtol=1e-6)
    for value in (INF, -INF, NAN, -0.0, 3e38):
        same = lucid.tensor([value] * 3, requires_grad=True)
        found = lucid.nanmedian(same).item()
        np.testing.assert_array_equal(found, np.float32(value))
        assert np.signbit(found) == np.signbit(value)


def test_the_covariance_of_one_variable_has_no_dimension():
    """Whether it is a vector or a matrix of one row; that of no variable is a matrix without elements."""
    x = lucid.tensor([[1.0, 2.0, 4.0]])
    assert lucid.cov(x).shape == lucid.cov(x[0]).shape == ()
    np.testing.assert_allclose(lucid.cov(x).item(), np.cov([1.0, 2.0, 4.0]), rtol=1e-6)
    assert lucid.corrcoef(x).tolist() == 1.0
    assert lucid.cov(x[:0]).shape == (0, 0)


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.float32])
def test_slices_that_renorm_leaves_have_the_gradient_of_the_identity(dtype):
    """Those of zeros, and in a neighbour of NaN, too; that of a shortened one stands in its own slice."""
    x = lucid.tensor([[0.0, 0.0], [NAN, 1.0], [3.0, 4.0]], dtype=dtype, requires_grad=True)
    lucid.renorm(x, 2, 0, 1.0).backward(lucid.ones(3, 2, dtype=dtype))
    np.testing.assert_array_equal(x.grad.tolist()[:2], [[1, 1], [1, 1]])
    np.testing.assert_allclose(x.grad.tolist()[2], [1 / 5 - 3 * 7 / 125, 1 / 5 - 4 * 7 / 125], atol=2e-3)


def test_running_integrals_of_large_samples_do_not_overflow():
    """Areas are halved before they are summed; integers are divided, too."""
    y = lucid.tensor([1.5e38, 1.5e38, 1.5e38, -1.5e38])
    np.testing.assert_allclose(lucid.cumulative_trapezoid(y).tolist(), [1.5e38, 3e38, 3e38], rtol=1e-6)
    assert lucid.trapezoid(lucid.tensor([1, 2, 4])).item() == 4.5
    assert lucid.cumulative_trapezoid(lucid.tensor([1, 2, 4]), dx=2).tolist() == [3.0, 9.0]


def test_slopes_of_a_quotient_do_not_overflow_on_the_way():
    """The square of a divisor may leave the range of numbers while the slope does not."""
    for numerator, divisor, slope in ((1e-30, 1e-25, -1e20), (1e30, 1e25, -1e-20), (1e-30, -1e-25, -1e20)):
        a, b = (lucid.tensor(number, requires_grad=True) for number in (numerator, divisor))
        lucid.div(a, b).backward()
        np.testing.assert_allclose([a.grad.item(), b.grad.item()], [1 / divisor, slope], rtol=1e-5)


PLACES = {
    "x[i]": lambda x, i: x[i],
    "gather": lambda x, i: lucid.gather(x, 0, lucid.tensor([i])),
    "index_add": lambda x, i: lucid.index_add(x, 0, lucid.tensor([i]), lucid.tensor([1])),
    "index_copy": lambda x, i: lucid.index_copy(x, 0, lucid.tensor([i]), lucid.tensor([1])),
    "index_fill": lambda x, i: lucid.index_fill(x, 0, lucid.tensor([i]), 1),
    "index_select": lambda x, i: lucid.index_select(x, 0, lucid.tensor([i])),
    "movedim": lambda x, i: lucid.movedim(x.reshape(1, 3, 1), i, 0),
    "narrow": lambda x, i: lucid.narrow(x, 0, i, 1),
    "one_hot": lambda x, i: lucid.nn.functional.one_hot(lucid.tensor([i]), 3),
    "put": lambda x, i: x.clone().put_(lucid.tensor([i]), lucid.tensor([1])),
    "scatter": lambda x, i: lucid.scatter(x, 0, lucid.tensor([i]), 1),
    "select": lambda x, i: lucid.select(x, 0, i),
    "select_scatter": lambda x, i: lucid.select_scatter(x, lucid.tensor(1), 0, i),
    "slice_scatter": lambda x, i: lucid.slice_scatter(x.reshape(1, 3, 1), x.reshape(1, 3, 1), i),
    "take": lambda x, i: lucid.take(x, lucid.tensor([i])),
    "unbind": lambda x, i: lucid.unbind(x.reshape(1, 3, 1), i),
    "unflatten": lambda x, i: lucid.unflatten(x.reshape(1, 3, 1), i, (-1,)),
}
FROM_ZERO_ON = {"gather", "index_add", "index_copy", "index_fill", "index_select", "one_hot", "scatter"}
"""Those whose numbers of places do not count from the end, as in PyTorch."""


@pytest.mark.cpu("what a tensor of places holds is not looked at on a device")
@pytest.mark.parametrize("name", PLACES)
def test_the_first_and_the_last_place_and_none_beyond(name):
    """Of three places the numbers -3 to 2, or 0 to 2, are taken, those beside them refused."""
    x = lucid.tensor([4, 5, 6])
    for place in (0, 2, *((-3, -1) if name not in FROM_ZERO_ON else ())):
        PLACES[name](x, place)
    for place in (3, -4, *((-1, -3) if name in FROM_ZERO_ON else ())):
        with pytest.raises((IndexError, ValueError)):
            PLACES[name](x, place)


def test_ends_of_a_line_are_met_exactly(rng):
    """A weight of 0 gives the first operand of `lerp`, and one of 1 the second, however far they are apart."""
    a, b = (lucid.tensor((10.0 ** rng.uniform(-6, 6, 50)).astype(np.float32)) for _ in range(2))
    for weight in (0, 1, lucid.ones(50), lucid.zeros(50)):
        is_first = not (weight if isinstance(weight, int) else weight[0].item())
        assert lucid.lerp(a, b, weight).tolist() == (a if is_first else b).tolist()


def test_correlations_of_complex_variables(rng):
    """They are NumPy's, and both parts lie between -1 and 1."""
    x = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))
    x[2] = x[1] * (1 + 1e-9)
    found = lucid.corrcoef(lucid.tensor(x)).cpu().numpy()
    np.testing.assert_allclose(found, np.corrcoef(x), rtol=1e-12, atol=1e-12)
    assert max(abs(found.real).max(), abs(found.imag).max()) <= 1


def test_distances_of_integers_do_not_wrap_around():
    """Numbers at both ends of a dtype are far apart, of whatever size it is."""
    for kind in (np.int8, np.uint8, np.int32, np.int64):
        ends = np.iinfo(kind)
        a, b = np.array([ends.min, ends.max, 3], kind), np.array([ends.max, ends.min, 4], kind)
        assert lucid.isclose(lucid.tensor(a), lucid.tensor(b)).tolist() == [False] * 3
        assert lucid.isclose(lucid.tensor(a), lucid.tensor(b), atol=1).tolist() == [False, False, True]


def test_a_histogram_of_nothing_is_empty():
    """No numbers have no least and no greatest one: all counts are zero."""
    for ends in ((0, 0), (2, 2), (1, 3)):
        assert lucid.histc(lucid.zeros(0), 3, *ends).tolist() == [0, 0, 0]
