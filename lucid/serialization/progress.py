"""Progress bars of long reads and writes, on a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

# Bytes from which a file takes long enough, and those that are written between two looks at the bar.
LEAST, PIECE = 1 << 30, 1 << 26


def is_shown(size: int) -> bool:
    """Return whether the read or write of so many bytes has a bar: on a terminal alone."""
    return size >= LEAST and sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def reading(file: BinaryIO, name: str) -> Generator[BinaryIO]:
    """Give a file that moves a bar as it is read, or the file itself without a bar."""
    size = os.fstat(file.fileno()).st_size
    if not is_shown(size):
        yield file
        return
    from rich.console import Console  # noqa: PLC0415  # only who sees a bar needs it
    from rich.progress import wrap_file  # noqa: PLC0415  # as above

    with wrap_file(file, size, description=name, console=Console(stderr=True), transient=True) as watched:
        yield watched


def written(pieces: list[memoryview], name: str) -> Iterable[memoryview]:
    """Return pieces of memory to be written, smaller ones under a bar."""
    size = sum(piece.nbytes for piece in pieces)
    return _with_bar(pieces, size, name) if is_shown(size) else pieces


def _with_bar(pieces: list[memoryview], size: int, name: str) -> Generator[memoryview]:
    from rich.console import Console  # noqa: PLC0415  # only who sees a bar needs it
    from rich.progress import Progress  # noqa: PLC0415  # as above

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=size)
        for piece in pieces:
            for start in range(0, piece.nbytes, PIECE):
                part = piece[start : start + PIECE]
                yield part
                bar.advance(task, part.nbytes)
