"""The parameters of a launch as the driver reads them."""

from __future__ import annotations

import re
import struct
from array import array
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# Of cuLaunchKernel: the parameters lie in one buffer.
_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 0
# Words in front of the parameters: what tells the driver of them, and their size, to which one of these points.
_HEAD = 6


class Parameters:
    """The parameters of a launch in memory; the driver reads them before a launch returns.

    Attributes
    ----------
    words : array of unsigned integers of eight bytes
        The memory, never resized: what tells the driver of the parameters, and these from `start` on, in bytes.
    extra : int
        The address of what tells the driver of it.
    places : dict of int to int
        Which words the pointers are, by their position among the values.
    """

    __slots__ = ("extra", "pack", "places", "words")

    start = 8 * _HEAD

    def __init__(self, codes: str) -> None:
        packer = packer_of(codes)
        self.words = words = array("Q", bytes(self.start + max(-(-packer.size // 8) * 8, 8)))
        self.extra, _ = words.buffer_info()
        words[:_HEAD] = array(
            "Q",
            [_BUFFER_POINTER, self.extra + self.start, _BUFFER_SIZE, self.extra + 8 * (_HEAD - 1), _END, packer.size],
        )
        self.pack = packer.pack_into
        self.places = places_of_pointers(codes)


@cache
def packer_of(codes: str) -> struct.Struct:
    """Return the packer of values as the C ABI places them."""
    return struct.Struct(f"@{codes}")


@cache
def places_in(codes: str) -> list[tuple[str, int]]:
    """Return the code and the place in memory of each of the values of a signature."""
    pointers: list[tuple[str, int]] = []
    before = "@"
    for count, kind in re.findall(r"(\d*)([A-Za-z?])", codes):
        for code in [f"{count}{kind}"] if kind in "sx" else [kind] * int(count or 1):
            before += code
            if kind != "x":
                pointers.append((code, struct.calcsize(before) - struct.calcsize(f"@{code}")))
    return pointers


@cache
def places_of_pointers(codes: str) -> dict[int, int]:
    """Return the words of `Parameters` that are pointers, by their position among the values."""
    return {position: _HEAD + place // 8 for position, (code, place) in enumerate(places_in(codes)) if code == "P"}


@cache
def last_packer(codes: str, count: int) -> Callable[..., None]:
    """Return the packer of the last values of a signature, one or more: ``pack(words, *values)``."""
    places = places_in(codes)[-count:]
    start = end = places[0][1]
    form = "="
    for kind, place in places:
        # without alignment, a pointer has the code of a number of its size
        code = "Q" if kind == "P" else kind
        form += f"{place - end}x{code}"
        end = place + struct.calcsize(f"={code}")
    packer = struct.Struct(form)

    def pack(words: array[int], *values: float) -> None:
        try:
            packer.pack_into(words, Parameters.start + start, *values)
        except struct.error:
            check_numbers(values)
            raise

    return pack


def check_numbers(values: Sequence[object]) -> None:
    """Raise Python's OverflowError, as the host's operations do, if one of the values is more than any float."""
    for value in values:
        if isinstance(value, int):
            float(value)
