"""`scipy.special`, differentiated: see `lucid.scipy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.numpy.border import names_of, wrapped
from lucid.scipy.rules import functions

if TYPE_CHECKING:
    from collections.abc import Callable

__all__: list[str] = []


def _wrapped(name: str, function: Callable[..., Any]) -> Any:
    # where SciPy dispatches by the array API standard, its name is of a function around the ufunc
    return wrapped(name, getattr(functions.UFUNCS, getattr(function, "__name__", ""), function))


__getattr__, __dir__ = names_of("scipy.special", globals(), _wrapped)
