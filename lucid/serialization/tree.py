"""An object of tensors and plain values as a JSON text that names arrays, and back.

In the text a container or anything else that JSON lacks is an object whose first key says what it is. Reading builds
the kinds that are listed here and nothing else: no name in a file is ever looked up in a module.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.base.arrays import to_device
from lucid.base.device import device, device_of
from lucid.base.dtype import DTYPES, dtype
from lucid.base.foreign.reading import is_masked
from lucid.errors import CheckpointError, DeviceError
from lucid.nn.module.state import StateDict
from lucid.nn.parameter import Parameter
from lucid.serialization.bounded import (
    DICT,
    LEVELS,
    LIST,
    NODE,
    NUMBER,
    ROOM,
    SLOT,
    TENSOR,
    TIMES,
    TUPLE,
    Budget,
    is_shape,
    weight,
)
from lucid.serialization.format import as_bytes, copied_with_checksum
from lucid.serialization.refusals import MOST_SHOWN, TooMuch, checked, plain, shown
from lucid.serialization.text import Json, read_json
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.serialization.format import Contents
    from lucid.serialization.locations import Locations
    from lucid.serialization.source import Source
    from lucid.serialization.text import Parsed


# of arrays: tensors have these, and NumPy's own generators of random numbers keep their state in others
ARRAYS = {
    **{name: known.numpy for name, known in DTYPES.items()},
    **{name: np.dtype(name) for name in ("uint16", "uint32", "uint64")},
}
# The name that NumPy puts together for each question costs as much as a third of what else a small array takes.
WORDS = {kind: name for name, kind in ARRAYS.items()}
KEYS = (str, int, float, bool, type(None))
SMALL = 64  # bytes that a number or a name takes for which JSON has no word
READ = 1800  # bytes that the entries of a tensor or an array take at the most, and itself, besides their text
MOST = 1 << 40  # bytes: longer than a file whose structure the format holds


# Dictionaries by the word for them in a file; those that have an attribute `_metadata`.
MAPPINGS: dict[str, type[Any]] = {kind.__name__: kind for kind in (dict, OrderedDict, Counter, StateDict)}
ATTRIBUTED = {"OrderedDict", "StateDict"}


class UnsupportedObjectError(CheckpointError, TypeError):
    """An object was to be saved that a checkpoint cannot hold, or to be read or written that is no file."""


class Writer:
    """Turns an object into a JSON tree and the arrays that the tree names."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        # what a reader will take memory and time for: no file is written that is refused afterwards
        self.budget = Budget(MOST)
        # the names of a tensor besides the first, and that one, as other writers note tied weights
        self.tied: dict[str, str] = {}
        # by the identity of a tensor or array, itself, as identities are used again, and its entry: what was one object
        # before is one after loading
        self.entries: dict[int, tuple[Any, dict[str, Any]]] = {}

    def tree(self, value: Any, path: tuple[str, ...] = ()) -> Any:
        """Return the tree of one value; `path` is its place."""
        if len(path) > LEVELS:
            raise CheckpointError(
                f"save: {named(path[:5])} is nested deeper than {LEVELS} levels, the most that a checkpoint holds: is "
                "it inside of itself?"
            )
        kind = cast("type[Any]", type(value))
        take = self.budget.take
        take(SLOT + weight(value))
        if value is None or kind is bool or kind is int or kind is str:
            return value
        if kind is not dict and kind is not list and kind is not tuple:
            take(SMALL)
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
            take(READ + 4 * sum(map(len, path)))
            if id(value) not in self.entries:
                made = {"array": self.array(value, path)} if array else self.tensor_entry(value, path)
                self.entries[id(value)] = value, made
                return self.entries[id(value)][1]
            entry = self.entries[id(value)][1]
            self.tied[place_name(path)] = entry["array" if array else "tensor"]["name"]
            return entry
        if MAPPINGS.get(kind.__name__) is kind:
            return self.mapping(cast("dict[Any, Any]", value), path)
        if isinstance(value, np.generic):
            return {"scalar": self.array(np.asarray(cast("Any", value)), path)}
        if kind is Size:
            take(len(value) * (SLOT + NUMBER))
            return {"size": list(value)}
        if kind is list or kind is tuple:
            take(LIST + TUPLE + len(value) * SLOT)
            entries = enumerate(cast("list[Any]", value))
            return {kind.__name__: [self.tree(v, (*path, str(i))) for i, v in entries]}
        advice = "; save its state_dict()" if hasattr(value, "state_dict") else ""
        if issubclass(kind, dict):
            advice = "; save dict() of it"
        raise UnsupportedObjectError(
            f"save: {named(path)} is a {kind.__qualname__}, which a checkpoint cannot hold: expected tensors, NumPy "
            "arrays, numbers, strings, bools, None, and dicts, OrderedDicts, Counters, lists and tuples of these"
            f"{advice}"
        )

    def mapping(self, value: dict[Any, Any], path: tuple[str, ...]) -> dict[str, Any]:
        """Return the tree of a dictionary, with the versions of modules that a state dict has as an attribute."""
        kind, attributes = type(value), getattr(value, "__dict__", {})
        if attributes.keys() - {"_metadata"}:
            raise UnsupportedObjectError(
                f"save: {named(path)} is a {kind.__name__} with the attributes {sorted(attributes)}, of which a "
                "checkpoint holds none but _metadata: save them as entries"
            )
        self.budget.take(DICT + (0 if kind is dict else NODE * len(value)))
        pairs = [[self.key(k, path, n), self.tree(v, (*path, str(k)))] for n, (k, v) in enumerate(value.items())]
        tree: dict[str, Any] = {kind.__name__: pairs}
        if attributes:
            tree["_metadata"] = self.tree(attributes["_metadata"], (*path, "_metadata"))
        return tree

    def key(self, key: object, path: tuple[str, ...], count: int) -> Any:
        """Return a key of a dictionary as a tree; `count` keys are before it."""
        if isinstance(key, str | int | float) or key is None:
            try:
                self.budget.key(key, count)
            except TooMuch as error:
                raise CheckpointError(f"save: {named(path)} {error}") from error
            return self.tree(key, (*path, str(key)))
        raise UnsupportedObjectError(
            f"save: {named(path)} has the key {key!r} of type {type(key).__qualname__}: expected strings, numbers, "
            "bools or None as keys"
        )

    def metadata(self) -> dict[str, str]:
        """Return the metadata for other readers: names of tensors that are written under another name."""
        return {name: kept for name, kept in self.tied.items() if name not in self.arrays and name != "__metadata__"}

    def size(self, text: str) -> int:
        """Return how long a file with this text has to be for its reader to make everything of it."""
        self.budget.take(len(text))
        return (Budget(MOST).remaining - self.budget.remaining - ROOM // 2) // TIMES

    def tensor_entry(self, tensor: Any, path: tuple[str, ...]) -> dict[str, Any]:
        """Return the entry of a tensor."""
        array = tensor.array
        entry = dict[str, Any](tensor=self.array(to_device(array, "cpu"), path), device=str(device_of(array)))
        if tensor.is_leaf and tensor.requires_grad:
            entry["requires_grad"] = True
        if type(tensor) is Parameter:
            entry["parameter"] = True
        return entry

    def array(self, array: Array, path: tuple[str, ...]) -> dict[str, Any]:
        """Return the description of an array's bytes, and keep these for writing."""
        kind = array.dtype
        word = WORDS.get(kind)
        if word is None:
            raise UnsupportedObjectError(f"save: {named(path)} is an array of NumPy's dtype {kind}: convert it first")
        name = plain = place_name(path)
        while name in self.arrays or name == "__metadata__":
            name = f"{plain}#{len(self.arrays)}"
        # an order of its own: what is written is what the checksum is of, whatever happens to the tensor meanwhile
        stored, checksum = copied_with_checksum(array)
        self.arrays[name] = np.atleast_1d(stored).view(kind.type(0).real.dtype) if kind.kind == "c" else stored
        return {"name": name, "dtype": word, "shape": list(stored.shape), "crc32": checksum}


def place_name(path: tuple[str, ...]) -> str:
    """Return the name of the value at a path, in letters that every reader of the format decodes."""
    return ".".join(path).encode(errors="backslashreplace").decode() or "value"


def named(path: tuple[str, ...]) -> str:
    """Return the words for a path in the object that is saved."""
    return f"the value at {'.'.join(path)!r}" if path else "the object"


class Reader:
    """Turns a JSON tree back into the object while it is read, and arrays as it meets them."""

    def __init__(self, source: Source, contents: Contents, place: Locations) -> None:
        self.file = source
        self.source = source.name
        self.contents = contents
        self.place = place
        self.budget = source.file.budget
        self.json: Json | Parsed = Json("", self.budget)
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
        with checked(self.source, "has a structure that lucid.save does not write", self.place):
            try:
                self.json = read_json(text, self.budget)
                value = self.value(0)
                self.json.end()
            except RecursionError as error:
                raise CheckpointError(
                    f"load: {self.source} is nested deeper than {LEVELS} levels, the most that save writes, or "
                    "Python's stack is nearly full"
                ) from error
            return value

    def value(self, level: int) -> Any:
        """Return the object of the tree that is next."""
        if level > LEVELS:
            raise RecursionError
        first = self.json.next()
        if first == "[":
            raise ValueError("a list that does not say what it is of")
        if first != "{":
            return self.json.value()
        remaining = self.budget.remaining
        items = self.json.items()
        kind = next(items, "")
        self.budget.remaining = remaining  # the word is free again
        if kind not in {"list", "tuple", *MAPPINGS}:
            entry = {kind: self.json.value(level)} | {name: self.json.value(level) for name in items}
            return self.other(kind, entry, remaining)
        made = self.dict(level, MAPPINGS[kind]) if kind in MAPPINGS else self.list(level)
        for name in items:
            if name != "_metadata" or kind not in ATTRIBUTED:
                raise ValueError(f"more than a {kind}")
            vars(made)[name] = self.value(level + 1)
        return tuple(made) if kind == "tuple" else made

    def dict(self, level: int, kind: type[Any]) -> Any:
        """Return a dictionary from the keys and values that are next."""
        made = kind()
        node = 0 if kind is dict else NODE
        self.budget.take(DICT)
        for _ in self.json.elements():
            self.budget.take(node)
            pair = self.json.elements()
            next(pair)
            key = self.value(level)
            if type(key) not in KEYS:
                raise ValueError(f"a {type(key).__name__} as a key")
            self.budget.key(key, len(made))
            next(pair)
            made[key] = self.value(level + 1)
            if next(pair, self) is not self:
                raise ValueError("a key with two values")
        return made

    def list(self, level: int) -> list[Any]:
        """Return a list of the elements that are next."""
        made: list[Any] = []
        self.budget.take(LIST)
        for _ in self.json.elements():
            self.budget.take(SLOT)
            made.append(self.value(level + 1))
        return made

    def other(self, kind: str, entry: dict[str, Any], remaining: int) -> Any:
        """Return a value that is no container, by its entry; `remaining` is the budget before the entry was read."""
        content = entry[kind]
        if kind in {"tensor", "array"}:
            if content["name"] in self.entries:
                self.budget.remaining = remaining  # the entry is the same once more, and free again
            return self.shared(entry, content["name"])
        self.budget.remaining = remaining
        self.budget.take(SMALL)
        if kind == "size":
            self.budget.take(len(content) * (SLOT + NUMBER))
            if not all(type(n) is int for n in content):
                raise ValueError("expected whole numbers in a size")
            return Size(content)
        if kind == "scalar":
            if content["shape"]:
                raise ValueError("a number has no shape")
            return self.array(content)[()]
        if kind == "float":
            return float(content)
        if kind == "complex":
            return complex(float(content[0]), float(content[1]))
        if kind == "dtype":
            return DTYPES[content]
        if kind == "device":
            return device(content)
        raise ValueError(f"{shown(kind)} is no kind of value")

    def shared(self, entry: dict[str, Any], name: str) -> Any:
        """Return the tensor or array of an entry, the same for each path that names it."""
        if name not in self.entries:
            self.entries[name] = entry, self.tensor(entry) if "tensor" in entry else self.array(entry["array"])
        known, value = self.entries[name]
        if known != entry:
            raise ValueError(f"{shown(name)} is named by entries that differ")
        return value

    def tensor(self, entry: dict[str, Any]) -> Any:
        """Return the tensor of an entry."""
        requires_grad = entry.get("requires_grad", False)
        if type(requires_grad) is not bool:
            raise ValueError(f"expected true or false for requires_grad, found {shown(requires_grad)}")
        if type(entry["device"]) is not str:
            raise ValueError("expected a text as a device")
        if entry["tensor"]["dtype"] not in DTYPES:
            raise ValueError(f"no tensor has the dtype {shown(entry['tensor']['dtype'])}")
        self.budget.take(TENSOR)
        try:
            array = self.file.to(self.array(entry["tensor"]), self.place(entry["device"]))
        except DeviceError as error:
            name, where = shown(entry["tensor"]["name"]), plain(entry["device"], MOST_SHOWN)
            error.add_note(f"{name} in {self.source} was saved on {where}: map_location='cpu' loads it")
            raise
        tensor = wrap(array)
        if entry.get("parameter", False) is True:
            return Parameter(tensor, requires_grad=requires_grad)
        return tensor.requires_grad_(requires_grad)

    def array(self, entry: dict[str, Any]) -> Array:
        """Return the array of an entry.

        Raises
        ------
        CheckpointError
            If its bytes are not those that were saved.
        """
        name, shape = shown(entry["name"]), entry["shape"]
        place, kind = self.contents.arrays[entry["name"]], ARRAYS[entry["dtype"]]
        # before they are multiplied: a string times a number is a long string
        if not is_shape(shape, kind.itemsize):
            raise ValueError(f"{name} has a shape that no array has")
        count, nbytes = math.prod(shape), place.end - place.begin
        if count * kind.itemsize != nbytes:
            raise ValueError(f"{name} has {nbytes} bytes for {count} elements of {kind}")
        begin = self.contents.start + place.begin
        if self.file.pages is None:
            array, checksum = self.file.read_with_checksum(begin, count, kind)
        else:
            # pages of a file are read when they are needed, and not for a checksum
            array, checksum = self.file.read(begin, count, kind), entry["crc32"]
        if checksum != entry["crc32"]:
            raise CheckpointError(
                f"load: {self.source} is corrupt: expected {name} with checksum {shown(entry['crc32'])}, "
                f"found {checksum}; save it again"
            )
        # NumPy counts on it: a mask of other bytes would make it write behind the end of its arrays
        if kind == np.bool_ and as_bytes(array).max(initial=0) > 1:
            raise ValueError(f"{name} has bytes that are no bool")
        return array.reshape(shape)
