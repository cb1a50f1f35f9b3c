"""How hooks of every kind are called, and what an error says of the one that raised it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lucid.errors import HookTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Hook = TypeVar("Hook")
Value = TypeVar("Value")


class StandIn:
    """The base of what stands in place of a user's hook: errors name it by that hook, its attribute `func`."""

    __slots__ = ()


def check_callable(hook: object, where: str) -> None:
    """Raise `HookTypeError` unless `hook` can be called."""
    if not callable(hook):
        raise HookTypeError(f"{where}: expected a callable hook, got {type(hook).__name__}: {hook!r}")


def fire(
    hooks: Iterable[Hook],
    call: Callable[[Hook, Value], Value | None],
    value: Value,
    kind: str,
    owner: str | Callable[[], str],
) -> Value:
    """Return `value` after each hook in turn has seen it: None keeps it, anything else replaces it.

    Parameters
    ----------
    hooks : iterable
        A snapshot, so that hooks may come and go meanwhile: of a list a tuple, of a table its entries.
    call : callable
        ``call(hook, value)`` calls one of them and checks what that returns.
    value : object
        What they may replace; None if nothing.
    kind, owner : str
        For the note on an error. An owner that takes long to name is a function, called only then.
    """
    for index, hook in enumerate(hooks):
        try:
            result = call(hook, value)
        except Exception as error:
            add_hook_note(error, hook, kind, owner if isinstance(owner, str) else owner(), index)
            raise
        if result is not None:
            value = result
    return value


def add_hook_note(error: BaseException, hook: object, kind: str, owner: str, index: int) -> None:
    """Note on `error` which hook raised it: its name, its kind, what it hangs on, and its position in the list."""
    error.add_note(f"raised by hook {hook_name(hook)}: {kind} number {index} of {owner}")


def hook_name(hook: object) -> str:
    """Return the hook's qualified name and, where Python knows it, file and line."""
    while isinstance(hook, partial | StandIn):
        hook = cast("Any", hook).func
    inner: Any = hook
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    if code is None:
        code = getattr(getattr(inner.__class__, "__call__", None), "__code__", None)  # noqa: B004  its code, not whether
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else str(name)


def position_of(hook: object, hooks: Sequence[object]) -> int:
    """Return the position of `hook` among `hooks`, for a loop that does not count."""
    return next(index for index, other in enumerate(hooks) if other is hook)
