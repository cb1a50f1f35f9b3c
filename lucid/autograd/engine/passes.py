"""One backward pass: its reach, needed nodes, and captured gradients."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from lucid.autograd.engine.node import AccumulateGrad, Node
from lucid.autograd.modes.state import GRAD_MODES, unusual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lucid.autograd.base import Edge
    from lucid.autograd.engine.streams import PassStreams
    from lucid.autograd.modes.state import Modes, ThreadState


class Pass:
    """State of one backward pass beside its gradients.

    Attributes
    ----------
    number : int
        Grows with every pass of the process.
    node : Node or None
        The node that runs at this moment; it stays where that has raised.
    keep : bool
        Whether saved tensors outlive the pass.
    roots : list of Node
        Where the pass begins, each node once.
    counts : dict of Node to int
        How many edges lead to each reached node; a leaf's entry falls as its contributions come in.
    needed : set of Node, or None
        The nodes that run; None if all that are reached do.
    captures : dict of Node to dict of int to int
        For each captured node, which output goes to which position of `captured`.
    captured : list
        The gradients that `autograd.grad` returns.
    callbacks : list of callable
        What is called at the end of the pass.
    between : dict of Node to object
        What nodes leave in this pass for others that run later; gone with the pass, however it ends.
    streams : PassStreams or None
        The streams of its nodes, once one of them is not the current one.
    before : tuple
        The thread's modes as the pass found them.
    changes : int
        The thread's count of changes when its modes were last as the pass has them.
    """

    __slots__ = (
        "__weakref__",
        "before",
        "between",
        "callbacks",
        "captured",
        "captures",
        "changes",
        "counts",
        "keep",
        "needed",
        "node",
        "number",
        "roots",
        "streams",
    )

    def __init__(self, keep: bool, roots: list[Node]) -> None:
        self.number = _next_pass()
        self.node: Node | None = None
        self.keep = keep
        self.roots = roots
        self.counts = reachable(roots)
        self.needed: set[Node] | None = None
        self.captures: dict[Node, dict[int, int]] = {}
        self.captured: list[Any] = []
        self.callbacks: list[Callable[[], Any]] = []
        self.between: dict[Node, Any] = {}
        self.streams: PassStreams | None = None
        self.before: Modes
        self.changes: int

    def want(self, edges: Sequence[Edge], *, accumulate: bool) -> None:
        """Leave out everything off the way to `edges`, and capture their gradients unless leaves accumulate."""
        targets = {edge[0] for edge in edges}
        self.needed = needed_nodes(self.counts, targets)
        if accumulate:
            for node in targets:
                if type(node) is AccumulateGrad:
                    self.needed.add(node)
                else:
                    self.captures[node] = {}
        else:
            self.captured = [None] * len(edges)
            for position, (node, output) in enumerate(edges):
                self.captures.setdefault(node, {})[output] = position
        counts = dict.fromkeys(self.roots, 0)
        for node in self.needed:
            for edge in node.edges:
                if edge is not None:
                    counts[edge[0]] = counts.get(edge[0], 0) + 1
        self.counts = counts

    def wanted(self, node: Node) -> tuple[bool, ...] | None:
        """Return for each of a node's gradients whether it goes on in this pass; None if all do that can."""
        needed, captures = self.needed, self.captures
        if needed is None:
            return None
        wanted = tuple([edge is not None and (edge[0] in needed or edge[0] in captures) for edge in node.edges])
        return None if wanted == tuple([edge is not None for edge in node.edges]) else wanted

    def regain(self, state: ThreadState, graph: bool) -> None:
        """Put the thread's modes back after user code of a node may have changed them."""
        unusual.add(state)
        mode, state.saved_hooks[:], state.saved_hooks_disabled, state.autocast, state.creation_hooks = self.before
        state.grad_mode = GRAD_MODES[graph, mode.inference]
        self.changes = state.changes

    def queue(self, callback: Callable[[], Any]) -> None:
        """Have `callback` called at the end of this pass."""
        self.callbacks.append(callback)

    def will_run(self, node: Node) -> bool:
        """Return whether this pass reaches `node` and fires its tensor hooks."""
        if node not in self.counts:
            return False
        return self.needed is None or node in self.needed or node in self.captures


_next_pass = itertools.count(1).__next__


def reachable(roots: list[Node]) -> dict[Node, int]:
    """Return how many edges lead to each node that the roots reach, the roots themselves included."""
    counts = dict.fromkeys(roots, 0)
    nodes = [*roots]
    # the list grows while it is walked
    for node in nodes:
        for edge in node.edges:
            if edge is not None:
                target = edge[0]
                if target in counts:
                    counts[target] += 1
                else:
                    counts[target] = 1
                    nodes.append(target)
    return counts


def needed_nodes(nodes: Iterable[Node], targets: set[Node]) -> set[Node]:
    """Return those of `nodes` that lead to one of `targets`."""
    needed: set[Node] = set()
    # inputs are older than what uses them: by the time a node is looked at, all that it leads to has been
    for node in sorted(nodes, key=sequence_of):
        if any(edge is not None and (edge[0] in needed or edge[0] in targets) for edge in node.edges):
            needed.add(node)
    return needed


def sequence_of(node: Node) -> int:
    """Return the node's position in the order of recording."""
    return node.sequence
