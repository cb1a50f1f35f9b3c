"""First values of parameters: ranges and deviations by the numbers of inputs and outputs, and what has a pattern."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import SettingError, ShapeError
from lucid.nn import init
from tests.gradients import numbers

# of a convolution with 60 channels of 2 x 5 into 40: inputs that each output sums, and outputs that each input reaches
SHAPE, INPUTS, OUTPUTS = (40, 60, 2, 5), 600, 400
GAINS = {
    "linear": 1.0, "sigmoid": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "tanh": 5 / 3, "relu": 2**0.5, "selu": 0.75,
}  # fmt: skip


def seeded(rng):
    """Return a generator with a seed of the test's."""
    return lucid.Generator().manual_seed(int(rng.integers(2**32)))


def test_gains():
    """Each nonlinearity has the gain of the table, a leaky one that of its slope; others are refused."""
    for name, gain in GAINS.items():
        assert init.calculate_gain(name) == pytest.approx(gain)
    assert init.calculate_gain("leaky_relu") == pytest.approx((2 / (1 + 0.01**2)) ** 0.5)
    assert init.calculate_gain("leaky_relu", 3) == pytest.approx(0.2**0.5)
    with pytest.raises(SettingError, match="unsupported nonlinearity 'gelu': expected one of linear, "):
        init.calculate_gain("gelu")


def scaled():
    """Yield what fills a weight, the deviation of its values, and whether they are uniform."""
    glorot = (2 / (INPUTS + OUTPUTS)) ** 0.5
    for gain in (1.0, 3.0):
        yield lambda t, g, gain=gain: init.xavier_uniform_(t, gain, g), gain * glorot, True
        yield lambda t, g, gain=gain: init.xavier_normal_(t, gain, g), gain * glorot, False
    kinds = (("leaky_relu", 0, 2**0.5), ("leaky_relu", 2.0, 0.4**0.5), ("relu", 2.0, 2**0.5), ("tanh", 0, 5 / 3))
    for (mode, fan), (name, a, gain) in itertools.product((("fan_in", INPUTS), ("fan_out", OUTPUTS)), kinds):
        for fill in (init.kaiming_uniform_, init.kaiming_normal_):
            call = lambda t, g, fill=fill, a=a, mode=mode, name=name: fill(t, a, mode, name, g)
            yield call, gain / fan**0.5, fill is init.kaiming_uniform_


@pytest.mark.parametrize(("fill", "deviation", "uniform"), [*scaled()])
def test_spread_by_inputs_and_outputs(fill, deviation, uniform, rng):
    """Values have mean 0 and the deviation of the formula; uniform ones end at the root of three times as much."""
    weight = lucid.empty(SHAPE)
    assert fill(weight, seeded(rng)) is weight
    values = numbers(weight)
    assert abs(values.mean()) < 0.03 * deviation
    assert values.std() == pytest.approx(deviation, rel=0.03)
    farthest = np.abs(values).max() / (deviation * 3**0.5)
    assert (0.99 < farthest <= 1 + 1e-6) if uniform else farthest > 1.7


@pytest.mark.parametrize(
    ("fill", "dimensions"),
    [
        *[(each, (0, 1)) for each in (init.xavier_uniform_, init.xavier_normal_, init.kaiming_uniform_)],
        *[(each, (0, 1)) for each in (init.kaiming_normal_, init.orthogonal_)],
        *[(each, (1, 3)) for each in (init.eye_, lambda t: init.sparse_(t, 0.5))],
        (init.dirac_, (2, 6)),
    ],
)
def test_dimensions_that_are_refused(fill, dimensions):
    """A weight of too few dimensions, or of too many, is refused and left as it is."""
    for count in dimensions:
        weight = lucid.full((2,) * count, 7.0)
        with pytest.raises(ShapeError, match="dimensions"):
            fill(weight)
        assert (numbers(weight) == 7).all()


def test_a_cut_normal_distribution(rng):
    """Values keep within both bounds, and between them follow the normal distribution."""
    weight = lucid.empty(200, 200)
    init.trunc_normal_(weight, 1.0, 2.0, 0.0, 6.0, generator=seeded(rng))
    values = np.sort(numbers(weight).ravel())
    assert 0 <= values[0] < 0.01
    assert 5.8 < values[-1] <= 6
    below = np.array([0.5 * (1 + math.erf((x - 1) / 2 / 2**0.5)) for x in (0.0, 1.0, 3.0, 6.0)])
    expected = (below - below[0]) / (below[-1] - below[0])
    np.testing.assert_allclose(np.searchsorted(values, [1.0, 3.0]) / values.size, expected[1:3], atol=0.01)
    with pytest.raises(SettingError, match="expected a < b"):
        init.trunc_normal_(weight, a=1.0, b=1.0)
    with pytest.raises(SettingError, match="expected a finite std > 0, got 0"):
        init.trunc_normal_(weight, std=0.0)


