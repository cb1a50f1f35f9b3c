"""Hooks of modules: their handle, and objects that own a pair of them."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.autograd.hooks.firing import StandIn, check_callable
from lucid.autograd.hooks.table import Fleeting, HookTable, RemovableHandle
from lucid.errors import HookError, HookTypeError
from lucid.nn.module.module import Module
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ContextualHook", "Hook", "HookTable", "RemovableHandle", "StateHook"]


class _Entry(Fleeting):
    """The entry of a Hook in a module's table: calls the Hook while it lives, and is not copied with the module."""

    __slots__ = ("owner", "which")

    def __init__(self, owner: Hook, which: str) -> None:
        self.owner = weakref.ref(owner)
        self.which = which

    @property
    def func(self) -> Any:
        """The user's function, for the name of the hook in errors."""
        owner = self.owner()
        return None if owner is None else getattr(owner, self.which)

    def __call__(self, module: Module, *rest: object) -> Any:
        owner = self.owner()
        if owner is None or not (owner.trainexec if module.training else owner.evalexec):
            return None
        return getattr(owner, self.which)(module, *rest)


def _take_off(handles: list[RemovableHandle]) -> None:
    while handles:
        handles.pop().remove()


class Hook:
    """A forward pre-hook and a forward hook of one module, put on and taken off together.

    Parameters
    ----------
    prehook : callable, optional
        ``prehook(module, args)``, as in `Module.register_forward_pre_hook`.
    posthook : callable, optional
        ``posthook(module, args, output)``, as in `Module.register_forward_hook`.
    prehook_kwargs, posthook_kwargs : dict, optional
        Further arguments of the two registrations; copied.
    train_update, eval_update : bool
        Whether the hooks run while the module is in training, or in evaluation mode.

    Raises
    ------
    RuntimeError
        If both hooks are None.
    TypeError
        If one cannot be called.

    Notes
    -----
    The module does not keep the Hook alive: when the last reference to it goes, so do its hooks. Copies and pickles of
    the module leave it behind.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> module = nn.Identity()
    >>> hook = nn.Hook(posthook=lambda module, args, output: output + 1, train_update=False)
    >>> hook.register(module)
    >>> module(lucid.zeros(1)), module.eval()(lucid.zeros(1))
    (tensor([0.]), tensor([1.]))
    """

    @checked
    def __init__(
        self,
        prehook: Callable[..., Any] | None = None,
        posthook: Callable[..., Any] | None = None,
        *,
        prehook_kwargs: dict[str, Any] | None = None,
        posthook_kwargs: dict[str, Any] | None = None,
        train_update: bool = True,
        eval_update: bool = True,
    ) -> None:
        if prehook is None and posthook is None:
            raise HookError(f"{type(self).__name__}: at least one of prehook and posthook must not be None")
        for hook, where in ((prehook, "prehook"), (posthook, "posthook")):
            if hook is not None:
                check_callable(hook, f"{type(self).__name__}: {where}")
        self._prehook = prehook
        self._posthook = posthook
        self._prehook_kwargs = dict(prehook_kwargs or {})
        self._posthook_kwargs = dict(posthook_kwargs or {})
        self.trainexec = train_update
        self.evalexec = eval_update
        self._module: weakref.ref[Module] | None = None
        self._handles: list[RemovableHandle] = []
        self._finalizer: weakref.finalize[..., Any] | None = None

    @property
    def trainexec(self) -> bool:
        """Whether the hooks run while the module is in training mode; read at every call."""
        return self._trainexec

    @trainexec.setter
    def trainexec(self, value: bool) -> None:
        self._trainexec = bool(value)

    @property
    def evalexec(self) -> bool:
        """Whether the hooks run while the module is in evaluation mode; read at every call."""
        return self._evalexec

    @evalexec.setter
    def evalexec(self, value: bool) -> None:
        self._evalexec = bool(value)

    @property
    def registered(self) -> bool:
        """Whether the hooks are on a living module."""
        return self._module is not None and self._module() is not None

    def register(self, module: Module) -> None:
        """Put the hooks on `module`.

        Raises
        ------
        TypeError
            If it is no module.
        RuntimeError
            If the hooks are on a module already; `deregister` first.
        """
        if not isinstance(module, Module):
            raise HookTypeError(f"{type(self).__name__}.register: expected a Module, got {type(module).__name__}")
        if self.registered:
            raise HookError(f"this {type(self).__name__} is registered with a module already: call deregister() first")
        self.deregister()
        handles: list[RemovableHandle] = []
        try:
            if self._prehook is not None:
                handles.append(module.register_forward_pre_hook(_Entry(self, "_prehook"), **self._prehook_kwargs))
            if self._posthook is not None:
                handles.append(module.register_forward_hook(_Entry(self, "_posthook"), **self._posthook_kwargs))
        except BaseException:
            _take_off(handles)
            raise
        self._module = weakref.ref(module)
        self._handles = handles
        self._finalizer = weakref.finalize(self, _take_off, handles)
        self._finalizer.atexit = False

    def deregister(self) -> None:
        """Take the hooks off; nothing happens if they are on no module."""
        if self._finalizer is not None:
            self._finalizer()
        self._finalizer = None
        self._module = None
        self._handles = []


