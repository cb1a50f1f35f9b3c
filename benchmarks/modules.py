"""The cost of calling a module."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.measure import Row, looped

if TYPE_CHECKING:
    from benchmarks.measure import Peer, Sampler


def identity(peer: Peer, *, scale: float | None = None) -> Any:
    """Return a module whose forward returns its input, or `scale` times it."""
    if scale is None:

        class Identity(peer.lib.nn.Module):
            def forward(self, x):
                return x

        return Identity()

    class Scale(peer.lib.nn.Module):
        def forward(self, x):
            return x * scale

    return Scale()


def call(peer: Peer) -> Sampler:
    return looped(peer, partial(identity(peer), peer.tensor(np.ones(1, np.float32))))


ROWS = [Row("module call without hooks", 0.4, call)]
