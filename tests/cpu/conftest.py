"""A library for whatever is worked on, and the calls of its functions."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from lucid.backends import cpu
from lucid.cpu import functions


@pytest.fixture(autouse=True)
def _compiler():
    """Skip what needs a compiler; what NumPy does in its place is tested everywhere."""
    if sys.platform == "win32" or shutil.which(os.environ.get("CXX") or "g++") is None:
        pytest.skip("needs g++, as others of the folder")


@pytest.fixture
def compiled(monkeypatch):
    """Return the names of compiled functions as they are called; they are compiled for the first element."""
    named = []
    call = functions.Function.__call__

    def noted(self, work, *arguments):
        found = call(self, max(work, functions.BUILD), *arguments)

        def run(*numbers):
            # what is done to half types stands around every loop
            if self.unit.file != "halves.cpp":
                named.append(self.name)
            found(*numbers)

        return found and run

    monkeypatch.setattr(functions.Function, "__call__", noted)
    monkeypatch.setattr(cpu, "compiled", True)
    return named
