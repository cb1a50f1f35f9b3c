"""Interpolation on a CUDA device: against products with the matrices of weights that the CPU uses."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.base import gpu
from lucid.ops.resampling.interpolation import Axis, interpolated, interpolated_grad, taps
from tests.kernels.near import FLOATS, assert_near, on_device, rounded

pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)

# Kind, and for each dimension size, size of the result, scale and shift: larger and smaller, beyond one block, corners
# that stay, a factor that is not that of the sizes, one element to and from many.
CASES = {
    "nearest": ("nearest", [(7, 300, 7 / 300, 0.0), (31, 9, 31 / 9, 0.5)]),
    "linear": ("linear", [(5, 33, 5 / 33, 0.5), (40, 17, 40 / 17, 0.5), (3, 8, 1 / 2.9, 0.5)]),
    "aligned": ("linear", [(40, 7, 39 / 6, 0.0), (1, 6, 0.0, 0.0)]),
    "one": ("linear", [(9, 1, 0.0, 0.0)]),
    "cubic": ("cubic", [(3, 20, 3 / 20, 0.5), (37, 11, 37 / 11, 0.5)]),
    "cubic aligned": ("cubic", [(1, 5, 0.0, 0.0), (9, 23, 8 / 22, 0.0)]),
    "area": ("area", [(50, 7, 50 / 7, 0.5), (5, 13, 5 / 13, 0.5)]),
    "linear filter": ("linear filter", [(61, 8, 61 / 8, 0.5), (6, 25, 6 / 25, 0.5)]),
    "cubic filter": ("cubic filter", [(61, 8, 61 / 8, 0.5), (5, 12, 1 / 2.5, 0.5)]),
}


def matrix_of(axis):
    """Return the weight of each element, by column, in each element of the result, by row."""
    index, weight = taps(axis)
    matrix = np.zeros((axis.out, axis.size))
    np.add.at(matrix, (np.arange(axis.out)[:, None], index), weight)
    return matrix


def resized(x, matrices):
    """Return the last dimensions of `x` multiplied by matrices."""
    for k, matrix in enumerate(reversed(matrices)):
        x = np.moveaxis(np.moveaxis(x, -1 - k, -1) @ matrix.T, -1, -1 - k)
    return x


@every_float
@pytest.mark.parametrize("case", CASES)
def test_sizes(case, dtype, rng):
    """Each element of the result, and of the gradient, is the sum of others by the weights."""
    kind, sizes = CASES[case]
    axes = tuple(Axis(kind, *each) for each in sizes)
    matrices = [matrix_of(axis) for axis in axes]
    x = rounded(rng.standard_normal((2, 3, *[axis.size for axis in axes])), dtype)
    g = rounded(rng.standard_normal((2, 3, *[axis.out for axis in axes])), dtype)
    assert_near(interpolated.kernel(on_device(x, dtype).array, axes=axes), resized(x, matrices), dtype, 4)
    back = interpolated_grad.kernel(on_device(g, dtype).array, axes=axes)
    assert_near(back, resized(g, [matrix.T for matrix in matrices]), dtype, 4)


def test_layouts(rng):
    """Inputs are read whatever their strides: the same bits as of a copy."""
    x = on_device(rng.standard_normal((4, 3, 8, 6)), "float32").array
    axes = (Axis("cubic", 6, 9, 6 / 9, 0.5), Axis("cubic", 8, 5, 8 / 5, 0.5))
    for view in (x.swapaxes(0, 1).swapaxes(-1, -2), x[:, ::-1, ::-1].swapaxes(-1, -2), x.transpose(1, 0, 3, 2)):
        got = interpolated.kernel(view, axes=axes)
        np.testing.assert_array_equal(got.get(), interpolated.kernel(view.copy("C"), axes=axes).get())


def test_what_has_no_kernel():
    """Integers, and sizes of which float32 does not hold the positions, are left to the array library."""
    x = gpu.cupy().zeros((1, 1, 3), np.uint8)
    assert interpolated.kernel(x, axes=(Axis("nearest", 3, 6, 0.5, 0.0),)) is NotImplemented
    y = gpu.cupy().zeros((1, 1, 3), np.float32)
    assert interpolated.kernel(y, axes=(Axis("nearest", 3, 2**23, 3 / 2**23, 0.0),)) is NotImplemented
