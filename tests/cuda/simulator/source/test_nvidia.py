"""Where NVRTC is installed, what NVIDIA's compiler refuses is refused, which g++ may take."""

from __future__ import annotations

import os
from importlib.util import find_spec
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from lucid.cuda.build.nvrtc import compiler
from lucid.cuda.launch.kernels import Unit, unit
from lucid.cuda.simulator.driver import SimulatedDriver
from lucid.cuda.simulator.source import nvidia
from lucid.errors import CudaUnavailableError
from tests.pieces.children import simulator

pytestmark = pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'")

# What g++ takes and CUDA does not, and NVRTC's words.
REFUSED = {
    "@ int y[n]; y[0] = n; x[0] = y[0]; }": "must have a constant value",
    '@ x[0] = n; asm volatile("nop"); }': "ptxas",
    "@ x[0] = __builtin_popcount(n); }": '"__builtin_popcount" is undefined',
    "@ if (n > 3) throw 1; }": "does not support exception handling",
}
TAKEN = ["@ x[0] = n; }", "int kept; int twice(int a) { return 2 * a; }\n@ kept = twice(n); x[0] = kept; }"]

CODE = """import cupy
for text in {texts!r}:
    kernel = cupy.RawKernel(text.replace("@", 'extern "C" __global__ void f(int* x, int n) {{'), "f")
    try:
        kernel((1,), (1,), (cupy.zeros(2, cupy.int32), cupy.int32(1)))
        print("ran")
    except (cupy.cuda.compiler.CompileException, cupy.cuda.driver.CUDADriverError) as error:
        print(str(error).replace(chr(10), " "))
"""


@pytest.fixture(autouse=True)
def _nvrtc():
    try:
        compiler()
    except CudaUnavailableError:
        pytest.skip("needs NVRTC: pip install '.[nvrtc]'")


def run(texts, *options, **variables):
    """Print for each source whether its kernel ran."""
    ran = simulator(*options, "-c", CODE.format(texts=texts), **{"LUCID_SIMULATOR_NVRTC": None, **variables})
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_what_gpp_takes():
    """It is refused with NVRTC's words, so too the next time, unless the option or the setting says otherwise."""
    for options, variables in ((["--no-nvrtc"], {"LUCID_SIMULATOR_NVRTC": "1"}), ([], {"LUCID_SIMULATOR_NVRTC": "0"})):
        assert run([*REFUSED, *TAKEN], *options, **variables) == ["ran"] * 6
    for options, variables in (([], {}), (["--nvrtc"], {"LUCID_SIMULATOR_NVRTC": "0"})):
        *refused, first, second = run([*REFUSED, *TAKEN], *options, **variables)
        for words, told in zip(REFUSED.values(), refused, strict=True):
            assert told.startswith("NVRTC cannot compile kernel.cu")
            assert words in told
        assert (first, second) == ("ran", "ran")


def test_answers_do_not_depend_on_where_headers_lie(tmp_path, monkeypatch):
    """Environments in several folders share them: no path stands in what is hashed, but the version of the toolkit."""
    hashed = []
    monkeypatch.setattr(nvidia, "compiler", lambda: SimpleNamespace(version="12.9"))
    monkeypatch.setattr(nvidia, "read", lambda file: hashed.append(file) or b"")
    for place, version in (("one", 12090), ("another", 12090), ("newer", 13000)):
        cupy, toolkit = tmp_path / place / "cupy/include", tmp_path / place / "toolkit/include"
        for folder in (cupy, toolkit):
            folder.mkdir(parents=True)
        (toolkit / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {version}\n")
        nvidia.compiles("", ["f"], [f"-I{cupy}/cub", f"-I{toolkit}", "-DN=3"], [cupy], "14.2")
    one, another, newer = hashed
    assert one == another != newer
    assert nvidia.anywhere("-DN=3") == "-DN=3"
    assert nvidia.anywhere(f"-I{tmp_path}") == f"-I{tmp_path}"


@pytest.mark.gpu
@pytest.mark.skipif(os.environ.get("LUCID_CUDA_SIMULATOR", "0") in {"", "0"}, reason="about simulated devices")
def test_sources_of_kernels_are_left_to_their_own_test():
    """What is declared of kernels/ is compiled by `test_nvrtc`, CuPy's own by CuPy; any other source by each device."""
    driver, own = SimulatedDriver(), unit("softmax", "float")
    driver.load(own)
    assert own.source in nvidia.TESTED
    text = 'extern "C" __global__ void f() {}'
    driver.load(Unit("a source of somebody's", "f", text, {"f": ""}))
    assert text not in nvidia.TESTED
    compiled = Mock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvidia, "compiler", compiled)
        nvidia.compiles(own.source, list(own.signatures), [], [], "")
        nvidia.compiles('extern "C" __global__ void cupy_add__int32_int32_int32(int* x) {}', [], [], [], "")
        compiled.assert_not_called()
        patch.setattr(nvidia, "read", lambda _: None)
        patch.setattr(nvidia, "keep", lambda *_: None)
        compiled().version = "12.9"
        nvidia.compiles(text, [], [], [], "")
        compiled().told.assert_called_once()
