"""Zip archives: their files by name, with no more memory than these have a right to."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lucid.serialization.refusals import NotLoaded, shown

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.serialization.bounded import Bounded


BLOCK = 1 << 16
STORED, DEFLATED = 0, 8
FARTHEST = 22 + 0xFFFF  # bytes from the end to where the last record may begin, which may have a comment
LAST = struct.Struct("<4x6xHII2x")  # entries, bytes and place of the directory
WHERE_LAST64 = struct.Struct("<4x4xQ4x")
LAST64 = struct.Struct("<4x28xQQQ")
ENTRY = struct.Struct("<4s4xHH4xIIIHHH8xI")
LOCAL = struct.Struct("<4s22xHH")
MEMORY = 350  # bytes of an entry in memory


class Entry(NamedTuple):
    """A file of an archive: its encryption, compression, checksum, sizes and position."""

    flags: int
    method: int
    checksum: int
    packed: int
    size: int
    place: int


class Archive:
    """The files of a zip archive that begins at a file's beginning.

    Parameters
    ----------
    file : Bounded

    Raises
    ------
    ValueError, EOFError, struct.error
        If it has no directory.
    """

    def __init__(self, file: Bounded) -> None:
        self.file = file
        self.read = 0  # bytes of the file, so that its parts do not overlap
        count, length, place = self._directory()
        file.seek(place)
        self.files = dict[str, Entry]()
        if count * ENTRY.size > length:
            raise ValueError("its directory is shorter than its entries")
        for _ in range(count):
            mark, flags, method, checksum, packed, size, letters, extra, comment, at = ENTRY.unpack(file.read(46))
            if mark != b"PK\x01\x02":
                raise ValueError("its directory is no list of files")
            file.budget.take(MEMORY + letters)
            name = file.read(letters).decode("utf-8" if flags & 0x800 else "cp437")
            more = file.read(extra)
            file.read(comment)
            size, packed, at = _wide(more, size, packed, at)
            self.files[name] = Entry(flags, method, checksum, packed, size, at)

    def content(self, name: str) -> Array:
        """Return the bytes of a file.

        Raises
        ------
        KeyError
            If there is no such file.
        NotLoaded
            If it is encrypted, or packed in another way than by deflate.
        ValueError, EOFError, zlib.error
            If it is damaged.
        """
        entry, file = self.files[name], self.file
        if entry.flags & 1:
            raise NotLoaded("is encrypted")
        if entry.method not in {STORED, DEFLATED}:
            raise NotLoaded(f"is compressed by the method {entry.method} of zip archives: pack it by deflate, or not")
        file.seek(entry.place)
        mark, letters, extra = LOCAL.unpack(file.read(LOCAL.size))
        if mark != b"PK\x03\x04":
            raise ValueError(f"{shown(name)} is not where the directory says")
        file.seek(entry.place + LOCAL.size + letters + extra)
        self.read += entry.packed
        if self.read > file.size or entry.packed > file.size - file.tell():
            raise ValueError("files that are longer than the archive")
        if entry.method == STORED and entry.packed != entry.size:
            raise ValueError(f"{shown(name)} has two lengths")
        file.budget.take(entry.size)
        content = file.array(entry.size) if entry.method == STORED else self._unpacked(entry)
        # one that is 0 was not computed: PyTorch can be told so, and it never looks
        if entry.checksum and zlib.crc32(content) != entry.checksum:
            raise ValueError(f"the checksum of {shown(name)} does not match")
        return content

    def _unpacked(self, entry: Entry) -> Array:
        """Return the bytes of a compressed file that begins at the archive's present position."""
        content = np.empty(entry.size, np.uint8)
        unpacker, remaining, end = zlib.decompressobj(-zlib.MAX_WBITS), entry.packed, 0
        while not unpacker.eof:
            packed = unpacker.unconsumed_tail
            if not packed:
                packed = self.file.read(min(remaining, BLOCK))
                remaining -= len(packed)
            piece = unpacker.decompress(packed, BLOCK)
            if len(piece) > entry.size - end or not (piece or packed):
                break
            content[end : end + len(piece)] = np.frombuffer(piece, np.uint8)
            end += len(piece)
        if not unpacker.eof or end != entry.size:
            raise ValueError(f"expected {entry.size:,} bytes in a compressed file")
        return content

    def _directory(self) -> tuple[int, int, int]:
        """Return the entries, the length and the place of the directory."""
        file = self.file
        begin = max(file.size - FARTHEST, 0)
        file.seek(begin)
        end = bytes(file.array(file.size - begin))
        last = end.rfind(b"PK\x05\x06")
        if last < 0:
            raise ValueError("it has no directory")
        fields = LAST.unpack(end[last : last + LAST.size])
        before = end[max(last - WHERE_LAST64.size, 0) : last]
        if before.startswith(b"PK\x06\x07"):
            file.seek(*WHERE_LAST64.unpack(before))
            fields = LAST64.unpack(file.read(LAST64.size))
        count, length, place = fields
        if place + length > file.size:
            raise ValueError("its directory is not there")
        return count, length, place


def _wide(extra: bytes, *numbers: int) -> list[int]:
    """Return numbers of an entry; those too large for 32 bits come from its extra field."""
    while len(extra) >= 4:
        kind, length = struct.unpack("<HH", extra[:4])
        if kind == 1:
            fields = iter(struct.unpack(f"<{length // 8}Q", extra[4 : 4 + length // 8 * 8]))
            return [next(fields, number) if number == 0xFFFFFFFF else number for number in numbers]
        extra = extra[4 + length :]
    return list(numbers)
