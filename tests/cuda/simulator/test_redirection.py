"""CuPy's wheel is still one that the simulator can be put under: its binaries name what they hold and ask for."""

from __future__ import annotations

import ctypes
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from lucid.backend import gpu
from lucid.cuda.simulator.redirection import functions
from lucid.cuda.simulator.runtime import FOLDER

pytestmark = pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'")


def binary(pattern):
    """Path of a binary of CuPy's."""
    (found,) = Path(find_spec("cupy").origin).parents[1].glob(f"{pattern}.*.so")
    return found


def asked_for(path, prefix):
    """Functions that a binary needs from others."""
    told = subprocess.run(
        ["nm", "-D", "--undefined-only", str(path)], capture_output=True, text=True, check=True
    ).stdout
    return re.findall(rf" U ({prefix}\w+)", told)


def test_the_runtime_names_every_function():
    """Each function of CUDA's runtime that the simulator has is found in CuPy's binary, where it would be called."""
    text = "".join(path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.cpp"))
    ours = set(re.findall(r"^LUCID_CUDA [\w* ]*?\b(cuda[A-Z]\w*)\(", text, re.MULTILINE))
    assert {"cudaMalloc", "cudaMemcpyAsync", "cudaEventRecord", "cudaGetErrorString"} < ours
    assert not ours - functions(binary("cupy_backends/cuda/api/runtime")).keys()


def test_the_sorts_are_named():
    """Thrust's three functions are found under their C++ names."""
    names = [name for name in functions(binary("cupy/cuda/thrust")) if "thrust_" in name]
    for function in ("thrust_sort", "thrust_lexsort", "thrust_argsort"):
        assert any(re.match(rf"_Z\d+{function}\w", name) for name in names), function


def test_a_wheel_without_names_is_seen(tmp_path):
    """A stripped binary names nothing."""
    subprocess.run(
        ["strip", "--strip-all", "-o", str(tmp_path / "stripped"), str(binary("cupy/cuda/thrust"))], check=True
    )
    assert not functions(tmp_path / "stripped")


@pytest.mark.skipif(not gpu.is_simulated(), reason="needs LUCID_CUDA_SIMULATOR")
@pytest.mark.parametrize(
    ("path", "stem", "soname"),
    [
        ("cupy_backends/cuda/libs/cublas", "cublas", "libcublas.so.12"),
        ("cupy_backends/cuda/libs/cusolver", "cusolver", "libcusolver.so.11"),
        ("cupyx/_cusolver", "cusolver", "libcusolver.so.11"),
    ],
)
def test_a_simulated_library_has_every_function(path, stem, soname):
    """What CuPy's binary is linked to is there under the same names."""
    names, library = asked_for(binary(path), stem), ctypes.CDLL(soname)
    assert len(names) > 10
    assert [name for name in names if not hasattr(library, name)] == []