@pytest.mark.parametrize(
    ("a", "b"), [(3.1, 9.0), (3.0, 3.0005), (8.0, 9.0), (30.0, math.inf), (50.0, 50.01), (-1e-4, 3e-4), (1e-4, 4e-4)]
)
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (-7.0, 0.25)])
def test_a_rare_part_of_a_normal_distribution(a, b, mean, std, rng):
    """An interval that few numbers fall into has the distribution of those that do, on both sides of the mean.

    Of the distribution function within, exp(-z**2 / 2) is summed up by the trapezoidal rule.
    """
    z = np.linspace(a, min(b, a + 2.0), 20_001)
    density = np.exp(-(z - a) * (z + a) / 2)
    share = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
    share /= share[-1]
    for side in (1, -1):
        ends = sorted((mean + side * std * a, mean + side * std * b))
        weight = lucid.empty(5000, dtype=lucid.float64)
        values = numbers(init.trunc_normal_(weight, mean, std, *ends, generator=seeded(rng)))
        assert ends[0] <= values.min() < values.max() <= ends[1]
        below = np.interp(np.sort(side * (values - mean) / std), z, share)
        # Kolmogorov's statistic is above 1.95 once in a thousand samples
        steps = np.arange(5001) / 5000
        assert 5000**0.5 * max((steps[1:] - below).max(), (below - steps[:-1]).max()) < 1.95


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.bfloat16, lucid.float32])
def test_a_rare_part_in_single_and_half_precision(dtype, rng):
    """It lies between the bounds as they are in the dtype."""
    values = init.trunc_normal_(lucid.empty(500, dtype=dtype), a=-9.3, b=-8.1, generator=seeded(rng))
    assert lucid.tensor(-9.3, dtype=dtype) <= values.min()
    assert values.max() <= lucid.tensor(-8.1, dtype=dtype)


def test_complex_weights(rng):
    """Both parts are drawn: uniform ones in the same bounds, normal ones with half of the variance each."""
    for dtype, part in ((lucid.complex64, np.float32), (lucid.complex128, np.float64)):
        weight = lucid.empty(200, 300, dtype=dtype)
        values = numbers(init.uniform_(weight, -2.0, 3.0, seeded(rng)))
        assert values.real.dtype == part
        parts = np.stack([values.real, values.imag]).reshape(2, -1)
        assert (parts >= -2).all() and (parts < 3).all()  # noqa: PT018
        np.testing.assert_allclose(parts.mean(1), 0.5, atol=0.04)
        np.testing.assert_allclose(np.cov(parts), 25 / 12 * np.eye(2), atol=0.05)
        for fill, mean, std in (
            (lambda w: init.normal_(w, 1.0, 3.0, seeded(rng)), 1.0, 3.0),
            (lambda w: init.xavier_normal_(w, generator=seeded(rng)), 0.0, (2 / 500) ** 0.5),
            (lambda w: init.sparse_(w, 0.0, 3.0, seeded(rng)), 0.0, 3.0),
        ):
            values = numbers(fill(weight))
            parts = np.stack([values.real, values.imag]).reshape(2, -1) / std
            np.testing.assert_allclose(parts.mean(1), mean / std, atol=0.02)
            np.testing.assert_allclose(np.cov(parts), 0.5 * np.eye(2), atol=0.02)
    layer = nn.Linear(2, 3, dtype=lucid.complex64)
    assert layer(lucid.ones(1, 2, dtype=lucid.complex64)).dtype == lucid.complex64
    assert (numbers(layer.weight).imag != 0).all()


@pytest.mark.parametrize("dtype", [lucid.complex64, lucid.int64, lucid.bool])
def test_dtypes_that_are_refused(dtype):
    """An order, or an orthogonal matrix, of other than real floating-point numbers is refused, of any size."""
    for fill in (init.trunc_normal_, init.orthogonal_):
        weight = lucid.ones(2, 2, dtype=dtype)
        with pytest.raises(NotImplementedError, match=f"{fill.__name__}: expected a tensor of a real floating-point"):
            fill(weight)
        assert (weight == 1).all()


