"""What rows cannot say of shuffled pixels and channels: what is refused, and that the result is a copy."""

from __future__ import annotations

import pytest

import lucid
from lucid.errors import ShapeError
from lucid.ops.shape.shuffling import channel_shuffle, pixel_shuffle, pixel_unshuffle
from tests.device import shares_memory

REFUSED = {
    "channels": (lambda: pixel_shuffle(lucid.ones(6, 2, 2), 2), "multiple of upscale_factor squared, 4, got 6"),
    "no factor": (lambda: pixel_shuffle(lucid.ones(4, 2, 2), 0), "upscale_factor to be at least 1, got 0"),
    "a matrix": (lambda: pixel_shuffle(lucid.ones(4, 2), 2), "at least 3 dimensions"),
    "height": (lambda: pixel_unshuffle(lucid.ones(1, 3, 2), 2), "multiples of downscale_factor, 2, got"),
    "width": (lambda: pixel_unshuffle(lucid.ones(1, 2, 3), 2), "multiples of downscale_factor, 2, got"),
    "negative": (lambda: pixel_unshuffle(lucid.ones(1, 2, 2), -1), "downscale_factor to be at least 1"),
    "groups": (lambda: channel_shuffle(lucid.ones(1, 4, 2), 3), "divide the 4 channels, got 3"),
    "no groups": (lambda: channel_shuffle(lucid.ones(1, 4, 2), 0), "at least 1"),
    "no sizes": (lambda: channel_shuffle(lucid.ones(4, 2), 2), "at least 3 dimensions"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    """What does not divide, and what has too few dimensions, raises."""
    call, text = REFUSED[case]
    with pytest.raises(ShapeError, match=text):
        call()


@pytest.mark.parametrize("function", [pixel_shuffle, pixel_unshuffle, channel_shuffle])
def test_a_copy(function):
    """Also where nothing moves the result has memory of its own."""
    x = lucid.ones(1, 2, 3)
    assert not shares_memory(function(x, 1), x)
