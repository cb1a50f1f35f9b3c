"""Normalisation by neighbouring channels: what is refused."""

from __future__ import annotations

import pytest

import lucid
from lucid import nn
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.nn import functional as F


def test_settings_and_inputs_that_are_refused():
    """Sizes below 1, even ones of CrossMapLRN2d, and inputs of other dimensions or of integers."""
    with pytest.raises(SettingError, match="size: expected a whole number of at least 1, got int 0"):
        nn.LocalResponseNorm(0)
    with pytest.raises(SettingError, match="expected a size of at least 1 channel, got 0"):
        F.local_response_norm(lucid.ones(1, 2, 3), 0)
    with pytest.raises(SettingError, match="odd size"):
        nn.CrossMapLRN2d(4)
    with pytest.raises(ShapeError, match="at least 3 dimensions"):
        nn.LocalResponseNorm(2)(lucid.ones(2, 3))
    with pytest.raises(ShapeError, match="CrossMapLRN2d: expected 4D input"):
        nn.CrossMapLRN2d(3)(lucid.ones(1, 2, 3))
    with pytest.raises(DtypeError, match="local_response_norm"):
        nn.LocalResponseNorm(2)(lucid.ones(1, 2, 3, dtype=lucid.int64))
