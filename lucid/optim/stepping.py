"""The hooks around an optimiser's step: those of all optimisers of the process, and its own."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

from lucid.autograd.hooks import RemovableHandle, add_hook_note, check_callable, hook_name, moving
from lucid.errors import HookError

if TYPE_CHECKING:
    from collections.abc import Callable

# what the hooks of all optimisers are kept in, in the order in which they fire
_pre_hooks: list[Callable[..., Any]] = []
_post_hooks: list[Callable[..., Any]] = []


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Return the handle of ``hook(optimizer, args, kwargs)``, called before each step of every optimiser.

    It fires before the optimiser's own hooks, and may replace the arguments as those of
    `Optimizer.register_step_pre_hook` do.

    Raises
    ------
    TypeError
        If `hook` cannot be called.

    Examples
    --------
    >>> import lucid
    >>> from lucid.optim.optimizer import register_optimizer_step_pre_hook
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)])
    >>> with register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print(type(optimizer).__name__)):
    ...     optimizer.step()
    SGD
    """
    return register(_pre_hooks, hook, "register_optimizer_step_pre_hook")


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Return the handle of ``hook(optimizer, args, kwargs)``, called after each step of every optimiser.

    It fires after the optimiser's own hooks.

    Raises
    ------
    TypeError
        If `hook` cannot be called.
    """
    return register(_post_hooks, hook, "register_optimizer_step_post_hook")


def register(
    hooks: list[Callable[..., Any]], hook: Callable[..., Any], where: str, prepend: bool = False
) -> RemovableHandle:
    """Return the handle of a hook that was added to a list, behind the others or ahead of them."""
    check_callable(hook, where)
    with moving:
        hooks.insert(0 if prepend else len(hooks), hook)
    return RemovableHandle(hooks, hook)


def fire(optimizer: Any, hook: Callable[..., Any], kind: str, index: int, *args: Any) -> Any:
    """Return ``hook(optimizer, *args)``; an error names the hook, which is number `index` of its kind."""
    try:
        return hook(optimizer, *args)
    except Exception as error:
        add_hook_note(error, hook, kind, type(optimizer).__name__, index)
        raise


def with_step_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `step` around which the step hooks of its optimizer fire, once also where it calls its base's."""

    @functools.wraps(step)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._stepping:
            return step(self, *args, **kwargs)
        return _step_with_hooks(self, step, (self, *args), kwargs)

    return hooked


def _step_with_hooks(optimizer: Any, step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for index, hook in enumerate((*_pre_hooks, *optimizer._step_pre_hooks)):  # noqa: SLF001
        replacement = fire(optimizer, hook, "step pre-hook", index, args, kwargs)
        if replacement is None:
            continue
        pair = cast("tuple[Any, Any]", replacement)
        if not (isinstance(replacement, tuple) and len(pair) == 2):
            raise HookError(
                f"step pre-hook {hook_name(hook)}: expected None or a tuple (args, kwargs), got {replacement!r}"
            )
        args, kwargs = pair
    optimizer._stepping = True  # noqa: SLF001
    try:
        result = step(*args, **kwargs)
    finally:
        optimizer._stepping = False  # noqa: SLF001
    for index, hook in enumerate((*optimizer._step_post_hooks, *_post_hooks)):  # noqa: SLF001
        fire(optimizer, hook, "step post-hook", index, args, kwargs)
    return result
