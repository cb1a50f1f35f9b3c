"""Loops in C++ are tested where there is a compiler; what NumPy does in their place is tested everywhere."""

from __future__ import annotations

import os
import shutil

import pytest


@pytest.fixture(autouse=True)
def _compiler():
    if shutil.which(os.environ.get("CXX") or "g++") is None:
        pytest.skip("needs g++, as others of the folder")
