"""The memory of the simulated device: a table of allocations that every load and store of a kernel is held against."""

from __future__ import annotations

import ctypes

from lucid.cuda.simulator.runtime import in_part, runtime

__all__ = ["SPARSE", "allocate", "forget", "free", "lend"]

# Allocations of at least so many bytes begin as zeros, and take the host's memory only where they are written to:
# what is larger than the host can be addressed.
SPARSE = 1 << 27


def allocate(nbytes: int) -> int:
    """Address of fresh memory, a multiple of 512, filled with a pattern that is NaN in every floating dtype.

    It is zero where it is sparse, and where only some blocks of launches run: what the others would write stays as it
    is.

    Raises
    ------
    MemoryError
        If the host has none left.
    """
    sparse = nbytes >= SPARSE
    address = int(runtime().lucid_allocate(nbytes, sparse))
    if address == 0:
        raise MemoryError(f"the host has no room for {nbytes:,} bytes of the simulated device")
    if in_part() and not sparse:
        ctypes.memset(address, 0, nbytes)
    return address


def free(address: int) -> None:
    """Give memory of `allocate` back; kernels that touch it from now on are stopped.

    Raises
    ------
    ValueError
        If no allocation begins there.
    """
    if runtime().lucid_free(address):
        raise ValueError(f"no allocation of the simulated device begins at {address:#x}")


def lend(address: int, nbytes: int) -> None:
    """Let kernels touch memory that somebody else owns, until `forget`."""
    runtime().lucid_lend(address, nbytes)


def forget(address: int) -> None:
    """Undo `lend`.

    Raises
    ------
    ValueError
        If no lent memory begins there.
    """
    if runtime().lucid_forget(address):
        raise ValueError(f"no memory at {address:#x} was lent to the simulated device")