class ContextualHook(Hook):
    """A Hook with methods of its own subclass as functions, so that it can keep state between them.

    Parameters
    ----------
    prehook, posthook : str, optional
        Names of methods of the subclass, called as a Hook's functions are.
    prehook_kwargs, posthook_kwargs, train_update, eval_update
        As in `Hook`.

    Raises
    ------
    AttributeError
        If the subclass has no such method.
    RuntimeError
        If both names are None.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> class Counter(nn.hooks.ContextualHook):
    ...     calls = 0
    ...
    ...     def __init__(self):
    ...         super().__init__(posthook="count")
    ...
    ...     def count(self, module, args, output):
    ...         self.calls += 1
    >>> module, counter = nn.Identity(), Counter()
    >>> counter.register(module)
    >>> _ = module(lucid.zeros(1))
    >>> counter.calls
    1
    """

    @checked
    def __init__(
        self,
        prehook: str | None = None,
        posthook: str | None = None,
        *,
        prehook_kwargs: dict[str, Any] | None = None,
        posthook_kwargs: dict[str, Any] | None = None,
        train_update: bool = True,
        eval_update: bool = True,
    ) -> None:
        super().__init__(
            None if prehook is None else self._method(prehook),
            None if posthook is None else self._method(posthook),
            prehook_kwargs=prehook_kwargs,
            posthook_kwargs=posthook_kwargs,
            train_update=train_update,
            eval_update=eval_update,
        )

    def _method(self, name: str) -> Any:
        """Return a callable for the method `name`, without a reference to this object that would keep it alive."""
        if getattr(type(self), name, None) is None:
            raise AttributeError(f"{type(self).__name__} has no method {name!r}")
        return _Method(self, name)


class _Method(StandIn):
    """Calls a method of an object that it holds weakly."""

    __slots__ = ("func", "owner")

    def __init__(self, owner: object, name: str) -> None:
        self.owner = weakref.ref(owner)
        self.func: Any = getattr(owner.__class__, name)

    def __call__(self, *args: object) -> Any:
        owner = self.owner()
        return None if owner is None else self.func.__get__(owner, type(owner))(*args)


class _StateMethod(_Method):
    """Calls a method with the module alone, and ignores the result."""

    __slots__ = ()

    def __call__(self, *args: object) -> None:
        super().__call__(args[0])


class StateHook(ContextualHook, ABC):
    """Runs `hook` on one module at each of its calls, or on request.

    A subclass defines ``hook(module)``.

    Parameters
    ----------
    module : Module
        The target; it is held weakly.
    train_update, eval_update : bool
        Whether `hook` runs while the module is in training, or in evaluation mode.
    as_prehook : bool
        Whether it runs before the module rather than after it.
    prepend : bool
        Whether it runs before the other hooks of its kind.
    always_call : bool
        Whether it runs, after the module, also if the call has raised.

    Raises
    ------
    TypeError
        If `module` is no module.
    """

    @checked
    def __init__(
        self,
        module: Module,
        train_update: bool = True,
        eval_update: bool = True,
        *,
        as_prehook: bool = False,
        prepend: bool = False,
        always_call: bool = False,
    ) -> None:
        if not isinstance(module, Module):
            raise HookTypeError(f"{type(self).__name__}: expected a Module, got {type(module).__name__}")
        super().__init__(
            "hook" if as_prehook else None,
            None if as_prehook else "hook",
            prehook_kwargs={"prepend": prepend},
            posthook_kwargs={"prepend": prepend, "always_call": always_call},
            train_update=train_update,
            eval_update=eval_update,
        )
        self._target = weakref.ref(module)

    @property
    def module(self) -> Module | None:
        """The target; None once it is gone."""
        return self._target()

    @abstractmethod
    def hook(self, module: Module) -> None:
        """Do the work."""

    def _method(self, name: str) -> Any:
        return _StateMethod(self, name)

    def register(self, module: Module | None = None) -> None:
        """Put the hook on its target; nothing happens if it is on it.

        Parameters
        ----------
        module : Module, optional
            The target, if anything.

        Raises
        ------
        RuntimeError
            If the target is gone, or `module` is another.
        """
        target = self.module
        if module is not None and module is not target:
            raise HookError(f"{type(self).__name__}.register: the hook was made for another module: give none here")
        if self.registered:
            return
        if target is None:
            raise HookError(f"{type(self).__name__}.register: the module is gone")
        super().register(target)

    def __call__(self, force: bool = False, ignore_mode: bool = False) -> None:
        """Run the hook now.

        Parameters
        ----------
        force : bool
            Whether to run it although it is not registered.
        ignore_mode : bool
            Whether to run it although it is switched off in the mode in which the module is.
        """
        target = self.module
        if target is None or not (force or self.registered):
            return
        if ignore_mode or (self.trainexec if target.training else self.evalexec):
            self.hook(target)


_publish(globals())
