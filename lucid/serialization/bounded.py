"""Limits of one file: bytes up to its end, and memory and time in proportion to its length.

Whoever reads a file takes from its budget what an object will hold before it makes it, so that a few kilobytes cannot
become gigabytes, whatever they say.
"""

from __future__ import annotations

import io
import math
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from lucid.autograd.base import is_tuple
from lucid.base.device import device
from lucid.base.dtype import dtype
from lucid.serialization.refusals import NotLoaded, TooMuch
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from lucid.base.arrays import Array


TIMES = 9  # of a file's length, which objects may take beside the file itself
ROOM = 1 << 19  # bytes that they may take anyway
LEVELS = 100  # of nesting; far within what Python's stack holds, so that what is loaded can be walked through and saved
BLOCK = 1 << 16  # bytes that are read at once

# bytes of objects, nearly as CPython has them
LIST, TUPLE, DICT = 56, 40, 64
SLOT = 8  # of an entry of a list or tuple
FIRST, ENTRY = 120, 36  # of the first entries of a dict, up to five, and of each that follows
NODE = 112  # of an entry of an OrderedDict, more than of a dict
NUMBER = 8  # a quarter of it, so that lists of numbers are loaded, each of which takes three bytes in a pickle
TENSOR = 280

# nanoseconds that looking up keys may take at the worst
TIME = 2_000_000_000
PLAIN = (str, int, float, bool, bytes, complex, type(None), device, dtype)
# whose places in a table nobody chooses, or of which there are few
SEEDED = (str, bytes, bool, type(None), device, dtype)
PRIME = (1 << 61) - 1  # integers that differ by a multiple of it have the same hash


def weight(value: Any) -> int:
    """Return the bytes that a number or a text takes."""
    kind = cast("type[Any]", type(value))
    if kind is int:
        return NUMBER if -(2**62) < value < 2**62 else sys.getsizeof(value)
    return NUMBER if kind is float else sys.getsizeof(value) if kind is str or kind is bytes else 0


class Budget:
    """The memory and the time that a file of some length may take.

    Parameters
    ----------
    size : int
        The bytes of the file.
    """

    def __init__(self, size: int) -> None:
        self.remaining = TIMES * size + ROOM
        self.time = TIME

    def take(self, count: int) -> None:
        """Note that an object of so many bytes is made."""
        self.remaining -= count
        if self.remaining < 0:
            raise TooMuch(
                f"holds more than its length allows: what it makes may take {TIMES + 1} times the bytes of the file; "
                "put many small values into tensors, and do not compress what holds the same bytes many times"
            )

    def key(self, key: Any, count: int) -> None:
        """Note that a key goes into a dict or a set of `count` entries.

        Python finds most keys at once, wherever they are; with numbers somebody can choose them so that each stands in
        the way of all that follow.
        """
        self.take(ENTRY if count >= 5 else 0 if count else FIRST)
        # of whole numbers those that count, such as 0, 1, 2, have a place of their own each
        if type(key) not in SEEDED and not (type(key) is int and 0 <= key <= count):
            self._spend(count * self._hash(key, 0))

    def _hash(self, key: Any, level: int) -> float:
        """Look through a key; return the nanoseconds that each entry with the same hash may cost."""
        self._spend(2000)  # a tuple is hashed each time anew
        if is_tuple(key) or type(key) is Size:
            if level == LEVELS:
                raise TooMuch(f"has tuples as keys that are nested deeper than {LEVELS} levels")
            worst = max((self._hash(part, level + 1) for part in key), default=0)
            return worst and 150
        if type(key) not in PLAIN:
            raise NotLoaded(f"has a {type(key).__name__} as a key")
        if type(key) in SEEDED:
            return 0
        if type(key) is int:
            self._spend(key.bit_length())
            # of small ones no two have one hash, and a clash costs less
            return 0.5 if -PRIME < key < PRIME else 60
        return 0.5 if type(key) is float else 60

    def _spend(self, time: float) -> None:
        self.time -= time
        if self.time < 0:
            raise TooMuch(
                "has so many numbers or tuples as keys, and such, that looking them up may take very long; "
                "put them into tensors, or use texts as keys"
            )


