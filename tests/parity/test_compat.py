"""What tests and tools without PyTorch know of it is what it has: names, and defaults of parameters."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import torch

import lucid
from tests.namespaces.defaults import shared, written
from tests.parity.pytorch_names import NAMESPACES, names_in


def test_names_are_pytorchs():
    """`names.json` holds PyTorch's public names, no more and no fewer."""
    file = Path(lucid.__file__).parent / "compat" / "names.json"
    rows = json.loads(file.read_text(encoding="utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are deprecated
        assert {path: set(names) for path, names in rows.items()} == {path: names_in(path) for path in NAMESPACES}


def test_defaults_are_pytorchs():
    """`pytorch_defaults.txt` holds the defaults of all parameters that both libraries have, and only what is so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        before, now = written(), shared(torch)
    others = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    assert not others, (
        f"of {others} it says otherwise: python -m tests.namespaces.defaults torch > "
        "tests/namespaces/pytorch_defaults.txt"
    )
