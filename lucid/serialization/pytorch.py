"""PyTorch's checkpoints (.pt), in both of their forms, read without running anything that they could name."""

from __future__ import annotations

import io
import struct
import sys
import zipfile
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from lucid.autograd.base import wrap
from lucid.backend.arrays import to_device
from lucid.backend.dtype import DTYPES
from lucid.errors import CheckpointError, DeviceError, LucidError, OutOfMemoryError
from lucid.nn.parameter import Parameter
from lucid.serialization.format import as_bytes, fill
from lucid.serialization.pickles import LEVELS, STORAGES, Mark, NotLoadedError, Storage, Tensor, is_a, unpickle
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MAGIC", "read_pytorch"]

MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"  # how the old form begins: a pickle of a number
# What reading a file that is damaged, or made to do harm, may raise.
WRONG = (
    ValueError, TypeError, LookupError, AttributeError, EOFError, ArithmeticError, RecursionError, NotImplementedError,
    RuntimeError, struct.error, zipfile.BadZipFile, LucidError,
)  # fmt: skip


def read_pytorch(file: BinaryIO, source: str, place: Callable[[str], str]) -> Any:
    """Return the object of a checkpoint of PyTorch that begins where `file` stands and ends with it.

    Parameters
    ----------
    file : binary file object
    source : str
        What errors call it.
    place : callable
        Gives the device on which what was saved on another goes.

    Raises
    ------
    CheckpointError
        If it is damaged, or holds something else than tensors and plain values.
    """
    begin = file.tell()
    start = file.read(len(MAGIC))
    file.seek(begin)
    try:
        value = _old(file) if start == MAGIC else _zipped(file)
        return _Maker(source, place).made(value, 0)
    except NotLoadedError as error:
        raise NotLoadedError(
            f"load: {source} {error}, which is not loaded: expected tensors, numbers, strings, bools, None, and dicts, "
            "lists and tuples of these; in PyTorch, save the state_dict() alone"
        ) from error
    except (CheckpointError, DeviceError, OutOfMemoryError):
        raise
    except WRONG as error:
        raise CheckpointError(f"load: {source} is no checkpoint of PyTorch, or a damaged one ({error!r})") from error


def _kind_of(storage: Any) -> np.dtype[Any]:
    """Return the dtype of a storage, by the name of its class."""
    kind = getattr(storage, "text", "").rpartition(".")[2]
    if kind == "UntypedStorage":
        return np.dtype(np.uint8)
    return DTYPES[STORAGES[kind]].numpy


class _Budget:
    """How many bytes of storages a file may still ask for: no more than it is long, however often its parts overlap."""

    def __init__(self, file: BinaryIO) -> None:
        begin = file.tell()
        self.left = file.seek(0, 2) - begin
        file.seek(begin)

    def take(self, count: int, dtype: np.dtype[Any]) -> None:
        """Note elements that are asked for."""
        self.left -= count * dtype.itemsize
        if count < 0 or self.left < 0:
            raise ValueError("storages that are longer than the file")


def _zipped(file: BinaryIO) -> Any:
    """Return the value of a zip archive: a pickle, and a file of bytes for each storage."""
    budget = _Budget(file)
    with zipfile.ZipFile(file) as archive:
        files = {info.filename: info for info in archive.infolist()}
        (pickled,) = (name for name in files if name.endswith("/data.pkl"))
        folder = pickled.removesuffix("data.pkl")
        order = files.get(f"{folder}byteorder")
        swapped = order is not None and _whole(archive, order).decode() != sys.byteorder
        known: dict[str, Storage] = {}

        def stored(reference: Any) -> Storage:
            kind, storage, key, location, numel = reference
            if kind != "storage" or not isinstance(key, str) or type(numel) is not int or type(location) is not str:
                raise ValueError("expected a reference to a storage")
            if key not in known:
                info, dtype = files[f"{folder}data/{key}"], _kind_of(storage)
                budget.take(numel, dtype)
                if info.file_size != numel * dtype.itemsize:
                    raise ValueError(f"expected {numel} elements of {dtype} in storage {key}")
                array = np.frombuffer(bytearray(_whole(archive, info)), dtype)
                known[key] = Storage(array.byteswap(inplace=True) if swapped else array, location)
            return known[key]

        return unpickle(io.BytesIO(_whole(archive, files[pickled])), stored)


