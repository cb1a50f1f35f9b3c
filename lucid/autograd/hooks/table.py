"""Tables of hooks by handle id, those of modules and optimizers, and the handle that takes one off again."""

from __future__ import annotations

import itertools
import pickle
import types
import weakref
from collections import OrderedDict
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

from lucid.autograd.hooks.firing import Resting, StandIn, check_callable, hook_name, is_resting, registered_hook
from lucid.autograd.hooks.handle import Handle
from lucid.autograd.hooks.registration import Registration, changing
from lucid.base.capture import changes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Fleeting(StandIn):
    """The base of hooks that belong to one live object and so stay behind when their owner is copied or pickled."""

    __slots__ = ()


def _innermost(hook: Any) -> Any:
    """Return the registered function, or fleeting hook, without the options around it."""
    while isinstance(hook, StandIn) and not isinstance(hook, Fleeting):
        hook = hook.func
    return hook


def _copied(hook: Any) -> Any:
    """Return the hook for a copy of its table: switched off like the original, and not counted."""
    return Resting(registered_hook(hook)) if is_resting(hook) else registered_hook(hook)


class Entry(StandIn):
    """One hook of a table in a snapshot: the hook, its handle's id, and the options of its registration."""

    __slots__ = ("id", "option")

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
    owner : weakref or None
        The module, if there is one: another that was given the attributes of this one needs active hooks of its own.
    """

    __slots__ = ("__weakref__", "calls", "owner", "special")

    def __init__(self, owner: object = None) -> None:
        self.special = False
        self.calls = 0
        self.owner = None if owner is None else weakref.ref(owner)

    def renew(self) -> None:
        """Have snapshots taken anew, after a table has changed: one may hold marks of another."""
        special = False
        for kind in self:
            self[kind] = ()
            if kind not in PLAIN:
                special = True
        self.special = special
        changes.hook(self)

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
        Whether it enters itself among the hooks of an owner; else `active` is its own.
    others : tuple of weakref
        The active hooks of further owners: a shallow copy of a module has the module's tables.
    """

    def __init__(self, kind: str = "", active: ActiveHooks | None = None) -> None:
        super().__init__()
        self.kind = kind
        self.attached = active is not None
        self.active = ActiveHooks() if active is None else active
        self.others: tuple[weakref.ref[ActiveHooks], ...] = ()
        self.options: dict[int, Any] = {}
        self.registrations: dict[int, Registration] = {}

    def _served(self) -> list[ActiveHooks]:
        """Return the active hooks of all owners."""
        served = [self.active] if self.attached else []
        return [*served, *[active for ref in self.others if (active := ref()) is not None]]

    def serve(self, active: ActiveHooks) -> None:
        """Enter the table among the active hooks of an owner, and of those that it has."""
        with changing:
            self._set_served([*[each for each in self._served() if each is not active], active])
            self._changed()

    def leave(self, active: ActiveHooks) -> None:
        """Take the table out of the active hooks of an owner."""
        with changing:
            self._set_served([each for each in self._served() if each is not active])
            active.pop(self.kind, None)
            active.renew()

    def _set_served(self, served: list[ActiveHooks]) -> None:
        self.attached = bool(served)
        self.active = served[0] if served else ActiveHooks()
        self.others = tuple(map(weakref.ref, served[1:]))

    def snapshot(self, marks: HookTable | None = None) -> tuple[Entry, ...]:
        """Return all hooks as they are now: firing iterates it, so that hooks may come and go.

        The option of a hook is whether it is in `marks`, where they are given.
        """
        active = self.active if not self.others else self._shared_with(marks)
        taken = active.get(self.kind)
        if taken or not self:
            return taken or ()
        with changing:
            options = self.options if marks is None else marks
            taken = tuple([Entry(hook, key, options.get(key)) for key, hook in self.items()])
            if taken:
                active[self.kind] = taken
        return taken

    def _shared_with(self, marks: HookTable | None) -> ActiveHooks:
        """Return active hooks that both tables serve: an owner of one may have replaced the other."""
        return next((each for each in self._served() if marks is None or marks.serves(each)), self.active)

    def serves(self, active: ActiveHooks) -> bool:
        """Return whether the table is entered among these active hooks."""
        return any(each is active for each in self._served())

    def _changed(self) -> None:
        self._note_change(self.active)
        for ref in self.others:
            active = ref()
            if active is not None:
                self._note_change(active)

    def _note_change(self, active: ActiveHooks) -> None:
        if self:
            active[self.kind] = ()
        else:
            active.pop(self.kind, None)
        active.renew()

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

    # OrderedDict's own know nothing of options and registrations
    def update(self, hooks: Any = (), /, **more: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # one form for all of dict's
        """Put in the hooks of a dictionary; those of a table keep their options and registrations."""
        with changing:
            if not isinstance(hooks, HookTable):
                super().update(hooks, **more)
                return
            for key, hook in list(hooks.items()):
                self[key] = _copied(hook)
                self.options.pop(key, None)
                if key in hooks.options:
                    self.options[key] = hooks.options[key]
                if key in hooks.registrations:
                    self.registrations[key] = hooks.registrations[key].copied_to(self)

    def copy(self) -> HookTable:
        """Return a table of the same hooks, without an owner."""
        copied = HookTable(self.kind)
        copied.update(self)
        return copied

    __copy__ = copy

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, dict):
            return NotImplemented
        united = self.copy()
        united.update(other)
        return united

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, dict):
            return NotImplemented
        united = HookTable(self.kind)
        united.update(other)
        united.update(self)
        return united

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def _kept(self) -> list[tuple[int, Any]]:
        """Return the entries that go along with a copy."""
        with changing:
            temporary = {key for key, registration in self.registrations.items() if registration.temporary}
            temporary |= {key for key, hook in self.items() if isinstance(_innermost(hook), Fleeting)}
            return [(key, _copied(hook)) for key, hook in self.items() if key not in temporary]

    def __deepcopy__(self, memo: dict[int, Any]) -> HookTable:
        memo[id(self)] = copied = HookTable(self.kind)
        for active in self._served():
            copied.serve(deepcopy(active, memo))
        copied.options = dict(self.options)
        for key, hook in self._kept():
            copied[key] = deepcopy(hook, memo)
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        entries = self._kept()
        for _, each in entries:
            hook = _innermost(each)
            while isinstance(hook, partial):
                hook = cast("Any", hook).func
            if isinstance(hook, types.FunctionType) and (
                "<locals>" in hook.__qualname__ or "<lambda>" in hook.__qualname__
            ):
                raise pickle.PicklingError(
                    f"hook {hook_name(hook)} in {self.kind} cannot be pickled: expected a function that can be "
                    "imported by its name; define it at the top level of a module, or remove it before pickling"
                )
        return HookTable, (self.kind,), (self._served(), self.options, entries)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        served, self.options, entries = state
        for active in served:
            self.serve(active)
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
            mark.enter(handle.id, hook if isinstance(_innermost(hook), Fleeting) else True, registration)
        if option is not None:
            table.options[handle.id] = option
        table.enter(handle.id, hook, registration, first=prepend)
    return handle
