"""Ranges of settings: a closed vocabulary that checks, error texts and `help` use."""

from __future__ import annotations

import math
import operator
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


class Range(NamedTuple):
    """The range of a setting, and of each entry if it is a sequence; None is always allowed."""

    text: str
    holds: Callable[[Any], bool]
    per_axis: bool = False
    """Whether a sequence has an entry for each of the `axes` of the layer, or one for all."""
    kind: str = "number"
    """What it is a range of: "number", "int" or "word"."""


class Setting(NamedTuple):
    """The meaning of a setting, as `help` shows it, and its range or the check of a value under its name.

    Without either, what uses the setting looks at it.
    """

    meaning: str
    range: Range | None = None
    check: Callable[[Any, str], None] | None = None


def whole(least: int, *, per_axis: bool = False, or_word: bool = False) -> Range:
    """Return the range of whole numbers of at least `least`, as sizes of arrays can be.

    With `or_word` a string is the layer's own to look at.
    """

    def holds(value: Any) -> bool:
        if or_word and isinstance(value, str):
            return True
        # an array of one element in a dimension is a sequence, or a mistake
        if isinstance(value, bool | np.bool_) or getattr(value, "ndim", 0):
            return False
        try:
            return least <= operator.index(value) <= sys.maxsize
        except TypeError:
            return False

    return Range(f"a whole number of at least {least}", holds, per_axis, "int")


def number(text: str, holds: Callable[[float], bool]) -> Range:
    """Return a range of numbers, without NaN."""

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

    def holds(value: Any) -> bool:
        return isinstance(value, str) and value in options

    return Range(f"one of {', '.join(map(repr, options))}", holds, kind="word")


FINITE = number("a finite number", math.isfinite)
ANY = number("a number that is not NaN", lambda value: not math.isnan(value))
NOT_NEGATIVE = number("a finite number of at least 0", lambda value: 0 <= value < math.inf)
POSITIVE = number("a finite number above 0", lambda value: 0 < value < math.inf)
NOT_ZERO = number("a finite number other than 0", lambda value: value != 0 and math.isfinite(value))
DECAY = number("a number in [0, 1)", lambda value: 0 <= value < 1)
SHARE = number("a number in [0, 1]", lambda value: 0 <= value <= 1)
WHOLE, COUNT = whole(0), whole(1)
