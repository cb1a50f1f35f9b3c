"""The engine: runs the graph backward, newest node first, and fires every gradient hook at its moment."""

from __future__ import annotations

from functools import partial
from heapq import heappop, heappush, heappushpop
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.anomaly import explain
from lucid.autograd.base import is_list, wrap
from lucid.autograd.engine.accumulation import Sums, contribute
from lucid.autograd.engine.nesting import on_new_stack, stack_is_half_used
from lucid.autograd.engine.node import SMALL_BYTES, AccumulateGrad, Extra, Node
from lucid.autograd.engine.passes import Pass
from lucid.autograd.engine.streams import follow
from lucid.autograd.engine.watched import fire_light, run_on_device, run_watched
from lucid.autograd.hooks.firing import fire
from lucid.autograd.modes.state import GRAD_MODES, NO_GRAD, ORDINARY, NumPyComplaints, ThreadState, thread, unusual
from lucid.autograd.recording.namespace import CPU, CUDA, GRAPH, namespace_of
from lucid.base import gpu
from lucid.base.capture import captures, note_places
from lucid.base.ownership import getrefcount, unwatched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.autograd.base import Edge


def run(
    roots: Sequence[tuple[Edge, Any]],
    *,
    keep_graph: bool,
    create_graph: bool,
    wanted: Sequence[Edge] | None = None,
    accumulate: bool = True,
) -> list[Any]:
    """Run one backward pass and return the captured gradients.

    Parameters
    ----------
    roots : sequence of (edge, gradient)
        Where the pass begins and with which gradients: tensors under `create_graph`, raw arrays otherwise.
    keep_graph : bool
        Whether saved tensors outlive the pass.
    create_graph : bool
        Whether the pass itself is recorded.
    wanted : sequence of edges, optional
        The inputs; everything off the way to them is left out.
    accumulate : bool
        Whether leaves add to their `.grad`; without it the gradients of `wanted` are returned.
    """
    state = thread.state
    passes = state.passes
    depth = len(passes)
    if depth and stack_is_half_used():
        return on_new_stack(
            partial(run, roots, keep_graph=keep_graph, create_graph=create_graph, wanted=wanted, accumulate=accumulate)
        )
    this = Pass(keep_graph, [roots[0][0][0]] if len(roots) == 1 else [*dict.fromkeys(root[0][0] for root in roots)])
    if wanted is not None:
        this.want(wanted, accumulate=accumulate)
    if captures:
        note_places(node for node in this.counts if isinstance(node, AccumulateGrad))
    this.before = before = state.modes() if unusual else ORDINARY
    this.changes = changes = state.changes
    unusual.add(state)
    try:
        state.grad_mode = (
            NO_GRAD if before is ORDINARY and not create_graph else GRAD_MODES[bool(create_graph), before[0].inference]
        )
        passes.append(this)
        try:
            _run(this, roots, state, create_graph)
        finally:
            if this.streams is not None:
                this.streams.end()
        if this.callbacks:
            _call_queued(this)
    except Exception as error:
        if state.anomaly is not None and this.node is not None:
            explain(error, this.node)
        raise
    finally:
        # stores alone, no calls: no interrupt falls between them
        state.grad_mode = before[0]
        del passes[depth:]
        if state.changes != changes:
            _, state.saved_hooks[:], state.saved_hooks_disabled, state.autocast, state.creation_hooks = before
        if before is not ORDINARY:
            unusual.add(state)
        elif state.changes == changes:
            unusual.discard(state)
    return this.captured


alone_in_loop = 0  # until it is measured, below


