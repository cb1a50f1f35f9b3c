"""Checkpoints: nested dictionaries, lists and tuples of tensors and plain values, in one safetensors file.

The tensors lie in the file as any reader of safetensors sees them, named by their path; what holds them together is a
JSON text in the file's metadata. Loading runs no code that the file could name.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from lucid.backend.device import as_device
from lucid.errors import CheckpointError
from lucid.serialization.files import open_regular, replace
from lucid.serialization.format import encode, read_contents
from lucid.serialization.tree import Reader, UnsupportedObjectError, Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["load", "save"]

FORMAT = "lucid"
VERSION = 1


def save(obj: object, f: str | os.PathLike[str] | BinaryIO) -> None:
    """Write an object of tensors and plain values to a file, all of it or nothing.

    Parameters
    ----------
    obj : dict, list, tuple, Tensor, numpy.ndarray, number, str, bool, None, dtype or device
        Numbers are Python's or NumPy's. Dicts (keys: strings, numbers, bools, None), lists and tuples may nest.
    f : str, path or binary file object
        The file. What was there is replaced once the new file is complete; where a symbolic link stands, what it names.
        A file object is written to from where it stands.

    Raises
    ------
    CheckpointError
        If `obj` holds something else, which is also a TypeError and names its path, or nests deeper than 100 levels;
        if `f` is a fifo or a device. Nothing is written then.
    OSError
        If the file cannot be written. What was there stays.

    Notes
    -----
    A tensor is saved as its values, dtype, device and, if it is a leaf, whether it requires grad; the graph, gradients
    and hooks are not saved. One tensor or array under several paths is stored once, and loaded as one.

    Whoever loads the path meanwhile, in any process, gets the old content or the new. An interrupt, a full disk or a
    killed process leave the old; what a killed process had written so far, a file named `.NAME.*.part`, goes with the
    next save to the path. A new file follows the umask; a replaced one keeps its mode and, where the system allows it,
    owner and group; a group that it cannot keep passes no rights on. Other names of a replaced file (hard links) keep
    the old content.

    A file object is written in pieces as they come: a failure while it is written leaves a part of them there.

    Examples
    --------
    >>> import lucid, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.safetensors")
    >>> lucid.save({"weight": lucid.ones(2), "epoch": 3}, path)
    >>> lucid.load(path)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    writer = Writer()
    tree = json.dumps(writer.tree(obj))
    metadata = {"format": FORMAT, "version": str(VERSION), "tree": tree, "crc32": str(zlib.crc32(tree.encode()))}
    pieces = encode(metadata, writer.arrays)
    if isinstance(f, str | os.PathLike):
        replace(f, lambda file: write(file, pieces))
        return
    expect_binary("save", f, "write")
    write(f, pieces)


def write(file: BinaryIO, pieces: Sequence[Any]) -> None:
    """Write pieces of memory one after another."""
    for piece in pieces:
        rest = memoryview(piece)
        while rest:  # a file without a buffer may take a part only
            taken = cast("int | None", file.write(rest))
            rest = rest[len(rest) if taken is None else taken :]


def expect_binary(function: str, file: object, *methods: str) -> None:
    """Raise unless `file` is a binary file with these methods.

    Raises
    ------
    CheckpointError
        If it is something else; also a TypeError.
    """
    if isinstance(file, io.TextIOBase) or not all(hasattr(file, method) for method in methods):
        words = "a file that is open as text" if isinstance(file, io.TextIOBase) else type(file).__qualname__
        raise UnsupportedObjectError(
            f"{function}: f: expected a path, or a binary file object with {', '.join(methods)}, got {words}"
        )


def load(f: str | os.PathLike[str] | BinaryIO, map_location: Any = None, *, weights_only: bool | None = None) -> Any:
    """Return the object that `save` wrote to a file.

    Parameters
    ----------
    f : str, path or binary file object
        The file. A file object holds the checkpoint from where it stands to its end, and can seek.
    map_location : str, device or dict of str to str, optional
        Where tensors go: one device for all, or a device for each that they were saved on. By default each goes back to
        its own.
    weights_only : bool, optional
        Changes nothing: in no case is anything unpickled or run. It is here for code that was written for PyTorch.

    Returns
    -------
    object
        Dicts, lists and tuples as they were, subclasses of dict as dict; tensors as leaves.

    Raises
    ------
    CheckpointError
        If the file is truncated or corrupt, or was not written by `save`; if it is a fifo or a device.
    FileNotFoundError
        If there is no such file.
    DeviceError
        If a tensor's device does not exist here.

    Notes
    -----
    A file from a stranger is safe to load: nothing in it is run or looked up by name, every length is compared with the
    size of the file before memory is asked for, and all bytes of tensors have checksums.

    Examples
    --------
    >>> import lucid, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "step.safetensors")
    >>> lucid.save([lucid.tensor([1, 2]), ("adam", 0.1)], path)
    >>> lucid.load(path)
    [tensor([1, 2]), ('adam', 0.1)]
    """
    if weights_only is not None and type(weights_only) is not bool:
        raise UnsupportedObjectError(f"load: weights_only: expected a bool, got {type(weights_only).__qualname__}")
    everywhere = None if map_location is None or isinstance(map_location, dict) else str(as_device(map_location))
    moved = cast("dict[str, Any]", map_location) if isinstance(map_location, dict) else {}
    if isinstance(f, str | os.PathLike):
        with open_regular(f) as file:
            return read(file, os.fspath(f), everywhere, moved)
    expect_binary("load", f, "read", "seek", "tell")
    if hasattr(f, "seekable") and not f.seekable():
        raise UnsupportedObjectError(f"load: {f!r} cannot seek: read it into io.BytesIO and load that")
    return read(f, repr(f), everywhere, moved)


def read(file: BinaryIO, source: str, everywhere: str | None, moved: dict[str, Any]) -> Any:
    """Return the object of the checkpoint that begins where `file` stands.

    Raises
    ------
    CheckpointError
        If it is not a whole one of lucid's.
    """
    contents = read_contents(file, source)
    metadata = contents.metadata
    if metadata.get("format") != FORMAT or "tree" not in metadata:
        found = f"format {metadata['format']!r}" if "format" in metadata else "no format"
        raise CheckpointError(
            f"load: {source} was not written by lucid.save: expected format {FORMAT!r} in its metadata, found {found}; "
            "safetensors.numpy.load_file reads its arrays"
        )
    if metadata.get("version") != str(VERSION):
        raise CheckpointError(
            f"load: {source} has version {metadata.get('version')} of the format: expected {VERSION}; a newer lucid "
            "may have written it"
        )
    return Reader(file, source, contents, everywhere, moved).object()
