"""How many references lead to a gradient that the engine alone holds: measured on the engine's loop itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.engine.node import AccumulateGrad, Node
from lucid.autograd.engine.passes import Pass
from lucid.autograd.modes.state import ThreadState
from lucid.base.ownership import getrefcount, unwatched

if TYPE_CHECKING:
    from collections.abc import Callable


class _Source(Node):
    """Gives its leaf a gradient that nobody holds, and knows it until it is asked for."""

    __slots__ = ("made",)

    def backward(self, m: Any, grad: Any, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        self.made: list[Any] = [np.zeros(1)]
        return (self.made[0],)


def references_in(loop: Callable[..., None]) -> int:
    """Return a leaf's reference count of a gradient held by nobody but the loop and the leaf's `backward`.

    A pass runs through a leaf that counts when it is asked for its tensor, and says then that this is gone.
    """
    counted: list[int] = []
    leaf: Any = AccumulateGrad(wrap(np.zeros(1)))
    leaf.leaf = lambda: counted.append(getrefcount(source.made.pop()))
    source = _Source()
    source.edges = ((leaf, 0),)
    source.extra = None
    source.sequence = 1
    state = ThreadState()
    this = Pass(True, [source])
    this.changes = state.changes
    unwatched(lambda: loop(this, [((source, 0), np.zeros(1))], state, False))
    return counted[0]
