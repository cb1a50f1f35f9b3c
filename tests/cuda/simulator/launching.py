"""Sources of kernels as functions on the simulated device, for tests of the device itself."""

from __future__ import annotations

import pytest

from lucid.cuda.launch import kernels
from lucid.cuda.launch.kernels import Launcher, Unit
from lucid.cuda.source.sources import paste
from lucid.errors import KernelError

SEEDS = 0, 1, 2, 3


def launcher(source, signature, name="f"):
    """Compile a source and return its kernel."""
    found = kernels.driver().load(Unit("test.cu", "test", paste(source, "test.cu"), {name: signature}))
    return Launcher(name, signature, found.__getitem__)


def refused(run, *words):
    """Say what the device reports when it stops a launch; all the words are in it."""
    with pytest.raises(KernelError) as error:
        run()
    for word in words:
        assert word in str(error.value), error.value
    return str(error.value)
