"""`lucid.scipy.ndimage`: what its rows do not say, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage as theirs

import lucid
from lucid import numpy as lnp
from lucid.scipy import fft, linalg, ndimage, signal
from tests.gradients import check_gradient, gradient_of
from tests.scipy.checks import as_op, values
from tests.scipy.ndimage_rows import MODES

pytestmark = [
    pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py"),
    pytest.mark.filterwarnings("ignore:The behavior of affine_transform:UserWarning"),  # of SciPy's before 1.16
]


@pytest.mark.parametrize("shape", [(7, 6), (5, 4, 3)])
def test_settings_that_are_recorded(shape, rng):
    """The width of a Gaussian and the angle of a rotation have gradients too, twice."""
    x = rng.standard_normal(shape)
    for call, setting in (
        (lambda l, x, s: l.gaussian_filter(x, s, radius=3), 1.3),
        (lambda l, x, s: l.gaussian_filter1d(x, s, order=2, radius=3), 0.8),
        (lambda l, x, a: l.rotate(x, a, mode="nearest", reshape=False), 30.0),
        (lambda l, x, a: l.rotate(x, a, mode="mirror", reshape=False, order=4), -117.0),
    ):
        op = as_op(call, ndimage)
        check_gradient(op, [x, np.array(setting)], rng)
        check_gradient(gradient_of(op, 2), [x, np.array(setting), x], rng)


@pytest.mark.parametrize("size", [2, 3, 12, 39, 41, 80])
@pytest.mark.parametrize("mode", ["mirror", "reflect", "grid-wrap", "constant", "nearest"])
def test_the_adjoint_of_the_filter(mode, size):
    """The gradient of the spline filter is the transposed of the matrix that SciPy's filter is, also where it is short.

    There SciPy leaves out terms of its sums, and the filter is no longer its own adjoint.
    """
    matrix = theirs.spline_filter1d(np.eye(size), 5, 0, mode=mode)
    x = lucid.tensor(np.zeros((size, size)), requires_grad=True)
    y = ndimage.spline_filter1d(x, 5, 0, mode=mode)
    (gradient,) = lucid.autograd.grad(y, x, lucid.eye(size, dtype=lucid.float64))
    np.testing.assert_allclose(values(gradient), matrix.T, atol=1e-9)


@pytest.mark.parametrize("mode", [*MODES, "grid-mirror", "grid-wrap", "grid-constant"])
def test_an_axis_of_one_element(mode, rng):
    """Beyond the edges of a single element comes what SciPy has there, in each mode, with gradients."""
    for shape in ((1,), (1, 4), (1, 1)):
        x = rng.standard_normal(shape)
        for call in (
            lambda l, x: l.correlate1d(x, [0.5, 1.0, 2.0, -1.0], 0, mode=mode, cval=0.7),
            lambda l, x: l.uniform_filter(x, 3, mode=mode, cval=0.7),
            lambda l, x: l.shift(x, 0.3, order=1, mode=mode, cval=0.7),
            lambda l, x: l.shift(x, 2.6, order=3, mode=mode, cval=0.7),
        ):
            got = call(ndimage, lucid.tensor(x, requires_grad=True))
            np.testing.assert_allclose(values(got), call(theirs, x), atol=1e-12, err_msg=str(shape))
            check_gradient(as_op(call, ndimage), [x], rng)


def test_small_weights_and_gradients_count(rng):
    """SciPy leaves out weights below 2e-16: a gradient that is as small stands in their place, and may not vanish."""
    x = lucid.tensor(rng.standard_normal((5, 5)), requires_grad=True)
    w = lucid.tensor(rng.standard_normal((3, 3)), requires_grad=True)
    grads = [
        lucid.autograd.grad(lnp.sum(lnp.square(ndimage.correlate(x, w))) * scale, [x, w], create_graph=True)
        for scale in (1.0, 1e-22)
    ]
    for one, other in zip(*grads, strict=True):
        np.testing.assert_allclose(values(one) * 1e-22, values(other), rtol=1e-12)
    twice = [
        lucid.autograd.grad(lnp.sum(lnp.sin(pair[0] / s)) * s, [x, w])
        for pair, s in zip(grads, (1.0, 1e-22), strict=True)
    ]
    for one, other in zip(*twice, strict=True):
        np.testing.assert_allclose(values(one) * 1e-22, values(other), rtol=1e-10)


def test_recorded_settings_in_lists(rng):
    """One of several axes' settings, or an entry of a matrix, may be recorded beside plain numbers."""
    x = rng.standard_normal((6, 5))
    for call, setting in (
        (lambda l, x, s: l.gaussian_filter(x, [s, 0.8], radius=[3, 2]), 1.3),
        (lambda l, x, s: l.shift(x, (s, -0.4), mode="nearest"), 0.7),
        (lambda l, x, s: l.affine_transform(x, [[s, 0.1], [0.0, 0.9]], [s, 0.2], mode="mirror"), 0.8),
        (lambda l, x, s: l.map_coordinates(x, [[s, 1.3], [2.2, s]], mode="mirror"), 0.7),
        (lambda l, x, s: l.correlate(x, [[s, 1.0], [2.0, s]], mode="constant", cval=s), 0.7),
    ):
        expected = call(theirs, x, setting)
        leaf = lucid.tensor(setting, dtype=lucid.float64, requires_grad=True)
        np.testing.assert_allclose(values(call(ndimage, x, leaf)), expected, atol=1e-12)
        check_gradient(as_op(call, ndimage), [x, np.array(setting)], rng)


