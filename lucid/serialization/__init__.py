"""Checkpoints: nested dictionaries, lists and tuples of tensors and plain values, in one safetensors file.

The tensors lie in the file as any reader of safetensors sees them, named by their path; what holds them together is a
JSON text in the file's metadata. Loading runs no code that the file could name, of PyTorch's files neither.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from lucid.errors import CheckpointError
from lucid.public import publish as _publish
from lucid.serialization.bounded import Bounded
from lucid.serialization.files import open_regular, replace
from lucid.serialization.format import encode, read_contents
from lucid.serialization.locations import Locations
from lucid.serialization.progress import reading, written
from lucid.serialization.pytorch import is_pytorch, read_pytorch
from lucid.serialization.refusals import checked, shown
from lucid.serialization.source import Source
from lucid.serialization.tree import Reader, UnsupportedObjectError, Writer
from lucid.serialization.weights import read_index, read_weights

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
        if so many numbers are keys that no load would take them; if `f` is a fifo or a device. Nothing is written then.
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
    own = {"format": FORMAT, "version": str(VERSION), "tree": tree, "crc32": str(zlib.crc32(tree.encode()))}
    pieces = encode(writer.metadata() | own, writer.arrays, writer.size(tree))
    if isinstance(f, str | os.PathLike):
        replace(f, lambda file: write(file, pieces, os.fspath(f)))
        return
    expect_binary("save", f, "write")
    write(f, pieces, repr(f))


def write(file: BinaryIO, pieces: Sequence[Any], name: str) -> None:
    """Write pieces of memory one after another."""
    for piece in written([memoryview(piece) for piece in pieces], f"save {name}"):
        rest = piece
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


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
) -> Any:
    """Return the object that `save` or PyTorch's ``torch.save`` wrote to a file, or the tensors of a safetensors file.

    Parameters
    ----------
    f : str, path or binary file object
        The file; of weights in several files their index, ``model.safetensors.index.json`` or
        ``pytorch_model.bin.index.json``. A file object holds the checkpoint from where it stands to its end, and can
        seek.
    map_location : str, device, dict of str to str, or callable, optional
        Where tensors go: one device for all, a device for each that they were saved on, or what a function of the
        memory and that device returns: memory (``storage.cuda()``), a device, or None for that one. By default each
        goes back to its own.
    weights_only : bool, optional
        Changes nothing: in no case is anything unpickled or run. It is here for code that was written for PyTorch.
    mmap : bool, optional
        Whether tensors on the CPU are the pages of a safetensors file, which are read when they are first needed; no
        checksum is compared then. Writing to them leaves the file as it is.

    Returns
    -------
    object
        Dicts, lists and tuples as they were, subclasses of dict as dict; tensors as leaves. Of a safetensors file that
        others wrote, a dict of tensors by name, tied ones by all names that its metadata tell. Of PyTorch's, an
        OrderedDict stays one, and tensors that shared memory do on.

    Raises
    ------
    CheckpointError
        If the file is truncated or corrupt, or none of these; if it holds objects of other classes, which is also a
        TypeError and names them; if these would take far more memory than it has bytes; if it is a fifo or a device.
    FileNotFoundError
        If there is no such file.
    DeviceError
        If a tensor's device does not exist here.

    Notes
    -----
    A file from a stranger is safe to load: nothing in it is run or looked up by name, every length is compared with the
    size of the file before memory is asked for, small objects are counted, and all bytes of tensors that `save` wrote
    have checksums.
    To a CUDA device tensors go through page-locked memory, while the next ones are read.

    Examples
    --------
    >>> import lucid, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "step.safetensors")
    >>> lucid.save([lucid.tensor([1, 2]), ("adam", 0.1)], path)
    >>> lucid.load(path)
    [tensor([1, 2]), ('adam', 0.1)]
    """
    for name, value in (("weights_only", weights_only), ("mmap", mmap)):
        if value is not None and type(value) is not bool:
            raise UnsupportedObjectError(f"load: {name}: expected a bool, got {type(value).__qualname__}")
    place = Locations(map_location)
    if isinstance(f, str | os.PathLike):
        if os.fspath(f).endswith(".json"):
            return read_index(Path(f), place, mapped=bool(mmap))
        with open_regular(f) as opened, reading(opened, f"load {os.fspath(f)}") as file:
            return read(file, os.fspath(f), place, mapped=bool(mmap))
    expect_binary("load", f, "read", "seek", "tell")
    if hasattr(f, "seekable") and not f.seekable():
        raise UnsupportedObjectError(f"load: {f!r} cannot seek: read it into io.BytesIO and load that")
    return read(f, repr(f), place, mapped=bool(mmap))


def read(opened: BinaryIO, name: str, place: Locations, *, mapped: bool) -> Any:
    """Return the object of the checkpoint at the present position of `opened`.

    Raises
    ------
    CheckpointError
        If it is not a whole one.
    """
    with checked(name, "is truncated, corrupt or no checkpoint", place):
        file = Bounded(opened)
        if is_pytorch(file):
            return read_pytorch(file, name, place, mapped=mapped)
        contents = read_contents(file, name)
        metadata = contents.metadata
        source = Source(file, name, mapped=mapped)
        try:
            if metadata.get("format") != FORMAT and "tree" not in metadata:
                return read_weights(source, contents, place)
            if metadata.get("format") != FORMAT or "tree" not in metadata:
                raise CheckpointError(
                    f"load: {name} is corrupt: a part of what lucid.save wrote is gone; save it again"
                )
            check_version(name, metadata.get("version"))
            return Reader(source, contents, place).object()
        finally:
            source.finish()


def check_version(source: str, version: str | None) -> None:
    """Raise a CheckpointError unless this lucid reads that version of the format."""
    if version != str(VERSION):
        plain = version is not None and version.isdecimal() and len(version) < 20
        actual = f"version {version if plain else shown(version)}"
        raise CheckpointError(
            f"load: {source} has {actual} of the format: expected {VERSION}; a newer lucid may have written it"
        )


_publish(globals(), load="lucid", save="lucid")
