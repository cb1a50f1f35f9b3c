"""Fourier transforms: adjoints, dtypes, nodes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, IndexOutOfRangeError, SettingError, ShapeError
from tests.device import DEVICE


def complex_normal(rng, *shape):
    """Return complex normal numbers."""
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def inner(a, b):
    """Return the real inner product of two tensors."""
    return float(np.sum(np.conj(a.cpu().numpy()) * b.cpu().numpy()).real)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [6, 7])
def test_gradients_are_adjoints(rng, name, norm, n):
    """Each transform is linear, and its gradient the adjoint: <v, F x> is <F* v, x>."""
    real = name in {"rfft", "ihfft"}
    x = lucid.tensor(rng.standard_normal((2, 5)) if real else complex_normal(rng, 2, 5), requires_grad=True)
    out = getattr(lucid.fft, name)(x, n, norm=norm)
    v = lucid.tensor(complex_normal(rng, *out.shape) if out.is_complex() else rng.standard_normal(tuple(out.shape)))
    (back,) = lucid.autograd.grad(out, x, v)
    assert back.dtype is x.dtype
    assert inner(v, out.detach()) == pytest.approx(inner(back, x.detach()), rel=1e-12)


def test_there_and_back(rng):
    """The inverse of a transform gives the numbers back, in every norm."""
    x = lucid.tensor(rng.standard_normal((3, 4, 5)))
    for norm in (None, "ortho", "forward"):
        whole = lucid.fft.ifftn(lucid.fft.fftn(x, norm=norm), norm=norm)
        half = lucid.fft.irfftn(lucid.fft.rfftn(x, norm=norm), x.shape, norm=norm)
        np.testing.assert_allclose(whole.cpu().numpy(), x.cpu().numpy(), atol=1e-12)
        np.testing.assert_allclose(half.cpu().numpy(), x.cpu().numpy(), atol=1e-12)


def test_what_is_its_own_conjugate_has_no_imaginary_part(rng):
    """A transform to real numbers ignores imaginary parts that the transform of real numbers cannot have."""
    half = complex_normal(rng, 2, 4)
    changed = half.copy()
    changed[:, [0, 3]] += 5j
    for n, columns in ((6, [0, 3]), (7, [0])):
        plain, other = half.copy(), half.copy()
        other[:, columns] += 5j
        found = [lucid.fft.irfft(lucid.tensor(x), n).cpu().numpy() for x in (plain, other)]
        np.testing.assert_allclose(*found, atol=1e-12)


def test_operands_stay_as_they_are(rng):
    """No transform changes its operand, nor the gradient that it gets."""
    x = complex_normal(rng, 3, 4)
    operand, upstream = lucid.tensor(x, requires_grad=True), lucid.tensor(complex_normal(rng, 3, 6).real)
    before = upstream.clone()
    lucid.fft.irfft2(operand).backward(upstream)
    assert operand.tolist() == x.tolist()
    assert upstream.tolist() == before.tolist()


def test_dtypes_of_results():
    """Float32 gives complex64, float64 complex128, and transforms to real numbers the same width."""
    for real, complex_ in ((lucid.float32, lucid.complex64), (lucid.float64, lucid.complex128)):
        x = lucid.ones(4, dtype=real)
        for function in (lucid.fft.fft, lucid.fft.ifft, lucid.fft.rfft, lucid.fft.fftn, lucid.fft.rfftn):
            assert function(x).dtype is complex_
        assert lucid.fft.irfft(x).dtype is lucid.fft.irfftn(x.to(complex_)).dtype is real
    assert lucid.fft.fftn(lucid.ones(()), dim=()).dtype is lucid.complex64


@pytest.mark.parametrize("half", [lucid.float16, lucid.bfloat16], ids=str)
def test_halves_are_taken_in_float32_under_autocast_of_the_cpu(half, rng):
    """Without it no transform takes them, and on a device none does, as autocast has them on its list nowhere else."""
    x = lucid.tensor(rng.standard_normal((4, 6))).to(half)
    names = [name for name in lucid.fft.__all__ if not name.endswith(("freq", "shift"))]
    assert len(names) == 18
    for transform in (getattr(lucid.fft, name) for name in names):
        with pytest.raises(DtypeError, match="Unsupported dtype"):
            transform(x)
        with lucid.autocast(DEVICE, dtype=half):
            if DEVICE == "cuda":
                with pytest.raises(DtypeError, match="Unsupported dtype"):
                    transform(x)
            else:
                np.testing.assert_array_equal(transform(x).numpy(), transform(x.float()).numpy())


@pytest.mark.parametrize("dim", [0, 1, 2, (0, 1), (2, 1)])
def test_transforms_of_no_numbers(dim):
    """A batch of none has the shape that NumPy's has: half of the dimension that is transformed last, wherever."""
    for name in ("fft2", "rfft2", "irfft2") if isinstance(dim, tuple) else ("fft", "rfft", "irfft"):
        axes = {"axes": dim} if isinstance(dim, tuple) else {"axis": dim}
        found = getattr(lucid.fft, name)(lucid.ones(4, 6, 5, 0), dim=dim)
        assert found.shape == getattr(np.fft, name)(np.ones((4, 6, 5, 0)), **axes).shape


