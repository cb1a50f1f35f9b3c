"""Entry of a node into the graph: the edges of its gradients, and its position in the order of recording.

The callers of `short_path` and `device_path` do the same for their nodes in straight-line code; no other does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.anomaly import note_forward
from lucid.autograd.engine.node import sequences
from lucid.autograd.hooks.firing import check_callable, fire
from lucid.autograd.modes.leaving import Context
from lucid.autograd.modes.state import thread, unusual
from lucid.base import gpu

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.base import Edge
    from lucid.autograd.engine.node import Node
    from lucid.base.arrays import Array

ndarray = np.ndarray


def attach(node: Node, edges: tuple[Edge | None, ...], array: Array | None, *, whole: bool = True) -> None:
    """Let the gradients of `node` go to `edges`, and make it the newest node; `array` is one that its forward made.

    Who gives it more afterwards says so by `whole`, and calls `created` at the end.
    """
    node.edges = edges
    node.extra = None
    if type(array) is not ndarray and array is not None:
        node.keep_stream(gpu.current_stream(array.data.device_id))
    if unusual and thread.state.anomaly is not None:
        note_forward(node)
    node.sequence = next(sequences)
    if whole and unusual:
        created(node)


def created(node: Any) -> Any:
    """Return a node after the hooks of its creation; no creation hooks fire inside of them."""
    state = thread.state
    hooks = state.creation_hooks
    if hooks:
        state.creation_hooks = ()
        try:
            fire(hooks, lambda hook, _: hook(node), None, "node creation hook", node.name)
        finally:
            state.creation_hooks = hooks
    return node


class node_creation_hook(Context):
    """Call `hook` inside with each recorded node, once it has its edges and saved values.

    It may look at the node, put what it likes into its `metadata`, and register hooks on it; what it returns is
    ignored. Nodes that a pass records under ``create_graph=True``, and a checkpoint when it runs again, count if that
    is inside; the `AccumulateGrad` of a leaf, which belongs to the leaf, and what a hook records itself do not. Affects
    the current thread only; nested hooks are called from the outermost to the innermost.

    Parameters
    ----------
    hook : callable
        ``hook(node)``.

    Raises
    ------
    HookTypeError
        If it is not callable.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> with lucid.autograd.graph.node_creation_hook(lambda node: print(node.name())):
    ...     y = (x * 2).sum()
    MulBackward0
    SumBackward0
    """

    def __init__(self, hook: Callable[[Any], object]) -> None:
        check_callable(hook, "node_creation_hook: hook")
        super().__init__()
        self._hook = hook

    def __enter__(self) -> None:
        state = thread.state
        self.undo.append(state.putting_back("creation_hooks", ordinary=not state.creation_hooks))
        state.before_change()
        state.creation_hooks = (*state.creation_hooks, self._hook)
