"""The safetensors format: eight bytes of length, a JSON header of that length, and the arrays one after another."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import numpy as np

from lucid.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lucid.backend.arrays import Array

__all__ = ["Contents", "as_bytes", "encode", "fill", "read_contents"]

LONGEST_HEADER = 100_000_000  # what readers of the format accept
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


class Contents(NamedTuple):
    """The header of a file: its metadata, where each array's bytes begin and end, and what the header says of each."""

    metadata: dict[str, str]
    offsets: dict[str, tuple[int, int]]
    entries: dict[str, dict[str, Any]]


def as_bytes(array: Array) -> Array:
    """Return the memory of a contiguous array, byte by byte."""
    return array.reshape(-1).view(np.uint8)


def encode(metadata: Mapping[str, str], arrays: Mapping[str, Array]) -> list[Any]:
    """Return the pieces of a file, in their order: its header, and the memory of each array.

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
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": array.shape, "data_offsets": [begin, end]}
        pieces.append(as_bytes(array))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise CheckpointError(
            f"save: the structure of the object takes {len(text):,} bytes: expected at most {LONGEST_HEADER:,}; put "
            "long lists of numbers into tensors"
        )
    return [len(text).to_bytes(8, "little") + text, *pieces]


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


def read_contents(file: BinaryIO, source: str) -> Contents:
    """Return the header of a file that begins where `file` stands; `source` names it in errors.

    Raises
    ------
    CheckpointError
        If it is not a whole file of this format.
    """
    begin = file.tell()
    file.seek(0, os.SEEK_END)
    size = file.tell() - begin
    file.seek(begin)
    start = bytearray(min(size, 512))
    try:
        fill(file, start)
        length = int.from_bytes(start[:8], "little")
        if size < 8 or length > min(size - 8, LONGEST_HEADER):
            raise ValueError("its header is longer than it may be")
        text = bytearray(length)
        file.seek(begin + 8)
        fill(file, text)
        header = json.loads(text.decode())
        metadata = header.pop("__metadata__", {})
        if not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("its metadata are not words")
        offsets = {name: tuple(entry["data_offsets"]) for name, entry in header.items()}
        end = 0
        # without holes and overlaps, so that no array is larger than its part of the file
        for left, right in sorted(offsets.values()):
            if type(left) is not int or type(right) is not int or left != end or right < left:
                raise ValueError(f"the bytes {left} to {right} do not follow those up to {end}")
            end = right
        if end != size - 8 - length:
            raise ValueError(f"expected {end:,} bytes of arrays, found {size - 8 - length:,}")
    except (ValueError, TypeError, KeyError, AttributeError, EOFError, RecursionError) as error:
        for beginning, looks, advice in FOREIGN:
            if re.match(beginning, start, re.DOTALL):
                raise CheckpointError(
                    f"load: {source} looks like {looks}: expected a safetensors file written by lucid.save; {advice}"
                ) from None
        raise CheckpointError(
            f"load: {source} is truncated, corrupt or no checkpoint: expected a safetensors file written by "
            f"lucid.save, found {size:,} bytes that do not read as one ({error})"
        ) from error
    arrays = begin + 8 + length
    places = {name: (arrays + left, arrays + right) for name, (left, right) in offsets.items()}
    return Contents(metadata, places, header)


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
