"""The present moment: the running backward pass and node, and the callbacks for the end of the pass."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from lucid.autograd.engine.node import AccumulateGrad, Node
from lucid.autograd.engine.passes import Pass, sequence_of
from lucid.autograd.hooks.firing import check_callable
from lucid.autograd.modes.decorating import Decorating, F, check_bool
from lucid.autograd.modes.state import thread
from lucid.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable


def current_graph_task_id() -> int:
    """Return the number of the innermost backward pass that runs on this thread; -1 outside of any.

    Each pass of the process has its own number, those that a hook starts included.

    Examples
    --------
    >>> import lucid
    >>> from lucid.autograd.graph import current_graph_task_id
    >>> current_graph_task_id()
    -1
    >>> x = lucid.ones(1, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: print(current_graph_task_id() > 0))
    >>> (x * 2).backward()
    True
    """
    passes = thread.state.passes
    return passes[-1].number if passes else -1


def current_node() -> Node | None:
    """Return the node that the innermost backward pass of this thread runs at this moment; None outside of any.

    In a hook it is the node on which the hook hangs, in a Function's backward the Function's node, in an unpack hook
    the node that needs the saved tensor.

    Examples
    --------
    >>> import lucid
    >>> from lucid.autograd.graph import current_node
    >>> x = lucid.ones(1, requires_grad=True)
    >>> y = x * 2
    >>> handle = y.register_hook(lambda grad: print(current_node().name()))
    >>> y.backward()
    MulBackward0
    """
    # a pass that calls what was queued for its end runs no node any more, but one outside of it does
    return next((this.node for this in reversed(thread.state.passes) if this.node is not None), None)


def _current_pass(what: str) -> Pass:
    """Return the innermost backward pass of this thread; raise `GraphError` outside of any."""
    passes = thread.state.passes
    if not passes:
        raise GraphError(
            f"{what}: no backward pass runs on this thread: call it during a backward pass, from a hook or from a "
            "Function's backward"
        )
    return passes[-1]


def current_graph_task_execution_order() -> list[Node]:
    """Return the nodes that the innermost backward pass of this thread runs, in its order, those that ran included.

    Under ``inputs=`` and in `autograd.grad` they include the nodes at which gradients are only captured.

    Raises
    ------
    GraphError
        If no pass runs on this thread.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(1, requires_grad=True)
    >>> y = (x * 2).exp()
    >>> order = lucid._C._current_graph_task_execution_order
    >>> handle = y.register_hook(lambda grad: print([node.name() for node in order()]))
    >>> y.backward()
    ['ExpBackward0', 'MulBackward0', 'AccumulateGrad']
    """
    this = _current_pass("current_graph_task_execution_order")
    run = [node for node in this.counts if this.will_run(node)]
    targets = {
        node: [edge[0] for edge in node.edges if edge is not None and this.will_run(edge[0])]
        if this.needed is None or node in this.needed
        else []
        for node in run
    }
    remaining = Counter(target for below in targets.values() for target in below)
    # a leaf runs as soon as its gradient is complete, the others newest first
    order: list[Node] = [node for node in run if type(node) is AccumulateGrad and not remaining[node]]
    for node in sorted(run, key=sequence_of, reverse=True):
        if type(node) is AccumulateGrad:
            continue
        order.append(node)
        for target in targets[node]:
            remaining[target] -= 1
            if type(target) is AccumulateGrad and not remaining[target]:
                order.append(target)
    return order


def will_execute(node: Node) -> bool:
    """Return whether the innermost backward pass of this thread runs `node`, or has run it.

    Raises
    ------
    GraphError
        If no pass runs on this thread, or `node` is no node.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(1, requires_grad=True)
    >>> y, z = x * 2, x * 3
    >>> will_execute = lucid._C._will_engine_execute_node
    >>> handle = y.register_hook(lambda grad: print(will_execute(y.grad_fn), will_execute(z.grad_fn)))
    >>> y.backward()
    True False
    """
    this = _current_pass("will_engine_execute_node")
    if not isinstance(node, Node):
        raise GraphError(f"will_engine_execute_node: expected a node, such as a grad_fn, got {type(node).__name__}")
    return this.will_run(node)


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call ``callback()`` once at the end of the backward pass that runs now, after all gradients are there.

    Parameters
    ----------
    callback : callable
        Takes no argument. Callbacks are called in the order in which they were queued, on the thread of the pass, with
        its grad mode, and may queue others. None is called if the pass raises.

    Raises
    ------
    GraphError
        If no pass runs on this thread.
    TypeError
        If `callback` cannot be called.

    Examples
    --------
    >>> import lucid
    >>> from lucid.autograd.graph import queue_callback
    >>> x = lucid.ones(1, requires_grad=True)
    >>> y = x * 2
    >>> handle = y.register_hook(lambda grad: queue_callback(lambda: print("at the end", x.grad)))
    >>> y.backward()
    at the end tensor([2.])
    """
    check_callable(callback, "queue_callback")
    _current_pass("queue_callback").queue(callback)


class set_multithreading_enabled(Decorating):
    """Note whether backward may use several threads: at once as a function, and as before on exit as a context manager.

    Parameters
    ----------
    mode : bool
        What `is_multithreading_enabled` gives from now on.

    Notes
    -----
    A backward pass of lucid runs on the thread that asks for it, so that nothing depends on this. It is here for code
    that was written for PyTorch.

    Examples
    --------
    >>> import lucid
    >>> with lucid.autograd.set_multithreading_enabled(False):
    ...     lucid.autograd.is_multithreading_enabled()
    False
    >>> lucid.autograd.is_multithreading_enabled()
    True
    """

    def __init__(self, mode: bool) -> None:
        self.mode = check_bool(mode, "set_multithreading_enabled: mode")
        super().__init__()
        self._outer = [thread.state.multithreading]
        thread.state.multithreading = mode

    def _put_back(self) -> None:
        """Undo the constructor's change, unless that has been done."""
        if self._outer:
            thread.state.multithreading = self._outer.pop()

    def __enter__(self) -> None:
        self._put_back()
        self.undo.append((setattr, thread.state, "multithreading", thread.state.multithreading))
        thread.state.multithreading = self.mode

    def __call__(self, function: F) -> F:
        """Decorate `function`: the setting holds during its calls only."""
        self._put_back()
        return super().__call__(function)

    def clone(self) -> set_multithreading_enabled:
        """Return an equal setting, in force at once."""
        return set_multithreading_enabled(self.mode)


def is_multithreading_enabled() -> bool:
    """Return the mode set by `set_multithreading_enabled` on this thread; True at first.

    Examples
    --------
    >>> import lucid
    >>> lucid.autograd.is_multithreading_enabled()
    True
    """
    return thread.state.multithreading
