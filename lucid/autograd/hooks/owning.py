"""The hook tables of an owner, a module or an optimizer, under its attributes' names."""

from __future__ import annotations

import weakref
from typing import Any

from lucid.autograd.hooks.registration import changing
from lucid.autograd.hooks.table import ActiveHooks, HookTable
from lucid.base.capture import changes


class TableAttribute:
    """Gives each owner its table of one kind under the attribute's name, made when it is first asked for.

    Only `counted` tables take part in the calls of a module, so only they are entered among its active kinds.
    """

    def __init__(self, *, counted: bool = False) -> None:
        self.counted = counted
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        KINDS.add(name)

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        active = self._active(owner)
        state: dict[str, Any] = owner.__dict__
        # no entry of its own yet: from now on the instance's dictionary answers before this descriptor does
        return state.setdefault(self.name, HookTable(self.name, active))

    def _active(self, owner: Any) -> ActiveHooks | None:
        active = own_active_hooks(owner)
        return active if self.counted else None

    def put(self, owner: Any, hooks: Any) -> None:
        """Replace the owner's hooks by those of a dictionary; the owner's table keeps its hooks and may come back.

        So tools switch hooks off for a while, and give a module others. A table of the same kind serves the owner too.
        """
        state: dict[str, Any] = owner.__dict__
        if hooks is state.get(self.name):
            return
        table = hooks
        if not isinstance(table, HookTable) or table.kind != self.name:
            table = HookTable(self.name)
            table.update(hooks)
        with changing:
            active = self._active(owner)
            before: HookTable | None = state.get(self.name)
            if before is not None:
                if active is None:
                    changes.hook(before.active)
                else:
                    before.leave(active)
            state[self.name] = table
            if active is not None:
                table.serve(active)


KINDS: set[str] = set()


def own_active_hooks(owner: Any) -> ActiveHooks | None:
    """Return the active hooks of a module, made here if it was given another's with its attributes; None if no module.

    Its tables stay those of the other one, as in PyTorch, also those that have not been made yet.
    """
    state: dict[str, Any] = owner.__dict__
    active: ActiveHooks | None = state.get("_active_hooks")
    if active is None or (active.owner is not None and active.owner() is owner):
        return active
    with changing:
        if active.owner is None:
            active.owner = weakref.ref(owner)
            return active
        kind: Any = owner.__class__
        own, other = ActiveHooks(owner), active.owner()
        for name in KINDS:
            attribute: object = getattr(kind, name, None)
            if not isinstance(attribute, TableAttribute):
                continue
            if other is not None and name not in state:
                state[name] = getattr(other, name)
            if attribute.counted and name in state:
                state[name].serve(own)
        state["_active_hooks"] = own
        changes.hook(active)
    return own
