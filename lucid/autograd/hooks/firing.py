"""Calls of hooks of every kind, and notes on an error about the hook that raised it."""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeVar

from lucid.base.capture import capture_of_this_thread, captures
from lucid.errors import HookTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Hook = TypeVar("Hook")
Value = TypeVar("Value")


class StandIn:
    """Base of stand-ins for a user's hook: errors name them by that hook, the attribute `func`."""

    __slots__ = ("func",)

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func: Any = func


class EveryStep(StandIn):
    """A hook that is called in each step, even of a CUDA graph: the graph is split in two parts around the call."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the hook's result, called between two parts of a capture if this thread is in one."""
        capture = capture_of_this_thread() if captures else None
        return self.func(*args, **kwargs) if capture is None else capture.call_outside(self.func, args, kwargs)


class Swapped(StandIn):
    """Base of temporary stand-ins for a registered hook."""

    __slots__ = ()


class Resting(Swapped):
    """A hook that is switched off, in its place: it leaves everything as it is."""

    __slots__ = ()

    def __call__(self, *args: object, **kwargs: object) -> None:
        """Do nothing."""


class Counted(Swapped):
    """A hook with a count of its calls, and the nanoseconds that they take."""

    __slots__ = ("calls", "time")

    def __init__(self, func: Callable[..., Any]) -> None:
        super().__init__(func)
        self.calls = self.time = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the hook's result; one that rests is not called, and does not count."""
        if is_resting(self.func):
            return None
        begin = perf_counter_ns()
        try:
            return self.func(*args, **kwargs)
        finally:
            self.calls += 1
            self.time += perf_counter_ns() - begin


def stand_ins(hook: Any, kind: type[StandIn] = Swapped) -> Iterator[Any]:
    """Yield `hook`, the hook that it stands for, and so on, up to the first of another kind: the registered one."""
    while isinstance(hook, kind):
        yield hook
        hook = hook.func
    yield hook


def registered_hook(hook: Any) -> Any:
    """Return the registered hook behind `hook`."""
    while isinstance(hook, Swapped):
        hook = hook.func
    return hook


def is_resting(hook: Any) -> bool:
    """Return whether the registered hook behind `hook` is switched off."""
    return any(isinstance(each, Resting) for each in stand_ins(hook))


def without(hook: Any, stand_in: Swapped) -> Any:
    """Return the replacement of `hook` once `stand_in` is gone."""
    if hook is stand_in:
        return hook.func
    if isinstance(hook, Swapped):
        hook.func = without(hook.func, stand_in)
    return hook


def every_step_hook(hook: Any, every_step: bool) -> Any:
    """Return the hook itself, or, with `every_step`, a stand-in that replays of a step call, too."""
    if every_step.__class__ is not bool:
        raise HookTypeError(f"every_step: expected a bool, got {type(every_step).__name__}: {every_step!r}")
    return EveryStep(hook) if every_step and callable(hook) else hook


def note_fired(hooks: Iterable[object], kind: str) -> None:
    """Tell the capture of this thread, if it is in one, the hooks that run now and not at replays."""
    capture = capture_of_this_thread()
    for hook in hooks if capture is not None else ():
        inner: Any = hook
        while isinstance(inner, StandIn) and not isinstance(inner, EveryStep):
            inner = inner.func
        # checkpointing and the like hang hooks of lucid's own; tools are named as a user's are
        module = str(getattr(inner, "__module__", ""))
        own = f"{module}.".startswith("lucid.") and not f"{module}.".startswith("lucid.hooks.")
        if capture is not None and not own and not isinstance(inner, EveryStep):
            capture.fired[hook_name(inner)] = kind


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
    if captures:
        hooks = tuple(hooks)
        note_fired(hooks, kind)
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
    """Note on `error` the hook that raised it: its name, its kind, its owner, and its position in the list."""
    error.add_note(f"raised by hook {hook_name(hook)}: {kind} number {index} of {owner}")


def hook_name(hook: object) -> str:
    """Return the hook's qualified name and, if Python knows it, file and line."""
    inner: Any = hook
    while isinstance(inner, partial | StandIn):
        inner = inner.func
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    if code is None:
        code = getattr(getattr(inner.__class__, "__call__", None), "__code__", None)  # noqa: B004  its code, not whether
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else str(name)