def is_shape(sizes: Any, itemsize: int) -> bool:
    """Tell whether numbers from a file are a shape that an array has: no empty one is larger than memory, either."""
    if len(sizes) > 64 or not all(type(size) is int and 0 <= size < 2**63 for size in sizes):
        return False
    return math.prod(filter(None, sizes)) * itemsize < 2**63


def fill(file: BinaryIO, buffer: Any) -> None:
    """Fill a buffer from a file.

    Raises
    ------
    EOFError
        If the file ends before.
    """
    view = memoryview(buffer)
    while view:
        if hasattr(file, "readinto"):
            count = cast("Any", file).readinto(view)
        else:
            piece = file.read(len(view))
            count = len(piece)
            view[:count] = piece
        if not count:
            raise EOFError(f"it ends {len(view):,} bytes early")
        view = view[count:]


class Bounded:
    """A binary file from its present position to its end; reads of more than is left raise.

    Parameters
    ----------
    file : binary file object
    budget : Budget, optional
        What of the objects made of it is taken from; by default that of a file of its length.

    Attributes
    ----------
    size : int
        The bytes of it.
    start : bytes
        The first of them.
    """

    def __init__(self, file: BinaryIO, budget: Budget | None = None) -> None:
        self.file = file
        self.begin = file.tell()
        self.size = max(file.seek(0, io.SEEK_END) - self.begin, 0)
        self.budget = budget or Budget(self.size)
        self._block = b""
        self._place = 0  # in the block
        self._next = 0  # where in the file the block ends
        self.start = self.read(min(self.size, 512))  # by which files are told apart
        self.seek(0)

    def tell(self) -> int:
        """Return how many bytes from the beginning are read."""
        return self._next - len(self._block) + self._place

    def seek(self, place: int) -> None:
        """Read on from that many bytes after the beginning."""
        if not 0 <= place <= self.size:
            raise EOFError(f"expected a place up to {self.size:,}, the end of the file")
        begin = self._next - len(self._block)
        if begin <= place <= self._next:
            self._place = place - begin
        else:
            self._block, self._place, self._next = b"", 0, place

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes.

        Raises
        ------
        EOFError
            If the file has fewer.
        """
        end = self._place + count
        if end <= len(self._block):
            piece = self._block[self._place : end]
            self._place = end
            return piece
        self._drop()
        self._block = bytes(self.array(max(count, min(BLOCK, self.size - self._next))))
        self._place = count
        return self._block[:count]

    def line(self) -> bytes:
        """Return the bytes up to the next end of a line, at most 1,000, and leave the file behind it."""
        text = self.read(min(1000, self.size - self.tell()))
        end = text.find(b"\n")
        if end < 0:
            raise EOFError("it ends in a name, or the name is very long")
        self._place -= len(text) - end - 1
        return text[:end]

    def array(self, count: int) -> Array:
        """Return the next `count` bytes as an array."""
        self._need(count)
        array = np.empty(count, np.uint8)
        self.fill(array)
        return array

    def fill(self, array: Array) -> None:
        """Fill a contiguous array with the bytes that are next."""
        memory = array.reshape(-1).view(np.uint8)
        self._need(len(memory))
        self._drop()
        self.file.seek(self.begin + self._next)
        fill(self.file, memory)
        self._next += len(memory)

    def _drop(self) -> None:
        """Forget the block, and continue at the same position of the file."""
        self._block, self._place, self._next = b"", 0, self.tell()

    def _need(self, count: int) -> None:
        remaining = self.size - self.tell()
        if count > remaining:
            raise EOFError(f"it ends {_shown(count - remaining)} bytes early")


def _shown(count: int) -> str:
    """Return a number as messages show it."""
    return f"{count:,}" if count < 2**64 else "very many"
