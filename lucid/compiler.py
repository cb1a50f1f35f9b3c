"""What code says to PyTorch's compiler, of which lucid has none: functions come back as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["allow_in_graph", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "reset"]

F = TypeVar("F")


def allow_in_graph(fn: F) -> F:
    """Return `fn`, or a list of functions, as it is.

    >>> import lucid
    >>> lucid.compiler.allow_in_graph(abs) is abs
    True
    """
    return fn


@overload
def disable(fn: F, recursive: bool = True, *, reason: str | None = None) -> F: ...
@overload
def disable(fn: None = None, recursive: bool = True, *, reason: str | None = None) -> Callable[[F], F]: ...
def disable(fn: F | None = None, recursive: bool = True, *, reason: str | None = None) -> F | Callable[[F], F]:  # noqa: ARG001
    """Return `fn` as it is, which is never compiled; without it a decorator that does.

    >>> import lucid
    >>> lucid.compiler.disable(abs) is abs, lucid.compiler.disable(recursive=False)(abs) is abs
    (True, True)
    """
    return allow_in_graph if fn is None else fn


def is_compiling() -> bool:
    """Return False: functions run, they are not traced.

    >>> import lucid
    >>> lucid.compiler.is_compiling()
    False
    """
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Return None: there is nothing compiled to forget."""
