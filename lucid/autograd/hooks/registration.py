"""Record of a hook's registration, beside the hook itself in its table or list."""

from __future__ import annotations

import copy
import sys
import weakref
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any

from lucid.base.capture import changes
from lucid.base.locks import new_rlock
from lucid.public import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from lucid.autograd.hooks.table import HookTable

# The sets of registrations that are open here, those of inner scopes last. A context variable, so that what other
# threads register stays out.
scopes: ContextVar[tuple[Registrations, ...]] = ContextVar("scopes", default=())


# How many a set of registrations may hold before it looks which of them are gone.
FEW = 64

# What registers and removes holds it: finding a hook and taking it out are two steps, and so are a table and its marks.
# Reentrant: what goes with a hook may remove others as it goes.
changing = new_rlock()


class HookList(list[Any]):
    """The hooks of one kind on a tensor or a node, in the order of firing, and the registration of each."""

    __slots__ = ("__weakref__", "registrations")

    registrations: list[Registration]

    def add(self, hook: Any, leaf: object = None) -> Registration:
        """Append a hook that is registered now, and return the record of that.

        Captured steps that reach a `leaf` have to know that its hooks come and go.
        """
        with changing:
            if not self:
                self.registrations = []
            registration = Registration(self, leaf=leaf)
            self.registrations.append(registration)
            self.append(hook)
        if leaf is not None:
            changes.hook(leaf)
        return registration

    def standing(self, registrations: Sequence[Registration]) -> tuple[Any, ...]:
        """Return the hooks of some registrations as they stand here now, without those that are off."""
        with changing:
            return tuple([hook for hook, each in zip(self, self.registrations, strict=True) if each in registrations])

    def take(self, index: int) -> None:
        """Take the hook at `index` off."""
        del self[index]
        leaf = self.registrations.pop(index).leaf
        if leaf is not None and (node := leaf()) is not None:
            changes.hook(node)

    def index_of(self, registration: Registration | None) -> int | None:
        """Return the index of the hook of a registration; None if it is off."""
        return next((index for index, each in enumerate(self.registrations) if each is registration), None)


class Registrations:
    """Those that belong together, in their order, as long as their hooks are there.

    Attributes
    ----------
    tag : str
        A word for them, by which tables choose; empty if they have none.
    temporary : bool
        Whether they are of a tool's block: copies and pickles of a module that are made inside of it go without them.
    caller : Caller or None
        Where that block stands, which has registered all of them; None where each has a place of its own.
    """

    def __init__(self, tag: str = "") -> None:
        self.tag = tag
        self.temporary = False
        self.caller: Caller | None = None
        self._entries: list[weakref.ref[Registration]] = []
        self._most = FEW

    def add(self, registration: Registration) -> None:
        """Take in one that is made now; `changing` is held."""
        entries = self._entries
        entries.append(weakref.ref(registration))
        if len(entries) > self._most:
            count = len(entries)
            # a finalizer that runs meanwhile may add others behind these
            entries[:count] = [each for each in entries[:count] if each() is not None]
            self._most = max(FEW, 2 * len(entries))

    def __iter__(self) -> Iterator[Registration]:
        return (registration for each in list(self._entries) if (registration := each()) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Caller:
    """Place of the innermost call outside of lucid's own files at this moment; printed, its file and line.

    It holds a function's code and the instruction in it: the frame itself would keep alive what its function knows.
    """

    __slots__ = ("code", "instruction")

    def __init__(self) -> None:
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame.f_code.co_filename.startswith(FOLDER):
            frame = frame.f_back
        self.code, self.instruction = (None, 0) if frame is None else (frame.f_code, frame.f_lasti)

    @property
    def file(self) -> str:
        """The name of its file; ``unknown`` if there is no such call."""
        return "unknown" if self.code is None else self.code.co_filename

    def __str__(self) -> str:
        if self.code is None:
            return self.file
        # looked for only now: it takes longer than all else that a registration does
        lines = (line for begin, end, line in self.code.co_lines() if begin <= self.instruction < end)
        return f"{self.code.co_filename}:{next(lines, None) or self.code.co_firstlineno}"


class Registration:
    """Time and place of a hook's registration, and its key in its table or list; it goes with the hook.

    Attributes
    ----------
    container : weakref
        The table or list that holds the hook, and this object.
    key : int
        The handle's id in a table; -1 in a list.
    marks : tuple of weakref
        Tables that say more about the hook, under the same key.
    leaf : weakref or None
        The node of the leaf that the hook hangs on, where captured steps have to know of it.
    caller : Caller
        Where the call outside of lucid stands that registered it.
    opened : tuple of Registrations
        The groups and scopes that were open.
    time : float
        When, by `time.monotonic`.
    """

    __slots__ = ("__weakref__", "caller", "container", "key", "leaf", "marks", "opened", "time")

    def __init__(
        self, container: HookTable | HookList, key: int = -1, marks: Sequence[HookTable] = (), leaf: object = None
    ) -> None:
        self.container: weakref.ref[Any] = weakref.ref(container)
        self.key = key
        self.marks: tuple[weakref.ref[HookTable], ...] = tuple([weakref.ref(mark) for mark in marks]) if marks else ()
        self.leaf = None if leaf is None else weakref.ref(leaf)
        opened = scopes.get()
        self.caller = (opened[-1].caller if opened else None) or Caller()
        self.time = monotonic()
        self.opened = opened
        for each in opened:
            each.add(self)

    def copied_to(self, table: HookTable) -> Registration:
        """Return the record of the same registration for a copy of its table, in the same groups and scopes."""
        copied = copy.copy(self)
        copied.container = weakref.ref(table)
        copied.marks = ()  # they are the original's
        for each in copied.opened:
            each.add(copied)
        return copied

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the groups and scopes that were open."""
        return tuple([each.tag for each in self.opened if each.tag])

    @property
    def temporary(self) -> bool:
        """Whether a tool registered it for its block."""
        return any(each.temporary for each in self.opened)

    def place(self) -> str:
        """Return file and line of the call that registered it."""
        return str(self.caller)
