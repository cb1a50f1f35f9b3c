"""A module call, and what one fired hook adds: the same work with the hook and without it, timed in every round."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.measure import Row, added, looped

if TYPE_CHECKING:
    from benchmarks.measure import Peer, Sampler

LENGTH = 100


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


def ignore(*_: object) -> None:
    """Observe and change nothing: the cheapest hook there is."""


def on_call(peer: Peer, registration: str) -> Sampler:
    x = peer.tensor(np.ones(1, np.float32))
    plain, hooked = identity(peer), identity(peer)
    getattr(hooked, registration)(ignore)
    return added(looped(peer, partial(hooked, x)), looped(peer, partial(plain, x)))


def forward_hook(peer: Peer) -> Sampler:
    return on_call(peer, "register_forward_hook")


def forward_pre_hook(peer: Peer) -> Sampler:
    return on_call(peer, "register_forward_pre_hook")


def tensor_hook(peer: Peer) -> Sampler:
    """Run a graph with one hook on its middle in turn with the same graph without."""

    def graph(*, hooked: bool) -> Any:
        y = peer.tensor(np.ones(1, np.float32), requires_grad=True) * 2.0
        if hooked:
            y.register_hook(ignore)
        return y * 3.0

    hooked, plain = graph(hooked=True), graph(hooked=False)
    return added(
        looped(peer, partial(hooked.backward, retain_graph=True)),
        looped(peer, partial(plain.backward, retain_graph=True)),
    )


def tensor_hooks(peer: Peer) -> Sampler:
    """Hang a hook on each of many tensors in a row: what a hook costs when everything around it is warm."""
    x = peer.tensor(np.ones(1, np.float32), requires_grad=True)
    b = peer.tensor(np.ones(1, np.float32))

    def forward(*, hooked: bool) -> Any:
        y = x
        for _ in range(LENGTH):
            y = y + b
            if hooked:
                y.register_hook(ignore)
        return y

    def backward(y: Any) -> None:
        y.backward()

    def timed(*, hooked: bool) -> Sampler:
        return looped(peer, backward, prepare=partial(forward, hooked=hooked), per=LENGTH)

    return added(timed(hooked=True), timed(hooked=False))


def full_backward_hook(peer: Peer) -> Sampler:
    x = peer.tensor(np.ones(1, np.float32), requires_grad=True)
    plain, hooked = identity(peer, scale=2.0), identity(peer, scale=2.0)
    hooked.register_full_backward_hook(ignore)
    return added(looped(peer, lambda: hooked(x).backward()), looped(peer, lambda: plain(x).backward()))


ROWS = [
    Row("module call without hooks", 0.4, call),
    Row("one fired forward hook, added cost", 0.25, forward_hook, difference=True),
    Row("one fired forward pre-hook, added cost", 0.25, forward_pre_hook, difference=True),
    Row("one fired tensor hook, added cost", 0.4, tensor_hook, difference=True),
    Row("each of 100 tensor hooks in a chain, added cost", None, tensor_hooks, difference=True),
    Row(
        "one module with a full backward hook, added cost of forward and backward",
        0.15,
        full_backward_hook,
        difference=True,
    ),
]
