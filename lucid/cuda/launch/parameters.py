"""The parameters of a launch as they lie in memory."""

from __future__ import annotations

import ctypes
import re
import struct
from functools import cache
from typing import TYPE_CHECKING

from lucid.backend.locks import new_lock

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Parameters", "last_packer"]

# Of cuLaunchKernel: the parameters lie in one buffer.
_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 0


class Parameters:
    """The parameters of a launch as they lie in memory, in one buffer that the driver reads before a launch returns.

    Attributes
    ----------
    pack_into : callable
        ``pack_into(buffer, 0, *values)``.
    buffer : ctypes array
        The memory, of whole words.
    words : memoryview
        The same as integers of eight bytes.
    extra : int
        The address of what tells the driver of it.
    pointers : dict of int to int
        Where in the memory those of the values lie that are pointers, by their position.
    lock : lock
        To be held from packing to the end of the launch.
    """

    __slots__ = ("_held", "buffer", "extra", "lock", "pack_into", "pointers", "words")

    def __init__(self, codes: str) -> None:
        packer = struct.Struct(f"@{codes}")
        self.pack_into = packer.pack_into
        self.buffer = ctypes.create_string_buffer(max(-(-packer.size // 8) * 8, 8))
        self.words = memoryview(self.buffer).cast("B").cast("Q")
        size = ctypes.c_size_t(packer.size)
        told = (ctypes.c_void_p * 5)(
            _BUFFER_POINTER, ctypes.addressof(self.buffer), _BUFFER_SIZE, ctypes.addressof(size), _END
        )
        self.extra = ctypes.addressof(told)
        # read by the driver at every launch
        self._held = size, told
        self.pointers = pointers_in(codes)
        self.lock = new_lock()


@cache
def places_in(codes: str) -> list[tuple[str, int]]:
    """Return the code and the place in memory of each of the values of a signature."""
    found: list[tuple[str, int]] = []
    before = "@"
    for count, kind in re.findall(r"(\d*)([A-Za-z?])", codes):
        for code in [f"{count}{kind}"] if kind in "sx" else [kind] * int(count or 1):
            before += code
            if kind != "x":
                found.append((code, struct.calcsize(before) - struct.calcsize(f"@{code}")))
    return found


@cache
def pointers_in(codes: str) -> dict[int, int]:
    """Return where pointers lie among the parameters of a signature, by their position among the values."""
    return {position: place for position, (code, place) in enumerate(places_in(codes)) if code == "P"}


@cache
def last_packer(codes: str, count: int) -> Callable[..., None]:
    """Return what packs the last so many values of a signature where they lie: ``pack(buffer, *values)``."""
    places = places_in(codes)[len(places_in(codes)) - count :]
    start = end = places[0][1] if places else 0
    form = "="
    for code, place in places:
        form += f"{place - end}x{code}"
        end = place + struct.calcsize(f"={code}")
    packer = struct.Struct(form)

    def pack(buffer: ctypes.Array[ctypes.c_char], *values: float) -> None:
        packer.pack_into(buffer, start, *values)

    return pack
