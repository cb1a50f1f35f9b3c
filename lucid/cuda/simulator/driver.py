"""CUDA's driver as lucid uses it, with simulated devices that know the parameters of a kernel."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING

from lucid.cuda.driver import CudaDriver
from lucid.cuda.simulator.runtime import runtime
from lucid.cuda.simulator.source.nvidia import TESTED
from lucid.errors import KernelError

if TYPE_CHECKING:
    from lucid.cuda.launch.kernels import Unit


class SimulatedDriver(CudaDriver):
    """Refuses kernels that are declared with other parameters than they have; NVRTC is the simulated one, of CuPy."""

    # g++ takes longer to begin than for all kernels of a unit.
    whole_units = True

    def compile(self, unit: Unit) -> None:
        """Do nothing: the simulator compiles through CuPy's binding of NVRTC, and that blocks other threads."""

    def load(self, unit: Unit) -> dict[str, int]:
        """Compile, load on the current device, and compare.

        Raises
        ------
        KernelError
            If it does not compile, or a kernel is declared with other parameters than it has.
        """
        if unit.declared:
            TESTED.add(unit.source)
        handles = super().load(unit._replace(declared=False))
        for name, handle in handles.items():
            size = ctypes.c_uint()
            codes = runtime().lucid_parameters(ctypes.c_void_p(handle), ctypes.byref(size)).decode()
            _compare(name, unit.signatures[name], codes, size.value)
        return handles


def _compare(name: str, signature: str, codes: str, size: int) -> None:
    packed = struct.calcsize(f"@{signature}")
    # long is long long; of a kernel with structs only the size can be compared.
    known = codes.replace("l", "q").replace("L", "Q")
    if packed != size or ("S" not in known and signature != known):
        raise KernelError(
            f"{name} is declared with parameters {signature!r} of {packed} bytes, but has {known!r} of {size} bytes"
        )
