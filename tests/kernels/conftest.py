"""What tests of kernels share as fixtures."""

from __future__ import annotations

import pytest

from lucid.cuda.launch.kernels import Launcher


@pytest.fixture
def launched(monkeypatch):
    """Names of the kernels that were launched."""
    seen = []
    launch = Launcher.__call__

    def noted(self, *args, **kwargs):
        seen.append(self.name)
        return launch(self, *args, **kwargs)

    monkeypatch.setattr(Launcher, "__call__", noted)
    return seen
