"""The end of a context manager, in C: no Ctrl-C falls between the end of a block and its undoing."""

from __future__ import annotations

import io
from collections import deque
from itertools import starmap
from operator import call
from threading import get_ident
from typing import Any, NoReturn

from lucid.errors import GraphError


class _Leaving(io.IOBase):
    """The one class of Python's library with an `__exit__` in C that calls an attribute: its `close`."""

    __slots__ = ("close",)

    # nothing is open, so that `close` is not called when this goes
    closed: Any = True  # pyright: ignore[reportIncompatibleMethodOverride]


class _Exit:
    """`__exit__` of a `Context`."""

    def __get__(self, context: Context | None, kind: type[Context]) -> Any:
        # what a subclass of a user calls `leave` is another thing
        return self if context is None else Context.leave(context)

    def __call__(self, context: Context, *exception: object) -> None:
        """Leave `context`: `contextlib.ExitStack` takes `__exit__` from the class."""
        Context.leave(context)(*exception)


class _Blocks:
    """The blocks of a `Context` open in one thread: their undoing calls, and the caller of these in C."""

    __slots__ = ("leave", "undo")

    def __init__(self) -> None:
        self.undo: list[tuple[Any, ...]] = []
        leaving: Any = _Leaving()
        leaving.close = starmap(call, iter(self.undo.pop, None)).__next__
        self.leave = leaving.__exit__


class Context:
    """A context manager with an end that cannot be missed.

    Python looks for Ctrl-C at the first instruction of every function and after every call. An `__exit__` in Python may
    so be over before it has begun, and what it should have put back stays for good. Here `__enter__` adds to `undo` the
    call that puts back, function first, and makes the change as its last statement, by a store, after which nothing
    can be interrupted before the block begins; the end of the block makes that call in C.

    One object may be entered again, and by several threads at once. A copy is outside of every block.
    """

    def __init__(self, otherwise: tuple[Any, ...] | None = None) -> None:
        """Prepare the end; `otherwise` is the call of an `__exit__` without an `__enter__`."""
        self._otherwise = (_no_entry_to_leave, type(self).__name__) if otherwise is None else otherwise
        self._blocks: dict[int, _Blocks] = {}  # by thread

    __exit__ = _Exit()

    def _here(self) -> _Blocks:
        """Return the blocks of this thread."""
        try:
            return self._blocks[get_ident()]
        except KeyError:
            return self._blocks.setdefault(get_ident(), _Blocks())

    @property
    def undo(self) -> list[tuple[Any, ...]]:
        """The undoing calls of the blocks of this thread, the innermost last."""
        return self._here().undo

    def leave(self) -> Any:
        """Return a callable that makes the call that was added last."""
        blocks = self._here()
        if not blocks.undo:
            blocks.undo.append(self._otherwise)
        return blocks.leave

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy."""
        return {name: value for name, value in self.__dict__.items() if name != "_blocks"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become a copy."""
        self.__dict__.update(state)
        self._blocks = {}


def together(*steps: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the one call that makes several, each a function and its arguments, without a return to Python."""
    return deque, starmap(call, steps), 0


def _no_entry_to_leave(name: str) -> NoReturn:
    raise GraphError(f"{name}: __exit__ without an __enter__ of its own")
