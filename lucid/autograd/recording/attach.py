"""How a node comes into the graph: where its gradients go, and its position in the order of recording.

The callers of `short_path` and `device_path` do the same for their nodes in straight-line code; no other does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lucid.autograd.anomaly import note_forward
from lucid.autograd.engine.node import sequences
from lucid.autograd.modes.state import thread, unusual
from lucid.backend import gpu

if TYPE_CHECKING:
    from lucid.autograd.base import Edge
    from lucid.autograd.engine.node import Node
    from lucid.backend.arrays import Array

ndarray = np.ndarray


def attach(node: Node, edges: tuple[Edge | None, ...], array: Array | None) -> None:
    """Let the gradients of `node` go to `edges`, and make it the newest node; `array` is one that its forward made."""
    node.edges = edges
    node.extra = None
    if type(array) is not ndarray and array is not None:
        node.keep_stream(gpu.current_stream(array.data.device_id))
    if unusual and thread.state.anomaly is not None:
        note_forward(node)
    node.sequence = next(sequences)
