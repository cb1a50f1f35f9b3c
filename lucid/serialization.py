"""Checkpoints: nested dictionaries, lists and tuples of tensors and plain values, in one safetensors file.

The tensors lie in the file as any reader of safetensors sees them, named by their place; what holds them together is a
JSON text in the file's metadata. Loading runs no code that the file could name.
"""

from __future__ import annotations

import json
import math
import os
import uuid
import zlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.backend.arrays import to_device
from lucid.backend.device import as_device, device, device_of
from lucid.backend.dtype import DTYPES, dtype, dtype_of
from lucid.errors import CheckpointError, DeviceError, LucidError

if TYPE_CHECKING:
    from lucid.backend.arrays import Array

__all__ = ["load", "save"]

FORMAT = "lucid"
VERSION = 1


class UnsupportedObjectError(CheckpointError, TypeError):
    """An object was to be saved that a checkpoint cannot hold."""


class _Writer:
    """Turns an object into a JSON tree and the arrays that the tree names."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        # by the identity of a tensor, its entry: what was one object before is one after loading
        self.entries: dict[int, dict[str, Any]] = {}

    def tree(self, value: Any, path: tuple[str, ...]) -> Any:
        """Return the tree of one value; `path` names its place."""
        kind = cast("type[Any]", type(value))
        if value is None or kind is bool or kind is int or kind is str:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is complex:
            return {"complex": [repr(value.real), repr(value.imag)]}
        if kind is dtype:
            return {"dtype": value.name}
        if kind is device:
            return {"device": str(value)}
        if isinstance(value, TensorBase):
            return self.tensor(value, path)
        if kind is np.ndarray:
            return {"array": self.array(value, path)}
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value).items()
            return {"dict": [[self.key(k, path), self.tree(v, (*path, str(k)))] for k, v in items]}
        if kind is list or kind is tuple:
            entries = enumerate(cast("list[Any]", value))
            return {kind.__name__: [self.tree(v, (*path, str(i))) for i, v in entries]}
        raise UnsupportedObjectError(
            f"save: {place(path)} is a {kind.__qualname__}, which a checkpoint cannot hold: expected tensors, NumPy "
            "arrays, numbers, strings, bools, None, and dicts, lists and tuples of these"
        )

    def key(self, key: Any, path: tuple[str, ...]) -> Any:
        """Return a key of a dictionary as a tree."""
        if isinstance(key, str | int | float) or key is None:
            return self.tree(key, (*path, str(key)))
        raise UnsupportedObjectError(
            f"save: {place(path)} has the key {key!r} of type {type(key).__qualname__}: expected strings, numbers, "
            "bools or None as keys"
        )

    def tensor(self, tensor: Any, path: tuple[str, ...]) -> dict[str, Any]:
        """Return the entry of a tensor."""
        entry: dict[str, Any] | None = self.entries.get(id(tensor))
        if entry is None:
            array = tensor.array
            entry = dict[str, Any](tensor=self.array(to_device(array, "cpu"), path), device=str(device_of(array)))
            if tensor.is_leaf and tensor.requires_grad:
                entry["requires_grad"] = True
            self.entries[id(tensor)] = entry
        return entry

    def array(self, array: Array, path: tuple[str, ...]) -> dict[str, Any]:
        """Return the entry of a NumPy array, which is kept for writing."""
        kind = array.dtype
        if kind.hasobject or DTYPES.get(kind.name) is None or dtype_of(array).numpy != kind:
            raise UnsupportedObjectError(f"save: {place(path)} is an array of NumPy's dtype {kind}: convert it first")
        name = plain = ".".join(path) or "value"
        while name in self.arrays or name == "__metadata__":
            name = f"{plain}#{len(self.arrays)}"
        # an order of its own: what is written is what the checksum is of, whatever happens to the tensor meanwhile
        stored = np.array(array, order="C")
        self.arrays[name] = stored.view(kind.type(0).real.dtype) if kind.kind == "c" and stored.ndim else stored
        if kind.kind == "c" and not stored.ndim:
            self.arrays[name] = stored.reshape(1).view(kind.type(0).real.dtype)
        return {"name": name, "dtype": kind.name, "shape": list(stored.shape), "crc32": zlib.crc32(as_bytes(stored))}


def place(path: tuple[str, ...]) -> str:
    """Return the words for a place in the object that is saved."""
    return f"the value at {'.'.join(path)!r}" if path else "the object"


def as_bytes(array: Array) -> Array:
    """Return the memory of a contiguous array, byte by byte."""
    return array.reshape(-1).view(np.uint8)


def save(obj: Any, f: str | os.PathLike[str]) -> None:
    """Write an object of tensors and plain values to a file, all of it or nothing.

    Parameters
    ----------
    obj : dict, list, tuple, Tensor, numpy.ndarray, number, str, bool, None, dtype or device
        Dicts (keys: strings, numbers, bools, None), lists and tuples may nest.
    f : str or path
        The file. What was there is replaced once the new file is complete.

    Raises
    ------
    CheckpointError
        If `obj` holds something else; also a TypeError, naming its place. Nothing is written then.
    OSError
        If the file cannot be written. What was there stays.

    Notes
    -----
    A tensor is saved as its values, dtype, device and, if it is a leaf, whether it requires grad; the graph, gradients
    and hooks are not saved. One tensor in several places is stored once, and loaded as one tensor.

    Examples
    --------
    >>> import lucid, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.safetensors")
    >>> lucid.save({"weight": lucid.ones(2), "epoch": 3}, path)
    >>> lucid.load(path)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    target = Path(f)
    writer = _Writer()
    tree = json.dumps(writer.tree(obj, ()))
    metadata = {"format": FORMAT, "version": str(VERSION), "tree": tree, "crc32": str(zlib.crc32(tree.encode()))}
    unfinished = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    unfinished.touch()
    # imported here, so that `import lucid` stays light
    numpy_files, safetensors = import_module("safetensors.numpy"), import_module("safetensors")
    try:
        numpy_files.save_file(writer.arrays, unfinished, metadata)
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        unfinished.replace(target)
    except safetensors.SafetensorError as error:
        raise OSError(f"save: cannot write {target}, what was there stays: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


class _Reader:
    """Turns a JSON tree back into the object, reading arrays as it meets them."""

    def __init__(
        self, path: Path, header: dict[str, Any], start: int, everywhere: str | None, moved: dict[str, Any]
    ) -> None:
        self.path = path
        self.header = header
        self.start = start
        self.everywhere = everywhere
        self.moved = moved
        self.tensors: dict[str, Any] = {}

    def value(self, tree: Any) -> Any:
        """Return the object of a tree."""
        if not isinstance(tree, dict):
            return tree
        entry = cast("dict[str, Any]", tree)
        kind, content = next(iter(entry.items()))
        if kind == "dict":
            return {self.value(key): self.value(value) for key, value in content}
        if kind == "list":
            return [self.value(value) for value in content]
        if kind == "tuple":
            return tuple(self.value(value) for value in content)
        if kind == "tensor":
            return self.tensor(entry)
        if kind == "array":
            return self.array(content)
        if kind == "float":
            return float(content)
        if kind == "complex":
            return complex(float(content[0]), float(content[1]))
        return DTYPES[content] if kind == "dtype" else device(content)

    def tensor(self, entry: dict[str, Any]) -> Any:
        """Return the tensor of an entry, the same for each place that names it."""
        name = entry["tensor"]["name"]
        tensor = self.tensors.get(name)
        if tensor is None:
            where = self.everywhere or self.moved.get(entry["device"], entry["device"])
            try:
                array = to_device(self.array(entry["tensor"]), where)
            except DeviceError as error:
                error.add_note(f"{name!r} in {self.path} was saved on {entry['device']}: map_location='cpu' loads it")
                raise
            tensor = self.tensors[name] = wrap(array).requires_grad_(entry.get("requires_grad", False))
        return tensor

    def array(self, entry: dict[str, Any]) -> Array:
        """Return the array of an entry.

        Raises
        ------
        CheckpointError
            If its bytes are not those that were saved.
        """
        begin, end = self.header[entry["name"]]["data_offsets"]
        kind, count = DTYPES[entry["dtype"]].numpy, math.prod(entry["shape"])
        if count * kind.itemsize != end - begin:
            raise ValueError(f"{entry['name']!r} has {end - begin} bytes for {count} elements of {kind}")
        array = np.fromfile(self.path, kind, count, offset=self.start + begin)
        found = zlib.crc32(as_bytes(array))
        if found != entry["crc32"]:
            raise CheckpointError(
                f"load: {self.path} is corrupt: expected {entry['name']!r} with checksum {entry['crc32']:#010x}, found "
                f"{found:#010x}; save it again"
            )
        return array.reshape(entry["shape"])


def load(f: str | os.PathLike[str], map_location: Any = None) -> Any:
    """Return the object that `save` wrote to a file.

    Parameters
    ----------
    f : str or path
        The file.
    map_location : str, device or dict of str to str, optional
        Where tensors go: one device for all, or a device for each that they were saved on. By default each goes back to
        its own.

    Returns
    -------
    object
        Dicts, lists and tuples as they were, subclasses of dict as dict; tensors as leaves.

    Raises
    ------
    CheckpointError
        If the file is truncated or corrupt, or was not written by `save`.
    FileNotFoundError
        If there is no such file.
    DeviceError
        If a tensor's device does not exist here.

    Examples
    --------
    >>> import lucid, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "step.safetensors")
    >>> lucid.save([lucid.tensor([1, 2]), ("adam", 0.1)], path)
    >>> lucid.load(path)
    [tensor([1, 2]), ('adam', 0.1)]
    """
    path = Path(f)
    metadata, header, start = opened(path)
    tree = metadata["tree"]
    if str(zlib.crc32(tree.encode())) != metadata.get("crc32"):
        raise CheckpointError(f"load: {path} is corrupt: the checksum of its structure does not match; save it again")
    everywhere = None if map_location is None or isinstance(map_location, dict) else str(as_device(map_location))
    moved = cast("dict[str, Any]", map_location) if isinstance(map_location, dict) else {}
    try:
        return _Reader(path, header, start, everywhere, moved).value(json.loads(tree))
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, StopIteration) as error:
        if isinstance(error, LucidError):
            raise
        raise CheckpointError(f"load: {path} has a structure that lucid.save does not write ({error!r})") from error


