"""What several tests of this folder set up."""

from __future__ import annotations

import pytest

from lucid.base.dtype import get_default_dtype, set_default_dtype


@pytest.fixture
def default_dtype():
    """Set the default dtype, for one test."""
    before = get_default_dtype()
    yield set_default_dtype
    set_default_dtype(before)