def test_single_precision(rng):
    """float32 stays float32, with SciPy's values to its precision, and gradients in the dtype of their array."""
    x, c = rng.standard_normal((7, 6)).astype("f4"), rng.uniform(0, 5, (2, 9))
    a = lucid.tensor(x, requires_grad=True)
    w = lucid.tensor(rng.standard_normal((3, 3)), requires_grad=True)
    for mine, other in (
        (ndimage.gaussian_filter(a, 1.0), theirs.gaussian_filter(x, 1.0)),
        (ndimage.map_coordinates(a, c), theirs.map_coordinates(x, c)),
        (ndimage.correlate(a, w), theirs.correlate(x, values(w))),
    ):
        assert mine.dtype == other.dtype == np.float32
        np.testing.assert_allclose(values(mine), other, rtol=2e-6, atol=2e-6)
        lnp.sum(mine).backward()
    assert (a.grad.dtype, w.grad.dtype) == (lucid.float32, lucid.float64)


def test_what_is_plain(rng):
    """Without a gradient, and of functions that can have none, a result is SciPy's own array."""
    x = rng.standard_normal((6, 6))
    leaf = lucid.tensor(x, requires_grad=True)
    for result in (ndimage.gaussian_filter(x, 1.0), ndimage.gaussian_filter(leaf.detach(), 1.0)):
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(result, theirs.gaussian_filter(x, 1.0))
    with lucid.no_grad():
        assert type(ndimage.sobel(leaf)) is np.ndarray
    assert type(ndimage.label(leaf)[0]) is np.ndarray
    assert ndimage.maximum_position(leaf) == theirs.maximum_position(x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ndimage.distance_transform_edt(x), r"scipy.ndimage.distance_transform_edt has no counterpart here"),
        (
            lambda x: ndimage.gaussian_filter(x, 1.0, output=np.zeros((3, 3))),
            r"scipy.ndimage.gaussian_filter: .* got output",
        ),
        (lambda x: ndimage.spline_filter(x, output=np.zeros((3, 3))), r"spline_filter: output cannot be an array"),
        (
            lambda x: ndimage.convolve(np.ones((3, 3), int), x),
            r"scipy.ndimage.convolve: the result has the dtype .* int64",
        ),
        (lambda x: ndimage.sobel(x, mode="odd"), r"boundary mode not supported"),
        (lambda x: ndimage.map_coordinates(x, x, order=6), r"spline order not supported|invalid shape"),
        (lambda x: ndimage.correlate(x, np.ones((2, 2)), origin=1), r"Invalid origin"),
    ],
)
def test_what_is_refused(call, message):
    """What cannot be recorded is a TypeError by its name; what SciPy refuses is refused as SciPy does."""
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        call(lucid.tensor(np.ones((3, 3)), requires_grad=True))
    with pytest.raises(
        AttributeError, match=r"module 'lucid.scipy.ndimage' has no attribute 'nothing', nor has SciPy's"
    ):
        ndimage.nothing


