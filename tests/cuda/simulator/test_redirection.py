"""CuPy's wheel is still one that the simulator can be put under: its binaries name what they hold and ask for."""

from __future__ import annotations

import ctypes
import re
import subprocess
import types
from importlib.util import find_spec
from pathlib import Path

import pytest

from lucid.base import gpu
from lucid.cuda.simulator import absence
from lucid.cuda.simulator.redirection import functions
from lucid.cuda.simulator.runtime import FOLDER
from lucid.cuda.simulator.wheels import WHEELS, installed
from tests.pieces.children import python

pytestmark = pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'")

# Binaries of CuPy's, and the library of CUDA's that each is linked to.
LINKED = [
    ("cupy_backends/cuda/libs/cublas", "cublas"),
    ("cupy_backends/cuda/libs/cusolver", "cusolver"),
    ("cupyx/_cusolver", "cusolver"),
    ("cupy_backends/cuda/libs/curand", "curand"),
    ("cupy/cuda/cufft", "cufft"),
]


def binary(pattern):
    """Path of a binary of CuPy's."""
    (found,) = Path(find_spec("cupy").origin).parents[1].glob(f"{pattern}.*.so")
    return found


def asked_for(path, prefix):
    """Functions that a binary needs from others."""
    told = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True, check=True).stdout
    return re.findall(rf" U ({prefix}\w+)", told)


