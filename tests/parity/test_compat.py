"""The names that `python -m lucid.compat` counts are those that PyTorch has."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import lucid
from tests.parity.pytorch_names import NAMESPACES, names_in


def test_names_are_pytorchs():
    """`names.json` holds PyTorch's public names, no more and no fewer."""
    file = Path(lucid.__file__).parent / "compat" / "names.json"
    rows = json.loads(file.read_text(encoding="utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are deprecated
        assert {path: set(names) for path, names in rows.items()} == {path: names_in(path) for path in NAMESPACES}
