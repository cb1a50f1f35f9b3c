"""Values of a program that have a name of their own: `tap`."""

from __future__ import annotations

import difflib
import fnmatch
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase
from lucid.errors import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lucid.tensor import Tensor


class Listener:
    """Call of a tool with the values of the taps that match one of its patterns by name."""

    def __init__(self, tool: str, patterns: Iterable[str], call: Callable[[str, Any], Any]) -> None:
        self._tool, self._patterns, self._call = tool, tuple(patterns), call
        for each in self._patterns:
            if not isinstance(each, str):
                raise unfit(each, "a str for each pattern", "taps")
        self._unmatched, self._others = set[str](), set[str]()

    def begin(self) -> None:
        """Listen, from now on."""
        # "*" is for what there may be, all others are for what there should be
        self._unmatched, self._others = set(self._patterns) - {"*"}, set[str]()
        listeners.set((*listeners.get(), self))

    def end(self) -> None:
        """Listen no more."""
        listeners.set(tuple([each for each in listeners.get() if each is not self]))

    def warn_of_unmatched(self) -> None:
        """Warn of each pattern that no tap has matched."""
        for pattern in sorted(self._unmatched):
            near = difflib.get_close_matches(pattern, self._others, cutoff=0.0)
            others = f"the nearest others are {near}" if near else "it has no others"
            warn(f"{self._tool}: taps: no tap of this block matches {pattern!r}: {others}")

    def hear(self, name: str, value: Any) -> Any:
        """Return the tool's replacement of a tap's value; None leaves it as it is."""
        matching = [pattern for pattern in self._patterns if fnmatch.fnmatchcase(name, pattern)]
        if matching:
            self._unmatched.difference_update(matching)
            return self._call(name, value)
        if self._unmatched:
            self._others.add(name)
        return None


# What is listened to here, in the order of the tools: a context variable, as scopes are.
listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


def tap(name: str, value: Tensor) -> Tensor:
    """Return `value`, or its replacement by the tools around it: `capture` keeps it under `name`, `edit` replaces it.

    It stands anywhere in a program, in the forward of a module or outside of all modules, and costs one look at a
    context variable while no tool is at work.

    Parameters
    ----------
    name : str
        By which ``taps=`` of the tools choose it; several calls may have the same.
    value : Tensor
        Any.

    Raises
    ------
    ArgumentError
        If `name` is no string, or `value` no tensor.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks
    >>> def energy(x):
    ...     force = hooks.tap("force", x * 2)
    ...     return (force * force).sum()
    >>> with hooks.capture(taps="force") as kept:
    ...     _ = energy(lucid.ones(2))
    >>> kept["force"]
    tensor([2., 2.])
    """
    if type(name) is not str:
        raise unfit(name, "a str", "name")
    if not isinstance(value, TensorBase):
        raise unfit(value, "a Tensor", "value")
    for listener in listeners.get():
        result = listener.hear(name, value)
        if result is not None:
            value = result
    return value