def _run(this: Pass, roots: Sequence[tuple[Edge, Any]], state: ThreadState, graph: bool) -> None:
    """Run the nodes of a pass; gradients are tensors with `graph` and raw arrays without."""
    keep, needed, captures, counts = this.keep, this.needed, this.captures, this.counts
    watched = bool(captures) or needed is not None or state.anomaly is not None or bool(state.node_hooks)
    ndarray, quiet, add = np.ndarray, state.quiet, np.add
    plain, device_array = not (graph or watched), gpu.array_type()
    default = gpu.default_stream().ptr if device_array is not None else None
    buffers: dict[Node, Any] = {}
    sums = Sums()
    leaves: list[AccumulateGrad] = []
    # The newest pending node, and the others as a heap: in a chain the heap stays empty. Inputs are older than what
    # uses them, so the newest pending node has received all that it will; only leaves, which do not wait for their
    # turn, need a count.
    newest: Node | None = None
    ready: list[tuple[int, Node]] = []

    for (node, output), grad in roots:
        if node in buffers:
            contribute(buffers, sums, node, output, grad, graph=graph)
            continue
        if node.outputs == 1:
            buffers[node] = grad
        else:
            contribute(buffers, sums, node, output, grad, graph=graph)
        if needed is not None and not this.will_run(node):
            continue
        if type(node) is AccumulateGrad:
            if not counts[node]:
                leaves.append(node)
        elif newest is None:
            newest = node
        else:
            heappush(ready, (-node.sequence, node))
    if ready and newest is not None:
        newest = heappushpop(ready, (-newest.sequence, newest))[1]
    grad = grads = None
    while True:
        if state.changes != this.changes:
            this.regain(state, graph)
        if leaves:
            this.node = node = leaves.pop(0)
            extra = node.extra
            if plain and (extra is None or extra.light is not None):
                # the same as below, for the many leaves on which nothing or only hooks of the tensor hang
                if type(buffers.get(node)) is ndarray:
                    if extra is None:
                        node.backward(CPU, buffers.pop(node), quiet)
                    else:
                        _run_light_leaf(this, node, extra, buffers, quiet)
                    continue
                if type(buffers.get(node)) is device_array:
                    _run_leaf_on_device(this, node, extra, buffers, sums, quiet)
                    continue
        elif newest is not None:
            this.node = node = newest
            newest = heappop(ready)[1] if ready else None
        else:
            this.node = None
            return
        grad = buffers.pop(node, None)
        extra = node.extra
        if not plain or type(grad) is not ndarray:
            if sums:
                grad = sums.settled(node, grad)
            # of several outputs mostly the first has one
            some = grad[0] if grad.__class__ is list else grad
            if plain and type(some) is device_array and (extra is None or extra.light is not None):
                # the same as below, for the many nodes on which nothing or only hooks of the tensor hang
                index = some.data.device_id
                if gpu.current_stream(index).ptr != default:
                    follow(this, node, grad)
                if extra is not None:
                    grad = fire_light(node, extra, grad)
                if extra is None or extra.light is not None:
                    grads = gpu.run_on(index, node.backward, CUDA, grad, quiet)
                else:
                    grads = run_watched(this, node, CUDA, grad, index, fired=True)
            else:
                m = GRAPH if graph else namespace_of_buffer(grad)
                index = None if m is CPU else follow(this, node, grad)
                if watched or extra is not None:
                    grads = run_watched(this, node, m, grad, index)
                else:
                    grads = run_on_device(index, node.backward, m, grad, quiet)
        elif extra is None:
            grads = node.backward(CPU, grad, quiet)
        elif extra.light is not None:
            grad = fire_light(node, extra, grad)
            if extra.light is not None:
                grads = node.backward(CPU, grad, quiet)
            else:
                grads = run_watched(this, node, CPU, grad, fired=True)
        else:
            grads = run_watched(this, node, CPU, grad)
        if grads is None:  # the node was only captured
            continue
        if not keep and node.kept[1]:
            node.release()
        for edge, grad in zip(node.edges, grads):  # noqa: B905  their lengths agree, and strict costs on the hot path
            if edge is None:
                continue
            target, output = edge
            if needed is not None and target not in needed and target not in captures:
                continue
            if type(target) is AccumulateGrad:
                remaining = counts[target]
                if remaining > 1:
                    counts[target] = remaining - 1
                elif (
                    plain
                    and target.extra is None
                    and not leaves
                    and type(grad) is ndarray
                    and grad.nbytes < SMALL_BYTES
                    and target not in buffers
                ):
                    # the leaf would run next: its gradient need not wait for it
                    target.backward(CPU, grad, quiet, alone_in_loop)
                    continue
                else:
                    leaves.append(target)
            elif target not in buffers:
                if newest is None:
                    newest = target
                elif target.sequence > newest.sequence:
                    heappush(ready, (-newest.sequence, newest))
                    newest = target
                else:
                    heappush(ready, (-target.sequence, target))
                if target.outputs == 1:
                    buffers[target] = grad
                    continue
                buffers[target] = None
            if grad is None:
                continue
            if target.outputs != 1:
                contribute(buffers, sums, target, output, grad, graph=graph)
                continue
            old = buffers.get(target)
            if old is None:
                buffers[target] = grad
            elif type(old) is ndarray and old.nbytes < SMALL_BYTES:
                try:
                    buffers[target] = add(old, grad)
                except NumPyComplaints:
                    buffers[target] = quiet(add, old, grad)
                except TypeError:  # arrays of two libraries, which are refused there
                    contribute(buffers, sums, target, output, grad, graph=graph)
            else:
                contribute(buffers, sums, target, output, grad, graph=graph)
        # the leaf that runs next must find its buffer in nobody else's hands
        edge = grad = grads = old = some = None


