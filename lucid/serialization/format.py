"""The safetensors format: eight bytes of length, a JSON header of that length, and the arrays one after another."""

from __future__ import annotations

import json
import re
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lucid.base.memory import c_copy
from lucid.errors import CheckpointError
from lucid.serialization.refusals import checked
from lucid.serialization.text import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lucid.base.arrays import Array
    from lucid.serialization.bounded import Bounded


LONGEST_HEADER = 100_000_000  # what readers of the format accept
PIECE = 1 << 18  # bytes of which a checksum is computed at once
PLACE = 200  # bytes of an entry in memory
DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
CODES = {np.dtype(name): code for name, code in DTYPES.items()}


class Entry(NamedTuple):
    """Entry of a header for an array: dtype and shape as they stand there, and its place among the arrays' bytes."""

    dtype: Any
    shape: Any
    begin: int
    end: int


class Contents(NamedTuple):
    """The header of a file: its metadata, its arrays, and the beginning of their bytes."""

    metadata: dict[str, str]
    arrays: dict[str, Entry]
    start: int


def as_bytes(array: Array) -> Array:
    """Return the memory of a contiguous array, byte by byte."""
    return array.reshape(-1).view(np.uint8)


def in_pieces(array: Array) -> Iterator[Array]:
    """Yield the memory of a contiguous array byte by byte, in pieces that stay in the cache.

    A checksum of what was just read or copied takes half the time there.
    """
    memory = as_bytes(array)
    for start in range(0, memory.size, PIECE):
        yield memory[start : start + PIECE]


def copied_with_checksum(array: Array) -> tuple[Array, int]:
    """Return a copy of an array in C order, and the checksum of its bytes."""
    if not array.flags.c_contiguous:
        copy = c_copy(array)
        return copy, zlib.crc32(as_bytes(copy))
    copy, checksum = np.empty(array.shape, array.dtype), 0
    for part, source in zip(in_pieces(copy), in_pieces(array), strict=True):
        part[...] = source
        checksum = zlib.crc32(part, checksum)
    return copy, checksum


def encode(metadata: Mapping[str, str], arrays: Mapping[str, Array], size: int = 0) -> list[Any]:
    """Return the pieces of a file, in their order: its header, and the memory of each array.

    A file that would have less than `size` bytes gets spaces behind its header, which every reader takes.

    Raises
    ------
    CheckpointError
        If the header is longer than readers accept.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    pieces: list[Any] = []
    end = 0
    # the widest first, so that each begins at a multiple of its own width, which readers that map the file count on
    for name, array in sorted(arrays.items(), key=lambda item: -item[1].itemsize):
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": CODES[array.dtype], "shape": array.shape, "data_offsets": [begin, end]}
        pieces.append(as_bytes(array))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * max(size - 8 - len(text) - end, 0)
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise CheckpointError(
            f"save: the structure of the object takes {len(text):,} bytes: expected at most {LONGEST_HEADER:,}; put "
            "long lists of numbers into tensors"
        )
    return [len(text).to_bytes(8, "little") + text, *pieces]


def read_contents(file: Bounded, source: str) -> Contents:
    """Return the header of a file; `source` names it in errors.

    Raises
    ------
    CheckpointError
        If it is not a whole file of this format.
    """
    file.seek(0)
    what = (
        "is truncated, corrupt or no checkpoint: expected a safetensors file written by lucid.save, found "
        f"{file.size:,} bytes that do not read as one"
    )
    with checked(source, lambda: looks_like(file.start) or what):
        length = int.from_bytes(file.read(8), "little")
        if length > min(file.size - 8, LONGEST_HEADER):
            raise ValueError("its header is longer than it may be")
        before = file.budget.remaining
        json = read_json(bytes(file.array(length)).decode(), file.budget)
        parsed = before - file.budget.remaining
        metadata, arrays = dict[str, str](), dict[str, Entry]()
        codes = {code: code for code in DTYPES.values()}  # so that there is one text of each
        for name in json.items():
            if name == "__metadata__":
                metadata = json.value()
                if not all(isinstance(value, str) for value in metadata.values()):
                    raise ValueError("its metadata are not words")
                continue
            remaining = file.budget.remaining
            entry = json.value()
            file.budget.remaining = remaining  # it is free again
            file.budget.take(PLACE)
            begin, end = entry["data_offsets"]
            if name in arrays:
                raise ValueError("an array has two places")
            code, shape = entry.get("dtype"), entry.get("shape")
            file.budget.key(name, len(arrays))
            arrays[name] = Entry(
                codes.get(str(code), code),
                tuple(cast("list[Any]", shape)) if isinstance(shape, list) else shape,
                begin,
                end,
            )
        json.end()
        file.budget.remaining += parsed  # it is free again
        check_offsets([(entry.begin, entry.end) for entry in arrays.values()], file.size - 8 - length)
    return Contents(metadata, arrays, 8 + length)


def looks_like(start: bytes) -> str:
    """Return the likely kind of another program's file by its beginning, with a remedy; nothing for an unknown one."""
    for beginning, looks, advice in FOREIGN:
        if re.match(beginning, start, re.DOTALL):
            return f"looks like {looks}: expected a safetensors file written by lucid.save; {advice}"
    return ""


def check_offsets(places: list[tuple[Any, Any]], expected: int) -> None:
    """Raise unless arrays follow each other: without overlaps none is larger than its part of the file."""
    if not all(type(left) is int and type(right) is int for left, right in places):
        raise ValueError("a place of an array is no whole number")
    places.sort()
    end = 0
    for left, right in places:
        if left != end or right < left:
            raise ValueError(f"the bytes {left} to {right} do not follow those up to {end}")
        end = right
    if end != expected:
        raise ValueError(f"expected {end:,} bytes of arrays, found {expected:,}")


NUMPY = "numpy.load reads it, and lucid.tensor makes tensors of its arrays"
# how other programs' files begin, what they are, and what to do; what is more particular stands first
FOREIGN = (
    (rb"\x80[\x02-\x05]", "a pickle of Python", "it is not run; where it was made, lucid.save can write its content"),
    (rb"PK\x03\x04.{26}.{1,400}?\.npy", "arrays of NumPy (.npz)", NUMPY),
    (rb"PK\x03\x04", "a zip archive", "unpack it first"),
    (rb"\x93NUMPY", "an array of NumPy (.npy)", NUMPY),
    (rb"\x1f\x8b", "a file compressed by gzip", "decompress it first, or pass gzip.open(path)"),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 file", "h5py reads it, and lucid.tensor makes tensors of its arrays"),
    (rb"version https://git-lfs", "a pointer of Git LFS", "git lfs pull fetches the file that it stands for"),
)
