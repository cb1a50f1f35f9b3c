"""What rows cannot say of sampling at a grid: what is refused, positions that are no numbers, higher derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DeviceError, DtypeError, SettingError, ShapeError
from lucid.nn import functional as F
from lucid.ops.resampling.grid import affine_grid, grid_sample
from tests.device import DEVICE
from tests.gradients import numbers


def sample(x=(1, 1, 3, 4), grid=(1, 2, 2, 2), **settings):
    return grid_sample(lucid.ones(*x), lucid.zeros(*grid), **settings)


REFUSED = {
    "mode": (lambda: sample(mode="cubic"), SettingError, "mode of bilinear, nearest, bicubic, got 'cubic'"),
    "padding": (lambda: sample(padding_mode="wrap"), SettingError, "padding_mode of zeros, border, reflection"),
    "batches": (lambda: sample(grid=(2, 2, 2, 2)), ShapeError, r"got \(1, 1, 3, 4\) and \(2, 2, 2, 2\)"),
    "numbers": (lambda: sample(grid=(1, 2, 2, 3)), ShapeError, "grid of shape"),
    "dimensions": (lambda: sample(x=(1, 3, 4)), ShapeError, "input of shape"),
    "no elements": (lambda: sample(x=(1, 1, 0, 4)), ShapeError, "elements in each dimension"),
    "volumes": (lambda: sample((1, 1, 2, 3, 4), (1, 2, 2, 2, 3), mode="bicubic"), SettingError, "'bicubic' is for im"),
    "dtypes": (lambda: grid_sample(lucid.ones(1, 1, 2, 2), lucid.zeros(1, 2, 2, 2).double()), DtypeError, "dtype"),
    "integers": (
        lambda: grid_sample(lucid.ones(1, 1, 2, 2).to(lucid.int64), lucid.zeros(1, 2, 2, 2).to(lucid.int64)),
        DtypeError,
        "grid_sample: expected a floating-point input",
    ),
    "theta": (
        lambda: affine_grid(lucid.ones(1, 2, 3), (2, 1, 3, 3)),
        ShapeError,
        "theta of shape",
    ),
    "theta of ints": (lambda: affine_grid(lucid.ones(1, 2, 3).to(lucid.int64), (1, 1, 3, 3)), DtypeError, "theta"),
    "size": (lambda: affine_grid(lucid.ones(1, 2, 3), (1, 1, 0, 3)), ShapeError, "numbers above 0"),
    "lines": (lambda: affine_grid(lucid.ones(1, 2, 3), (1, 1, 3)), ShapeError, "4 or 5 numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    """What does not fit raises an error that says what was expected, and what came."""
    call, kind, text = REFUSED[case]
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.gpu
def test_two_devices():
    """Images and grid lie on one device."""
    with pytest.raises(DeviceError, match="grid_sample"):
        grid_sample(lucid.ones(1, 1, 2, 2, device="cuda"), lucid.zeros(1, 2, 2, 2, device="cpu"))


def test_several_dtypes_in_autocast():
    """Half images and a grid of float32 are sampled in float32."""
    x, grid = lucid.ones(1, 1, 2, 2, dtype=lucid.bfloat16), lucid.zeros(1, 2, 2, 2)
    with lucid.autocast(x.device.type, dtype=lucid.bfloat16):
        assert grid_sample(x, grid).dtype == lucid.float32


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_positions_that_are_no_numbers(mode):
    """NaN and infinite positions are far outside: zeros, or elements at the border, with no gradient."""
    points = [[np.nan, -1.0], [np.inf, -1.0], [-np.inf, -1.0], [1e30, -1.0], [1e9, -1.0], [-1e12, -1.0]]
    x = lucid.tensor([[[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]]])
    for padding, expected in (("zeros", [0] * 6), ("border", [1, 3, 1, 3, 3, 1])):
        grid = lucid.tensor([[points]], requires_grad=True)
        out = grid_sample(x, grid, mode, padding, align_corners=True)
        np.testing.assert_array_equal(numbers(out)[0, 0, 0], expected)
        out.sum().backward()
        np.testing.assert_array_equal(numbers(grid.grad)[..., 0], 0)


@pytest.mark.parametrize("padding", ["border", "reflection"])
def test_at_the_edge_positions_do_not_move(padding, rng):
    """Exactly at the first and the last element a grid has no gradient, as behind them in the border; beside it has."""
    x = lucid.tensor(rng.standard_normal((1, 2, 3, 4)))
    points = [[place, y] for place in (-1.0, 1.0) for y in (-1.0, -0.5, 1.0)]
    grid = lucid.tensor([[points]], dtype=lucid.float64, requires_grad=True)
    out = grid_sample(x, grid, padding_mode=padding, align_corners=True)
    out.backward(lucid.tensor(rng.standard_normal(out.shape)))
    moves = numbers(grid.grad)[0, 0] != 0
    np.testing.assert_array_equal(moves, [[False, y == -0.5] for _, y in points])


def test_what_is_not_finite_stays():
    """A NaN reaches the samples that it has a part in, and no others; its place gets its own gradient."""
    x = lucid.tensor([[[[1.0, 2.0, np.nan, 4.0, 5.0]]]], requires_grad=True)
    position = np.array([0.0, 0.5, 1.0, 1.5, 2.5, 3.0])
    grid = lucid.tensor(np.stack([position / 2 - 1, 0 * position], -1)[None, None].astype(np.float32))
    out = grid_sample(x, grid, align_corners=True)
    np.testing.assert_array_equal(np.isnan(numbers(out)[0, 0, 0]), [False, False, False, True, True, False])
    out.backward(lucid.tensor([[[[1.0, 2.0, np.inf, 3.0, 4.0, 5.0]]]]))
    np.testing.assert_allclose(numbers(x.grad)[0, 0, 0], [2, np.inf, 3.5, 7, 0], rtol=1e-6)


def test_third_derivatives(rng):
    """The third derivative of a cubic by the grid is that of the polynomial, and the fourth is zero."""
    x, place = rng.standard_normal(6), 0.37
    a = -0.75
    thirds = np.array([6 * a, 6 * (a + 2), -6 * (a + 2), -6 * a])
    grid = lucid.tensor([[[[2 * (2 + place) / 5 - 1, 0.0]]]], dtype=lucid.float64, requires_grad=True)
    derivative = F.grid_sample(lucid.tensor(x[None, None, None]), grid, "bicubic", "border", align_corners=True)
    for _ in range(3):
        (derivative,) = lucid.autograd.grad(derivative.sum(), grid, create_graph=True)
        derivative = derivative[..., 0]
    np.testing.assert_allclose(numbers(derivative).item(), thirds @ x[1:5] * 2.5**3, rtol=1e-9)


@pytest.mark.parametrize("channels", [16, 20])
def test_many_points(channels, rng):
    """Points beyond one block, of images in several channels, are sampled as few are, with the same gradients."""
    x = lucid.tensor(rng.standard_normal((2, channels, 9, 8)), requires_grad=True)
    places = rng.uniform(-1.2, 1.2, (2, 90, 110, 2))
    whole = lucid.tensor(places, requires_grad=True)
    out = grid_sample(x, whole, padding_mode="border")
    upstream = rng.standard_normal(out.shape)
    out.backward(lucid.tensor(upstream))
    total = 0
    for rows in (slice(0, 1), slice(41, 43), slice(89, 90)):
        part = lucid.tensor(places[:, rows], requires_grad=True)
        few = grid_sample(x.detach(), part, padding_mode="border")
        np.testing.assert_allclose(numbers(few), numbers(out)[:, :, rows], rtol=1e-12)
        few.backward(lucid.tensor(upstream[:, :, rows]))
        np.testing.assert_allclose(numbers(part.grad), numbers(whole.grad)[:, rows], rtol=1e-9, atol=1e-12)
    for row in range(0, 90, 30):
        y = x.detach().requires_grad_()
        grid_sample(y, lucid.tensor(places[:, row : row + 30]), padding_mode="border").backward(
            lucid.tensor(upstream[:, :, row : row + 30])
        )
        total = total + numbers(y.grad)
    np.testing.assert_allclose(numbers(x.grad), total, rtol=1e-9, atol=1e-12)


def test_a_size_of_one_has_its_corners_in_the_middle(rng):
    """Along a dimension of one element aligned points are at 0, so that there the last column of theta is all."""
    theta = rng.standard_normal((2, 2, 3))
    points = numbers(affine_grid(lucid.tensor(theta), (2, 1, 1, 3), align_corners=True))
    expected = [[theta[n] @ (along, 0, 1) for along in (-1, 0, 1)] for n in range(2)]
    np.testing.assert_allclose(points[:, 0], expected, rtol=1e-14)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_outside_is_zero_without_a_sign(mode):
    """What is outside of images of negative elements, in zeros, is 0 and not -0."""
    grid = lucid.tensor([[[[4.0, 0.0], [0.0, -5.0]]]])
    out = numbers(grid_sample(-lucid.ones(1, 2, 3, 4), grid, mode))
    assert (out == 0).all()
    assert not np.signbit(out).any()


@pytest.mark.parametrize("channels", [0, 2])
@pytest.mark.parametrize("points", [(1, 0), (0, 2)])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_no_points(mode, points, channels):
    """A grid of no points samples nothing, and images get a gradient of zeros from it, which has one too."""
    x = lucid.ones(2, channels, 3, 4, device=DEVICE, requires_grad=True)
    grid = lucid.ones(2, *points, 2, device=DEVICE, requires_grad=True)
    out = grid_sample(x, grid, mode, align_corners=False)
    assert out.shape == (2, channels, *points)
    grads = lucid.autograd.grad(out.sum(), (x, grid), create_graph=True)
    np.testing.assert_array_equal(numbers(grads[0]), np.zeros(x.shape))
    assert grads[1].shape == grid.shape
    again = lucid.autograd.grad(grads[0].sum() + grads[1].sum(), (x, grid), allow_unused=True)
    assert all(grad is None or not numbers(grad).any() for grad in again)


@pytest.mark.parametrize("aligned", [True, False])
def test_reflections(aligned, rng):
    """Positions far beyond both ends are reflected at the outer elements, or at their edges, as often as it takes."""
    values, size = rng.standard_normal(5), 5
    points = np.array([-1.3, -2.9, -5.2, -7.75, 1.3, 2.9, 5.2, 0.4])
    place = (points + 1) / 2 * (size - 1) if aligned else ((points + 1) * size - 1) / 2
    least, most = (0, size - 1) if aligned else (-0.5, size - 0.5)
    there, sign = place.copy(), np.ones(8)
    for _ in range(20):
        for beyond, border in ((there < least, least), (there > most, most)):
            there, sign = np.where(beyond, 2 * border - there, there), np.where(beyond, -sign, sign)
    sign[(there <= 0) | (there >= size - 1)] = 0
    there = there.clip(0, size - 1)
    x = lucid.tensor(values[None, None, None])
    grid = lucid.tensor(np.stack([points, 0 * points], -1)[None, None], requires_grad=True)
    out = grid_sample(x, grid, padding_mode="reflection", align_corners=aligned)
    np.testing.assert_allclose(numbers(out)[0, 0, 0], np.interp(there, np.arange(size), values), rtol=1e-9)
    upstream = rng.standard_normal(8)
    out.backward(lucid.tensor(upstream[None, None, None]))
    slopes = sign * np.diff(values)[np.minimum(there.astype(int), size - 2)] * (size - 1 if aligned else size) / 2
    np.testing.assert_allclose(numbers(grid.grad)[0, 0, :, 0], upstream * slopes, rtol=1e-9)
