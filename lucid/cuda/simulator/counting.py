"""Counters of the work requested of the simulated devices, so that tests can state the cost of a step."""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import ClassVar

from lucid.cuda.simulator.runtime import runtime


class _Counts(ctypes.Structure):
    """``lucid_simulator::Counts``."""

    _fields_: ClassVar = [
        (name, ctypes.c_uint64)
        for name in (
            "launches", "library", "bytes_loaded", "bytes_stored", "allocations", "to_device", "to_host", "copies",
            "synchronisations",
        )
    ]  # fmt: skip


class Counters:
    """Counts since the last `reset`, of all threads and devices together.

    Attributes
    ----------
    launches : int
        Launches of kernels, CuPy's own among them.
    kernels : collections.Counter
        The same by the kernels' C++ names.
    library : int
        Calls of cuBLAS and Thrust that do work on the device.
    bytes_loaded, bytes_stored : int
        What kernels loaded from and stored to memory, each access counted, in the blocks that ran; what libraries and
        copies read and wrote.
    allocations : int
        Blocks of device memory of at least one byte that were handed out; where nothing is executed, by the driver
        alone and not by CuPy's pool.
    copies : int
        Calls that copied memory or filled it.
    to_device, to_host : int
        Bytes copied from and to the host.
    synchronisations : int
        Times that the host had to wait for the device.

    Examples
    --------
    >>> from lucid.cuda.simulator import counters
    >>> counters.reset()  # doctest: +SKIP
    >>> counters.launches  # doctest: +SKIP
    0
    """

    launches: int
    library: int
    bytes_loaded: int
    bytes_stored: int
    allocations: int
    copies: int
    to_device: int
    to_host: int
    synchronisations: int

    def __getattr__(self, name: str) -> int:
        if name.startswith("_"):
            raise AttributeError(name)
        return int(getattr(self._counts(), name))

    @property
    def kernels(self) -> Counter[str]:
        """Launches by the kernels' names."""
        told: Counter[str] = Counter()

        @ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_size_t)
        def tell(name: bytes, times: int) -> None:
            told[name.decode()] += times

        runtime().lucid_each_kernel(tell, 0)
        return told

    def reset(self) -> None:
        """Set every count to 0."""
        ctypes.memset(ctypes.addressof(self._counts()), 0, ctypes.sizeof(_Counts))
        runtime().lucid_each_kernel(None, 1)

    def _counts(self) -> _Counts:
        return _Counts.from_address(runtime().lucid_counts())


counters = Counters()
