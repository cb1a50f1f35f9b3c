"""What cuSOLVER says of an iteration reaches the user."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import linalg
from lucid.base import gpu

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", ["svd", "svdvals", "eigh", "eigvalsh", "qr"])
def test_what_does_not_converge_raises(name, monkeypatch):
    """CuPy is asked to look at what cuSOLVER says, or it would give NaN; its error becomes lucid's."""
    errors = gpu.part("cupyx")
    before = errors.geterr()

    def failing(*_arguments, **_settings):
        assert errors.geterr()["linalg"] == "raise"
        raise np.linalg.LinAlgError

    monkeypatch.setattr(gpu.cupy().linalg, "svd" if name == "svdvals" else name, failing)
    with pytest.raises(linalg.LinAlgError, match="does not converge"):
        getattr(linalg, name)(lucid.eye(3, device="cuda"))
    assert errors.geterr() == before
