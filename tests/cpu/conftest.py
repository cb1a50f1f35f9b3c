"""A library for whatever is worked on, and the calls of its functions."""

from __future__ import annotations

import shutil
import sys

import pytest

from lucid.backends import cpu
from lucid.cpu import functions


@pytest.fixture
def compiled(monkeypatch):
    """Return the names of compiled functions as they are called; they are compiled for the first element."""
    if sys.platform == "win32" or shutil.which("g++") is None:
        pytest.fail("these tests need g++")
    named = []
    call = functions.Function.__call__

    def noted(self, work, *arguments):
        found = call(self, max(work, functions.BUILD), *arguments)

        def run(*numbers):
            named.append(self.name)
            found(*numbers)

        return found and run

    monkeypatch.setattr(functions.Function, "__call__", noted)
    monkeypatch.setattr(cpu, "compiled", True)
    return named
