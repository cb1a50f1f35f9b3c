"""`numpy.testing` on the values of recorded arrays: see `lucid.numpy`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lucid.numpy.border import names_of
from lucid.tensor.numpy_calls.protocols import as_plain

if TYPE_CHECKING:
    from collections.abc import Callable


def comparing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return one of NumPy's assertions on values; those that call a function hand its arguments on as they are."""
    if "raises" in name or "warn" in name:
        return function

    @functools.wraps(function)
    def compare(*args: object, **kwargs: object) -> Any:
        return function(*map(as_plain, args), **{key: as_plain(value) for key, value in kwargs.items()})

    return compare


__getattr__, __dir__ = names_of("testing", globals(), comparing)
