"""The installed CuPy and the CUDA that it was built for, with all that differs between such versions."""

from __future__ import annotations

import platform
import re
import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lucid.errors import CudaUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping


INSTALL = "pip install 'lucid-cupy[simulator]'"


class Cuda(NamedTuple):
    """A CUDA that a wheel of CuPy's asks for.

    `version` is told as CUDA tells its own. `libraries` has of each library the number in its file's name, and its
    version. `renamed` has what the wheel calls under another name than the simulator has it, where CUDA has given the
    old name to a function with other parameters.
    """

    version: int
    libraries: Mapping[str, tuple[int, int]]
    renamed: Mapping[str, str]

    @property
    def major(self) -> int:
        """The number in the names of CUDA's own libraries."""
        return self.version // 1000

    def soname(self, library: str) -> str:
        """Return the name that the wheel loads a library by."""
        number, _ = self.libraries.get(library, (self.major, self.version))
        return f"lib{library}.so.{number}"


# cuSOLVER is 11.6.4, with which CuPy knows that there is no Xgeev.
WHEELS = {
    "cupy-cuda12x": Cuda(
        12090,
        {"cublas": (12, 120901), "cusolver": (11, 11604), "cusparse": (12, 12509), "curand": (10, 10310),
         "cufft": (11, 11401)},
        {},
    ),
    "cupy-cuda13x": Cuda(
        13020,
        {"cublas": (13, 130300), "cusolver": (12, 11604), "cusparse": (12, 12710), "curand": (10, 10402),
         "cufft": (12, 12200)},
        {"cudaMemPrefetchAsync": "cudaMemPrefetchAsync_v2"},
    ),
}  # fmt: skip
_TAKEN = " or ".join(WHEELS)


@cache
def installed() -> tuple[Path, Cuda]:
    """Return the folder of the installed CuPy, and the CUDA that it needs.

    Raises
    ------
    CudaUnavailableError
        If there is none, several, or none that can be simulated.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise CudaUnavailableError(
            f"simulated CUDA devices need Linux on x86-64, this is {sys.platform} on {platform.machine()}; "
            "use device='cpu'"
        )
    # what an interrupted installation has left has no name
    names = {spec.name or "" for spec in distributions()}
    wheels = sorted(name for name in names if re.fullmatch(r"cupy(-cuda\w+|-rocm.*)?", name))
    if len(wheels) > 1:
        raise CudaUnavailableError(
            f"several CuPy are installed: {', '.join(wheels)}; they overwrite each other's files: uninstall all, then "
            f"install one with: {INSTALL}"
        )
    spec = PathFinder.find_spec("cupy")
    if spec is None or spec.origin is None:
        raise CudaUnavailableError(
            f"simulated CUDA devices need CuPy ({_TAKEN}), which is not installed; install it: {INSTALL}"
        )
    if not wheels or wheels[0] not in WHEELS:
        told = f"{wheels[0]} is installed" if wheels else f"the CuPy in {Path(spec.origin).parent} is of no wheel"
        raise CudaUnavailableError(
            f"simulated CUDA devices need the wheel {_TAKEN}, and {told}; use another environment, with: {INSTALL}"
        )
    return Path(spec.origin).parent, WHEELS[wheels[0]]
