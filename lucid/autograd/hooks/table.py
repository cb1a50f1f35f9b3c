"""Tables of hooks by handle id, those of modules and optimizers, and the handle that takes one off again."""

from __future__ import annotations

import itertools
import pickle
import types
import weakref
from collections import OrderedDict
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from lucid.autograd.hooks.firing import Resting, StandIn, check_callable, hook_name, is_resting, registered_hook
from lucid.autograd.hooks.handle import Handle
from lucid.autograd.hooks.registration import Registration, changing
from lucid.base.capture import changes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Fleeting(StandIn):
    """The base of hooks that belong to one live object and so stay behind when their owner is copied or pickled."""

    __slots__ = ()


class Entry(StandIn):
    """One hook of a table in a snapshot: the hook, its handle's id, and the options of its registration."""

    __slots__ = ("func", "id", "option")

    def __init__(self, func: Callable[..., Any], handle_id: int, option: Any) -> None:
        self.func = func
        self.id = handle_id
        self.option = option


class ActiveHooks(dict[str, tuple[Entry, ...]]):
    """The snapshots of the tables that hold a hook, by their kinds: empty, and so false, while none does.

    A snapshot is an empty tuple while none has been taken since its table changed.

    Attributes
    ----------
    special : bool
        Whether there are others than a module's forward hooks and forward pre-hooks, without options but `always_call`.
    calls : int
        How many calls of the module its hooks with context have seen.
    """

    __slots__ = ("__weakref__", "calls", "special")

    def __init__(self) -> None:
        self.special = False
        self.calls = 0

    # The tables enter themselves again wherever they are copied to.
    def __deepcopy__(self, memo: dict[int, Any]) -> ActiveHooks:
        memo[id(self)] = copied = ActiveHooks()
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return ActiveHooks, ()


_plain: Any = OrderedDict
# a table's own, past its methods; `super()` takes a third longer
_put, _take_out, _move = _plain.__setitem__, _plain.__delitem__, _plain.move_to_end

PLAIN = {"_forward_hooks", "_forward_pre_hooks", "_forward_hooks_always_called"}
_REQUIRED: Any = object()


class HookTable(OrderedDict[int, Any]):
    """Hooks by handle id, in the order of their calls.

    Parameters
    ----------
    kind : str
        The name under which its owner keeps the table.
    active : ActiveHooks, optional
        Where the table enters itself while it holds a hook, so that a module call sees with one truth test whether any
        hook waits for it.

    Attributes
    ----------
    options : dict of int to object
        What a hook's registration asked for, by handle id, where that is not the usual.
    attached : bool
        Whether it enters itself among the hooks of an owner, and so cannot serve another one too.
    """

    def __init__(self, kind: str = "", active: ActiveHooks | None = None) -> None:
        super().__init__()
        self.kind = kind
        self.attached = active is not None
        self.active = ActiveHooks() if active is None else active
        self.options: dict[int, Any] = {}
        self.registrations: dict[int, Registration] = {}

    def attach(self, active: ActiveHooks | None) -> None:
        """Enter the table among the active hooks of an owner, or, with None, of none any more."""
        changes.hook(self.active)
        self.attached = active is not None
        self.active = ActiveHooks() if active is None else active
        self._changed()

    def snapshot(self, marks: HookTable | None = None) -> tuple[Entry, ...]:
        """Return all hooks as they are now: firing iterates it, so that hooks may come and go.

        The option of a hook is whether it is in `marks`, where they are given.
        """
        taken = self.active.get(self.kind)
        if taken or not self:
            return taken or ()
        with changing:
            options = self.options if marks is None else marks
            taken = tuple([Entry(hook, key, options.get(key)) for key, hook in self.items()])
            if taken:
                self.active[self.kind] = taken
        return taken

    def _changed(self) -> None:
        active = self.active
        changes.hook(active)
        if self:
            active[self.kind] = ()
        else:
            active.pop(self.kind, None)
        special = False
        for kind in active:
            active[kind] = ()  # this table may hold marks of another
            if kind not in PLAIN:
                special = True
        active.special = special

    def __setitem__(self, key: int, value: Any) -> None:
        with changing:
            _put(self, key, value)
            self._changed()

    def __delitem__(self, key: int) -> None:
        with changing:
            _take_out(self, key)
            self.options.pop(key, None)
            self.registrations.pop(key, None)
            self._changed()

    def enter(self, key: int, hook: Any, registration: Registration, *, first: bool = False) -> None:
        """Put in a hook that is registered now, the last or the first to fire; `changing` is held."""
        _put(self, key, hook)
        if first:
            _move(self, key, last=False)
        self.registrations[key] = registration
        self._changed()

    # OrderedDict's own take entries out past `__delitem__`
    def pop(self, key: int, default: Any = _REQUIRED) -> Any:
        """Return the hook of handle id `key` after taking it off, or else the default."""
        with changing:
            if key not in self and default is not _REQUIRED:
                return default
            hook = self[key]
            del self[key]
        return hook

    def popitem(self, last: bool = True) -> tuple[int, Any]:
        """Return the last or first (handle id, hook) after taking the hook off."""
        with changing:
            if not self:
                raise KeyError("dictionary is empty")
            key = next(reversed(self) if last else iter(self))
            return key, self.pop(key)

    def clear(self) -> None:
        """Take all hooks off."""
        with changing:
            super().clear()
            self.options.clear()
            self.registrations.clear()
            self._changed()

    def move_to_end(self, key: int, last: bool = True) -> None:
        """Let the hook of handle id `key` fire last, or first."""
        with changing:
            super().move_to_end(key, last)
            self._changed()

    def _kept(self) -> list[tuple[int, Any]]:
        """Return the entries that go along with a copy."""
        with changing:
            temporary = {key for key, registration in self.registrations.items() if registration.temporary}
            temporary |= {key for key, hook in self.items() if isinstance(registered_hook(hook), Fleeting)}
            kept = [(key, hook) for key, hook in self.items() if key not in temporary]
        # a copy is switched off where this one is, and is not counted
        return [
            (key, Resting(registered_hook(hook)) if is_resting(hook) else registered_hook(hook)) for key, hook in kept
        ]

    def __deepcopy__(self, memo: dict[int, Any]) -> HookTable:
        copied = HookTable(self.kind, deepcopy(self.active, memo))
        memo[id(self)] = copied
        copied.options = dict(self.options)
        for key, hook in self._kept():
            copied[key] = deepcopy(hook, memo)
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        entries = self._kept()
        for hook in (registered_hook(each) for _, each in entries):
            if isinstance(hook, types.FunctionType) and (
                "<locals>" in hook.__qualname__ or "<lambda>" in hook.__qualname__
            ):
                raise pickle.PicklingError(
                    f"hook {hook_name(hook)} in {self.kind} cannot be pickled: expected a function that can be "
                    "imported by its name; define it at the top level of a module, or remove it before pickling"
                )
        return HookTable, (self.kind,), (self.active, self.options, entries)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.active, self.options, entries = state
        self.attached = True
        for key, hook in entries:
            self[key] = hook
        RemovableHandle.reserve(max(self, default=-1))


