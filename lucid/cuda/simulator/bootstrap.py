"""Puts the simulated CUDA under the real CuPy: its wheel, unchanged, then finds devices on any machine."""

from __future__ import annotations

import ctypes
import inspect
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from lucid.base import gpu
from lucid.cuda.launch import kernels
from lucid.cuda.simulator.absence import refuse_what_is_absent
from lucid.cuda.simulator.blocks import Blocks
from lucid.cuda.simulator.compilation import FOLDER, compiled, line_of, sanitizes
from lucid.cuda.simulator.driver import SimulatedDriver
from lucid.cuda.simulator.redirection import redirect
from lucid.cuda.simulator.runtime import executes, library, runtime
from lucid.cuda.simulator.settings import nvrtc, whole_number
from lucid.cuda.simulator.source.arguments import compare_arguments
from lucid.cuda.simulator.source.declarations import symbols
from lucid.cuda.simulator.source.nvidia import compiles
from lucid.cuda.simulator.wheels import INSTALL, installed
from lucid.errors import CudaUnavailableError, LucidError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.cuda.simulator.source.declarations import Symbol
    from lucid.cuda.simulator.wheels import Cuda


_COMPILATION_FAILED = 6
# Of these files.
_LIBRARIES = {
    "cublas": ("calls", "cublas", "cublas_vectors", "cublas_solving"),
    "cusolver": ("calls", "cusolver", "sparse/cusolver_sparse", "cusolver_absent"),
    "cusparse": ("calls", *(f"sparse/cusparse{part}" for part in ("", "_conversion", "_products", "_absent"))),
    "curand": ("curand",),
    "cufft": ("cufft",),
}
# What only has to be there; what they hold is the driver's.
_OTHERS = ("cudart", "nvrtc", "cublasLt")
_MARK = "lucid simulator\n"
# Of Python, in a report of who queued what.
_LINES = 2
# What Python imports when it starts.
_CHILDREN = str(FOLDER / "children")
_CODE = re.compile(r"\{code ([0-9a-f]+)\}")

_state: _Simulated | None = None


def start() -> None:
    """Give this process, and the Python processes that it starts, the devices that LUCID_CUDA_SIMULATOR asks for.

    Once is enough.

    Raises
    ------
    CudaUnavailableError
        If this machine cannot, or has no CuPy that it can be done to.
    SettingError
        If LUCID_CUDA_SIMULATOR holds no number of devices.
    """
    global _state
    if _state is None:
        whole_number("LUCID_CUDA_SIMULATOR", 1, 64)
        _state = _Simulated(*installed())
        gpu.simulate()
        kernels.drive(SimulatedDriver)
        others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([_CHILDREN, *filter(None, others)]))


class _Python(ctypes.Structure):
    """``lucid_simulator::Python``: the functions of Python that the libraries call."""

    COMPILE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p)
    LOAD = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
    ENTER = ctypes.CFUNCTYPE(None)
    EXPLAIN = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)
    WHERE = ctypes.CFUNCTYPE(None)
    _fields_: ClassVar = [
        ("compile", COMPILE),
        ("load", LOAD),
        ("enter", ENTER),
        ("explain", EXPLAIN),
        ("where", WHERE),
    ]


