"""The decorator of a script's main function, under PyTorch's name: its errors reach all processes anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["record"]

F = TypeVar("F", bound="Callable[..., object]")


def record(fn: F, error_handler: None = None) -> F:  # noqa: ARG001  PyTorch's, which writes a file for torchrun
    """Return `fn`: an exception that nobody catches is printed with its rank, and ends all processes, without it too.

    Examples
    --------
    >>> from lucid.distributed.elastic.multiprocessing.errors import record
    >>> @record
    ... def main():
    ...     return 3
    >>> main()
    3
    """
    return fn
