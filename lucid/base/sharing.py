"""Memory that processes share: the place of `share_memory`'s tensors, and its reference in another process."""

from __future__ import annotations

import mmap
import os
import weakref
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.device import device_of
from lucid.errors import DeviceError, OutOfMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from lucid.base.arrays import Array


# what `multiprocessing` is to send by reference: the classes of tensors
tensor_classes: list[type[Any]] = []


class Block(mmap.mmap):
    """Memory without a name in the file system that lives as long as a process maps it.

    Attributes
    ----------
    descriptor : int
        That of the file by which other processes map it; closed when this object goes.
    """

    descriptor: int

    @classmethod
    def of(cls, descriptor: int, *, private: bool = False) -> Self:
        """Return the memory of the whole file; the descriptor belongs to the result from now on.

        What is written to it where it is `private` is seen by this process alone.
        """
        made = cls(descriptor, 0, access=mmap.ACCESS_COPY if private else mmap.ACCESS_WRITE)
        made.descriptor = descriptor
        weakref.finalize(made, os.close, descriptor)
        return made


def new_block(size: int) -> Block:
    """Return memory of at least `size` bytes.

    It is reserved at once, so that its lack is an error here, not the end of the process that writes to it.

    Raises
    ------
    OutOfMemoryError
        If there is no room for it.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("lucid")
    else:
        with import_module("tempfile").TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        os.truncate(descriptor, max(size, 1))
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, max(size, 1))
        return Block.of(descriptor)
    except OSError as error:
        os.close(descriptor)
        raise OutOfMemoryError(
            f"no room for {size:,} bytes of memory that processes share: {error.strerror}; use less, such as smaller "
            "batches or fewer workers, or raise the limits of the process or its container"
        ) from None


def block_of(array: Array) -> Block | None:
    """Return the shared memory of an array's elements; None if they are not in any."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, Block) else None


def shared(array: Array) -> Array:
    """Return the array in memory that other processes can share; itself if it lies there.

    Raises
    ------
    DeviceError
        If it is on a CUDA device.
    """
    if type(array) is not np.ndarray:
        raise DeviceError(
            f"share_memory: expected tensors on the cpu, got one on {device_of(array)}, whose memory processes do not "
            "share: move it to the cpu first"
        )
    if block_of(array) is not None:
        return array
    made = laid_out(new_block(array.nbytes), array.shape, array.dtype)
    made[...] = array
    return made


def laid_out(block: Block, *layout: Any) -> Any:
    """Return the array of a layout in shared memory, and let `multiprocessing` send tensors so from now on.

    Nobody else does: a file and a deep copy hold elements.
    """
    reduction = import_module("multiprocessing.reduction")
    for kind in tensor_classes:
        reduction.ForkingPickler.register(kind, reduced)
    shape, dtype, *rest = layout
    return np.ndarray(shape, dtype, block, *rest)


def reduced(tensor: Any, send: Callable[[int], Any] | None = None) -> Any:
    """Return pickle's recipe of a tensor; for shared elements, one that refers to their memory.

    What ``send(descriptor)`` returns, of which another process gets the file by ``detach()``, goes along; if None,
    `multiprocessing` sends it, once.
    """
    make, (kind, array, *rest) = tensor.__reduce__()
    block = block_of(array)
    if block is None:
        return make, (kind, array, *rest)
    start = np.frombuffer(block, np.uint8, 1).ctypes.data
    layout = array.shape, array.dtype, array.ctypes.data - start, array.strides
    sent = (send or import_module("multiprocessing.reduction").DupFd)(block.descriptor)
    return _attached, (make, kind, sent, layout, rest)


def _attached(make: Any, kind: type[Any], descriptor: Any, layout: tuple[Any, ...], rest: list[Any]) -> Any:
    """Return the tensor of another process, in the same memory."""
    return make(kind, laid_out(Block.of(descriptor.detach()), *layout), *rest)
