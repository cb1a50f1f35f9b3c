"""Locks that no fork leaves locked."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """Return a lock that is open in a forked child, whatever other threads of the parent did at that moment.

    Those threads are not in the child, so that nobody there would open what they have locked.
    """
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def new_rlock() -> Any:
    """Return what `new_lock` does, for a lock that its holder may lock again."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _open_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # noqa: SLF001  what Python's own modules call


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
