"""The hooks around an optimiser's step: those of all optimisers of the process, and its own.

One that cannot be called is refused with a TypeError.
"""

from __future__ import annotations

import functools
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from lucid.autograd.hooks.firing import every_step_hook, fire, hook_name
from lucid.autograd.hooks.table import Entry, HookTable, RemovableHandle, register
from lucid.base.capture import captures, note_places
from lucid.errors import HookError

if TYPE_CHECKING:
    from collections.abc import Callable


# the hooks of all optimisers
pre_hooks = HookTable("step pre-hooks of all optimizers")
post_hooks = HookTable("step post-hooks of all optimizers")


def register_optimizer_step_pre_hook(hook: Callable[..., Any], *, every_step: bool = False) -> RemovableHandle:
    """Return the handle of ``hook(optimizer, args, kwargs)``, called before each step of every optimiser.

    It fires before the optimiser's own hooks, and may replace the arguments as those of
    `Optimizer.register_step_pre_hook` do.

    Examples
    --------
    >>> import lucid
    >>> from lucid.optim.optimizer import register_optimizer_step_pre_hook
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)])
    >>> with register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print(type(optimizer).__name__)):
    ...     optimizer.step()
    SGD
    """
    return register(pre_hooks, every_step_hook(hook, every_step), "register_optimizer_step_pre_hook")


def register_optimizer_step_post_hook(hook: Callable[..., Any], *, every_step: bool = False) -> RemovableHandle:
    """Return the handle of ``hook(optimizer, args, kwargs)``, called after each step of every optimiser.

    It fires after the optimiser's own hooks.
    """
    return register(post_hooks, every_step_hook(hook, every_step), "register_optimizer_step_post_hook")


def with_step_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `step` that fires the step hooks of its optimizer, once even if it calls its base's."""

    @functools.wraps(step)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._stepping:
            return step(self, *args, **kwargs)
        return _step_with_hooks(self, step, (self, *args), kwargs)

    return hooked


def _step_with_hooks(optimizer: Any, step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    own_pre_hooks, own_post_hooks = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks  # noqa: SLF001
    name = type(optimizer).__name__
    if captures:
        note_places(table.active for table in (pre_hooks, own_pre_hooks, own_post_hooks, post_hooks))
    if pre_hooks or own_pre_hooks:
        hooks = pre_hooks.snapshot() + own_pre_hooks.snapshot()
        args, kwargs = fire(hooks, partial(_call_pre_hook, optimizer), (args, kwargs), "step pre-hook", name)
    # stored past `__setattr__`: a Ctrl-C that came as that begins would leave the mark on
    attributes: dict[str, Any] = optimizer.__dict__
    attributes["_stepping"] = True
    if "_opt_called" in attributes:
        # put there by a scheduler, which wants to know
        attributes["_opt_called"] = True
    try:
        result = step(*args, **kwargs)
    finally:
        attributes["_stepping"] = False
    if own_post_hooks or post_hooks:
        hooks = own_post_hooks.snapshot() + post_hooks.snapshot()
        fire(hooks, lambda hook, _: hook.func(optimizer, args, kwargs), None, "step post-hook", name)
    return result


def _call_pre_hook(optimizer: Any, hook: Entry, call: tuple[Any, Any]) -> tuple[Any, Any] | None:
    """Return the arguments that take the place of those given, if the hook returns any."""
    replacement = hook.func(optimizer, *call)
    if replacement is not None and not (isinstance(replacement, tuple) and len(cast("Any", replacement)) == 2):
        raise HookError(
            f"step pre-hook {hook_name(hook)}: expected None or a tuple (args, kwargs), got {replacement!r}"
        )
    return cast("Any", replacement)
