"""One job for the tests of several files: it runs once, and each test asks for the checks that are its own."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from tests.collectives.jobs import failures


@functools.cache
def _outcome(processes):
    with tempfile.TemporaryDirectory() as folder:
        return failures(processes, "tests.distributed.scripts.training", Path(folder))


def failed(processes, part):
    """Return which checks of a part of the script have failed in which process, with the traceback."""
    return {name: why for name, why in _outcome(processes).items() if name.startswith(part)}
