"""PyTorch's checkpoints (.pt), in both of their forms, read without running anything that they could name."""

from __future__ import annotations

import io
import re
import struct
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.arrays import to_device
from lucid.base.dtype import DTYPES
from lucid.errors import CheckpointError, DeviceError
from lucid.serialization.archive import Archive
from lucid.serialization.bounded import LIST, Bounded
from lucid.serialization.calls import STORAGES, Storage
from lucid.serialization.format import as_bytes
from lucid.serialization.pickles import unpickle
from lucid.serialization.refusals import NotLoaded, TooMuch, checked, plain, shown

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.serialization.locations import Locations


# how the old form begins: a pickle, of protocol 2 or later, of a number
OLD = re.compile(rb"\x80[\x02-\x05](\x95.{8})?\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19", re.DOTALL)
ZIP = b"PK\x03\x04"
FIRST = re.compile(rb".{30}[^/]{1,400}?/data\.pkl", re.DOTALL)


def is_pytorch(file: Bounded) -> bool:
    """Tell whether a file is a checkpoint of PyTorch, perhaps a damaged one."""
    start = file.start
    if OLD.match(start) or (start.startswith(ZIP) and FIRST.match(start)):
        return True
    if not start.startswith(ZIP):
        return False
    remaining = file.budget.remaining
    try:
        return any(name.endswith("/data.pkl") for name in Archive(file).files)
    except (ValueError, EOFError, struct.error, TooMuch):
        return False
    finally:
        file.budget.remaining = remaining


def read_pytorch(file: Bounded, source: str, place: Locations, *, mapped: bool) -> Any:
    """Return the object of a checkpoint of PyTorch.

    Parameters
    ----------
    file : Bounded
    source : str
        What errors call it.
    place : Locations
        Gives the device on which goes what was saved on another.
    mapped : bool
        Whether its pages are asked for, which is refused.

    Raises
    ------
    CheckpointError
        If it is damaged, or holds something else than tensors and plain values.
    """
    if mapped:
        raise CheckpointError(f"load: mmap=True: expected a safetensors file, got a checkpoint of PyTorch, {source}")
    file.seek(0)
    with checked(source, "is no checkpoint of PyTorch, or a damaged one", place):
        zipped = file.start.startswith(ZIP)
        return _zipped(file, source, place) if zipped else _old(file, source, place)


def _reference(value: Any) -> tuple[np.dtype[Any], str, str, int, Any]:
    """Return the parts of a persistent id: dtype, key, location, number of elements, and the part of a storage."""
    kind, storage, key, location, numel, *view = value
    if kind != "storage" or type(key) is not str or type(numel) is not int or type(location) is not str or numel < 0:
        raise ValueError("expected a reference to a storage")
    name = getattr(storage, "text", "").rpartition(".")[2]
    if name == "UntypedStorage":
        return np.dtype(np.uint8), key, location, numel, view
    if name not in STORAGES:
        raise ValueError("expected the name of a storage")
    return DTYPES[STORAGES[name]].numpy, key, location, numel, view


def _placed(array: Array, source: str, location: str, place: Locations) -> Array:
    """Return an array on its device."""
    where = place(location)
    try:
        return to_device(array, where)
    except DeviceError as error:
        error.add_note(f"{source}: saved on {plain(location, 80)}: map_location='cpu' loads it")
        raise


def _check(array: Array) -> None:
    """Raise if bytes are no bools: NumPy counts on it, a mask of others would make it write behind its arrays."""
    if array.dtype == np.bool_ and as_bytes(array).max(initial=0) > 1:
        raise ValueError("bytes that are no bool")


def _zipped(file: Bounded, source: str, place: Locations) -> Any:
    """Return the value of a zip archive: a pickle, and a file of bytes for each storage."""
    archive = Archive(file)
    folder = next(iter(archive.files)).partition("/")[0]
    if f"{folder}/constants.pkl" in archive.files:
        raise NotLoaded("holds TorchScript, a program beside its weights")
    order = archive.content(f"{folder}/byteorder").tobytes() if f"{folder}/byteorder" in archive.files else b"little"
    if order not in {b"little", b"big"}:
        raise ValueError("an order of bytes that is neither little nor big")
    swapped = order.decode() != sys.byteorder
    known: dict[str, Storage] = {}

    def stored(reference: Any) -> Storage:
        dtype, key, location, numel, _ = _reference(reference)
        if key not in known:
            name = f"{folder}/data/{key}"
            if name not in archive.files or archive.files[name].size != numel * dtype.itemsize:
                raise ValueError(f"expected {numel} elements of {dtype} in storage {shown(key)}")
            file.budget.take(4 * LIST)
            array = archive.content(name).view(dtype)
            array = array.byteswap(inplace=True) if swapped else array
            _check(array)
            known[key] = Storage(_placed(array, source, location, place))
        return known[key]

    return unpickle(Bounded(io.BytesIO(archive.content(f"{folder}/data.pkl")), file.budget), stored)


def _old(file: Bounded, source: str, place: Locations) -> Any:
    """Return the value of the form before zip archives: pickles one after another, and the storages' bytes.

    Tensors are made while the memory that they lie in is still empty; none is handed out before all of it is filled.
    """
    known: dict[str, Storage] = {}
    dtypes: dict[str, np.dtype[Any]] = {}
    remaining = file.size

    def refused(reference: Any) -> Storage:
        raise ValueError(f"a {type(reference).__name__} as a reference where none can be")

    def stored(reference: Any) -> Storage:
        nonlocal remaining
        dtype, key, location, numel, (view,) = _reference(reference)
        if key not in known:
            remaining -= numel * dtype.itemsize
            if remaining < 0:
                raise ValueError("storages that are longer than the file")
            file.budget.take(4 * LIST + numel * dtype.itemsize)
            known[key] = Storage(_placed(np.empty(numel, dtype), source, location, place))
            dtypes[key] = dtype
        whole = known[key].array
        if view is None:
            return known[key]
        _, offset, length = view
        if not 0 <= offset <= offset + length <= len(whole):
            raise ValueError(f"a view of storage {shown(key)} that is not within it")
        file.budget.take(4 * LIST)
        return Storage(whole[offset : offset + length])

    for _ in range(3):  # the magic number, the version, and where it was written, which changes nothing
        unpickle(file, refused)
    value = unpickle(file, stored)
    filled = list(unpickle(file, refused))
    if len(filled) != len(known) or {*filled} != known.keys():
        raise ValueError("expected the bytes of each storage once")
    for key in filled:
        array, length = known[key].array, int.from_bytes(file.read(8), "little")
        if length != len(array):
            raise ValueError(f"expected {len(array)} elements of storage {shown(key)}")
        is_on_host = type(array) is np.ndarray
        read: Any = array if is_on_host else np.empty(length, dtypes[key])
        file.fill(read)
        if sys.byteorder == "big":  # they are always little
            read.byteswap(inplace=True)
        _check(read)
        if not is_on_host:
            as_bytes(array)[...] = to_device(as_bytes(read), array.device.id)
    return value
