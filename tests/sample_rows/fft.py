"""Fourier transforms."""

from __future__ import annotations

import functools

import numpy as np

import lucid
from lucid import fft
from tests.samples import Sample

WIDE = ("float32", "float64")
NORMS = {"forward": "backward", "backward": "forward", "ortho": "ortho"}
TO_REAL = ("irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn")
FROM_REAL = ("rfft", "rfft2", "rfftn", "ihfft", "ihfft2", "ihfftn")


def reference(name, x, settings):
    """Return NumPy's transform; it has none of Hermitian spectra in several dimensions, conjugates of others."""
    settings = dict(settings)
    if "dim" in settings:
        settings["axes" if name[-1] in "2n" else "axis"] = settings.pop("dim")
    if name.startswith("hfft") and name != "hfft":
        settings["norm"] = NORMS[settings.get("norm", "backward")]
        return getattr(np.fft, f"ir{name[1:]}")(np.conj(x), **settings)
    if name.startswith("ihfft") and name != "ihfft":
        settings["norm"] = NORMS[settings.get("norm", "backward")]
        return np.conj(getattr(np.fft, f"r{name[2:]}")(x, **settings))
    return getattr(np.fft, name)(x, **settings)


def row(name, shape, *, real=False, variant="", empty=None, **settings):
    """Return the row of a transform with some of its settings."""

    def drawn(rng, sizes=shape):
        if real or name in FROM_REAL:
            return (rng.standard_normal(sizes),)
        return (rng.standard_normal(sizes) + 1j * rng.standard_normal(sizes),)

    shown = " ".join(f"{key}={value}" for key, value in settings.items())
    return Sample(
        f"fft.{name}:{shape}{' real' if real else ''} {shown}{variant}",
        functools.partial(getattr(fft, name), **settings),
        drawn,
        lambda x: reference(name, x, settings),
        lambda torch, x: getattr(torch.fft, name)(x, **settings),
        dtypes=WIDE,
        empty=None if empty is None else lambda rng: drawn(rng, empty),
    )


ROWS = []
for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    ROWS += [
        row(_name, (5,), norm="ortho"),
        row(_name, (2, 4), empty=(0, 4)),
        row(_name, (4, 3), dim=0, norm="forward"),
        row(_name, (2, 5), n=3),
        row(_name, (2, 4), n=7, norm="backward"),
        row(_name, (2, 4), n=8),
    ]
ROWS += [row(name, (2, 4), real=True) for name in ("fft", "ifft")]
for _name in ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"):
    ROWS += [
        row(_name, (2, 3, 4), empty=(0, 3, 4)),
        row(_name, (3, 2, 4), s=(4, 5), dim=(2, 0), norm="ortho"),
        row(_name, (3, 4), s=(2, 3), norm="forward"),
    ]
for _name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"):
    ROWS += [
        row(_name, (2, 3, 4), norm="ortho"),
        row(_name, (3, 2, 4), dim=(0, 2)),
        row(_name, (3, 2, 4), dim=(2, 1), norm="forward"),
    ]
ROWS += [row("fftn", (2, 3, 4), real=True), row("ifft2", (2, 3, 4), real=True, dim=(0, 1))]

for _name in ("fftshift", "ifftshift"):
    for _dim in (None, 1, (0, 2)):
        ROWS.append(
            Sample(
                f"fft.{_name}:{_dim}",
                functools.partial(getattr(fft, _name), dim=_dim),
                lambda rng: (rng.standard_normal((3, 4, 5)),),
                lambda x, _name=_name, _dim=_dim: getattr(np.fft, _name)(x, _dim),
                lambda torch, x, _name=_name, _dim=_dim: getattr(torch.fft, _name)(x, _dim),
                empty=lambda rng: (np.zeros((0, 3, 4)),),
            )
        )


def frames_of(x, window):
    """Return the spectra of frames of 4 samples, 3 apart, of signals with two samples mirrored at both ends."""
    padded = np.pad(x, [(0, 0), (2, 2)], "reflect")
    starts = range(0, padded.shape[1] - 3, 3)
    return np.stack([np.fft.rfft(padded[:, start : start + 4] * window) for start in starts], -1)


def signal_of(real, imag, window):
    """Return what frames of 4 samples, 2 apart, add up to, each weighed by the window, without 2 samples at both ends.

    They are given by the parts of their spectra.
    """
    spectra = real + 1j * imag
    count = spectra.shape[-1]
    total, weight = np.zeros((len(spectra), 2 * count + 2)), np.zeros(2 * count + 2)
    for k in range(count):
        total[:, 2 * k : 2 * k + 4] += np.fft.irfft(spectra[..., k], 4) * window
        weight[2 * k : 2 * k + 4] += window**2
    return (total / weight)[:, 2:-2]


def spectra_and_window(rng):
    """Return the parts of spectra of two signals, five frames each, and a window that nowhere vanishes."""
    return rng.standard_normal((2, 3, 5)), rng.standard_normal((2, 3, 5)), rng.uniform(0.5, 1.5, 4)


ROWS += [
    Sample(
        "stft",
        lambda x, window: lucid.stft(x, 4, 3, window=window, return_complex=True),
        lambda rng: (rng.standard_normal((2, 11)), rng.standard_normal(4)),
        frames_of,
        lambda torch, x, window: torch.stft(x, 4, 3, window=window, return_complex=True),
        dtypes=WIDE,
    ),
    Sample(
        "istft",
        lambda real, imag, window: lucid.istft(lucid.complex(real, imag), 4, 2, window=window),
        spectra_and_window,
        signal_of,
        lambda torch, real, imag, window: torch.istft(torch.complex(real, imag), 4, 2, window=window),
        dtypes=WIDE,
    ),
]
