"""What tests of kernels share as fixtures."""

from __future__ import annotations

import pytest

from lucid.backend import gpu
from lucid.cuda.kernels import Launcher


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


@pytest.fixture(autouse=True)
def arrays_apart():
    """Give every array memory of its own on simulated devices: CuPy's pool may put another one right behind it."""
    yield from allocating_by(lambda cupy: None)


@pytest.fixture
def pool(arrays_apart):
    """Take memory from CuPy's pool after all, for tests of how much is held."""
    yield from allocating_by(lambda cupy: cupy.get_default_memory_pool().malloc)


def allocating_by(choose):
    """Let CuPy allocate on simulated devices by what is chosen."""
    if not gpu.is_simulated():
        yield
        return
    with gpu.cupy().cuda.using_allocator(choose(gpu.cupy())):
        yield
