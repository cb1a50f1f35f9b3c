"""Batches in memory that two processes share: the arrays of a batch lie in a block, the rest goes through the pipe."""

from __future__ import annotations

import io
import math
import pickle
import weakref
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.base import gpu
from lucid.base.foreign.files import reduced as reduced_file
from lucid.base.sharing import block_of, new_block, reduced
from lucid.errors import ArgumentError
from lucid.tensor.copying import check_leaf, rebuild

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Sequence
    from mmap import mmap

    from numpy.typing import NDArray

    from lucid.base.sharing import Block

# Arrays begin at multiples of this, as NumPy's own and CUDA's do.
_ALIGNMENT = 64
# Bytes of what the pipe carries of a message: more goes into the block, so that a worker never fills the pipe and
# waits, while the training process waits for it to take a job.
_MOST_IN_PIPE = 1024


class _Lent(np.ndarray[Any, Any]):
    """Bytes of a block: a class of its own, since a view of a view keeps the first of another class, not the owner."""


class Lease(weakref.ref[_Lent]):
    """The lease of lent bytes, with the number of their slot.

    It calls a function of C when no array is left that looks at them: in one of Python a Ctrl-C would be lost.
    """

    __slots__ = ("slot",)
    slot: int


def lend(block: mmap, slot: int, returned: deque[Lease]) -> tuple[NDArray[np.uint8], Lease]:
    """Return the bytes of a block, and their lease, added to `returned` when no array refers to them any more."""
    lent = np.frombuffer(block, np.uint8).view(_Lent)
    lease = Lease(lent, returned.append)
    lease.slot = slot
    return lent, lease


def pin(block: mmap) -> None:
    """Lock the pages of a block, until it goes, so that a CUDA device copies from it without waiting."""
    runtime = gpu.cupy().cuda.runtime
    address: int = np.frombuffer(block, np.uint8, 1).ctypes.data
    runtime.hostRegister(address, len(block), 0)
    weakref.finalize(block, runtime.hostUnregister, address).atexit = False


# ---- what goes through ----


class Message(NamedTuple):
    """A pickled object: its text and the positions of its arrays' bytes, or the positions of both in the block."""

    text: bytes | tuple[int, int]
    places: bytes | tuple[int, int]


def _viewed(array: Any, kind: Any) -> Any:
    return array.view(kind)


# what a class that inherits from NumPy's array may do in its own way
_PICKLING = ("__reduce__", "__reduce_ex__", "__setstate__")


class _Received:
    """Stands in a message for a file that has been received before it."""

    files: ClassVar[list[int]] = []

    def __init__(self, index: int) -> None:
        self._index = index

    def detach(self) -> int:
        """Return the file's descriptor."""
        return self.files[self._index]


class _Pickler(pickle.Pickler):
    """A pickler that leaves the bytes of arrays and tensors to the caller, and refuses objects bound to this process.

    Parameters
    ----------
    descriptors : list of int, optional
        Gets the files of tensors in memory that processes share: they stay there, and so do arrays in mapped files,
        which are to be found by their names. If None they are copied.
    """

    def __init__(
        self, file: Any, put_aside: Callable[[pickle.PickleBuffer], Any], descriptors: list[int] | None = None
    ) -> None:
        super().__init__(file, 5, buffer_callback=put_aside)
        self._descriptors = descriptors

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, TensorBase):
            tensor: Any = obj
            check_leaf(tensor, "being sent to another process")
            _check_on_cpu(tensor.array)
            files = self._descriptors
            if files is not None and (block := block_of(tensor.array)) is not None:
                files.append(block.descriptor)
                return reduced(tensor, lambda _: _Received(len(files) - 1))
            return rebuild, (cast("Any", type(tensor)), tensor.array, "cpu", tensor.requires_grad, {**vars(tensor)})
        _check_on_cpu(obj)
        return self._reduced_array(obj) if isinstance(obj, np.ndarray) else NotImplemented

    def _reduced_array(self, array: Any) -> Any:
        """Return the reduction of an array without its bytes: NumPy's covers only its own class, dtypes and orders."""
        kind = cast("Any", type(array))
        if self._descriptors is not None and (reduction := reduced_file(array)) is not None:
            return reduction
        if kind is not np.ndarray:
            if any(getattr(kind, name) is not getattr(np.ndarray, name) for name in _PICKLING):
                return NotImplemented
            # what was made of a file's array lies in no file
            return _viewed, (array.view(np.ndarray), np.ndarray if kind is np.memmap else kind)
        if array.dtype.hasobject:
            return NotImplemented
        if array.dtype.kind == "V" and array.dtype.names is None:
            return _viewed, (array.view(f"u{array.itemsize}"), array.dtype)
        if not array.flags.forc:
            return _viewed, (np.ascontiguousarray(array), array.dtype)
        return NotImplemented


