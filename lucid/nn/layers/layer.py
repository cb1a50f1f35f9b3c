"""Common parts of layers: the display of settings, sizes for each axis, initial values of parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lucid.nn import init
from lucid.nn.module.module import Module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.nn.parameter import Parameter


class Layer(Module):
    """The base of layers that show settings: the attributes named in `_shown`."""

    _shown: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        values = [getattr(self, name) for name in self._shown]
        # NumPy's numbers as Python's: their repr names the type
        shown = [repr(value) if isinstance(value, str) else str(value) for value in values]
        return ", ".join(f"{name}={value}" for name, value in zip(self._shown, shown, strict=True))


def per_axis(size: int | Sequence[int], axes: int = 1) -> tuple[int, ...]:
    """Return one number for each axis; a single one is repeated for all."""
    sizes = tuple(size) if isinstance(size, Iterable) else (size,)
    return sizes * axes if len(sizes) == 1 else sizes


def draw_uniform(weight: Parameter, bias: Parameter | None) -> None:
    """Draw parameters from [-k, k), k = 1 / sqrt(n) with the number n of inputs that an output sums."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = init.fans(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


def draw_within(module: Module, features: int) -> None:
    """Draw the parameters anew, uniform in [-k, k), k = 1 / sqrt(features)."""
    bound = 1 / math.sqrt(features)
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)
