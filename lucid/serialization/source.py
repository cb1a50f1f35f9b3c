"""Sources of a file's arrays: read, or mapped into memory; and their way to a device."""

from __future__ import annotations

import mmap
import os
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base import gpu
from lucid.base.arrays import to_device
from lucid.base.device import as_device
from lucid.errors import CheckpointError
from lucid.serialization.format import as_bytes, in_pieces

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.serialization.bounded import Bounded


PENDING = 256 << 20  # bytes of page-locked memory that may wait for the device
SMALL = 1 << 16  # bytes that are not worth page-locked memory


class Source:
    """A file's arrays, by the positions of their bytes.

    Parameters
    ----------
    file : Bounded
    name : str
        What errors call it.
    mapped : bool
        Whether arrays on the CPU are the file's own pages, read when they are first looked at. What is written to them
        is not written to the file.
    """

    def __init__(self, file: Bounded, name: str, *, mapped: bool = False) -> None:
        self.file = file
        self.name = name
        self.waiting: list[Any] = []
        self.pages: Array | None = None
        if mapped:
            try:
                if os.fstat(file.file.fileno()).st_size != file.begin + file.size:
                    raise ValueError("what is read is not what is on the disk")
                pages = mmap.mmap(file.file.fileno(), file.begin + file.size, access=mmap.ACCESS_COPY)
            except (AttributeError, OSError, ValueError) as error:
                raise CheckpointError(
                    f"load: mmap=True: expected a file on the disk with something in it, got {name} ({error})"
                ) from error
            self.pages = np.frombuffer(pages, np.uint8)[file.begin :]

    def read(self, begin: int, count: int, kind: np.dtype[Any]) -> Array:
        """Return `count` elements of a dtype, from `begin` on in the file, on the CPU."""
        if self.pages is not None:
            array = self.pages[begin : begin + count * kind.itemsize].view(kind)
            return array if array.flags.aligned else array.copy()
        array = np.empty(count, kind)
        self.file.seek(begin)
        self.file.fill(array)
        return array

    def read_with_checksum(self, begin: int, count: int, kind: np.dtype[Any]) -> tuple[Array, int]:
        """Return the array of `read`, of a file that is not mapped, and the checksum of its bytes."""
        array = np.empty(count, kind)
        self.file.seek(begin)
        checksum = 0
        for part in in_pieces(array):
            self.file.fill(part)
            checksum = zlib.crc32(part, checksum)
        return array, checksum

    def to(self, array: Array, where: str) -> Array:
        """Return an array on a device; its way there may go on while the file is read further, until `finish`."""
        target = as_device(where)
        if target.type == "cpu" or array.nbytes < SMALL:
            return to_device(array, target)
        host = gpu.pinned_empty(array.nbytes)
        host[:] = as_bytes(array)
        moved = to_device(host.view(array.dtype).reshape(array.shape), target, non_blocking=True)
        self.waiting.append((host, target.index))
        if sum(each.nbytes for each, _ in self.waiting) > PENDING:
            self.finish()
        return moved

    def finish(self) -> None:
        """Wait until all arrays have reached their devices."""
        for index in {index for _, index in self.waiting}:
            gpu.current_stream(index).synchronize()
        self.waiting.clear()
