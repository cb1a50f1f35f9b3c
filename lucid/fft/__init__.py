"""Fourier transforms, under PyTorch's address. Common rules: `help(lucid.ops.fft)`."""

from __future__ import annotations

# imports, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
from lucid.ops.base import keywords as _keywords
from lucid.ops.creation.frequencies import fftfreq, rfftfreq
from lucid.ops.fft.one_dimension import fft, hfft, ifft, ihfft, irfft, rfft
from lucid.ops.fft.several_dimensions import (
    fft2,
    fftn,
    hfft2,
    hfftn,
    ifft2,
    ifftn,
    ihfft2,
    ihfftn,
    irfft2,
    irfftn,
    rfft2,
    rfftn,
)
from lucid.ops.fft.shifting import fftshift, ifftshift
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_keywords.add_to_functions(__all__, globals(), "fft.")

_publish(globals())
_document(__all__, globals())
