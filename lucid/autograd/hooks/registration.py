"""What is known of a registered hook beside the hook itself, which stays in its table or list."""

from __future__ import annotations

import sys
import time
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType

    from lucid.autograd.hooks.table import HookTable

# The sets of registrations that are open here, those of inner scopes last. A context variable, so that what other
# threads register stays out.
scopes: ContextVar[tuple[weakref.WeakSet[Registration], ...]] = ContextVar("scopes", default=())


class HookList(list[Any]):
    """The hooks of one kind on a tensor or a node, in the order of firing.

    Attributes
    ----------
    registrations : list of Registration
        One for each hook.
    """

    __slots__ = ("__weakref__", "registrations")

    def __init__(self) -> None:
        super().__init__()
        self.registrations: list[Registration] = []

    def add(self, hook: Any) -> None:
        """Append a hook that is registered now."""
        self.registrations.append(Registration(self))
        self.append(hook)

    def take(self, index: int) -> None:
        """Take the hook at `index` off."""
        del self[index]
        del self.registrations[index]


class Registration:
    """When and where a hook was registered, and how it is taken off or exchanged; it goes with the hook.

    Attributes
    ----------
    container : weakref
        The table or list that holds the hook, and this object.
    key : int
        The handle's id in a table; -1 in a list.
    code, line
        Where the call outside of lucid stands that registered it.
    time : float
        When, by `time.monotonic`.
    """

    __slots__ = ("__weakref__", "code", "container", "key", "line", "time")

    def __init__(self, container: HookTable | HookList, key: int = -1) -> None:
        self.container = weakref.ref(container)
        self.key = key
        self.code, self.line = caller()
        self.time = time.monotonic()
        for scope in scopes.get():
            scope.add(self)


def caller() -> tuple[CodeType | None, int]:
    """Return the code and line, outside of lucid, that lucid was called from."""
    frame = sys._getframe(2)  # noqa: SLF001  Python's own way
    while frame is not None and frame.f_globals.get("__name__", "").startswith("lucid."):
        frame = frame.f_back
    return (None, 0) if frame is None else (frame.f_code, frame.f_lineno)
