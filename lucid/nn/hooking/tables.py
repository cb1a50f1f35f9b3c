"""The tables that hold a module's hooks, and the handle that takes one off again."""

from __future__ import annotations

import itertools
import pickle
import types
import weakref
from collections import OrderedDict
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from lucid.autograd.hooks import StandIn, add_hook_note, check_callable, hook_name
from lucid.backend.locks import new_rlock
from lucid.errors import HookTypeError
from lucid.nn.module.paths import module_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from lucid.nn.module.module import Module


class Fleeting(StandIn):
    """The base of hooks that belong to one live object and so stay behind when their module is copied or pickled."""

    __slots__ = ()


class ActiveHooks(dict[str, tuple[Any, ...]]):
    """The hooks that wait for a module's calls, by kind: empty, and so false, while there are none.

    An entry is a table's snapshot, or an empty tuple while none has been taken since the table changed.

    Attributes
    ----------
    special : bool
        Whether there are others than plain forward hooks and forward pre-hooks.
    backward : bool
        Whether there are full backward hooks and no others.
    parent : weakref to Module, or None
        The module that the module was put into.
    """

    __slots__ = ("__weakref__", "backward", "parent", "special")

    def __init__(self) -> None:
        super().__init__()
        self.special = self.backward = False
        self.parent: weakref.ref[Module] | None = None

    # The tables enter themselves again wherever they are copied to.
    def __deepcopy__(self, memo: dict[int, Any]) -> ActiveHooks:
        memo[id(self)] = copied = ActiveHooks()
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return ActiveHooks, ()


PLAIN = {"_forward_hooks", "_forward_pre_hooks"}

# A table, its marks and what the module knows of them change together, whichever threads register and remove.
# Reentrant: what goes with a hook may remove others as it goes.
changing = new_rlock()


class HookTable(OrderedDict[int, Any]):
    """Hooks by handle id, in the order in which they fire.

    Parameters
    ----------
    kind : str
        The name under which a module keeps the table.
    active : ActiveHooks, optional
        Where the table enters itself while it holds a hook, so that a module call sees with one truth test whether any
        hook waits for it.

    Attributes
    ----------
    options : dict of int to object
        What a hook's registration asked for, by handle id, where that is not the usual.
    """

    def __init__(self, kind: str = "", active: ActiveHooks | None = None) -> None:
        super().__init__()
        self.kind = kind
        self.active = ActiveHooks() if active is None else active
        self.options: dict[int, Any] = {}

    def snapshot(self) -> tuple[tuple[int, Any, Any], ...]:
        """Return (id, hook, option) of all hooks as they are now: firing iterates it, so that hooks may come and go."""
        taken = self.active.get(self.kind)
        if taken or not self:
            return taken or ()
        with changing:
            options = self.options
            taken = tuple([(key, hook, options.get(key)) for key, hook in self.items()])
            if taken:
                self.active[self.kind] = taken
        return taken

    def _changed(self) -> None:
        active = self.active
        if self:
            active[self.kind] = ()
        else:
            active.pop(self.kind, None)
        active.special = not active.keys() <= PLAIN
        active.backward = active.keys() == {"_backward_hooks"}

    def __setitem__(self, key: int, value: Any) -> None:
        with changing:
            super().__setitem__(key, value)
            self._changed()

    def __delitem__(self, key: int) -> None:
        with changing:
            super().__delitem__(key)
            self.options.pop(key, None)
            self._changed()

    def clear(self) -> None:
        """Take all hooks off."""
        with changing:
            super().clear()
            self.options.clear()
            self._changed()

    def move_to_end(self, key: int, last: bool = True) -> None:
        """Let the hook of handle id `key` fire last, or first."""
        with changing:
            super().move_to_end(key, last)
            self._changed()

    def _kept(self) -> list[tuple[int, Any]]:
        """Return the entries that go along with a copy."""
        with changing:
            return [(key, hook) for key, hook in self.items() if not isinstance(hook, Fleeting)]

    def __deepcopy__(self, memo: dict[int, Any]) -> HookTable:
        copied = HookTable(self.kind, deepcopy(self.active, memo))
        memo[id(self)] = copied
        copied.options = dict(self.options)
        for key, hook in self._kept():
            copied[key] = deepcopy(hook, memo)
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        entries = self._kept()
        for _, hook in entries:
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
        for key, hook in entries:
            self[key] = hook
        RemovableHandle.reserve(max(self, default=-1))


