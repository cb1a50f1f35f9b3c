"""The memory of the simulated device: a table of allocations that every load and store of a kernel is held against."""

from __future__ import annotations

from lucid.cuda.simulator.runtime import runtime

__all__ = ["allocate", "forget", "free", "lend"]


def allocate(nbytes: int) -> int:
    """Address of fresh memory, a multiple of 512, filled with a pattern that is NaN in every floating dtype.

    Raises
    ------
    MemoryError
        If the host has none left.
    """
    address = int(runtime().lucid_allocate(nbytes))
    if address == 0:
        raise MemoryError(f"the host has no room for {nbytes:,} bytes of the simulated device")
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
