"""The hooks of all modules, and those that run before a module stores something."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lucid.autograd.hooks.firing import fire, hook_name
from lucid.autograd.hooks.registration import changing
from lucid.autograd.hooks.table import ActiveHooks, Entry, HookTable
from lucid.errors import HookTypeError
from lucid.nn.module.paths import module_path

if TYPE_CHECKING:
    from collections.abc import Generator

    from lucid.nn.module.module import Module


def registered_value(table: HookTable, module: Module, name: str, value: Any, kind: str, expected: type) -> Any:
    """Return `value`, about to be stored in `module` under `name`, after the hooks in `table`: of type `expected`."""
    if not table:
        return value

    def call(hook: Entry, value: Any) -> Any:
        result = hook.func(module, name, value)
        if result is not None and not isinstance(result, expected):
            raise HookTypeError(
                f"{kind} registration hook {hook_name(hook)}: expected None or a {expected.__name__} to be returned, "
                f"got {type(result).__name__}"
            )
        return result

    return fire(
        table.snapshot(), call, value, f"{kind} registration hook", lambda: f"'{name}' of {module_path(module)}"
    )


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
        self.forward_with_kwargs = HookTable("_forward_hooks_with_kwargs", everywhere)
        self.forward_always_called = HookTable("_forward_hooks_always_called", everywhere)
        self.parameter_registration = HookTable("parameter registration")
        self.buffer_registration = HookTable("buffer registration")
        self.module_registration = HookTable("module registration")


global_tables = GlobalTables()

_blocks = itertools.count()


@contextmanager
def calls_noted() -> Generator[None]:
    """Report each module call in the block to captures, also calls of modules without hooks."""
    # it looks like a hook that waits for all calls, so that none passes by where hooks are looked for
    kind = f"calls noted {next(_blocks)}"
    with changing:
        everywhere[kind] = ()
    try:
        yield
    finally:
        with changing:
            del everywhere[kind]
