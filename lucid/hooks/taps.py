"""Values of a program that have a name of their own: `tap`."""

from __future__ import annotations

import fnmatch
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


class Listener(NamedTuple):
    """What a tool does with the values of the taps whose names match one of its patterns."""

    patterns: tuple[str, ...]
    call: Callable[[str, Any], Any]


# What is listened to here, in the order of the tools: a context variable, as scopes are.
listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


def tap(name: str, value: Tensor) -> Tensor:
    """Return `value`, or what the tools around it make of it: `capture` keeps it under `name`, `edit` replaces it.

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
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in listener.patterns):
            result = listener.call(name, value)
            if result is not None:
                value = result
    return value
