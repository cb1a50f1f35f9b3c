"""What a parameter is where it is not given."""

from __future__ import annotations

import lucid
from tests.namespaces.defaults import defaults, written


def test_defaults_are_pytorchs():
    """A parameter that PyTorch has too is by default what is written down of PyTorch's."""
    assert len(written()) > 300
    found = {name: defaults(lucid, name) for name in written()}
    wrong = {
        f"{name}: {parameter}": (found[name].get(parameter), default)
        for name, pairs in written().items()
        for parameter, default in pairs.items()
        if found[name].get(parameter) != default
    }
    assert wrong == {}