def _whole(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the content of a file in an archive, which has to be stored as it is: nothing swells when it is read."""
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > info.compress_size:
        raise ValueError(f"{info.filename} is compressed, which torch.save does not do")
    return archive.read(info)


def _old(file: BinaryIO) -> Any:
    """Return the value of the form before zip archives: pickles one after another, and the storages' bytes."""
    budget = _Budget(file)
    known: dict[str, Storage] = {}

    def refused(reference: Any) -> Storage:
        raise ValueError(f"a {type(reference).__name__} as a reference where none can be")

    def stored(reference: Any) -> Storage:
        kind, storage, key, location, numel, view = reference
        if kind != "storage" or not isinstance(key, str) or type(numel) is not int or type(location) is not str:
            raise ValueError("expected a reference to a storage")
        if key not in known:
            dtype = _kind_of(storage)
            budget.take(numel, dtype)
            known[key] = Storage(np.empty(numel, dtype), location)
        whole = known[key]
        if view is None:
            return whole
        _, offset, length = view
        if not 0 <= offset <= offset + length <= len(whole.array):
            raise ValueError(f"a view of storage {key} that is not within it")
        return Storage(whole.array[offset : offset + length], location)

    for _ in range(2):  # the magic number, and the version
        unpickle(file, refused)
    little = unpickle(file, refused)["little_endian"]
    value = unpickle(file, stored)
    for key in unpickle(file, refused):
        array, length = known[key].array, bytearray(8)
        fill(file, length)
        if int.from_bytes(length, "little" if little else "big") != len(array):
            raise ValueError(f"expected {len(array)} elements of storage {key}")
        fill(file, as_bytes(array))
        if little != (sys.byteorder == "little"):
            array.byteswap(inplace=True)
    return value


class _Maker:
    """Makes lucid's tensors of what a pickle describes; tensors of one storage share memory, as they did."""

    def __init__(self, source: str, place: Callable[[str], str]) -> None:
        self.source = source
        self.place = place
        self.storages: dict[int, Any] = {}  # by the identity of an array, on its device
        # what was one object is one again, and is looked through once; all is kept, so that no identity is used again
        self.done: dict[int, tuple[Any, Any]] = {}

    def made(self, value: Any, level: int) -> Any:
        """Return the value with tensors in place of their descriptions."""
        if level > LEVELS:
            raise RecursionError(f"deeper than {LEVELS} levels")
        if isinstance(value, Mark):
            raise NotLoadedError("holds the begin of something without its end")
        if not isinstance(value, tuple | list | dict) or isinstance(value, Size):
            return value
        key = id(cast("object", value))
        if key not in self.done:
            self.done[key] = value, self.container(value, level)
        return self.done[key][1]

    def container(self, value: Any, level: int) -> Any:
        """Return a tensor, or a container with what is in it made."""
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value)
            made = ((key, self.made(each, level + 1)) for key, each in items.items())
            if not isinstance(items, OrderedDict):
                return dict(made)
            ordered: OrderedDict[Any, Any] = OrderedDict(made)
            vars(ordered).update(vars(items))  # `_metadata`, at most
            return ordered
        if is_a(value, list, tuple):
            items = [self.made(each, level + 1) for each in value]
            return items if is_a(value, list) else tuple(items)
        raise NotLoadedError("holds a storage, or the name of a class")

    def tensor(self, described: Tensor) -> Any:
        """Return the tensor of a description."""
        whole = described.storage.array
        if id(whole) not in self.storages:
            # NumPy counts on it: a mask of other bytes would make it write behind the end of its arrays
            if whole.dtype == np.bool_ and as_bytes(whole).max(initial=0) > 1:
                raise ValueError("bytes that are no bool")
            where = self.place(described.storage.location)
            try:
                self.storages[id(whole)] = to_device(whole, where)
            except DeviceError as error:
                error.add_note(f"{self.source}: saved on {described.storage.location}: map_location='cpu' loads it")
                raise
        array = self.storages[id(whole)]
        strides = tuple(stride * array.itemsize for stride in described.strides)
        if 0 in described.shape:
            view = array[:0].reshape(described.shape)
        else:
            part = array[described.offset :]
            as_strided = np.lib.stride_tricks.as_strided if type(array) is np.ndarray else _as_strided
            view = as_strided(part, described.shape, strides)
        tensor = wrap(view)
        if described.parameter:
            return Parameter(tensor, described.requires_grad)
        return tensor.requires_grad_(described.requires_grad)


def _as_strided(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Return a view of a CUDA array; the caller has looked that it lies within."""
    return type(array)(shape, array.dtype, memptr=array.data, strides=strides)