FILTER_CALLS = [
    *[lambda l, x, n=name: getattr(l, n)(x, np.full((3,) * np.ndim(x), 0.5)) for name in ("correlate", "convolve")],
    lambda l, x: l.correlate(x, np.full((2,) * np.ndim(x), 1j)),
    *[lambda l, x, n=name: getattr(l, n)(x, size=3) for name in ("uniform_filter", "maximum_filter", "median_filter")],
    lambda l, x: l.gaussian_filter(x, 1.0),
    lambda l, x: l.laplace(x) if np.ndim(x) else l.gaussian_filter(x, 2.0),
]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 3), (1, 1)])
@pytest.mark.parametrize("call", FILTER_CALLS)
def test_images_of_no_or_one_element(call, shape, rng):
    """Filters give what SciPy gives, and a gradient, of images without dimensions, elements or neighbours."""
    x = rng.standard_normal(shape)
    leaf = lucid.tensor(x, requires_grad=True)
    result = call(ndimage, leaf)
    np.testing.assert_allclose(values(result), call(theirs, x), atol=1e-12)
    assert (result.shape, result.requires_grad) == (shape, True)
    lnp.sum(lnp.real(result)).backward()
    assert leaf.grad.shape == shape


@pytest.mark.parametrize("mode", ["reflect", "mirror", "nearest", "wrap", "constant", "grid-mirror", "grid-wrap"])
def test_places_between_and_nowhere(mode, rng):
    """Half-way between two samples the nearest one is SciPy's, and so is the value of a place that is NaN."""
    x = rng.standard_normal(6)
    leaf = lucid.tensor(x, requires_grad=True)
    for order, places in ((0, np.arange(-13.0, 20) + 0.5), (1, np.array([np.nan, 2.5])), (3, np.array([np.nan, 2.5]))):
        result = ndimage.map_coordinates(leaf, [places], order=order, mode=mode, cval=0.3)
        expected = theirs.map_coordinates(x, [places], order=order, mode=mode, cval=0.3)
        np.testing.assert_allclose(values(result), expected, atol=1e-12)
        gradient = lucid.autograd.grad(result[-1], leaf)[0]
        assert mode == "nearest" or np.isfinite(values(gradient)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ndimage.map_coordinates(x[:0], [[1.0]]), r"has no element that could be read"),
        (lambda x: ndimage.zoom(x[0], 2.0), r"rank must be > 0"),
        (lambda x: ndimage.zoom(x, -1), r"zoom: expected factors of 0 or more, got -1.0"),
        (lambda x: ndimage.affine_transform(x, [[1.0]], [1, 2]), r"must have length equal to input rank, 1: got 2"),
        (lambda x: ndimage.affine_transform(x, [1.0], x[:2]), r"must have length equal to input rank, 1: got 2"),
        (lambda x: ndimage.zoom(x, 1.0, order=7), r"spline order not supported: expected 0 to 5, got 7"),
        (lambda x: ndimage.rank_filter(x, 9, 3), r"expected -3 to 2, got 9"),
        (lambda x: ndimage.percentile_filter(x, 101, 3), r"invalid percentile"),
        (lambda x: ndimage.maximum_filter(x, 3, origin=2), r"invalid origin: expected -1 to 1 for 3 elements, got 2"),
        (lambda x: ndimage.median_filter(x * 1j, 3), r"Complex type not supported"),
    ],
)
def test_what_scipy_refuses_too(call, message):
    """What cannot be computed is refused by the type of SciPy's error, with what was expected."""
    with pytest.raises((RuntimeError, ValueError, TypeError), match=message):
        call(lucid.tensor(np.arange(5.0), requires_grad=True))


def small_weights(l, x):
    """Return a correlation with weights below what `scipy.ndimage` counts, beside others."""
    return l.correlate(x, [[1.0, 1e-17], [0.0, 1e-17]])


def test_weights_that_are_left_out():
    """They are those that SciPy leaves out, zeros among them: what is NaN or large is lost there as it is in SciPy."""
    for x in (np.array([[1e20, 1.0, 2.0], [1.0, np.nan, 3.0], [0.0, 1.0, 2.0]]), np.ones((3, 3))):
        leaf = lucid.tensor(x, requires_grad=True)
        for call in (small_weights, lambda l, x: l.correlate(x, [[1e-17, 2e-17], [1e-17, 0]])):
            np.testing.assert_array_equal(values(call(ndimage, leaf)), call(theirs, x))


