"""NVIDIA's run-time compiler through ctypes, so that other threads run meanwhile: CuPy's calls keep Python's lock.

It needs no GPU, no driver and no CuPy, but the library and two headers of CUDA.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lucid.cuda.build.image import OPTIONS, Image, key_of
from lucid.errors import CudaUnavailableError, KernelError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lucid.cuda.launch.kernels import Unit


_INSTALL = "install both with: pip install 'lucid-cupy[nvrtc]', or name the folder of a CUDA toolkit in CUDA_PATH"
_HEADER = "cuda_bf16.h"


class Compiler:
    """A library of NVRTC, with the headers that kernels include.

    Attributes
    ----------
    version : str
        Such as ``"12.9"``.
    architectures : tuple of str
        What it compiles for, such as ``"sm_90"``.
    """

    def __init__(self, library: str, headers: Path) -> None:
        self._library = ctypes.CDLL(library)
        self._headers = headers
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self._call("Version", ctypes.byref(major), ctypes.byref(minor))
        self._call("GetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._call("GetSupportedArchs", numbers)
        self.version = f"{major.value}.{minor.value}"
        self.architectures = tuple([f"sm_{number}" for number in numbers])

    def compile(self, unit: Unit, architecture: str) -> Image:
        """Return the kernels of a unit compiled for an architecture; other threads go on meanwhile.

        Raises
        ------
        KernelError
            If it does not compile.
        """
        kernels, code, _ = self.told(unit, architecture)
        return Image(key_of(unit), self.version, kernels, code)

    def told(self, unit: Unit, architecture: str, options: Sequence[str] = ()) -> tuple[dict[str, str], bytes, str]:
        """Return the names of kernels in the code by their C++ names, the code, and NVRTC's log.

        Raises
        ------
        KernelError
            If it does not compile.
        """
        program = ctypes.c_void_p()
        text = unit.source.encode(), f"{unit.stem}.cu".encode()
        self._call("CreateProgram", ctypes.byref(program), *text, 0, None, None)
        try:
            for name in unit.signatures:
                self._call("AddNameExpression", program, name.encode())
            every = [*OPTIONS, f"-arch={architecture}", f"-I{self._headers}", *options]
            values = (ctypes.c_char_p * len(every))(*[option.encode() for option in every])
            failed = self._library.nvrtcCompileProgram(program, len(every), values)
            said = self._text("ProgramLog", program)[:-1].decode(errors="replace")
            if failed:
                raise KernelError(f"NVRTC cannot compile {unit.name} for {architecture}:\n{said}")
            mangled = ctypes.c_char_p()
            kernels: dict[str, str] = {}
            for name in unit.signatures:
                self._call("GetLoweredName", program, name.encode(), ctypes.byref(mangled))
                kernels[name] = (mangled.value or b"").decode()
            return kernels, self._text("CUBIN", program), said
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"Get{what}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(f"Get{what}", program, text)
        return text.raw

    def _call(self, name: str, *arguments: object) -> None:
        if code := getattr(self._library, f"nvrtc{name}")(*arguments):
            raise KernelError(f"nvrtc{name} failed: {self._library.nvrtcGetErrorString(code).decode()}")


@cache
def compiler() -> Compiler:
    """Return the oldest NVRTC installed: newer drivers load its code, older ones might refuse that of a newer one.

    Raises
    ------
    CudaUnavailableError
        If there is none that loads, or its headers are missing.
    """
    libraries = [path for root in _roots() for path in root.glob("lib*/libnvrtc.so.[0-9]*")]
    headers = [path.parent for root in _roots() for path in root.glob(f"include/{_HEADER}")]
    if not libraries or not headers:
        missing = _HEADER if libraries else "the library of NVRTC"
        raise CudaUnavailableError(
            f"kernels are compiled by NVIDIA's NVRTC with CUDA's headers, and {missing} was not found among the "
            f"packages of {sys.executable} and in CUDA_PATH; {_INSTALL}"
        )
    library = min(libraries, key=lambda path: int(re.findall(r"\d+", path.suffixes[1])[0]))
    # Of the same toolkit, where several are installed.
    near = sorted(headers, key=lambda path: -len(os.path.commonpath([path, library])))
    try:
        return Compiler(str(library), near[0])
    except OSError as error:
        raise CudaUnavailableError(f"{library} does not load: {error}; {_INSTALL}") from error


def _roots() -> Iterator[Path]:
    """Yield the folders that may have ``lib`` and ``include`` of CUDA: its wheels, and toolkits."""
    for folder in dict.fromkeys(sys.path):
        yield from sorted(Path(folder or ".").glob("nvidia/*"))
    for name in ("CUDA_PATH", "CUDA_HOME"):
        if value := os.environ.get(name):
            yield Path(value)
    yield from (Path(sys.prefix), Path("/usr/local/cuda"))