class _Simulated:
    """The libraries, loaded, and CuPy's binaries, redirected to them.

    Parameters
    ----------
    cupy : pathlib.Path
        The folder of the package.
    cuda : Cuda
        What it asks for.
    """

    def __init__(self, cupy: Path, cuda: Cuda) -> None:
        self._cupy = cupy
        self._wheel = next((wheel.name for wheel in cupy.parent.glob("cupy_cuda*.dist-info")), str(cupy))
        folders = FOLDER.parents[1], cupy, cupy.parent / "cupyx", cupy.parent / "cupy_backends"
        self._inside = *(f"{folder}{os.sep}" for folder in folders), "<frozen "
        self._files: dict[str, str] = {}  # the names of users' files by their paths; none of those inside
        self._driver = runtime()
        for name, files in _LIBRARIES.items():
            # CuPy's binaries ask for versions of symbols, which are called like the library
            options = f"-DLUCID_VERSION={cuda.libraries[name][1]}", "-Wl,--default-symver"
            library(cuda.soname(name), *[f"libraries/{file}.cpp" for file in files], options=options)
        path = Path(self._driver._name)  # noqa: SLF001 - there is no other way to its file
        for name in _OTHERS:
            library(
                cuda.soname(name), options=("-x", "c++", "/dev/null", "-x", "none", "-Wl,--no-as-needed", str(path))
            )
        thrust = library("liblucid_thrust.so", "libraries/thrust.cpp")
        self._blocks = Blocks(self._driver)
        self._apart = sanitizes()
        self._compares = False
        self._sources: dict[str, str] = {}  # by the paths of their libraries
        major, minor = cuda.major, cuda.version % 1000 // 10
        self._versions = f"-D__CUDACC_VER_MAJOR__={major}", f"-D__CUDACC_VER_MINOR__={minor}"  # as NVRTC defines them
        # kept for as long as the libraries may call them
        self._python = _Python(
            _Python.COMPILE(self._answering(self._compile)), _Python.LOAD(self._answering(self._load)),
            _Python.ENTER(self._answering(self._enter)), _Python.EXPLAIN(self._answering(self._explain)),
            _Python.WHERE(self._answering(self._where)),
        )  # fmt: skip
        self._driver.lucid_set_python(ctypes.addressof(self._python))
        os.environ["CUDA_PATH"] = str(FOLDER / "toolkit")
        # CuPy asks NVRTC for every kernel, and what that gives is kept in lucid's cache, which trusts no other's files.
        os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
        # CUB's kernels are machine code inside of the wheel.
        os.environ["CUPY_ACCELERATORS"] = ""
        if "cupy" in sys.modules:  # it has read that already
            accelerators = import_module("cupy._core")
            accelerators.set_reduction_accelerators([])
            accelerators.set_routine_accelerators([])
        unsupported = _address(self._driver, "lucid_unsupported")
        self._redirect(
            "cupy_backends/cuda/api", "runtime",
            lambda name: (
                _address(self._driver, cuda.renamed.get(name, name)) or unsupported
                if re.match("cuda[A-Z]", name) else None
            ),
        )  # fmt: skip
        self._redirect("cupy/cuda", "thrust", lambda name: _address(thrust, name) if "thrust_" in name else None)
        refuse_what_is_absent()

    def _redirect(self, folder: str, stem: str, choose: Callable[[str], int | None]) -> None:
        binary = next((self._cupy.parent / folder).glob(f"{stem}.*.so"), None)
        if binary:
            ctypes.CDLL(str(binary))
        if binary is None or redirect(binary, choose) == 0:
            raise CudaUnavailableError(
                f"the CuPy in {self._cupy} cannot be simulated: its {folder}/{stem} does not name the functions of "
                f"CUDA that it holds, as the wheels from PyPI do; install one that lucid allows: {INSTALL}"
            )

    # ---- what the libraries call; nothing may be raised here but what a Ctrl-C raises ----

    def _answering(self, function: Callable[..., tuple[int, str]]) -> Callable[..., None]:
        """Return a callback passing a function's answer to the libraries, or none after a Ctrl-C, to be repeated."""

        def call(*args: Any) -> None:
            try:
                number, text = function(*args)
                self._driver.lucid_answer(number, text.encode())
            except KeyboardInterrupt:
                self._driver.lucid_answer(0, None)

        return call

    def _compile(self, source: bytes, names: bytes, options: bytes) -> tuple[int, str]:
        try:
            text, called = source.decode(), names.decode().split("\x1f") if names else []
            flags, headers = options.decode().split("\x1f") if options else [], self._cupy / "_core/include"
            folders = [FOLDER / "toolkit/include", headers]
            path = compiled(text, called, [*self._versions, *flags], folders, self._wheel)
            if nvrtc():
                compiles(text, called, flags, folders[1:], self._wheel)
        except (LucidError, OSError) as error:
            return _COMPILATION_FAILED, str(error)
        self._sources[str(path)] = text
        return 0, f"{_MARK}{path}"

    def _load(self, path: bytes, unit: int | None) -> tuple[int, str]:
        shared, others = symbols(Path(path.decode()))
        if not unit:
            return len(others), ""
        offsets, _, names = _columns(shared)
        self._driver.lucid_load(unit, path, len(shared), offsets, names)
        self._driver.lucid_declare(unit, len(others), *_columns(others))
        return 0, ""

    def _enter(self) -> tuple[int, str]:
        cupy, hooks = sys.modules.get("cupy"), sys.modules.get("cupy.cuda.memory_hook")
        if cupy is None or hooks is None or getattr(cupy.__spec__, "_initializing", False):
            return 0, ""  # CuPy is being imported
        if not self._compares:
            self._compares = True
            compare_arguments(cupy, self._sources.get)
        if not executes():
            return 1, ""  # no access is checked, and a hook would only take time
        self._blocks.watch(hooks)
        if self._apart:
            self._blocks.keep_apart(cupy)
        return 1, ""

    def _where(self) -> tuple[int, str]:
        # what queues work for somebody is not looked for
        users: list[str] = []
        frame = inspect.currentframe()  # traceback would read every file
        while frame is not None and len(users) < _LINES:
            file = frame.f_code.co_filename
            name = self._files.get(file)  # this is done at every launch
            if name is None:
                name = self._files[file] = "" if file.startswith(self._inside) else Path(file).name
            if name:
                users.append(f"{name}:{frame.f_lineno}")
            frame = frame.f_back
        return 0, f" ({', called from '.join(users)})" if users else ""

    def _explain(self, report: bytes, library: bytes) -> tuple[int, str]:
        return 0, _CODE.sub(lambda mark: line_of(library.decode(), mark[1]), report.decode())


def _columns(symbols: list[Symbol]) -> tuple[ctypes.Array[Any], ...]:
    """Return offsets, sizes and names of variables as C takes them."""
    types = ctypes.c_size_t, ctypes.c_size_t, ctypes.c_char_p
    return tuple((kind * len(symbols))(*(one[i] for one in symbols)) for i, kind in enumerate(types))


def _address(library: ctypes.CDLL, name: str) -> int | None:
    """Return the address of a function of a library; None if it has none of that name."""
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None
