"""What Fourier transforms on CUDA ask of streams, devices and captures."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.errors import CaptureError

pytestmark = pytest.mark.gpu


def test_streams(rng):
    """Transforms of one thread follow each other, whatever their streams: they compute in the same workspace."""
    numbers = rng.standard_normal((8, 64))
    x = lucid.tensor(numbers, device="cuda", requires_grad=True)
    streams = [lucid.cuda.Stream() for _ in range(3)]
    for stream in streams:
        stream.wait_stream(lucid.cuda.current_stream())
    found = []
    for stream in streams * 2:
        with lucid.cuda.stream(stream):
            found.append(lucid.fft.irfft(lucid.fft.rfft(x)))
    for stream in streams:
        lucid.cuda.current_stream().wait_stream(stream)
    lucid.stack(found).sum().backward()
    lucid.cuda.synchronize()
    for out in found:
        np.testing.assert_allclose(out.detach().cpu().numpy(), numbers, atol=1e-12)
    np.testing.assert_allclose(x.grad.cpu().numpy(), 6, atol=1e-11)


def test_captures_are_refused():
    """A transform is no part of a CUDA graph, and the error says why."""
    x = lucid.ones(8, device="cuda")
    lucid.fft.fft(x)
    with (
        pytest.raises(CaptureError, match="a Fourier transform cannot be captured"),
        lucid.cuda.graph(lucid.cuda.CUDAGraph()),
    ):
        lucid.fft.fft(x)
    assert lucid.fft.fft(x).tolist()[0] == 8


def test_devices(two_devices):
    """Each device has plans of its own; the result is where the operand is."""
    for index in (1, 0, 1):
        out = lucid.fft.fft(lucid.ones(8, device=f"cuda:{index}"))
        assert out.device.index == index
        assert out.tolist()[0] == 8
    assert gpu.current_device() == 0
