"""Memory that lucid and PyTorch lend to each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid

pytestmark = pytest.mark.cpu("PyTorch is the CPU's")


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (4, 6)])
def test_bfloat16_both_ways(shape, rng):
    """The same memory, dtype and steps, whichever of the two has made it."""
    values = rng.standard_normal(shape)
    ours = lucid.tensor(values).bfloat16()
    theirs = torch.from_dlpack(ours)
    assert theirs.dtype is torch.bfloat16
    assert theirs.tolist() == ours.tolist()
    assert theirs.data_ptr() == ours.data_ptr() or not ours.numel()
    back = lucid.from_dlpack(theirs)
    assert back.dtype is lucid.bfloat16
    theirs.fill_(2)
    assert back.tolist() == ours.tolist() == theirs.tolist()
    for made in (lucid.tensor(theirs, device="cpu"), lucid.as_tensor(theirs), lucid.asarray(theirs)):
        assert made.dtype is lucid.bfloat16
        assert made.tolist() == theirs.tolist()


def test_steps(rng):
    """Transposed and with steps."""
    ours = lucid.tensor(rng.standard_normal((4, 6))).bfloat16()
    for view in (ours.t(), ours[1:, ::2]):
        theirs = torch.from_dlpack(view)
        assert theirs.stride() == view.stride()
        assert theirs.tolist() == view.tolist()
        assert lucid.from_dlpack(theirs).stride() == view.stride()


def test_what_lies_backwards_does_not_reach_pytorch():
    """Its process would end: it is refused, and in order it is taken."""
    ours = lucid.from_numpy(np.arange(4.0)[::-1])
    with pytest.raises(BufferError, match="lie backwards in memory"):
        torch.from_dlpack(ours)
    assert torch.from_dlpack(ours.contiguous()).tolist() == [3, 2, 1, 0]


def test_what_pytorch_refuses_is_refused():
    """Sizes that wrap around end in a RuntimeError in both; a size that is none in the error that PyTorch has."""
    for shape in ((1 << 32, 1 << 32), (1 << 40, 1 << 40), (1 << 40, 1 << 40, 0)):
        for space in (torch, lucid):
            with pytest.raises(RuntimeError):
                space.empty(shape)
            with pytest.raises(RuntimeError):
                space.zeros(1).expand(1 << 32, 1 << 32)
    for call in (lambda s: s.empty(1 << 64), lambda s: s.linspace(0, 1, 1 << 64), lambda s: s.arange(1 << 70)):
        with pytest.raises((TypeError, ValueError, OverflowError)) as theirs:
            call(torch)
        with pytest.raises(type(theirs.value), match=r"sizes below|larger than any memory"):
            call(lucid)
    with pytest.raises(RuntimeError, match="unsupported range"):
        torch.arange(0, float("inf"))
    with pytest.raises(RuntimeError, match="unsupported range"):
        lucid.arange(0, float("inf"))