@pytest.mark.parametrize("width", [3, 4])
def test_windows_that_begin_with_the_signal_end_with_it(width, rng):
    """With `align_to_window` the first window begins with the signal and the last ends with it."""
    x, window, size = rng.standard_normal(10), rng.uniform(1, 2, width), 8
    found = lucid.stft(
        lucid.tensor(x), size, 1, width, lucid.tensor(window), center=False, align_to_window=True, return_complex=True
    )
    frames = np.zeros((11 - width, size))
    before = (size - width) // 2
    frames[:, before : before + width] = np.lib.stride_tricks.sliding_window_view(x, width) * window
    np.testing.assert_allclose(found.cpu().numpy(), np.fft.rfft(frames).T, atol=1e-12)


@pytest.mark.parametrize("size", [4, 5, 7, 8])
@pytest.mark.parametrize("hop", [1, 2, 3])
def test_frames_about_each_sample(size, hop, rng):
    """With `center` half a frame, rounded down, is added on both sides, whether its size is even or odd."""
    for length in range(size, size + 4):
        x, window = rng.standard_normal(length), rng.uniform(1, 2, size)
        for mode in ("reflect", "constant"):
            whole = np.pad(x, size // 2, mode)
            frames = np.lib.stride_tricks.sliding_window_view(whole, size)[::hop] * window
            found = lucid.stft(
                lucid.tensor(x), size, hop, window=lucid.tensor(window), pad_mode=mode, return_complex=True
            )
            np.testing.assert_allclose(found.cpu().numpy(), np.fft.rfft(frames).T, atol=1e-12)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "fftn", "ifftn", "rfft2", "rfftn"])
def test_a_size_of_minus_one_is_the_own(name, rng):
    """In `s` it stands for the size that the input has, beside sizes that cut or fill up."""
    x = lucid.tensor(rng.standard_normal((4, 5)))
    reference = getattr(np.fft, name)
    for s, sizes in (((-1, 3), (4, 3)), ((6, -1), (6, 5)), ((-1, -1), (4, 5))):
        found = getattr(lucid.fft, name)(x, s, (0, 1)).cpu().numpy()
        np.testing.assert_allclose(found, reference(x.cpu().numpy(), sizes, (0, 1)), atol=1e-12)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kind", ["real", "both halves", "complex"])
def test_signals_come_back(kind, center, normalized, rng):
    """The short-time transform there and back gives the signal, of real and complex numbers, in either scale."""
    x = rng.standard_normal((2, 40)) if kind != "complex" else complex_normal(rng, 2, 40)
    window = lucid.tensor(rng.uniform(1, 2, 8))
    settings = {"window": window, "center": center, "normalized": normalized, "onesided": kind == "real"}
    spectra = lucid.stft(lucid.tensor(x), 8, 4, return_complex=True, **settings)
    whole = np.fft.fft(x[:, 16:24] * window.cpu().numpy()) / (np.sqrt(8) if normalized else 1)
    found = spectra[:, :, 5 if center else 4].cpu().numpy()
    np.testing.assert_allclose(found, whole[:, : found.shape[1]], atol=1e-12)
    back = lucid.istft(spectra, 8, 4, return_complex=kind == "complex", **settings)
    np.testing.assert_allclose(back.cpu().numpy(), x, atol=1e-12)


def test_nodes():
    """The nodes have PyTorch's names."""
    x = lucid.ones(4, requires_grad=True)
    names = [type(f(x).grad_fn).__name__ for f in (lucid.fft.fft, lucid.fft.rfft, lucid.fft.irfft)]
    assert names == ["FftC2cBackward0", "FftR2cBackward0", "FftC2rBackward0"]