@pytest.mark.parametrize("shape", [(4, 2, 3), (2, 4, 3), (4, 4, 2), (6, 2, 3, 4), (2, 3, 3, 2, 5)])
@pytest.mark.parametrize("groups", [1, 2])
def test_an_identity_of_channels(shape, groups, rng):
    """A convolution by `dirac_` gives outputs of each group the inputs of their numbers, and else zeros."""
    weight = lucid.empty(shape)
    assert init.dirac_(weight, groups) is weight
    each, (_, inputs, *field) = shape[0] // groups, shape
    centre = tuple(size // 2 for size in field)
    expected = np.zeros(shape)
    for output, channel in itertools.product(range(shape[0]), range(inputs)):
        expected[(output, channel, *centre)] = output % each == channel
    np.testing.assert_array_equal(numbers(weight), expected)
    with pytest.raises(ShapeError, match="must be divisible by groups=7"):
        init.dirac_(weight, 7)


@pytest.mark.parametrize(("rows", "sparsity", "zeros"), [(7, 0.5, 4), (10, 0.31, 4), (5, 0.0, 0), (5, 1.0, 5)])
def test_zeros_in_each_column(rows, sparsity, zeros, rng):
    """Each column has as many zeros as the share of its rows, rounded up, at places of its own; the rest is normal."""
    weight = lucid.empty(rows, 300)
    init.sparse_(weight, sparsity, 0.25, seeded(rng))
    values = numbers(weight)
    assert ((values == 0).sum(0) == zeros).all()
    if 0 < zeros < rows:
        assert len({tuple(column) for column in (values == 0).T}) > 5
    if zeros < rows:
        assert values[values != 0].std() == pytest.approx(0.25, rel=0.1)


@pytest.mark.parametrize("sparsity", [np.nan, np.inf, -np.inf, -0.5])
def test_a_share_is_a_finite_number(sparsity):
    """Another, or one below 0, is refused by name, and the weight is left as it is."""
    weight = lucid.full((2, 3), 7.0)
    with pytest.raises(SettingError, match="sparse_: sparsity: expected a share"):
        init.sparse_(weight, sparsity)
    assert (numbers(weight) == 7).all()


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 2, 3)])
def test_an_orthogonal_matrix(shape, rng):
    """Rows, or columns where these are fewer, are orthogonal and as long as the gain."""
    weight = lucid.empty(shape, dtype=lucid.float64)
    init.orthogonal_(weight, 3.0, seeded(rng))
    matrix = numbers(weight).reshape(shape[0], -1)
    square = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(square, 9 * np.eye(len(square)), atol=1e-12)


def test_orthogonal_matrices_are_drawn_evenly(rng):
    """No element has a sign of its own: of many matrices each has mean 0, those on the diagonal too."""
    source, weight = seeded(rng), lucid.empty(2, 2)
    drawn = np.array([numbers(init.orthogonal_(weight, 1.0, source)).copy() for _ in range(2000)])
    np.testing.assert_allclose(drawn.mean(0), np.zeros((2, 2)), atol=0.08)


DRAWING = [
    init.uniform_, init.normal_, init.trunc_normal_, init.xavier_uniform_, init.xavier_normal_, init.kaiming_uniform_,
    init.kaiming_normal_, init.orthogonal_, functools.partial(init.sparse_, sparsity=0.5),
]  # fmt: skip


@pytest.mark.parametrize("fill", DRAWING)
def test_a_generator_that_is_given_is_the_one_that_is_drawn_from(fill, rng):
    """Its state alone decides on the values, and the default generator's stays."""
    source, before = seeded(rng), lucid.get_rng_state().tolist()
    start = source.get_state()
    first = numbers(fill(lucid.empty(4, 4), generator=source)).copy()
    assert lucid.get_rng_state().tolist() == before
    assert source.get_state().tolist() != start.tolist()
    source.set_state(start)
    np.testing.assert_array_equal(numbers(fill(lucid.empty(4, 4), generator=source)), first)


def test_fills_go_past_the_graph(rng):
    """A parameter, which gradients go to, is filled in place and stays a leaf; without elements there is a warning."""
    for fill in (init.uniform_, init.normal_, init.zeros_, init.ones_, init.eye_, init.kaiming_normal_):
        weight = nn.Parameter(lucid.full((3, 3), 7.0))
        assert fill(weight) is weight
        assert (weight.is_leaf, weight.requires_grad) == (True, True)
        assert (numbers(weight) != 7).all()
    np.testing.assert_array_equal(numbers(init.eye_(lucid.empty(2, 3))), np.eye(2, 3))
    for fill in (init.kaiming_uniform_, init.kaiming_normal_):
        with pytest.warns(UserWarning, match="zero-element"):
            fill(lucid.empty(0, 3))
    with pytest.raises(SettingError, match="mode 'fan' not supported: expected 'fan_in' or 'fan_out'"):
        init.kaiming_normal_(lucid.empty(2, 2), mode="fan")


@pytest.mark.parametrize("fill", DRAWING)
def test_float64_is_drawn_in_it(fill, rng):
    """Its numbers are no numbers of float32."""
    values = fill(lucid.empty(10, 10, dtype=lucid.float64), generator=seeded(rng))
    assert (values != values.float().double()).any()
