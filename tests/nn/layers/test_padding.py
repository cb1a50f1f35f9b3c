"""Padding layers: what their constructor refuses."""

from __future__ import annotations

import pytest

from lucid import nn
from lucid.errors import SettingError


@pytest.mark.parametrize("make", [nn.ReflectionPad1d, nn.ZeroPad2d, lambda padding: nn.ConstantPad3d(padding, 1.0)])
def test_as_many_numbers_as_edges(make):
    """A layer takes one number, or one for each edge."""
    with pytest.raises(SettingError, match=r"padding: expected an int or [246] of them, got 3"):
        make((1, 2, 3))
