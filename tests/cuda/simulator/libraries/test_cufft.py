"""Transforms of CuPy on simulated devices: NumPy's numbers, in the bounds of their arrays, ordered by streams."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.base import gpu

pytestmark = pytest.mark.skipif(not gpu.is_simulated(), reason="needs LUCID_CUDA_SIMULATOR")

# Powers, products, primes that are summed by the definition, and larger ones, alone and in products.
SIZES = (1, 2, 3, 4, 6, 12, 31, 37, 64, 74, 97, 101, 360)


@pytest.fixture
def cupy():
    """Return CuPy, on simulated devices."""
    return gpu.cupy()


def drawn(rng, *shape):
    """Return complex normal numbers."""
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def close(found, wanted):
    """Compare with NumPy's transform in double."""
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.get(), wanted, atol=1e-12 * np.sqrt(wanted.size), rtol=0)


@pytest.mark.parametrize("size", SIZES)
def test_lines(cupy, rng, size):
    """Every kind of transform of lines of any size is NumPy's."""
    x = drawn(rng, 3, size)
    for name in ("fft", "ifft"):
        close(getattr(cupy.fft, name)(cupy.asarray(x)), getattr(np.fft, name)(x))
    close(cupy.fft.rfft(cupy.asarray(x.real)), np.fft.rfft(x.real))
    for n in (2 * size, 2 * size - 1):
        close(cupy.fft.irfft(cupy.asarray(x), n), np.fft.irfft(x, n))


@pytest.mark.parametrize("axes", [(0,), (1,), (2, 3), (1, 2, 3), (0, 1), (0, 2), (0, 1, 2, 3), (3, 1)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_planes(cupy, rng, axes, order):
    """Transforms over several dimensions are NumPy's, whatever layout of arrays and batches CuPy plans them by."""
    x = np.asarray(drawn(rng, 2, 3, 4, 5), order=order)
    close(cupy.fft.fftn(cupy.asarray(x, order=order), axes=axes), np.fft.fftn(x, axes=axes))
    close(cupy.fft.ifftn(cupy.asarray(x, order=order), axes=axes), np.fft.ifftn(x, axes=axes))
    close(cupy.fft.rfftn(cupy.asarray(x.real, order=order), axes=axes), np.fft.rfftn(x.real, axes=axes))
    sizes = [x.shape[axis] for axis in axes]
    half = np.fft.rfftn(x.real, axes=axes)
    close(cupy.fft.irfftn(cupy.asarray(half), sizes, axes), np.fft.irfftn(half, sizes, axes))


def test_single_precision_is_rounded_once(cupy, rng):
    """A transform of float32 is that in double, rounded."""
    x = drawn(rng, 2, 12).astype(np.complex64)
    found = cupy.fft.fft(cupy.asarray(x)).get()
    assert found.dtype == np.complex64
    exact = np.fft.fft(x.astype(np.complex128)).view(np.float64)
    # half a unit in the last place, and what the two transforms in double differ by
    assert (np.abs(found.view(np.float32) - exact) <= 0.5001 * np.spacing(np.abs(exact).astype(np.float32))).all()


def test_what_a_transform_to_real_numbers_has_read(cupy, rng):
    """The operand of a plan's own call may be overwritten, and is NaN."""
    x = cupy.asarray(drawn(rng, 5))
    plan = cupy.cuda.cufft.Plan1d(8, cupy.cuda.cufft.CUFFT_Z2D, 1)
    plan.fft(x, plan.get_output_array(x), cupy.cuda.cufft.CUFFT_INVERSE)
    assert np.isnan(x.get()).all()


def test_bounds(cupy):
    """A plan that reads or writes beyond an array is an error, and writes nothing."""
    cufft = cupy.cuda.cufft
    plan, x, out = cufft.Plan1d(8, cufft.CUFFT_C2C, 64), cupy.zeros(512, "F"), cupy.zeros(8, "F")
    with pytest.raises(cufft.CuFFTError, match="EXEC_FAILED"):
        plan.fft(x, out, cufft.CUFFT_FORWARD)
    assert not out.get().any()


def test_workspace_on_two_streams(cupy):
    """A plan that runs on two streams, which nothing orders, is an error: both would use its workspace."""
    cufft = cupy.cuda.cufft
    first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    x, y = cupy.ones(8, "F"), cupy.ones(8, "F")
    plan = cufft.Plan1d(8, cufft.CUFFT_C2C, 1)
    cupy.cuda.Device().synchronize()
    with first:
        plan.fft(x, x, cufft.CUFFT_FORWARD)
    with second, pytest.raises(cufft.CuFFTError, match="EXEC_FAILED"):
        plan.fft(y, y, cufft.CUFFT_FORWARD)
    first.synchronize()
    with second:
        plan.fft(y, y, cufft.CUFFT_FORWARD)
    second.synchronize()
    assert y.get().tolist() == [8, *[0] * 7]


def test_what_cufft_refuses(cupy):
    """Sizes, plans and calls that there are none of are answered by cuFFT's names."""
    cufft = cupy.cuda.cufft
    x, plan = cupy.ones(4, "F"), cufft.Plan1d(4, cufft.CUFFT_C2C, 1)
    with pytest.raises(cufft.CuFFTError, match="INVALID_SIZE"):
        cufft.Plan1d(-1, cufft.CUFFT_C2C, 1)
    with pytest.raises(cufft.CuFFTError, match="INVALID_VALUE"):
        plan.fft(x, x, 2)
    with pytest.raises(cufft.CuFFTError, match="INVALID_TYPE"):
        cufft.execR2C(plan.handle, x.data.ptr, x.data.ptr)
    with pytest.raises(cufft.CuFFTError, match="INVALID_PLAN"):
        cufft.execC2C(12345, x.data.ptr, x.data.ptr, 1)
    with pytest.raises(cufft.CuFFTError, match="NOT_IMPLEMENTED"):
        cufft.Plan1d(64, cufft.CUFFT_C2C, 2, devices=2)
