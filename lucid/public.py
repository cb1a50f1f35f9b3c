"""Public places of functions and classes: their `__module__`, as `help` shows it and pickles name it.

It is the module in whose `__all__` it stands under its own name, and of several the one nearest to `lucid`; the file in
which it is written may move. `inspect.getsource` finds a function by its code. Of a class it looks in the file of the
module that it names: `written_in` says which it is.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["later", "place", "publish", "written_in"]

# The beginning of the names of lucid's own files, by which its frames are told from a user's.
FOLDER = __file__.removesuffix("public.py")
_published: set[str] = set()
_written: dict[Any, str] = {}


def publish(namespace: dict[str, Any], /, **elsewhere: str) -> None:
    """Have a module's exports say that they are public there; called at the module's end.

    `elsewhere` gives the module of what is public nearer to `lucid`, too, in a module that may not be imported yet.
    """
    here: str = namespace["__name__"]
    names: list[str] = namespace.get("__all__", [])
    for name in {*names, *elsewhere}:
        if name in namespace:
            _place(namespace[name], name, elsewhere.get(name, here))
    _published.update((here, *elsewhere.values()) if names else elsewhere.values())


def _place(value: Any, name: str, module: str) -> None:
    if not isinstance(value, FunctionType | type) or value.__name__ != name:
        return
    before = value.__module__
    # what is Python's or NumPy's stays theirs
    if before.startswith("lucid") and (before not in _published or module.count(".") < before.count(".")):
        place(value, module)


def place(value: Any, module: str) -> None:
    """Let a function or a class say that it is public in `module`."""
    _written.setdefault(value, value.__module__)
    value.__module__ = module


def later(namespace: dict[str, Any], places: dict[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module that imports some names when they are first asked for.

    `places` has the module of each, with its name there if that is another; or that it is one.
    """
    here: str = namespace["__name__"]

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {here!r} has no attribute {name!r}")
        path, _, own = places[name].partition(":")
        module = import_module(path)
        value = namespace[name] = getattr(module, own or name, module)
        _place(value, name, here)
        return value

    return get, lambda: sorted({*namespace, *namespace["__all__"]})


def written_in(value: Any) -> str:
    """Return the name of the module with a function's or a class's source.

    >>> import lucid
    >>> from lucid.public import written_in
    >>> lucid.exp.__module__, written_in(lucid.exp)
    ('lucid', 'lucid.ops.elementwise.exponential')
    """
    return _written.get(value) or str(value.__module__)
