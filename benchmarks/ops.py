"""Single ops: what recording costs at one element, what the arithmetic costs in the cache, and at sixteen million."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measure import Row, looped

if TYPE_CHECKING:
    from benchmarks.measure import Peer, Sampler

CACHED, LARGE = (512, 512), (4096, 4096)


def op_recorded(peer: Peer) -> Sampler:
    x, w = (peer.tensor(np.ones(1, np.float32), requires_grad=True) for _ in range(2))
    return looped(peer, lambda: x * w)


def op_without_graph(peer: Peer) -> Sampler:
    x, w = (peer.tensor(np.ones(1, np.float32)) for _ in range(2))
    return looped(peer, lambda: x * w)


def repeated(peer: Peer, shape: tuple[int, int], call: str, *arguments: object, **options: object) -> Sampler:
    """Return the sampler of a function of nn.functional, forward and backward, on float32."""
    random = np.random.default_rng(0)
    x = peer.tensor(random.standard_normal(shape, np.float32), requires_grad=True)
    upstream = peer.tensor(random.standard_normal(shape, np.float32))
    function = getattr(peer.lib.nn.functional, call)

    def forward_and_backward() -> None:
        x.grad = None
        function(x, *arguments, **options).backward(upstream)

    return looped(peer, forward_and_backward)


def on_one_thread(peer: Peer, sampler: Sampler) -> Sampler:
    """Return `sampler` with PyTorch on one thread, as lucid is where no matrices are multiplied."""
    if peer.name != "torch":
        return sampler

    def sample() -> float:
        threads = peer.lib.get_num_threads()
        peer.lib.set_num_threads(1)
        try:
            return sampler()
        finally:
            peer.lib.set_num_threads(threads)

    return sample


def cached(name: str, budget: float, call: str, *arguments: object, **options: object) -> Row:
    """Return the row of a function on 512 x 512 elements, which a core's cache holds."""

    def build(peer: Peer) -> Sampler:
        return on_one_thread(peer, repeated(peer, CACHED, call, *arguments, **options))

    return Row(f"{name}, 512 x 512 float32, forward and backward, one thread", budget, build)


def large(name: str, budget: float, call: str, *arguments: object, **options: object) -> Row:
    """Return the row of a function on 16,777,216 elements."""

    def build(peer: Peer) -> Sampler:
        return repeated(peer, LARGE, call, *arguments, **options)

    return Row(f"{name}, 16M float32, forward and backward", budget, build, most_rounds=30)


SMALL = [
    Row("op recorded for backward, 1 element", 0.6, op_recorded),
    Row("op without graph, 1 element", 0.6, op_without_graph),
]
ROWS = [
    *SMALL,
    cached("gelu", 3.0, "gelu"),
    cached("softmax", 1.5, "softmax", dim=-1),
    cached("layer norm", 1.5, "layer_norm", (CACHED[1],)),
    large("gelu", 3.0, "gelu"),
    large("softmax", 2.0, "softmax", dim=-1),
    large("layer norm", 3.0, "layer_norm", (LARGE[1],)),
]
