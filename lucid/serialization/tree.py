"""An object of tensors and plain values as a JSON text that names arrays, and back.

In the text a container or anything else that JSON lacks is an object of one key, which says what it is. Reading builds
the kinds that are listed here and nothing else: no name in a file is ever looked up in a module.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.backend.arrays import to_device
from lucid.backend.device import device, device_of
from lucid.backend.dtype import DTYPES, dtype
from lucid.backend.foreign.reading import is_masked
from lucid.errors import CheckpointError, DeviceError, LucidError, OutOfMemoryError
from lucid.serialization.format import as_bytes
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.backend.arrays import Array
    from lucid.serialization.format import Contents
    from lucid.serialization.source import Source

__all__ = ["Reader", "UnsupportedObjectError", "Writer"]

# of arrays: tensors have these, and NumPy's own generators of random numbers keep their state in others
ARRAYS = {
    **{name: known.numpy for name, known in DTYPES.items()},
    **{name: np.dtype(name) for name in ("uint16", "uint32", "uint64")},
}
# what Python raises where a tree is not of the form that `Reader` takes apart
WRONG_STRUCTURE = (LookupError, TypeError, AttributeError, ArithmeticError, EOFError, ValueError)
LEVELS = 100  # of nesting; far within what Python's stack holds, so that what is saved can be loaded


class UnsupportedObjectError(CheckpointError, TypeError):
    """An object was to be saved that a checkpoint cannot hold, or to be read or written that is no file."""


class Writer:
    """Turns an object into a JSON tree and the arrays that the tree names."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        # by the identity of a tensor or array, itself, as identities are used again, and its entry: what was one object
        # before is one after loading
        self.entries: dict[int, tuple[Any, dict[str, Any]]] = {}

    def tree(self, value: Any, path: tuple[str, ...] = ()) -> Any:
        """Return the tree of one value; `path` is where it stands."""
        if len(path) > LEVELS:
            raise CheckpointError(
                f"save: {named(path[:5])} is nested deeper than {LEVELS} levels, the most that a checkpoint holds: is "
                "it inside of itself?"
            )
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
        array = issubclass(kind, np.ndarray) and not is_masked(value)
        if array or isinstance(value, TensorBase):
            if id(value) not in self.entries:
                make = self.array_entry if array else self.tensor_entry
                self.entries[id(value)] = value, make(value, path)
            return self.entries[id(value)][1]
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value).items()
            return {"dict": [[self.key(k, path), self.tree(v, (*path, str(k)))] for k, v in items]}
        if isinstance(value, np.generic):
            return {"scalar": self.array(np.asarray(cast("Any", value)), path)}
        if kind is Size:
            return {"size": list(value)}
        if kind is list or kind is tuple:
            entries = enumerate(cast("list[Any]", value))
            return {kind.__name__: [self.tree(v, (*path, str(i))) for i, v in entries]}
        advice = "; save its state_dict()" if hasattr(value, "state_dict") else ""
        raise UnsupportedObjectError(
            f"save: {named(path)} is a {kind.__qualname__}, which a checkpoint cannot hold: expected tensors, NumPy "
            f"arrays, numbers, strings, bools, None, and dicts, lists and tuples of these{advice}"
        )

    def key(self, key: object, path: tuple[str, ...]) -> Any:
        """Return a key of a dictionary as a tree."""
        if isinstance(key, str | int | float) or key is None:
            return self.tree(key, (*path, str(key)))
        raise UnsupportedObjectError(
            f"save: {named(path)} has the key {key!r} of type {type(key).__qualname__}: expected strings, numbers, "
            "bools or None as keys"
        )

    def tensor_entry(self, tensor: Any, path: tuple[str, ...]) -> dict[str, Any]:
        """Return the entry of a tensor."""
        array = tensor.array
        entry = dict[str, Any](tensor=self.array(to_device(array, "cpu"), path), device=str(device_of(array)))
        if tensor.is_leaf and tensor.requires_grad:
            entry["requires_grad"] = True
        return entry

    def array_entry(self, array: Array, path: tuple[str, ...]) -> dict[str, Any]:
        """Return the entry of a NumPy array."""
        return {"array": self.array(array, path)}

    def array(self, array: Array, path: tuple[str, ...]) -> dict[str, Any]:
        """Return what says how the bytes of an array are read; they are kept for writing."""
        kind = array.dtype
        if kind.name not in ARRAYS or ARRAYS[kind.name] != kind:
            raise UnsupportedObjectError(f"save: {named(path)} is an array of NumPy's dtype {kind}: convert it first")
        # in letters that every reader of the format decodes
        name = plain = ".".join(path).encode(errors="backslashreplace").decode() or "value"
        while name in self.arrays or name == "__metadata__":
            name = f"{plain}#{len(self.arrays)}"
        # an order of its own: what is written is what the checksum is of, whatever happens to the tensor meanwhile
        stored = np.array(array, order="C")
        self.arrays[name] = stored.view(kind.type(0).real.dtype) if kind.kind == "c" and stored.ndim else stored
        if kind.kind == "c" and not stored.ndim:
            self.arrays[name] = stored.reshape(1).view(kind.type(0).real.dtype)
        return {"name": name, "dtype": kind.name, "shape": list(stored.shape), "crc32": zlib.crc32(as_bytes(stored))}


