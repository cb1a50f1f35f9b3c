"""What runs at this moment: the current backward pass and node, and what is called at the end of the pass."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, cast

from lucid.autograd import engine
from lucid.autograd.decorating import Decorating, F
from lucid.autograd.hooks import check_callable
from lucid.autograd.mode import thread
from lucid.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from lucid.autograd.node import Node


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
    # the engine's loop notes its node in a variable of its own and nowhere else: that costs it nothing
    frame: FrameType | None = sys._getframe()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code is engine.loop_code:
            return cast("Node | None", frame.f_locals.get("node"))
        frame = frame.f_back
    return None


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
    passes = thread.state.passes
    if not passes:
        raise GraphError(
            "queue_callback: final callbacks can only be installed during a backward pass: call it from a hook or from "
            "a Function's backward"
        )
    passes[-1].queue(callback)


class _Multithreading(threading.local):
    """Whether this thread allows backward more threads."""

    enabled = True


_multithreading = _Multithreading()


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
        self.prev = _multithreading.enabled
        self.mode = _multithreading.enabled = bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _multithreading.enabled = self.prev

    def __call__(self, function: F) -> F:
        """Decorate `function`: the setting holds during its calls only."""
        _multithreading.enabled = self.prev
        return super().__call__(function)

    def clone(self) -> set_multithreading_enabled:
        """Return an equal setting, which holds at once."""
        return set_multithreading_enabled(self.mode)


def is_multithreading_enabled() -> bool:
    """Return what `set_multithreading_enabled` has set on this thread; True at first.

    Examples
    --------
    >>> import lucid
    >>> lucid.autograd.is_multithreading_enabled()
    True
    """
    return _multithreading.enabled