@pytest.mark.parametrize("shape", [(9,), (4, 5)])
def test_large_numbers_of_single_precision(shape):
    """A mean of numbers near to the largest is one of them, and so is its gradient."""
    x = np.full(shape, 2e38, "f")
    for call in (
        lambda l, x: l.uniform_filter(x, 3),
        lambda l, x: l.gaussian_filter(x, 1.0),
        lambda l, x: l.correlate(x, np.full((2,) * x.ndim, 0.5**x.ndim)),
    ):
        leaf = lucid.tensor(x, requires_grad=True)
        result = call(ndimage, leaf)
        np.testing.assert_allclose(values(result), call(theirs, x), rtol=1e-6)
        (gradient,) = lucid.autograd.grad(result, leaf, lucid.tensor(x / 2), create_graph=True)
        assert np.isfinite(values(gradient)).all()


@pytest.mark.parametrize("degrees", [0, 30, 45, 60, 90, 120, 135, 210, 240, 300, 330, -270, 405])
def test_turns_of_whole_parts(degrees, rng):
    """The places of a turned array, ties among them, are SciPy's."""
    for shape in ((5, 5), (6, 5), (4, 9)):
        x = rng.standard_normal(shape)
        for reshape in (True, False):
            result = ndimage.rotate(lucid.tensor(x, requires_grad=True), degrees, order=0, reshape=reshape)
            np.testing.assert_array_equal(values(result), theirs.rotate(x, degrees, order=0, reshape=reshape))


def test_the_third_derivative_of_a_turn():
    """It is the difference of the second: the turn is recorded to all orders."""
    image = np.add.outer(np.arange(9.0) ** 3, np.sin(np.arange(9.0)))

    def derivative(degrees, order):
        angle = lucid.tensor(degrees, dtype=lucid.float64, requires_grad=True)
        y = ndimage.rotate(image, angle, reshape=False, order=5)[4, 5]
        for _ in range(order):
            (y,) = lucid.autograd.grad(y, angle, create_graph=True)
        return y.item()

    difference = (derivative(20.0 + 1e-4, 2) - derivative(20.0 - 1e-4, 2)) / 2e-4
    np.testing.assert_allclose(derivative(20.0, 3), difference, rtol=1e-6)


def test_sizes_and_axes_of_numpys(rng):
    """An axis may be an integer of NumPy's, as `np.argmin(x.shape)` is, alone or in an array."""
    x, axis = rng.standard_normal((4, 5)), np.argmin((4, 5))
    for call in (
        lambda l, x, k: l.gaussian_filter1d(x, 1.0, axis=k),
        lambda l, x, k: l.uniform_filter1d(x, 3, axis=k),
        lambda l, x, k: l.correlate1d(x, [1.0, 2.0], axis=k),
        lambda l, x, k: l.maximum_filter1d(x, 3, axis=k),
        lambda l, x, k: l.gaussian_filter(x, 1.0, axes=k),
        lambda l, x, k: l.median_filter(x, 3, axes=k),
        lambda l, x, k: l.sobel(x, axis=k),
    ):
        leaf = lucid.tensor(x, requires_grad=True)
        np.testing.assert_allclose(values(call(ndimage, leaf, axis)), call(theirs, x, axis))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ndimage.gaussian_filter(x, 0.0),
        lambda x: ndimage.gaussian_filter(x, (0, 0)),
        lambda x: ndimage.gaussian_filter(x, 1.0, axes=()),
        lambda x: ndimage.uniform_filter(x, 1),
        lambda x: ndimage.zoom(x, 1),
        lambda x: fft.dctn(x, axes=()),
        lambda x: signal.sosfilt(np.zeros((0, 6)), x),
        lambda x: signal.resample_poly(x, 2, 2),
        lambda x: linalg.block_diag(x),
    ],
)
def test_results_are_no_views(call):
    """Of a filter that filters nothing, too: what is done in place to a result leaves the argument as it is."""
    leaf = lucid.tensor(np.ones((2, 2)), requires_grad=True)
    for x in (lnp.asarray(leaf) * 1.0, leaf * 1.0):
        result = call(x)
        assert type(result) is lnp.ndarray
        result += 5
        np.testing.assert_array_equal(values(x), np.ones((2, 2)))
        (gradient,) = lucid.autograd.grad(lnp.sum(result * result), leaf)
        np.testing.assert_allclose(values(gradient), 12, rtol=1e-12)
    plain = np.ones((2, 2))
    result = ndimage.gaussian_filter(plain, lucid.tensor(0.0, requires_grad=True))
    assert not np.shares_memory(values(result), plain)