class _Source(Node):
    """Gives its leaf a gradient that nobody holds, and knows it until it is asked for."""

    __slots__ = ("made",)

    def backward(self, m: Any, grad: Any, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        self.made: list[Any] = [np.zeros(1)]
        return (self.made[0],)


def references_in_loop() -> int:
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
    unwatched(lambda: _run(this, [((source, 0), np.zeros(1))], state, False))
    return counted[0]


# What a leaf counts of a gradient that the loop has not let go of before it hands it on.
alone_in_loop = references_in_loop()


def _call_queued(this: Pass) -> None:
    """Call the callbacks queued for the end of a pass."""
    # the list itself and no snapshot of it: a callback may queue more
    kind, owner = "callback at the end of backward", f"pass {this.number}"
    fire(this.callbacks, lambda callback, _: callback(), None, kind, owner)


def _run_light_leaf(
    this: Pass, leaf: AccumulateGrad, extra: Extra, buffers: dict[Node, Any], quiet: Callable[..., Any]
) -> None:
    """Run a leaf with tensor hooks alone, as long as these add nothing else to it."""
    # in a list, from which the leaf gets it without another holder
    grads = [fire_light(leaf, extra, buffers.pop(leaf))]
    if extra.light is not None:
        leaf.backward(CPU, grads.pop(), quiet)
    else:
        run_watched(this, leaf, CPU, grads.pop(), fired=True)


def namespace_of_buffer(grad: Any) -> Any:
    """Return the namespace for a node's gradient: nothing, one array, or a list."""
    if is_list(grad):
        grad = next((g for g in grad if g is not None), None)
    return CPU if grad is None else namespace_of(grad)


def _run_leaf_on_device(
    this: Pass, leaf: AccumulateGrad, extra: Extra | None, buffers: dict[Node, Any], sums: Sums,
    quiet: Callable[..., Any],
) -> None:  # fmt: skip
    """Run a leaf on the device of its gradient, with nobody else holding that."""
    if sums:
        buffers[leaf] = sums.settled(leaf, buffers[leaf])
    index = buffers[leaf].data.device_id
    if extra is not None:
        buffers[leaf] = fire_light(leaf, extra, buffers.pop(leaf))
    if extra is None or extra.light is not None:
        gpu.run_on(index, lambda: leaf.backward(CUDA, buffers.pop(leaf), quiet))
    else:
        run_watched(this, leaf, CUDA, buffers.pop(leaf), index, fired=True)
