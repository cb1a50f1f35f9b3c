"""Locks that no fork leaves locked, and values made once by the first thread to ask."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K")
V = TypeVar("V")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """Return a lock that is open in a forked child, whatever other threads of the parent did at that moment.

    Those threads are not in the child, so that nobody there would open what they have locked.
    """
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def new_rlock() -> Any:
    """Return a reentrant lock, made as by `new_lock`."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


class Once(Generic[K, V]):
    """Values by key, each made by the first thread that asks for it.

    Others that ask for the same wait for it; who asks for another waits for nobody. Where making it fails, the next
    one who asks tries again.
    """

    def __init__(self) -> None:
        self._made: dict[K, V] = {}
        self._locks: dict[K, Any] = {}

    def __call__(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, made if need be."""
        if key not in self._made:
            with self._locks.setdefault(key, new_rlock()):
                if key not in self._made:
                    self._made[key] = make()
        return self._made[key]


def _open_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # noqa: SLF001  what Python's own modules call


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
