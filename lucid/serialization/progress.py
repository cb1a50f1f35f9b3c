"""Progress bars of long reads and writes."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, BinaryIO

from lucid.base.reports import progress_bar, shows_progress

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

# Bytes from which a file takes long enough, and those that are written between two looks at the bar.
LEAST, PIECE = 1 << 30, 1 << 26


def is_shown(size: int) -> bool:
    """Return whether the read or write of so many bytes has a bar."""
    return size >= LEAST and shows_progress()


@contextlib.contextmanager
def reading(file: BinaryIO, name: str) -> Generator[BinaryIO]:
    """Give a file that moves a bar as it is read, or the file itself without a bar."""
    size = os.fstat(file.fileno()).st_size
    if not is_shown(size):
        yield file
        return
    with progress_bar(name, size) as (display, task):
        yield display.wrap_file(file, task_id=task)


def written(pieces: list[memoryview], name: str) -> Iterable[memoryview]:
    """Return pieces of memory to be written, smaller ones under a bar."""
    size = sum(piece.nbytes for piece in pieces)
    return _with_bar(pieces, size, name) if is_shown(size) else pieces


def _with_bar(pieces: list[memoryview], size: int, name: str) -> Generator[memoryview]:
    with progress_bar(name, size) as (display, task):
        for piece in pieces:
            for start in range(0, piece.nbytes, PIECE):
                part = piece[start : start + PIECE]
                yield part
                display.advance(task, part.nbytes)
