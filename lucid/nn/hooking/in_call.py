"""Hooks of modules that are told of the call in which they fire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.hooks.context import CallRecord, HookContext, InContext
from lucid.autograd.hooks.table import register
from lucid.autograd.modes.state import thread
from lucid.nn.module.paths import names_of

if TYPE_CHECKING:
    from collections.abc import Callable


class InCall(InContext):
    """A hook of a module that gets a `HookContext` after its arguments."""

    __slots__ = ()

    def __call__(self, *given: Any) -> Any:
        """Return what the hook returns."""
        module, *values = given
        state = thread.state
        record: CallRecord | None = None
        if not self.phase.startswith("forward"):
            # the node that runs stands for the call, or leads to it
            node: Any = state.passes[-1].node
            record = getattr(node, "call", node).record
        elif state.calls and state.calls[-1].module() is module:
            record = state.calls[-1]
        # none where the hook came while the module ran
        record = record or CallRecord(module)
        return self.func(*given, HookContext(self.phase, tuple(values), module, names_of(module), record))


def watch_calls(
    module: Any, begin: Callable[[CallRecord], None], end: Callable[[CallRecord, Any], None] | None = None
) -> None:
    """Let a tool know of the calls of a module on this thread: ``begin(record)`` comes before all its hooks.

    ``end(record, output)`` comes after those that are there now, unless the call raises; what has to be done in any
    case `begin` adds to the record's `ends`. Calls of other threads, and one that runs already, are passed over.
    """
    here = thread.state

    def first(module: Any, _args: tuple[Any, ...]) -> None:
        if thread.state is here and here.calls and here.calls[-1].module() is module:
            begin(here.calls[-1])

    def last(module: Any, _args: tuple[Any, ...], output: Any) -> None:
        if end is not None and thread.state is here and here.calls and here.calls[-1].module() is module:
            end(here.calls[-1], output)

    marks = [module._hooks_with_context]  # noqa: SLF001  so that its calls have records
    register(module._forward_pre_hooks, first, "watch_calls", prepend=True, marks=marks)  # noqa: SLF001  as above
    if end is not None:
        module.register_forward_hook(last)
