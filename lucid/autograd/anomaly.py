"""Anomaly detection: which forward call made the node whose backward gave NaN or raised."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.mode import thread
from lucid.errors import AnomalyError

if TYPE_CHECKING:
    from types import TracebackType

    from lucid.autograd.node import Node

_PACKAGE = str(Path(__file__).resolve().parent.parent)
TRACE = "traceback_"


def note_forward(node: Node) -> None:
    """Keep the user's part of the present call stack with `node`."""
    frames = traceback.extract_stack()
    node.rare().metadata[TRACE] = traceback.format_list([f for f in frames if not f.filename.startswith(_PACKAGE)])


def forward_of(node: Node) -> str:
    """Return the kept call stack of `node` in words."""
    trace = node.extra.metadata.get(TRACE) if node.extra is not None else None
    if not trace:
        return "its forward call is not known: enable anomaly detection before the forward pass too"
    return "the forward call that made it, most recent call last:\n" + "".join(trace).rstrip()


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


class detect_anomaly:
    """Inside, each recorded op remembers its forward call, and a backward that gives NaN or raises names it.

    Parameters
    ----------
    check_nan : bool
        Whether gradients are searched for NaN; this reads every gradient and waits for the device.

    Notes
    -----
    Slow: for debugging. It must hold during the forward pass too.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([0.0], requires_grad=True)
    >>> with lucid.autograd.detect_anomaly():
    ...     (x / x).sum().backward()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    lucid.errors.AnomalyError: function 'DivBackward0' returned nan values in its gradient number 0
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._before.append((thread.state.anomaly, thread.state.check_nan))
        thread.state.anomaly, thread.state.check_nan = True, self._check_nan
        thread.state.refresh()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread.state.anomaly, thread.state.check_nan = self._before.pop()
        thread.state.refresh()


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

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(check_nan)
        self._before.append((thread.state.anomaly, thread.state.check_nan))
        thread.state.anomaly, thread.state.check_nan = bool(mode), check_nan
        thread.state.refresh()

    def __enter__(self) -> None:
        pass


def is_anomaly_enabled() -> bool:
    """Return whether anomaly detection is on for this thread.

    Examples
    --------
    >>> import lucid
    >>> lucid.autograd.is_anomaly_enabled()
    False
    """
    return thread.state.anomaly
