"""What the simulated devices were asked to do, counted, so that tests can say what a step costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Counters", "counters"]


@dataclass
class Counters:
    """Counts since the last `reset`, of all threads and devices together.

    Attributes
    ----------
    launches : int
        Launches of lucid's own kernels.
    kernels : collections.Counter
        The same by the kernels' C++ names.
    library : int
        Calls of CuPy's functions that do work on the device, and of cuBLAS.
    bytes_loaded, bytes_stored : int
        What kernels loaded from and stored to arrays, each access counted, in the blocks that ran; and the sizes of
        what CuPy's functions and cuBLAS were given and wrote.
    allocations : int
        Arrays of at least one byte that were given memory.
    to_device, to_host : int
        Bytes copied from and to the host.
    synchronisations : int
        Times that the host had to wait for the device: values read, and sizes that depend on values.

    Examples
    --------
    >>> from lucid.cuda.simulator import counters
    >>> counters.reset()
    >>> counters.launches
    0
    """

    launches: int = 0
    kernels: Counter[str] = field(default_factory=Counter[str])
    library: int = 0
    bytes_loaded: int = 0
    bytes_stored: int = 0
    allocations: int = 0
    to_device: int = 0
    to_host: int = 0
    synchronisations: int = 0

    def library_call(self, loaded: int, stored: int) -> None:
        """Count a call of CuPy's or cuBLAS's, and the bytes that it reads and writes at the least."""
        self.library += 1
        self.bytes_loaded += loaded
        self.bytes_stored += stored

    def reset(self) -> None:
        """Set every count to 0."""
        for name, value in vars(Counters()).items():
            setattr(self, name, value)


counters = Counters()
