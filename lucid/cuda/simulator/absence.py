"""The refusal, by name, of CUDA's parts that the simulator lacks, instead of a missing file or wrong results."""

from __future__ import annotations

import ctypes
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any, NoReturn

from lucid.cuda.simulator.wheels import installed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


_RANDOM = "generators of cupy.random.default_rng, which are machine code inside of CuPy: use cupy.random.RandomState"
_JITIFY = "Jitify: leave out jitify=True, g++ finds headers without it"
_CUB = "CUB, whose kernels are machine code inside of CuPy: leave it out of the accelerators"
# By the name that CuPy gives a library when it looks for its file.
_LIBRARIES = {
    "cusparselt": "cuSPARSELt",
    "cusparseLt": "cuSPARSELt",
    "cutensor": "cuTENSOR: use cupy.einsum, which does without",
    "nccl": "NCCL: copy from device to device",
}
# CuPy asks whether it has one of these by importing it, and does without.
_MODULES = {f"cupy_backends.cuda.libs.{name}": what for name, what in _LIBRARIES.items()}
_FINDER = "cuda.pathfinder"
# Functions that launch what is compiled into their modules, or call NVIDIA's compiler.
_FUNCTIONS = {
    "cupy.random._generator_api": {"init_curand": _RANDOM},
    "cupy.cuda.cub": dict.fromkeys(
        ("cub_reduction", "cub_scan", "cub_histogram", "device_csrmv", "device_histogram", "device_reduce",
         "device_scan", "device_segmented_reduce"), _CUB,
    ),
    "cupy.cuda.jitify": dict.fromkeys(("_init_module", "_add_sources", "jitify"), _JITIFY),
    "cupy.cuda.compiler": {"compile_using_nvcc": "nvcc: leave out backend='nvcc'"},
}  # fmt: skip


def refuse_what_is_absent() -> None:
    """Let CuPy, imported already or not, raise an error that names the missing part at its use."""
    sys.meta_path.insert(0, _Absent)
    for name in (*_FUNCTIONS, _FINDER):
        if module := sys.modules.get(name):
            _change(module)


def _sentence(what: str) -> str:
    return f"lucid's simulated CUDA devices have no {what}; docs/users/simulator.md lists what there is"


def _change(module: ModuleType) -> None:
    for name, what in _FUNCTIONS.get(module.__name__, {}).items():
        if hasattr(module, name):
            vars(module)[name] = _refusing(what)
    if module.__name__ == _FINDER:
        find, error = module.load_nvidia_dynamic_lib, module.DynamicLibNotFoundError

        def load_nvidia_dynamic_lib(libname: str) -> object:
            if libname in _LIBRARIES:
                raise error(_sentence(_LIBRARIES[libname]))
            if libname not in {"cusolver", "cusparse"}:
                return find(libname)
            # the finder would look for the libraries that NVIDIA's depends on
            loaded = ctypes.CDLL(installed()[1].soname(libname))
            return module.LoadedDL(loaded._name, True, loaded._handle, "system")  # noqa: SLF001

        vars(module)["load_nvidia_dynamic_lib"] = load_nvidia_dynamic_lib


def _refusing(what: str) -> Any:
    def refused(*_: object, **_by_name: object) -> NoReturn:
        raise ImportError(_sentence(what))

    return refused


class _Absent:
    """Finder of modules, the first that Python asks."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse the modules of these libraries; change those that hold some of the functions."""
        if name in _MODULES:
            raise ImportError(_sentence(_MODULES[name]))
        if name not in _FUNCTIONS and name != _FINDER:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Changing(spec.loader)
        return spec


class _Changing(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _change(module)