def test_errors():
    """Each names the transform and what was expected."""
    x = lucid.ones(2, 3)
    for error, message, call in (
        (
            SettingError,
            r'fft: norm: Invalid normalization mode: \'both\', expected "backward"',
            lambda: lucid.fft.fft(x, norm="both"),
        ),
        (SettingError, "ihfft: norm: Invalid normalization mode: 3", lambda: lucid.fft.ihfft(x, norm=3)),
        (
            DtypeError,
            "rfft expects a real input tensor, but got one of lucid.complex64",
            lambda: lucid.fft.rfft(x + 0j),
        ),
        (DtypeError, "fft2: Unsupported dtype lucid.float16; convert to float32", lambda: lucid.fft.fft2(x.half())),
        (ShapeError, r"irfft: Invalid number of data points \(0\)", lambda: lucid.fft.irfft(lucid.ones(2, 1))),
        (
            ShapeError,
            "fftn: expected as many sizes as dimensions, got s=.2, 3. for 1 dim",
            lambda: lucid.fft.fftn(x, (2, 3), 0),
        ),
        (ShapeError, "fftn: got s with 3 sizes but input only has 2", lambda: lucid.fft.fftn(x, (1, 2, 3))),
        (ShapeError, "rfftn must transform at least one axis", lambda: lucid.fft.rfftn(x, dim=())),
        (
            IndexOutOfRangeError,
            "fft: Dimension specified as -1 but tensor has no",
            lambda: lucid.fft.fft(lucid.ones(())),
        ),
        (ShapeError, "fftshift: expected dimensions to shift", lambda: lucid.fft.fftshift(x, ())),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize("center", [True, False])
def test_a_length_is_that_of_the_signal(center, rng):
    """So many samples come back, from the first one on; where no frame reaches there are zeros, and a warning."""
    x, settings = rng.standard_normal(24), {"window": lucid.tensor(rng.uniform(1, 2, 8)), "center": center}
    spectra = lucid.stft(lucid.tensor(x), 8, 4, return_complex=True, **settings)
    for length in (5, 20, 24):
        found = lucid.istft(spectra, 8, 4, length=length, **settings)
        np.testing.assert_allclose(found.cpu().numpy(), x[:length], atol=1e-12)
    with pytest.warns(UserWarning, match="length is beyond the last frame; zeros are added"):
        found = lucid.istft(spectra, 8, 4, length=40, **settings).cpu().numpy()
    assert found.shape == (40,)
    np.testing.assert_allclose(found[:24], x, atol=1e-12)
    assert not found[28 if center else 24 :].any()


def test_a_complex_window_has_both_halves(rng):
    """Under one a real signal has all frequencies, as complex numbers without being asked, never half of them."""
    x, window = rng.standard_normal(16), complex_normal(rng, 8)
    given = {"hop_length": 4, "window": lucid.tensor(window), "center": False}
    found = lucid.stft(lucid.tensor(x), 8, **given).cpu().numpy()
    frames = np.lib.stride_tricks.sliding_window_view(x, 8)[::4] * window
    np.testing.assert_allclose(found, np.fft.fft(frames).T, atol=1e-12)
    with pytest.raises(SettingError, match="stft: Cannot have onesided output if window or input is complex"):
        lucid.stft(lucid.tensor(x), 8, onesided=True, **given)


def test_steps_beyond_the_window():
    """Frames further apart than the window is long leave samples out, which is refused by the three sizes."""
    spectra = lucid.ones(5, 4) + 0j
    for hop, width in ((5, 4), (9, None)):
        with pytest.raises(ShapeError, match=f"expected 0 < hop_length <= win_length, got hop_length={hop}"):
            lucid.istft(spectra, 8, hop, width)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_sizes_are_those_of_the_last_dimensions(name, rng):
    """Sizes without dimensions belong to the last ones, as many as there are sizes."""
    x, transform = lucid.tensor(rng.standard_normal((4, 5, 6))), getattr(lucid.fft, name)
    for s in ((7,), (3, 8), (3, 4, 5)):
        last = tuple(range(3 - len(s), 3))
        found = transform(x, s).cpu().numpy()
        assert found.shape[: -len(s)] == x.shape[: -len(s)]
        np.testing.assert_array_equal(found, transform(x, s, last).cpu().numpy())
        if name[0] not in "hi":
            np.testing.assert_allclose(found, getattr(np.fft, name)(x.cpu().numpy(), s, last), atol=1e-12)
