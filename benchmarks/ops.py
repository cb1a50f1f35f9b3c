"""Single ops: what recording costs at one element, and what the arithmetic costs at sixteen million."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measure import Row, looped

if TYPE_CHECKING:
    from benchmarks.measure import Peer, Sampler

LARGE = (4096, 4096)


def op_recorded(peer: Peer) -> Sampler:
    x, w = (peer.tensor(np.ones(1, np.float32), requires_grad=True) for _ in range(2))
    return looped(peer, lambda: x * w)


def op_without_graph(peer: Peer) -> Sampler:
    x, w = (peer.tensor(np.ones(1, np.float32)) for _ in range(2))
    return looped(peer, lambda: x * w)


def large(name: str, call: str, *arguments: object, **options: object) -> Row:
    """Return the row of a function of nn.functional, forward and backward, on 16,777,216 elements of float32."""

    def build(peer: Peer) -> Sampler:
        random = np.random.default_rng(0)
        x = peer.tensor(random.standard_normal(LARGE, np.float32), requires_grad=True)
        upstream = peer.tensor(random.standard_normal(LARGE, np.float32))
        function = getattr(peer.lib.nn.functional, call)

        def forward_and_backward() -> None:
            x.grad = None
            function(x, *arguments, **options).backward(upstream)

        return looped(peer, forward_and_backward)

    return Row(f"{name}, 16M float32, forward and backward", BUDGETS[call], build, most_rounds=30)


BUDGETS = {"gelu": 3.0, "softmax": 2.0, "layer_norm": 3.0}

SMALL = [
    Row("op recorded for backward, 1 element", 0.6, op_recorded),
    Row("op without graph, 1 element", 0.6, op_without_graph),
]
ROWS = [
    *SMALL,
    large("gelu", "gelu"),
    large("softmax", "softmax", dim=-1),
    large("layer norm", "layer_norm", (LARGE[1],)),
]