def _check_on_cpu(obj: object) -> None:
    if gpu.is_gpu_array(obj):
        raise ArgumentError(
            "expected tensors and arrays on the CPU, got one on a CUDA device: worker processes leave devices alone; "
            "keep data on the CPU and give the DataLoader a device, or use num_workers=0 or worker='thread'"
        )


class Writer:
    """A writer of objects into a block, replaced by a larger one if they do not fit.

    Attributes
    ----------
    block : Block or None
        Where the last message lies.
    """

    def __init__(self) -> None:
        self.start(None)

    def start(self, block: Block | None) -> None:
        """Begin a message in `block`, overwriting the one in it."""
        self.block = block
        self._bytes = np.empty(0, np.uint8) if block is None else np.frombuffer(block, np.uint8)
        self._end = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array without values, in the block if that has room."""
        size = math.prod(shape) * dtype.itemsize
        start = None if dtype.hasobject else self._reserve(size)
        if start is None:
            return np.empty(shape, dtype)
        return self._bytes[start : start + size].view(dtype).reshape(shape)

    def _reserve(self, size: int) -> int | None:
        if self._end + size > self._bytes.size:
            return None
        start = self._end
        self._end += _aligned(size)
        return start

    def pack(self, value: Any, descriptors: list[int] | None = None) -> Message:
        """Return the message that holds `value`; its arrays, and a long text, are in the block.

        The files of tensors that are shared already are added to `descriptors`, where that is given.
        """
        buffers: list[pickle.PickleBuffer] = []
        file = io.BytesIO()
        _Pickler(file, buffers.append, descriptors).dump(value)
        text = file.getvalue()
        pieces = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
        if len(text) + len(pieces) * _PLACE <= _MOST_IN_PIPE:
            return Message(text, _as_bytes(self._place(pieces)))
        # the last piece is where the others lie
        pieces += [np.frombuffer(text, np.uint8), np.empty(len(pieces) * _PLACE, np.uint8)]
        *places, of_text, of_places = self._place(pieces)
        start, size = of_places
        self._bytes[start : start + size] = np.frombuffer(_as_bytes(places), np.uint8)
        return Message(of_text, of_places)

    def _place(self, pieces: list[NDArray[np.uint8]]) -> list[tuple[int, int]]:
        """Return offset and size of each piece in the block, copying it there if it lies outside."""
        offsets = [self._offset_of(piece) for piece in pieces]
        outside = sum(_aligned(piece.size) for piece, at in zip(pieces, offsets, strict=True) if at is None)
        if self._end + outside > self._bytes.size:
            # all pieces move: what lies in the old block is copied like the rest
            self.start(new_block(sum(_aligned(piece.size) for piece in pieces)))
            offsets = [None] * len(pieces)
        places: list[tuple[int, int]] = []
        for piece, offset in zip(pieces, offsets, strict=True):
            at = offset
            if at is None:
                at = self._reserve(piece.size) or 0
                self._bytes[at : at + piece.size] = piece
            places.append((at, piece.size))
        return places

    def _offset_of(self, piece: NDArray[np.uint8]) -> int | None:
        """Return the offset of a piece in the block; None if it lies outside."""
        at = piece.ctypes.data - self._bytes.ctypes.data
        return at if at >= 0 and at + piece.size <= self._end else None


# Bytes of a place in a block: where it begins, and its size.
_PLACE = 16


def _as_bytes(places: list[tuple[int, int]]) -> bytes:
    return np.array(places, np.int64).tobytes()


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def unpack(message: Message, lent: NDArray[np.uint8] | None, descriptors: Sequence[int] = ()) -> Any:
    """Return the object of a message, with its arrays on the bytes that are lent of its block."""
    _Received.files[:] = descriptors
    memory = np.empty(0, np.uint8) if lent is None else lent
    text, places = [
        part if isinstance(part, bytes) else memory[part[0] : part[0] + part[1]].tobytes() for part in message
    ]
    buffers = [memory[start : start + size].data for start, size in np.frombuffer(places, np.int64).reshape(-1, 2)]
    return pickle.loads(text, buffers=buffers)


class _Nowhere:
    def write(self, text: bytes) -> int:
        return len(text)


def why_not_picklable(value: Any, path: str, depth: int = 6) -> str:
    """Return the path of the innermost unpicklable part of `value`, and the reason; "" if all can be pickled."""
    try:
        _Pickler(_Nowhere(), lambda _: None).dump(value)
    except Exception as error:  # noqa: BLE001  classes raise what they like while they are pickled
        reason = f"{path}, of type {type(value).__name__}: {error}"
    else:
        return ""
    parts: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        parts = [(f"{path}[{key!r}]", entry) for key, entry in cast("dict[Any, Any]", value).items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{path}[{index}]", entry) for index, entry in enumerate(cast("list[Any]", value))]
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        parts = [(f"{path}.{name}", entry) for name, entry in cast("dict[str, Any]", vars(value)).items()]
    for inner, entry in parts if depth else ():
        if reason_inside := why_not_picklable(entry, inner, depth - 1):
            return reason_inside
    return reason
