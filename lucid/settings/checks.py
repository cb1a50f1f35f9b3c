"""Checks of settings by the table, in constructors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from lucid.arguments import checked, shown
from lucid.errors import SettingError
from lucid.settings.layers import LAYERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.settings.ranges import Range

P = ParamSpec("P")
M = TypeVar("M")


def range_of(kind: type[Any], name: str) -> Range | None:
    """Return the range of a setting of a layer: its own, or that of all layers; None if it is not in the table."""
    own: dict[str, Range] = getattr(kind, "_ranges", {})
    return own.get(name) or (LAYERS[name].range if name in LAYERS else None)


def ranged(init: Callable[Concatenate[M, P], None]) -> Callable[Concatenate[M, P], None]:
    """Return the constructor of a layer with its arguments checked: their types as by `checked`, then their ranges.

    Raises
    ------
    SettingError
        On a call, for the first setting out of its range; ArgumentError for one of a wrong type.
    """

    @functools.wraps(init)
    def call(self: M, *args: P.args, **kwargs: P.kwargs) -> None:
        signature = _signature(init)
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError:
            init(self, *args, **kwargs)  # which says which argument is missing or too much
            return
        for name, value in bound.arguments.items():
            if value is not None and (allowed := range_of(type(self), name)):
                _check(self, name, value, allowed)
            elif type(value) in {int, np.bool_} and signature.parameters[name].annotation == "bool":
                # 0 and 1, which functions do not take
                bound.arguments[name] = bool(value)
        init(*bound.args, **bound.kwargs)

    return checked(call)


# On the first call, as in `lucid.arguments`.
_signature = functools.cache(inspect.signature)


def _check(layer: Any, name: str, value: Any, allowed: Range) -> None:
    axes: int | None = getattr(layer, "axes", None) if allowed.per_axis else None
    entries: list[Any] = [value]
    if isinstance(value, Iterable) and not isinstance(value, str) and getattr(cast("Any", value), "ndim", 1):
        entries = [*cast("Iterable[Any]", value)]
        if axes is not None and len(entries) not in {1, axes}:
            raise SettingError(
                f"{type(layer).__name__}: {name}: expected one number, or one for each of {axes} dimensions, "
                f"got {len(entries)}: {value}"
            )
    for entry in entries:
        if entry is not None and not allowed.holds(entry):
            got = shown(entry) if entry is value else f"{entry} in {value}"
            raise SettingError(f"{type(layer).__name__}: {name}: expected {allowed.text}, got {got}")
