"""Arrays on the memory of a file, as another process finds them: it maps the file, and nothing is copied."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.arrays import Array


def reduced(array: Array) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
    """Return pickle's recipe that maps the array's file in another process; None if mapping would not give this array.

    That is so if it lies in none, if its changes are not in the file (mode "c"), and if the file is gone or has been
    replaced since it was mapped.
    """
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = cast("Any", root.base)
    if not issubclass(type(root), np.memmap) or not isinstance(root.base, mmap.mmap) or root.mode == "c":
        return None
    if root is not array:
        # pickle sends the root once, for all views
        if reduced(root) is None:
            return None
        start = array.ctypes.data - root.ctypes.data
        return _view_of, (root, isinstance(array, np.memmap), start, array.dtype, array.shape, array.strides)
    path = _path_of(root)
    try:
        is_whole = path is not None and Path(path).stat().st_size >= root.offset + root.nbytes
    except OSError:
        is_whole = False
    if not is_whole:
        return None
    mode, order = "r" if root.mode == "r" else "r+", "C" if root.flags.c_contiguous else "F"
    return np.memmap, (path, root.dtype, mode, root.offset, root.shape, order)


def _path_of(root: np.memmap[Any, Any]) -> Any:
    """Return the path of the mapped file; None if it has no name any more."""
    memory: Any = root.base
    first = np.frombuffer(memory, np.uint8, 1).ctypes.data
    end = first + -(-len(memory) // mmap.PAGESIZE) * mmap.PAGESIZE
    try:
        # another file may have the name by now
        path = str(Path(f"/proc/self/map_files/{first:x}-{end:x}").readlink())
    except OSError:
        return root.filename
    if path.endswith(" (deleted)"):
        return None
    return path if Path(path).exists() else root.filename


def _view_of(
    root: np.memmap[Any, Any],
    keep_class: bool,
    start: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> Any:
    memory = root.ravel("K").view(np.uint8)
    rows = np.lib.stride_tricks.as_strided(memory[start:], (*shape, dtype.itemsize), (*strides, 1), subok=True)
    view = rows.view(dtype)[..., 0]
    return view if keep_class else np.asarray(view)
