"""Writes of NumPy's functions into tensors: counted as changes in place, once the values saved of them are kept."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import INFERENCE, TensorBase, version_of
from lucid.autograd.recording.views import before_change, check_change
from lucid.tensor.numpy_calls.definition import tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES = frozenset(("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"))
"""The functions that write into their first argument."""


def count_writes(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a write into tensors: those given to a function as `out`, and those that it is meant to change.

    Raises
    ------
    InplaceError
        If one may not be changed.
    """
    for target in written(name, function, args, kwargs):
        check_change(target, recording=False)
        before_change(target)
        if (version := version_of(target)) is not INFERENCE:
            version[0] += 1


def written(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[TensorBase]:
    """Return the tensors that a function writes into."""
    if name in WRITES or name.endswith(".at"):
        targets = args[:1] or tuple(kwargs.values())[:1]
    elif isinstance(function, np.ufunc):
        targets = (*args[function.nin :], kwargs.get("out"))
    else:
        place = place_of_out(function)
        targets = (args[place] if 0 <= place < len(args) else kwargs.get("out"),)
    return [*tensors_in(targets)]


@functools.cache
def place_of_out(function: Callable[..., Any]) -> int:
    """Return the place of `out` among the arguments of a function; -1 if it goes by its name, or there is none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return -1
    names = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    return names.index("out") if "out" in names else -1
