"""What the settings of layers may be: a range for each name, since a name means the same in every layer.

`ranged` checks them where a layer is made. A layer in which a name means another thing says so in `_ranges`.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np

from lucid.arguments import checked, shown
from lucid.errors import ArgumentError, SettingError
from lucid.ops.base.scalars import as_int

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.nn.module.module import Module

P = ParamSpec("P")
M = TypeVar("M", bound="Module")


class Range(NamedTuple):
    """What a setting may be, and each entry of one that is a sequence; None always may."""

    text: str
    holds: Callable[[Any], bool]
    per_axis: bool = False
    """Whether a sequence has an entry for each of the `axes` of the layer, or one for all."""


def whole(least: int, *, per_axis: bool = False, or_word: bool = False) -> Range:
    """Return the range of whole numbers of at least `least`, as sizes of arrays can be.

    With `or_word` a string is the layer's own to look at.
    """

    def holds(value: Any) -> bool:
        if or_word and isinstance(value, str):
            return True
        if isinstance(value, bool | np.bool_):
            return False
        try:
            return least <= as_int(value, "") <= sys.maxsize
        except ArgumentError:
            return False

    return Range(f"a whole number of at least {least}", holds, per_axis)


def number(text: str, holds: Callable[[float], bool]) -> Range:
    """Return a range of numbers, which NaN is not in."""

    def of_number(value: Any) -> bool:
        if isinstance(value, np.bool_):
            return False
        try:
            return holds(float(value))
        except (OverflowError, TypeError):
            return False

    return Range(text, of_number)


def words(*options: str) -> Range:
    """Return the range of some words."""
    return Range(f"one of {', '.join(map(repr, options))}", options.__contains__)


FINITE = number("a finite number", math.isfinite)
ANY = number("a number that is not NaN", lambda value: not math.isnan(value))
NOT_NEGATIVE = number("a finite number of at least 0", lambda value: 0 <= value < math.inf)
POSITIVE = number("a finite number above 0", lambda value: 0 < value < math.inf)
NOT_ZERO = number("a finite number other than 0", lambda value: value != 0 and math.isfinite(value))
SHARE = number("a number in [0, 1]", lambda value: 0 <= value <= 1)

RANGES: dict[str, Range] = {
    **dict.fromkeys(("dilation", "kernel_size", "output_size", "stride"), whole(1, per_axis=True)),
    "output_padding": whole(0, per_axis=True),
    "padding": whole(0, per_axis=True, or_word=True),
    **dict.fromkeys(
        (
            "d_model", "downscale_factor", "embed_dim", "groups", "hidden_size", "in1_features", "kdim", "nhead",
            "num_chunks", "num_decoder_layers", "num_encoder_layers", "num_groups", "num_heads", "num_layers", "size",
            "upscale_factor", "vdim",
        ),
        whole(1),
    ),
    **dict.fromkeys(
        (
            "blank", "dim_feedforward", "embedding_dim", "in2_features", "in_channels", "in_features", "input_size",
            "normalized_shape", "num_channels", "num_embeddings", "num_features", "num_parameters", "out_channels",
            "out_features",
        ),
        whole(0),
    ),
    **dict.fromkeys(("alpha", "beta", "init", "k", "lambd", "margin", "negative_slope"), FINITE),
    **dict.fromkeys(("max_val", "min_val", "norm_type", "p", "threshold"), ANY),
    **dict.fromkeys(("eps", "layer_norm_eps"), NOT_NEGATIVE),
    **dict.fromkeys(("delta", "div_value", "scale_factor"), POSITIVE),
    **dict.fromkeys(("dropout", "label_smoothing", "momentum"), SHARE),
    "approximate": words("none", "tanh"),
    "divisor_override": NOT_ZERO,
    "max_norm": number("a number of at least 0", lambda value: value >= 0),
    "reduction": words("none", "mean", "sum"),
}  # fmt: skip


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
            given = signature.bind(self, *args, **kwargs)
        except TypeError:
            init(self, *args, **kwargs)  # which says which argument is missing or too much
            return
        own: dict[str, Range] = getattr(self, "_ranges", {})
        for name, value in given.arguments.items():
            if (name in own or name in RANGES) and value is not None:
                _check(self, name, value, own.get(name) or RANGES[name])
            elif type(value) in {int, np.bool_} and signature.parameters[name].annotation == "bool":
                # 0 and 1, which functions do not take
                given.arguments[name] = bool(value)
        init(*given.args, **given.kwargs)

    return checked(call)


# On the first call, as in `lucid.arguments`.
_signature = functools.cache(inspect.signature)


def _check(layer: Module, name: str, value: Any, allowed: Range) -> None:
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
