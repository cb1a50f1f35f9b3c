"""The backward pass: on one-element tensors, where nothing but the engine costs anything, and what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.measure import Row, looped

if TYPE_CHECKING:
    from benchmarks.measure import Peer, Sampler

LENGTH = 1000
SIDE = 512
OPERANDS = 8000


def smallest(peer: Peer) -> Sampler:
    x = peer.tensor(np.ones(1, np.float32))
    w, b = (peer.tensor(np.ones(1, np.float32), requires_grad=True) for _ in range(2))

    def forward_and_backward() -> None:
        (x * w + b).backward()

    return looped(peer, forward_and_backward, per=2)


def chain(peer: Peer) -> Sampler:
    x = peer.tensor(np.ones(1, np.float32), requires_grad=True)
    b = peer.tensor(np.ones(1, np.float32))

    def forward_and_backward() -> None:
        y = x
        for _ in range(LENGTH):
            y = y + b
        y.backward()

    return looped(peer, forward_and_backward, per=LENGTH)


def many_uses(peer: Peer) -> Sampler:
    x = peer.tensor(np.ones(1, np.float32), requires_grad=True)

    def forward() -> Any:
        y = x
        for _ in range(LENGTH):
            y = y + x
        return y

    return looped(peer, lambda y: y.backward(), prepare=forward, per=LENGTH + 1)


def one_factor(peer: Peer) -> Sampler:
    rng = np.random.default_rng(0)
    x, w = (peer.tensor(rng.standard_normal((SIDE, SIDE), np.float32), requires_grad=True) for _ in range(2))
    y = (x @ w).sum()
    return looped(peer, lambda: peer.lib.autograd.grad(y, x, retain_graph=True))


def many_operands(peer: Peer) -> Sampler:
    xs = [peer.tensor(np.ones(1, np.float32), requires_grad=True) for _ in range(OPERANDS)]
    return looped(peer, lambda: peer.lib.cat(xs), per=OPERANDS)


ROWS = [
    Row("smallest forward and backward (x * w + b), per op", 0.3, smallest),
    Row("chain of 1000 adds, forward and backward, per node", 0.6, chain),
    Row("one tensor used 1001 times, backward, per use", 0.6, many_uses),
    Row(f"cat of {OPERANDS} tensors recorded, per tensor", 3, many_operands),
    Row(f"gradient of a product by one of two factors, {SIDE} x {SIDE}", 1.2, one_factor),
]