class RemovableHandle(Handle):
    """Takes one hook of a module or an optimizer off again: by `remove`, by a call, or at the end of a ``with`` block.

    Parameters
    ----------
    hooks_dict : HookTable
        The table that holds the hook; it is held weakly, so that a handle keeps nothing alive.
    extra_dict : HookTable or sequence of HookTable, optional
        Tables that say more about the hook, under the same id.

    Attributes
    ----------
    id : int
        Grows with every handle of the process.

    Notes
    -----
    A handle copied or pickled together with its module takes the hook off the copy. `lucid.autograd.RemovableHandle`
    is another class: it serves the hooks of tensors and nodes.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> module = nn.Identity()
    >>> with module.register_forward_hook(lambda module, args, output: output + 1):
    ...     module(lucid.zeros(2))
    tensor([1., 1.])
    >>> module(lucid.zeros(2))
    tensor([0., 0.])
    """

    __slots__ = ("__weakref__", "extra_dict_ref", "hooks_dict_ref", "id")

    _ids = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id: int = next(RemovableHandle._ids)
        self.hooks_dict_ref: weakref.ref[Any] = weakref.ref(hooks_dict)
        self.extra_dict_ref: tuple[weakref.ref[Any], ...] = ()
        if extra_dict is not None:
            extras: Any = (extra_dict,) if isinstance(extra_dict, dict) else extra_dict
            self.extra_dict_ref = tuple([weakref.ref(extra) for extra in extras])

    @classmethod
    def reserve(cls, last: int) -> None:
        """Give no later handle an id up to `last`."""
        following = next(cls._ids)
        cls._ids = itertools.count(max(following, last + 1))

    def remove(self) -> None:
        """Take the hook off; a second call does nothing."""
        with changing:
            for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
                table = ref()
                if table is not None and self.id in table:
                    del table[self.id]

    def _place(self) -> tuple[Any, int] | None:
        table = self.hooks_dict_ref()
        return None if table is None or self.id not in table else (table, self.id)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.id, self.hooks_dict_ref(), tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.id, table, extras = state
        # a table that is gone leaves a handle that removes nothing
        self.hooks_dict_ref = weakref.ref(HookTable() if table is None else table)
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras if extra is not None)
        RemovableHandle.reserve(self.id)


def register(
    table: HookTable,
    hook: Callable[..., Any],
    where: str,
    *,
    prepend: bool = False,
    marks: Sequence[HookTable] = (),
    option: Any = None,
) -> RemovableHandle:
    """Return the handle of `hook`, put into `table` with its option, and marked in each of `marks`.

    Raises
    ------
    HookTypeError
        If `hook` is not callable; nothing is registered then.
    """
    check_callable(hook, where)
    handle = RemovableHandle(table, extra_dict=marks)
    with changing:
        registration = Registration(table, handle.id, marks)
        for mark in marks:
            # a mark stays behind with its hook
            mark.enter(handle.id, hook if isinstance(hook, Fleeting) else True, registration)
        if option is not None:
            table.options[handle.id] = option
        table.enter(handle.id, hook, registration, first=prepend)
    return handle


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
        state: dict[str, Any] = owner.__dict__
        # no entry of its own yet: from now on the instance's dictionary answers before this descriptor does
        return state.setdefault(self.name, HookTable(self.name, self._active(state)))

    def _active(self, state: dict[str, Any]) -> ActiveHooks | None:
        return state["_active_hooks"] if self.counted else None

    def put(self, owner: Any, hooks: Any) -> None:
        """Replace the owner's hooks by those of a dictionary; the owner's table keeps its hooks and may come back.

        So tools switch hooks off for a while, and give a module others.
        """
        state: dict[str, Any] = owner.__dict__
        before: HookTable | None = state.get(self.name)
        if hooks is before:
            return
        table = hooks
        if not isinstance(table, HookTable) or table.attached or table.kind != self.name:
            table = HookTable(self.name)
            table.update(hooks)
            table.options = dict(getattr(hooks, "options", {}))
        with changing:
            if before is not None:
                before.attach(None)
            state[self.name] = table
            table.attach(self._active(state))


KINDS: set[str] = set()
