"""Context managers as decorators, also of generators and coroutines: they hold in each step, not between."""

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING, Any, Self, TypeVar

from lucid.autograd.modes.leaving import Context
from lucid.errors import HookTypeError, warn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

F = TypeVar("F", bound="Callable[..., Any]")


def check_bool(value: Any, what: str) -> bool:
    """Return `value`; raise `HookTypeError` if it is no bool: a string or a function would silently count as True."""
    if not isinstance(value, bool):
        raise HookTypeError(f"{what}: expected a bool, got {type(value).__name__}")
    return value


class Decorating(Context):
    """A context manager that decorates functions: each call runs inside a copy of it.

    Of a generator, a coroutine or an asynchronous generator each step does: what runs between two steps, in the caller
    or in another task, sees nothing of it.
    """

    def __enter__(self) -> None:
        raise NotImplementedError

    def clone(self) -> Self:
        """Return an equal context manager for one use, so that threads and recursion do not mix."""
        return type(self)()

    def __call__(self, function: F) -> F:
        """Return `function` with the mode around each of its calls, or around each step of its generator or coroutine.

        Warns
        -----
        FutureWarning
            If `function` is a class: what comes back is a function that makes its instances.
        """
        if not callable(function):
            raise HookTypeError(f"{type(self).__name__}: function: expected a callable, got {type(function).__name__}")
        if inspect.isclass(function):
            warn(
                f"{type(self).__name__} decorates the class {function.__qualname__}: only making an instance runs "
                "inside, and the name now stands for a function: decorate __init__, or the methods that are meant",
                FutureWarning,
            )
            return functools.wraps(function, updated=())(_inside(self.clone, function))  # pyright: ignore[reportReturnType]
        return functools.wraps(function)(_inside(self.clone, function))  # pyright: ignore[reportReturnType]


def _inside(mode: Callable[[], Decorating], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the same kind as `function`, with each call or step inside a new ``mode()``."""
    if inspect.isgeneratorfunction(function):

        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            return (yield from in_steps(mode, function(*args, **kwargs)))  # pyright: ignore[reportUnknownVariableType]

        return generator
    if inspect.iscoroutinefunction(function):

        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            return await in_steps(mode, function(*args, **kwargs))

        return coroutine
    if inspect.isasyncgenfunction(function):

        async def async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            inner = function(*args, **kwargs)
            step: Any = inner.asend
            sent: Any = None
            while True:
                try:
                    asked = [await in_steps(mode, step(sent))]
                except StopAsyncIteration:
                    return
                finally:
                    sent = None
                try:
                    sent, step = (yield asked.pop()), inner.asend
                except GeneratorExit:
                    await in_steps(mode, inner.aclose())
                    raise
                except BaseException as error:  # noqa: BLE001  as in `_in_steps`
                    sent, step = error, inner.athrow

        return async_generator

    def call(*args: Any, **kwargs: Any) -> Any:
        with mode():
            return function(*args, **kwargs)

    return call


def _in_steps(mode: Callable[[], Decorating], inner: Any) -> Generator[Any, Any, Any]:
    """Run a generator or coroutine to its end, each step inside a new ``mode()``, and return its result."""
    step: Any = inner.send
    sent: Any = None
    while True:
        try:
            with mode():
                asked = [step(sent)]
        except StopIteration as end:
            return end.value
        finally:
            sent = None  # an exception that was thrown in holds this frame
        try:
            # the list is empty while this waits: what was yielded belongs to the caller alone
            sent, step = (yield asked.pop()), inner.send
        except GeneratorExit:
            with mode():
                inner.close()
            raise
        except BaseException as error:  # noqa: BLE001  it goes on into the step, which may raise it again
            sent, step = error, inner.throw


# for `yield from` in a generator and for `await` in a coroutine alike
in_steps: Any = types.coroutine(_in_steps)