def test_the_runtime_names_every_function():
    """Each function of CUDA's runtime that the simulator has is found in CuPy's binary, where it would be called."""
    text = "".join(path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.cpp"))
    ours = set(re.findall(r"^LUCID_CUDA [\w* ]*?\b(cuda[A-Z]\w*)\(", text, re.MULTILINE))
    assert {"cudaMalloc", "cudaMemcpyAsync", "cudaEventRecord", "cudaGetErrorString"} < ours
    # of what CUDA 12 has twice, by parameters, CUDA 13 has one
    ours = {name.removesuffix("_v2") for name in ours}
    assert not ours - functions(binary("cupy_backends/cuda/api/runtime")).keys()
    renamed = {name for cuda in WHEELS.values() for name in (*cuda.renamed, *cuda.renamed.values())}
    assert {name.removesuffix("_v2") for name in renamed} <= ours
    # the properties of a device have the plain name in CUDA 13, and the other in CUDA 12
    twice = {name for name in re.findall(r"\b(cuda[A-Z]\w*)_v2\(", text) if f" {name}(" in text}
    assert {*WHEELS["cupy-cuda13x"].renamed, "cudaGetDeviceProperties"} == twice


def test_the_sorts_are_named():
    """Thrust's three functions are found under their C++ names."""
    names = [name for name in functions(binary("cupy/cuda/thrust")) if "thrust_" in name]
    for function in ("thrust_sort", "thrust_lexsort", "thrust_argsort"):
        assert any(re.match(rf"_Z\d+{function}\w", name) for name in names), function


def test_a_wheel_without_names_is_seen(tmp_path):
    """A stripped binary names nothing."""
    subprocess.run(["strip", "--strip-all", "-o", tmp_path / "stripped", binary("cupy/cuda/thrust")], check=True)
    assert not functions(tmp_path / "stripped")


# A function begins 1 to 13 bytes before the end of a page, where the jump needs 14, and another stands for it.
AT_THE_END_OF_A_PAGE = """
asm(".text\\n.balign 4096\\n.skip {}\\n.type first,@function\\nfirst: mov $1, %eax\\nret\\n.skip 20\\n"
    ".type second,@function\\nsecond: mov $2, %eax\\nret\\n.globl first, second\\n");
"""
REDIRECTING = """
import ctypes, pathlib, sys
from lucid.cuda.simulator.redirection import redirect
path = pathlib.Path(sys.argv[1])
library = ctypes.CDLL(str(path))
first, second = library.first, ctypes.cast(library.second, ctypes.c_void_p).value
assert first() == 1
assert redirect(path, {"first": second}.get) == 1
print(first())
"""


@pytest.mark.parametrize("before_its_end", [1, 6, 13, 14])
def test_a_jump_may_go_on_in_the_next_page(tmp_path, before_its_end):
    """All pages in which a jump lies can be written to when it is."""
    text = AT_THE_END_OF_A_PAGE.format(4096 - before_its_end)
    library = tmp_path / "library.so"
    subprocess.run(["g++", "-shared", "-xc++", "-", "-o", library], input=text, text=True, check=True)
    ran = python("-c", REDIRECTING, library)
    assert (ran.returncode, ran.stdout) == (0, "2\n"), ran.stderr


# Of each CUDA the numbers in the names of the files that NVIDIA's packages of it have.
LIBRARIES = "cublas", "cublasLt", "cudart", "nvrtc", "cusolver", "curand", "cufft"
NUMBERS = {"cupy-cuda12x": (12, 12, 12, 12, 11, 10, 11), "cupy-cuda13x": (13, 13, 13, 13, 12, 10, 12)}


@pytest.mark.parametrize("wheel", WHEELS)
def test_the_table_has_the_names_of_every_cuda(wheel):
    """Of wheels that are not installed here too, whose libraries nothing else would ask for."""
    names = [f"lib{library}.so.{number}" for library, number in zip(LIBRARIES, NUMBERS[wheel], strict=True)]
    assert [WHEELS[wheel].soname(library) for library in LIBRARIES] == names


@pytest.mark.parametrize("wheel", WHEELS)
def test_the_finder_of_libraries_is_told_the_name_of_its_cuda(monkeypatch, wheel):
    """The one of cuSOLVER is loaded by the name that the wheel in use asks for."""
    asked = []

    def load(name):
        asked.append(name)
        return types.SimpleNamespace(_name=name, _handle=0)

    finder = types.ModuleType("cuda.pathfinder")
    finder.load_nvidia_dynamic_lib, finder.DynamicLibNotFoundError = None, RuntimeError
    finder.LoadedDL = lambda *given: given
    monkeypatch.setattr(absence, "installed", lambda: (Path(), WHEELS[wheel]))
    monkeypatch.setattr(ctypes, "CDLL", load)
    absence._change(finder)
    finder.load_nvidia_dynamic_lib("cusolver")
    assert asked == [WHEELS[wheel].soname("cusolver")]


@pytest.mark.parametrize(("path", "library"), LINKED)
def test_the_table_has_the_names_that_the_wheel_is_linked_to(path, library):
    """A library of CUDA's is called as CuPy's binary asks for it, and so is the version of its symbols."""
    told = subprocess.run(["readelf", "-dVW", binary(path)], capture_output=True, text=True, check=True).stdout
    soname = installed()[1].soname(library)
    assert re.findall(rf"NEEDED.*\[(lib{library}\.so.*)\]", told) == [soname]
    assert set(re.findall(rf"Name: (lib{library}\.so\S*)", told)) <= {soname}


def test_the_table_has_the_version_that_the_wheel_was_built_with():
    """The runtime inside of the wheel tells it, where nothing redirects it."""
    code = "from cupy_backends.cuda.api import runtime; print(runtime.runtimeGetVersion())"
    assert int(python("-c", code).stdout) == installed()[1].version


@pytest.mark.skipif(not gpu.is_simulated(), reason="needs LUCID_CUDA_SIMULATOR")
def test_versions_are_those_of_the_table():
    """Driver, runtime and NVRTC, which kernels ask too, tell one version, and each library its own."""
    cupy, cuda = gpu.cupy(), installed()[1]
    assert cupy.cuda.runtime.driverGetVersion() == cupy.cuda.runtime.runtimeGetVersion() == cuda.version
    major, minor = cupy.cuda.nvrtc.getVersion()
    assert (major * 1000 + minor * 10, major) == (cuda.version, cuda.major)
    found = cupy.zeros(2, "i")
    source = 'extern "C" __global__ void ask(int* x) { x[0] = __CUDACC_VER_MAJOR__, x[1] = __CUDACC_VER_MINOR__; }'
    cupy.RawKernel(source, "ask")((1,), (1,), (found,))
    assert found.tolist() == [major, minor]
    handle = cupy.cuda.device.get_cublas_handle()
    told = [cupy.cuda.cublas.getVersion(handle), cupy.cuda.cufft.getVersion(), cupy.cuda.curand.getVersion()]
    assert told == [cuda.libraries[name][1] for name in ("cublas", "cufft", "curand")]
    assert sum(a * b for a, b in zip(cupy.cuda.cusolver._getVersion(), (1000, 100, 1), strict=True)) == 11604


@pytest.mark.skipif(not gpu.is_simulated(), reason="needs LUCID_CUDA_SIMULATOR")
@pytest.mark.parametrize(("path", "stem"), LINKED)
def test_a_simulated_library_has_every_function(path, stem):
    """What CuPy's binary is linked to is there under the same names."""
    names, library = asked_for(binary(path), stem), ctypes.CDLL(installed()[1].soname(stem))
    assert len(names) > 10
    assert [name for name in names if not hasattr(library, name)] == []