def opened(path: Path) -> tuple[dict[str, str], dict[str, Any], int]:
    """Return the metadata and the header of a checkpoint, and where its data begin.

    Raises
    ------
    CheckpointError
        If it is not a whole safetensors file, or not one of lucid's.
    """
    safetensors = import_module("safetensors")
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    try:
        with safetensors.safe_open(path, framework="numpy") as whole:
            metadata: dict[str, str] = whole.metadata() or {}
    except safetensors.SafetensorError as error:
        raise CheckpointError(
            f"load: {path} is truncated, corrupt or no checkpoint: expected a safetensors file written by lucid.save, "
            f"found {path.stat().st_size:,} bytes that do not read as one ({error})"
        ) from error
    if metadata.get("format") != FORMAT or "tree" not in metadata:
        found = f"format {metadata['format']!r}" if "format" in metadata else "no format"
        raise CheckpointError(
            f"load: {path} was not written by lucid.save: expected format {FORMAT!r} in its metadata, found {found}; "
            "safetensors.numpy.load_file reads its arrays"
        )
    if metadata.get("version") != str(VERSION):
        raise CheckpointError(
            f"load: {path} has version {metadata.get('version')} of the format: expected {VERSION}; a newer lucid may "
            "have written it"
        )
    with path.open("rb") as file:
        file.seek(8)
        header = json.loads(file.read(length))
    return metadata, header, 8 + length