class RemovableHandle:
    """Takes one hook of a module off again: by `remove`, by a call, or at the end of a ``with`` block.

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
    is another class: it serves the hooks of tensors.

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
        extras: Any = () if extra_dict is None else extra_dict
        if isinstance(extras, dict):
            extras = (extras,)
        self.id: int = next(RemovableHandle._ids)
        self.hooks_dict_ref: weakref.ref[Any] = weakref.ref(hooks_dict)
        self.extra_dict_ref: tuple[weakref.ref[Any], ...] = tuple(weakref.ref(extra) for extra in extras)

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

    def __call__(self) -> None:
        """Take the hook off."""
        self.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.remove()

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
        for mark in marks:
            mark[handle.id] = True
        if option is not None:
            table.options[handle.id] = option
        table[handle.id] = hook
        if prepend:
            table.move_to_end(handle.id, last=False)
    return handle


def registered_value(table: HookTable, module: Module, name: str, value: Any, kind: str, expected: type) -> Any:
    """Return what the hooks in `table` make of what `module` is about to store under `name`.

    Parameters
    ----------
    table : HookTable
        Hooks ``hook(module, name, value)``.
    module, name, value
        What they are called with, each with what the one before returned.
    kind : str
        What the value is, for messages.
    expected : type
        What a hook's return must be, if it is not None.

    Raises
    ------
    HookTypeError
        If it is something else.
    """
    for index, (_, hook, _) in enumerate(table.snapshot()):
        try:
            result = hook(module, name, value)
            if result is None:
                continue
            if not isinstance(result, expected):
                raise HookTypeError(
                    f"{kind} registration hook {hook_name(hook)}: expected None or a {expected.__name__} to be "
                    f"returned, got {type(result).__name__}"
                )
            value = result
        except Exception as error:
            add_hook_note(error, hook, f"{kind} registration hook", f"'{name}' of {module_path(module)}", index)
            raise
    return value


class TableAttribute:
    """Gives each module its table of one kind under the attribute's name, made when it is first asked for.

    Only `counted` tables take part in calls, so only they are entered among the module's active kinds.
    """

    def __init__(self, *, counted: bool = False) -> None:
        self.counted = counted
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        KINDS.add(name)

    def __get__(self, module: Any, owner: type) -> Any:
        if module is None:
            return self
        state: dict[str, Any] = module.__dict__
        # no entry of its own yet: from now on the instance's dictionary answers before this descriptor does
        active: ActiveHooks | None = state["_active_hooks"] if self.counted else None
        return state.setdefault(self.name, HookTable(self.name, active))


KINDS: set[str] = set()

# The hooks that wait for the calls of all modules.
everywhere = ActiveHooks()


class GlobalTables:
    """The hooks of all modules; they fire before a module's own."""

    def __init__(self) -> None:
        self.forward_pre = HookTable("_forward_pre_hooks", everywhere)
        self.forward = HookTable("_forward_hooks", everywhere)
        self.backward_pre = HookTable("_backward_pre_hooks", everywhere)
        self.backward = HookTable("_backward_hooks", everywhere)
        self.output = HookTable("_output_hooks", everywhere)
        self.forward_with_kwargs = HookTable("_forward_hooks_with_kwargs")
        self.forward_always_called = HookTable("_forward_hooks_always_called", everywhere)
        self.parameter_registration = HookTable("parameter registration")
        self.buffer_registration = HookTable("buffer registration")
        self.module_registration = HookTable("module registration")


global_tables = GlobalTables()
