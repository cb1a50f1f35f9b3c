"""Hooks of modules that receive the context of the call that fires them."""

from __future__ import annotations

from typing import Any

from lucid.autograd.hooks.context import CallRecord, HookContext, InContext
from lucid.autograd.modes.state import thread
from lucid.nn.module.paths import names_of


class InCall(InContext):
    """A hook of a module that gets a `HookContext` after its arguments."""

    __slots__ = ()

    def __call__(self, *args: Any) -> Any:
        """Return the result of the hook."""
        module, *values = args
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
        return self.func(*args, HookContext(self.phase, tuple(values), module, names_of(module), record))
