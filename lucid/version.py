"""The version of lucid for code that asks: `lucid.__version__`, and the contents of PyTorch's `torch.version`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

__all__ = ["Version", "cuda", "hip"]

cuda = None
"""None: lucid is not built for one version of CUDA, it compiles its kernels for what is there."""

hip = None
"""None: there are no kernels for AMD's devices."""

_FINAL = 9


class Version(str):
    """A version, a text that is compared by its numbers: with another text, or with a sequence of numbers.

    Numbers that are left out are 0; what is under way (``.dev``, ``a``, ``b``, ``rc``) comes before the version itself,
    and what stands behind ``+`` is not looked at.

    Examples
    --------
    >>> import lucid
    >>> lucid.__version__ < "0.10", lucid.__version__ >= (0, 1)
    (True, True)
    """

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        theirs = _key(other)
        return NotImplemented if theirs is None else _own(self) < theirs

    def __le__(self, other: object) -> bool:
        theirs = _key(other)
        return NotImplemented if theirs is None else _own(self) <= theirs

    def __gt__(self, other: object) -> bool:
        theirs = _key(other)
        return NotImplemented if theirs is None else _own(self) > theirs

    def __ge__(self, other: object) -> bool:
        theirs = _key(other)
        return NotImplemented if theirs is None else _own(self) >= theirs

    def __eq__(self, other: object) -> bool:
        theirs = _key(other)
        return str.__eq__(self, other) is True if theirs is None else _own(self) == theirs

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


__version__ = Version("0.1.0")  # read by the build, too

Key = tuple[tuple[int, ...], tuple[int, int]]


def _own(version: str) -> Key:
    key = _key(version)
    return ((), (_FINAL, 0)) if key is None else key


def _key(value: object) -> Key | None:
    """Return the sort key of a version: its numbers, and its stage; None for any other value."""
    if not isinstance(value, str):
        if not isinstance(value, Sequence):
            return None
        value = ".".join(map(str, cast("Sequence[object]", value)))
    match = re.fullmatch(r"v?(\d+(?:\.\d+)*)(?:[.\-_]?(dev|a|b|rc)[.\-_]?(\d*))?(?:\.?post\d+)?(?:\+.*)?", value)
    if match is None:
        return None
    numbers = [int(number) for number in match[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    stage = _FINAL if match[2] is None else ("dev", "a", "b", "rc").index(match[2])
    return tuple(numbers), (stage, int(match[3] or 0))
