"""Anomaly detection: the forward call of the node with NaN or an exception in its backward."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.autograd.base import TensorBase
from lucid.autograd.engine.running import current_node
from lucid.autograd.modes.leaving import Context
from lucid.autograd.modes.state import thread
from lucid.errors import AnomalyError, warn
from lucid.public import FOLDER

if TYPE_CHECKING:
    from types import FrameType

    from lucid.autograd.engine.node import Node

# the keys in a node's metadata
TRACE, PARENT = "traceback_", "parent_"


class CallStack(Sequence[str]):
    """A call stack without lucid's own frames, as `traceback.format_stack` gives it; sources are read when it is asked.

    Parameters
    ----------
    frame : frame
        The innermost one.
    """

    def __init__(self, frame: FrameType | None) -> None:
        frames: list[traceback.FrameSummary] = []
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(FOLDER):
                frames.append(traceback.FrameSummary(code.co_filename, frame.f_lineno, code.co_name, lookup_line=False))
            frame = frame.f_back
        self.frames = frames[::-1]

    @functools.cached_property
    def lines(self) -> list[str]:
        """The text, outermost frame first; of a deep recursion fewer than there are frames."""
        return traceback.format_list(self.frames)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: Any) -> Any:
        lines: Any = self.lines
        return lines[index]


def user_stack() -> CallStack:
    """Return the present call stack without lucid's own frames."""
    return CallStack(sys._getframe(1))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - the stack itself


def note_forward(node: Node) -> None:
    """Keep with `node` the user's part of the call stack, and the running node if a backward pass records it."""
    metadata = node.rare().metadata
    metadata[TRACE] = user_stack()
    if thread.state.passes:
        metadata[PARENT] = current_node()


def forward_of(node: Node) -> str:
    """Return the kept call stack of `node` in words."""
    trace = node.extra.metadata.get(TRACE) if node.extra is not None else None
    if not trace:
        return "its forward call is not known: enable anomaly detection before the forward pass too"
    return "the forward call that made it, most recent call last:\n" + "".join(trace).rstrip()


def explain(error: Exception, node: Node) -> None:
    """Add to `error` the forward call of the node that a backward pass was running as it was raised.

    Warns
    -----
    UserWarning
        Naming both, once more for each node whose backward recorded the one before; the exception has it as a note.
    """
    words = [f"Error detected in {node.name()}; {forward_of(node)}"]
    while node.extra is not None and (parent := node.extra.metadata.get(PARENT)) is not None:
        words.append(f"{node.name()} was recorded by the backward of {parent.name()}; {forward_of(parent)}")
        node = parent
    for each in words[isinstance(error, AnomalyError) :]:
        error.add_note(each)
    for each in words:
        warn(each)


def check_grads(node: Node, grads: tuple[Any, ...]) -> None:
    """Raise if one of the gradients that `node` returned holds NaN.

    Raises
    ------
    AnomalyError
        Naming the node, the number of the gradient and the forward call.
    """
    for index, grad in enumerate(grads):
        if grad is None:
            continue
        array = grad.array if isinstance(grad, TensorBase) else grad
        if array.dtype.kind in "fcV" and bool((array != array).any()):  # noqa: PLR0124  NaN alone differs from itself
            raise AnomalyError(
                f"function {node.name()!r} returned nan values in its gradient number {index}; {forward_of(node)}"
            )


class detect_anomaly(Context):
    """Inside, each recorded op remembers its forward call, and a backward that gives NaN or raises names it.

    Parameters
    ----------
    check_nan : bool
        Whether gradients are searched for NaN; this reads every gradient and waits for the device.

    Warns
    -----
    UserWarning
        That it is on; in backward, with the forward call of the node that raised or gave NaN.

    Notes
    -----
    Slow: for debugging. It must hold during the forward pass too.

    Examples
    --------
    >>> import lucid
    >>> import warnings
    >>> x = lucid.tensor([0.0], requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"), lucid.autograd.detect_anomaly():
    ...     (x / x).sum().backward()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    lucid.errors.AnomalyError: function 'DivBackward0' returned nan values in its gradient number 0
    """

    @checked
    def __init__(self, check_nan: bool = True) -> None:
        super().__init__()
        warn("anomaly detection is on, which makes every op and every backward slower: use it for debugging only")
        self._anomaly: bool | None = check_nan

    def __enter__(self) -> None:
        state = thread.state
        self.undo.append(state.putting_back("anomaly", ordinary=state.anomaly is None))
        state.before_change()
        state.anomaly = self._anomaly


class set_detect_anomaly(detect_anomaly):
    """Switches :class:`detect_anomaly` on or off: at once as a function, and back on exit as a context manager.

    Parameters
    ----------
    mode : bool
        Whether anomalies are searched for.
    check_nan : bool
        As for :class:`detect_anomaly`.

    Examples
    --------
    >>> import lucid
    >>> with lucid.autograd.set_detect_anomaly(True):
    ...     lucid.autograd.is_anomaly_enabled()
    True
    >>> lucid.autograd.is_anomaly_enabled()
    False
    """

    @checked
    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        Context.__init__(self)
        self._anomaly = check_nan if mode else None
        state = thread.state
        self._outer = [state.anomaly]
        state.before_change()
        state.anomaly = self._anomaly

    def __enter__(self) -> None:
        # what comes back on exit is what stood before the constructor
        if self._outer:
            thread.state.anomaly = self._outer.pop()
        super().__enter__()


def is_anomaly_enabled() -> bool:
    """Return whether anomaly detection is on for this thread.

    Examples
    --------
    >>> import lucid
    >>> lucid.autograd.is_anomaly_enabled()
    False
    """
    return thread.state.anomaly is not None