def named(path: tuple[str, ...]) -> str:
    """Return the words for a path in the object that is saved."""
    return f"the value at {'.'.join(path)!r}" if path else "the object"


class Reader:
    """Turns a JSON tree back into the object, reading arrays as it meets them."""

    def __init__(self, source: Source, contents: Contents, place: Callable[[str], str]) -> None:
        self.file = source
        self.source = source.name
        self.contents = contents
        self.place = place
        # by the name of an array, the entry that named it first and what was read
        self.entries: dict[str, tuple[Any, Any]] = {}

    def object(self) -> Any:
        """Return the object of the file.

        Raises
        ------
        CheckpointError
            If the file's structure is not as it was saved, or none that `Writer` makes.
        """
        text = self.contents.metadata["tree"]
        if str(zlib.crc32(text.encode(errors="surrogatepass"))) != self.contents.metadata.get("crc32"):
            raise CheckpointError(
                f"load: {self.source} is corrupt: the checksum of its structure does not match; save it again"
            )
        try:
            return self.value(json.loads(text), 0)
        except (CheckpointError, DeviceError, OutOfMemoryError):
            raise
        except RecursionError as error:
            raise CheckpointError(
                f"load: {self.source} is nested deeper than {LEVELS} levels, the most that save writes, or Python's "
                "stack is nearly full"
            ) from error
        except (*WRONG_STRUCTURE, LucidError) as error:
            raise CheckpointError(
                f"load: {self.source} has a structure that lucid.save does not write ({error!r})"
            ) from error

    def value(self, tree: Any, level: int) -> Any:
        """Return the object of a tree."""
        if level > LEVELS:
            raise RecursionError
        if not isinstance(tree, dict | list):
            return tree
        entry = cast("dict[str, Any]", tree)
        kind = next(iter(entry), "")
        content = entry[kind]
        if kind == "dict":
            return {self.value(key, level): self.value(value, level + 1) for key, value in content}
        if kind == "list":
            return [self.value(value, level + 1) for value in content]
        if kind == "tuple":
            return tuple(self.value(value, level + 1) for value in content)
        if kind == "size":
            if not all(type(n) is int for n in content):
                raise ValueError(f"expected whole numbers in a size, found {content!r}")
            return Size(content)
        if kind == "scalar":
            if content["shape"]:
                raise ValueError("a number has no shape")
            return self.array(content)[()]
        if kind in {"tensor", "array"}:
            return self.shared(entry, content["name"])
        if kind == "float":
            return float(content)
        if kind == "complex":
            return complex(float(content[0]), float(content[1]))
        if kind == "dtype":
            return DTYPES[content]
        if kind == "device":
            return device(content)
        raise ValueError(f"{kind!r} is no kind of value")

    def shared(self, entry: dict[str, Any], name: str) -> Any:
        """Return the tensor or array of an entry, the same for each path that names it."""
        if name not in self.entries:
            self.entries[name] = entry, self.tensor(entry) if "tensor" in entry else self.array(entry["array"])
        known, value = self.entries[name]
        if known != entry:
            raise ValueError(f"{name!r} is named by entries that differ")
        return value

    def tensor(self, entry: dict[str, Any]) -> Any:
        """Return the tensor of an entry."""
        requires_grad = entry.get("requires_grad", False)
        if type(requires_grad) is not bool:
            raise ValueError(f"expected true or false for requires_grad, found {requires_grad!r}")
        if entry["tensor"]["dtype"] not in DTYPES:
            raise ValueError(f"no tensor has the dtype {entry['tensor']['dtype']!r}")
        try:
            array = self.file.to(self.array(entry["tensor"]), self.place(entry["device"]))
        except DeviceError as error:
            name = entry["tensor"]["name"]
            error.add_note(f"{name!r} in {self.source} was saved on {entry['device']}: map_location='cpu' loads it")
            raise
        return wrap(array).requires_grad_(requires_grad)

    def array(self, entry: dict[str, Any]) -> Array:
        """Return the array of an entry.

        Raises
        ------
        CheckpointError
            If its bytes are not those that were saved.
        """
        begin, end = self.contents.offsets[entry["name"]]
        shape = entry["shape"]
        # before they are multiplied: a string times a number is a long string
        if len(shape) > 64 or not all(type(size) is int and 0 <= size < 2**63 for size in shape):
            raise ValueError(f"{entry['name']!r} has a shape that no array has")
        kind, count = ARRAYS[entry["dtype"]], math.prod(shape)
        if count * kind.itemsize != end - begin:
            raise ValueError(f"{entry['name']!r} has {end - begin} bytes for {count} elements of {kind}")
        array = self.file.read(begin, count, kind)
        # pages of a file are read when they are needed, and not for a checksum
        found = entry["crc32"] if self.file.pages is not None else zlib.crc32(as_bytes(array))
        if found != entry["crc32"]:
            raise CheckpointError(
                f"load: {self.source} is corrupt: expected {entry['name']!r} with checksum {entry['crc32']:#010x}, "
                f"found {found:#010x}; save it again"
            )
        # NumPy counts on it: a mask of other bytes would make it write behind the end of its arrays
        if kind == np.bool_ and as_bytes(array).max(initial=0) > 1:
            raise ValueError(f"{entry['name']!r} has bytes that are no bool")
        return array.reshape(shape)
