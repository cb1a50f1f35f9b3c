"""The sections and symbols of libraries, in ELF's file format."""

from __future__ import annotations

from struct import Struct, unpack_from
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap


_SECTION, _SYMBOL = Struct("<IIQQQQIIQQ"), Struct("<IBBHQQ")
_SYMBOLS = 2


def _sections(data: bytes | mmap) -> list[tuple[int, ...]]:
    (table,) = unpack_from("<Q", data, 40)
    size, count = unpack_from("<HH", data, 58)
    return [_SECTION.unpack_from(data, table + index * size) for index in range(count)]


def section_names(data: bytes | mmap) -> list[bytes]:
    """Return the names of the sections of a library, by their numbers."""
    sections = _sections(data)
    (of_names,) = unpack_from("<H", data, 62)
    return [text(data, sections[of_names][4] + section[0]) for section in sections]


def symbols(data: bytes | mmap) -> Iterator[tuple[int, int, int, int]]:
    """Place of the name, kind, number of the section and address of each symbol of a library."""
    sections = _sections(data)
    for _, kind, _, _, begin, length, names, *_ in sections:
        if kind == _SYMBOLS:
            for name, info, _, section, address, _ in _SYMBOL.iter_unpack(data[begin : begin + length]):
                yield sections[names][4] + name, info & 15, section, address


def text(data: bytes | mmap, begin: int) -> bytes:
    """Return the text that begins there."""
    return data[begin : data.find(b"\0", begin)]
