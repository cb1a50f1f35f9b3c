"""What rules are written against: primitives by name."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("namespace", ["CPU", "CUDA", "GRAPH"])
def test_an_unknown_primitive_is_named_with_one_near_it(namespace):
    """Primitives have names of their own, which are not always the public ones: a traceback ends in the nearest."""
    code = f"import lucid; lucid.autograd.recording.namespace.{namespace}.sigmod"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = child.stderr.splitlines()[-1]
    assert last == "AttributeError: no primitive is named 'sigmod'. Did you mean: 'sigmoid'?"
