"""Fourier transforms where PyTorch's rules are easy to miss: sizes, dimensions, dtypes, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from lucid.errors import ShapeError
from tests.parity.ops.fft.outcomes import outcome, same

# Settings, of which PyTorch takes some, for an operand of shape (3, 4, 5).
LINES = [
    {}, {"n": 3}, {"n": 7, "dim": 1}, {"n": 1}, {"n": 0}, {"n": -1}, {"n": -2}, {"dim": 3}, {"dim": -3}, {"dim": None},
    {"n": 2.5}, {"norm": "x"}, {"norm": None}, {"norm": "ortho", "dim": 0}, {"norm": "forward", "n": 6},
]  # fmt: skip
PLANES = [
    {}, {"s": (2, 3)}, {"s": 2}, {"s": (2,)}, {"s": (-1, 3)}, {"s": (0, 3)}, {"s": (-2, 3)}, {"s": (1, 2, 3, 4)},
    {"s": (2, 3), "dim": (0, 1, 2)}, {"s": (2, 3), "dim": (2, 0)}, {"dim": ()}, {"dim": (0, 0)}, {"dim": (0, -3)},
    {"dim": 1}, {"dim": (5,)}, {"norm": "x"}, {"norm": "forward", "dim": (1, 0, 2)}, {"s": (), "dim": ()},
]  # fmt: skip
DTYPES = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("settings", LINES, ids=str)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_dimension(rng, name, settings):
    """Each setting gives PyTorch's numbers, or is refused as there."""
    x = rng.standard_normal((3, 4, 5)).astype(np.float32)
    mine = outcome(getattr(lucid.fft, name), lucid.tensor(x), **settings)
    same(mine, outcome(getattr(torch.fft, name), torch.tensor(x), **settings))


@pytest.mark.parametrize("settings", PLANES, ids=str)
@pytest.mark.parametrize("name", [f"{kind}fft{n}" for kind in ("", "i", "r", "ir", "h", "ih") for n in "2n"])
def test_several_dimensions(rng, name, settings):
    """Each setting gives PyTorch's numbers, or is refused as there."""
    x = rng.standard_normal((3, 4, 5)).astype(np.float32)
    mine = outcome(getattr(lucid.fft, name), lucid.tensor(x), **settings)
    same(mine, outcome(getattr(torch.fft, name), torch.tensor(x), **settings))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "hfft", "ihfft", "fftn", "rfftn", "irfft2"])
def test_dtypes(name, dtype):
    """Each dtype gives that of PyTorch, or is refused as there."""
    numbers = np.arange(12).reshape(3, 4) % 5
    mine = outcome(getattr(lucid.fft, name), lucid.tensor(numbers, dtype=dtype))
    same(mine, outcome(getattr(torch.fft, name), torch.tensor(numbers).to(getattr(torch, dtype))))


@pytest.mark.parametrize("shape", [(), (0,), (4, 0), (1,)])
@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "hfft", "ihfft", "fftn", "rfftn", "irfftn", "fft2"])
def test_small_shapes(name, shape):
    """No dimension, no element and one element give what they give in PyTorch."""
    mine = outcome(getattr(lucid.fft, name), lucid.ones(shape))
    same(mine, outcome(getattr(torch.fft, name), torch.ones(shape)))


@pytest.mark.parametrize("args", [(5,), (6,), (1,), (0,), (5, 0.5), (4, 0.0), (2.5,), (6, 3)], ids=str)
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name, args):
    """The frequencies are PyTorch's."""
    same(outcome(getattr(lucid.fft, name), *args), outcome(getattr(torch.fft, name), *args))


def test_no_number_of_samples():
    """Both refuse fewer samples than none, of which PyTorch's rfftfreq gives something."""
    for function in (lucid.fft.fftfreq, lucid.fft.rfftfreq):
        with pytest.raises(ShapeError, match="expected n >= 0"):
            function(-1)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_dtypes_of_frequencies(name, dtype):
    """They are floating-point numbers, as in PyTorch."""
    mine = outcome(getattr(lucid.fft, name), 5, dtype=getattr(lucid, dtype))
    same(mine, outcome(getattr(torch.fft, name), 5, dtype=getattr(torch, dtype)))


@pytest.mark.parametrize("dim", [None, 0, -1, (0, 2), (1, 1), (), 3])
@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@pytest.mark.parametrize("dtype", ["int64", "float16"])
def test_shifts(name, dim, dtype):
    """Any dtype is rolled as in PyTorch, along dimensions named twice too."""
    x = np.arange(60).reshape(3, 4, 5)
    mine = outcome(getattr(lucid.fft, name), lucid.tensor(x, dtype=dtype), dim)
    same(mine, outcome(getattr(torch.fft, name), torch.tensor(x).to(getattr(torch, dtype)), dim))


@pytest.mark.parametrize("name", ["fft", "rfft"])
def test_autocast(name):
    """Under autocast on the CPU half types are transformed in float32."""
    with lucid.autocast("cpu", lucid.bfloat16):
        mine = outcome(getattr(lucid.fft, name), lucid.ones(4, dtype=lucid.float16, device="cpu"))
    with torch.autocast("cpu", torch.bfloat16):
        same(mine, outcome(getattr(torch.fft, name), torch.ones(4, dtype=torch.float16)))


def test_out():
    """Out takes the result, as in PyTorch."""
    into = lucid.zeros(4, dtype=lucid.complex64)
    assert lucid.fft.fft(lucid.ones(4), out=into) is into
    assert into.tolist() == torch.fft.fft(torch.ones(4)).tolist()
