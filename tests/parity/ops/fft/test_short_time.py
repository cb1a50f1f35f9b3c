"""Spectra of frames, and signals of spectra, where PyTorch's rules are easy to miss."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from tests.parity.ops.fft.outcomes import outcome, same
from tests.parity.pieces import agree

WINDOWS = {
    "hann": np.hanning(17)[:16],
    "short": np.hamming(7),
    "complex": np.hanning(17)[:16] * (1 + 2j),
    "2D": np.ones((1, 16)),
}
FRAMES = [
    {"return_complex": True}, {"return_complex": False}, {}, {"hop_length": 5, "return_complex": True},
    {"center": False, "return_complex": True}, {"normalized": True, "return_complex": True},
    {"onesided": False, "return_complex": True}, {"onesided": True, "return_complex": True},
    {"pad_mode": "constant", "return_complex": True}, {"pad_mode": "circular", "return_complex": True},
    {"pad_mode": "replicate", "return_complex": True},
    {"hop_length": 0, "return_complex": True}, {"win_length": 20, "return_complex": True},
    {"win_length": 0, "return_complex": True}, {"win_length": 10, "return_complex": True},
    {"align_to_window": True, "center": False, "return_complex": True},
    {"align_to_window": True, "return_complex": True},
    {"align_to_window": True, "center": False, "win_length": 7, "return_complex": True},
]  # fmt: skip


def compared(name, x, window, settings):
    """Compare what both libraries make of these numbers, in frames of 16 under a window."""
    if window == "short" and "win_length" not in settings:
        settings = {**settings, "win_length": 7}
    numbers = {**WINDOWS, "ones": np.ones(16)}
    results = []
    for library in (lucid, torch):
        weights = None if window is None else library.as_tensor(numbers[window])
        results.append(outcome(getattr(library, name), library.as_tensor(x), 16, window=weights, **settings))
    same(*results)


@pytest.mark.parametrize("settings", FRAMES, ids=str)
@pytest.mark.parametrize("window", [None, *WINDOWS])
@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "int64"])
def test_stft(rng, kind, window, settings):
    """Spectra of frames, and what is refused, are PyTorch's."""
    x = (rng.standard_normal((2, 50)) * 9 + (1j if kind[0] == "c" else 0)).astype(kind)
    compared("stft", x, window, settings)


@pytest.mark.parametrize("shape", [(50,), (1, 2, 50), (8,), (9,), (2, 0), ()])
@pytest.mark.parametrize("center", [True, False])
def test_shapes_of_signals(shape, center):
    """One signal or a batch, not shorter than a frame; its spectra have PyTorch's shape."""
    settings = {"return_complex": True, "center": center}
    mine = outcome(lucid.stft, lucid.ones(shape), 16, **settings)
    same(mine, outcome(torch.stft, torch.ones(shape), 16, **settings))


BACK = [
    {}, {"center": False}, {"normalized": True}, {"onesided": True}, {"onesided": False}, {"length": 45},
    {"length": 70}, {"length": 0}, {"length": -1}, {"return_complex": True}, {"hop_length": 3}, {"hop_length": 17},
    {"win_length": 8}, {"win_length": 20}, {"hop_length": 0}, {"return_complex": True, "onesided": False},
]  # fmt: skip


@pytest.mark.parametrize("settings", BACK, ids=str)
@pytest.mark.parametrize("window", [None, *WINDOWS, "ones"])
@pytest.mark.parametrize("frequencies", [9, 16, 10])
def test_istft(rng, frequencies, window, settings):
    """Signals of spectra, and what is refused, are PyTorch's."""
    x = (rng.standard_normal((2, frequencies, 7)) + 1j * rng.standard_normal((2, frequencies, 7))).astype(np.complex128)
    compared("istft", x, window, settings)


@pytest.mark.parametrize("shape", [(9, 7), (9,), (1, 2, 9, 7), (9, 0), (0, 9, 7)])
def test_shapes_of_spectra(shape):
    """One signal's or a batch's, none of them empty."""
    mine = outcome(lucid.istft, lucid.ones(shape, dtype=lucid.complex64), 16)
    same(mine, outcome(torch.istft, torch.ones(shape, dtype=torch.complex64), 16))


def test_gradients_of_frames(rng):
    """Signal, window and spectra get PyTorch's gradients."""
    x, window = rng.standard_normal((2, 40)), np.hanning(17)[:16] + 0.1
    upstream = rng.standard_normal((2, 40))

    def program(library):
        signal = library.tensor(x, requires_grad=True)
        weights = library.tensor(window, requires_grad=True)
        spectra = library.stft(signal, 16, window=weights, return_complex=True)
        back = library.istft(spectra * (1 + 0.5j), 16, window=weights, length=40)
        return library.autograd.grad((back * library.tensor(upstream)).sum(), (signal, weights, spectra))

    agree(program, 1e-9, 1e-9)
