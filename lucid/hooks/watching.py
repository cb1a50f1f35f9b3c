"""The calls of modules that run at a moment."""

from __future__ import annotations

import sys
from functools import partial
from inspect import currentframe
from threading import get_ident
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from lucid.hooks.scoping import tool

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TypeAlias

    from lucid.autograd.hooks.functions import FunctionHook
    from lucid.nn.module.module import Module

    Handled: TypeAlias = tuple[BaseException | None, TracebackType | None]


def _handled() -> Handled:
    """Return the exception that is being handled, and the way that it has come."""
    error = sys.exception()
    return error, error and error.__traceback__


def _has_raised(before: Handled) -> bool:
    """Return whether the call of this hook has raised, by the exception in handling as the call began.

    Another exception has ended it; so has the same one that was raised again, where its way ends in what runs the hook:
    elsewhere the call has caught it itself.
    """
    error, way = _handled()
    if error is not before[0]:
        return True
    if error is None or way is before[1] or way is None:
        return False
    frame = currentframe()
    while frame is not None and frame is not way.tb_frame:
        frame = frame.f_back
    return frame is not None


class watching(tool):
    """Base of blocks that follow the calls of modules on the thread that has entered them.

    A call ends when it returns or raises, or when one around it ends: what goes past Python's errors, such as a
    keyboard interrupt, calls no hook.
    """

    _ops: FunctionHook | None = None  # what is told of the ops in the block

    def __init__(self, modules: dict[str, Module]) -> None:
        super().__init__()
        # what a block has found outlives the model
        self._modules = WeakValueDictionary(modules)
        self._calls: list[tuple[Module, Any, Handled]] = []
        self._thread = 0

    def _begin(self) -> None:
        self._thread = get_ident()
        for path, module in self._modules.items():
            module.register_forward_pre_hook(partial(self._enter, path), prepend=True)
            module.register_forward_hook(self._leave, always_call=True)
        if self._ops is not None:
            self._ops.__enter__()

    def __exit__(self, *exception: object) -> bool | None:
        if self._ops is not None and self._ops.undo:
            self._ops.__exit__(None, None, None)
        super().__exit__(*exception)
        while self._calls:
            self._call_ends(self._calls.pop()[1])

    def _enter(self, path: str, module: Module, _args: Any) -> None:
        if get_ident() == self._thread:
            self._calls.append((module, self._call_begins(path, module), _handled()))

    def _leave(self, module: Module, _args: Any, output: Any) -> None:
        if self._drop_to(module):
            _, call, before = self._calls[-1]
            if not _has_raised(before):
                self._call_returns(call, output)
            self._calls.pop()
            self._call_ends(call)

    def _drop_to(self, module: Module) -> bool:
        """Return whether a call of this module runs here, after ending the calls left open inside of it."""
        calls = self._calls
        if not calls or get_ident() != self._thread:
            return False
        if calls[-1][0] is not module:
            if all(each[0] is not module for each in calls):
                return False
            while calls[-1][0] is not module:
                self._call_ends(calls.pop()[1])
        return True

    def _innermost(self) -> Any:
        """Return the object for the innermost call; None outside of all."""
        return self._calls[-1][1] if self._calls else None

    def _is_inside_itself(self) -> bool:
        """Return whether the module of the innermost call is called by itself."""
        module = self._calls[-1][0]
        return len(self._calls) > 1 and any(each[0] is module for each in self._calls[:-1])

    def _call_begins(self, path: str, module: Module) -> Any:
        """Return an object for a call."""
        raise NotImplementedError

    def _call_returns(self, call: Any, output: Any) -> None:
        """Look at the output of a call, before the call ends."""

    def _call_ends(self, call: Any) -> None:
        """Forget a call, the innermost one until now; it may have raised."""
