"""What PyTorch's layers show and save, for each row of `tests.layers`, written down for the tests that run without it.

`python -m tests.nn.layers.forms torch.nn > tests/nn/layers/pytorch_forms.txt` writes it down anew.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from tests.layers import LAYERS

FILE = Path(__file__).with_name("pytorch_forms.txt")


def written() -> dict[str, Any]:
    """Return the form of each row, as the file has it."""
    return dict(map(json.loads, FILE.read_text(encoding="utf-8").splitlines()))


def form(name: str, nn: Any) -> dict[str, Any]:
    """Return how the layer of a row shows itself, and names, shapes, dtypes and versions of its state dict."""
    layer = LAYERS[name](nn)
    state = layer.state_dict()
    return {
        # a Linear of PyTorch under another name, which is there for quantisation
        "shown": repr(layer).replace("NonDynamicallyQuantizable", ""),
        "state": [[key, str(value.dtype).rpartition(".")[2], *value.shape] for key, value in state.items()],
        "versions": state._metadata,
    }


if __name__ == "__main__":
    for row in LAYERS:
        print(json.dumps([row, form(row, importlib.import_module(sys.argv[1]))]))