@pytest.mark.parametrize(
    "call",
    [
        lambda w: ndimage.gaussian_filter(np.ones(4), 1.0, output=w),
        lambda w: ndimage.gaussian_filter(np.ones(4), 1.0, 0, w),
        lambda w: ndimage.distance_transform_edt([0, 1, 1, 0], distances=w),
        lambda w: fft.dct(w, overwrite_x=True),
        lambda w: linalg.solve(2 * np.eye(4), w, overwrite_b=True),
        lambda w: linalg.solve_banded((0, 0), np.full((1, 4), 2.0), w, False, True),
        lambda w: linalg.qr_update(np.eye(4), np.eye(4), w, np.ones(4), overwrite_qruv=True),
        lambda w: signal.detrend(w, overwrite_data=True),
    ],
)
def test_writes_into_a_tensor_are_counted(call):
    """By `output` and what may be overwritten, as by `out`: a gradient that needs the values before is refused."""
    w, x = lucid.tensor(np.arange(1.0, 5.0)), lucid.tensor(np.ones(4), requires_grad=True)
    y = lnp.sum(x * w)
    call(w)
    with pytest.raises(lucid.errors.InplaceError):
        y.backward()


def test_operands_that_are_not_written_to_are_not_counted():
    """The other operands of such a call, and all of one that overwrites nothing, stay as they are."""
    w, x = lucid.tensor(np.arange(1.0, 5.0)), lucid.tensor(np.ones(4), requires_grad=True)
    y = lnp.sum(x * w)
    linalg.solve(lnp.diag(w.detach() * 2), np.ones(4), overwrite_b=True)
    linalg.solve(2 * np.eye(4), w, overwrite_b=False)
    ndimage.gaussian_filter(w, 1.0, output=np.ones(4))
    y.backward()
    np.testing.assert_array_equal(values(x.grad), [1, 2, 3, 4])


@pytest.mark.parametrize(
    "call",
    [
        lambda x, w: ndimage.correlate1d(x, w),
        lambda x, w: ndimage.correlate(x, w),
        lambda x, w: signal.convolve(x, w, method="direct"),
        lambda x, w: signal.upfirdn(w, x),
        lambda x, w: linalg.solve_triangular(w[:1, None], x[:1]),
        lambda x, w: linalg.solve_sylvester(w[:1, None], np.eye(1), x[:1, None]),
        lambda x, w: linalg.solve_banded((0, 0), w[None], x[:3]),
    ],
)
def test_arrays_of_numpys_that_are_written_to(call):
    """A plain operand that a gradient needs, and that is written to before, is noticed as in `lucid.numpy`."""
    x, w = lucid.tensor(np.arange(5.0), requires_grad=True), np.array([1.0, 2.0, 3.0])
    y = lnp.sum(call(x, w))
    w *= 10
    with pytest.raises(lucid.errors.InplaceError, match="an array of NumPy's"):
        y.backward()


def test_recorded_values_in_dictionaries(rng):
    """A setting that requires grad is seen in a dictionary, too, where it is the only one."""
    image, shift = rng.standard_normal((4, 4)), lucid.tensor(0.3, dtype=lucid.float64, requires_grad=True)

    def moved(index, p):
        return index[0] + p, index[1]

    grads = []
    for settings in ({"extra_keywords": {"p": shift}}, {"extra_arguments": (shift,)}):
        result = ndimage.geometric_transform(image, moved, **settings)
        np.testing.assert_allclose(values(result), theirs.shift(image, (-0.3, 0)), atol=1e-12)
        grads.append(values(lucid.autograd.grad(lnp.sum(result * image), shift)[0]))
    assert grads[0] == grads[1]
