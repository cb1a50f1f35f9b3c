"""What the simulated devices cannot do, or cannot be made from, is refused by a sentence that says what to do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from lucid.cuda.simulator.runtime import DRIVER
from lucid.cuda.simulator.wheels import WHEELS, installed
from tests.pieces.children import ROOT, simulated

INSTALL = re.escape("pip install 'lucid-cupy[simulator]'")

needs_cupy = pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'")


def run(code, *folders, **variables):
    """Run Python code with a simulated device, and further folders first in the path of imports."""
    return simulated(code, PYTHONPATH=os.pathsep.join(map(str, (*folders, ROOT))), **variables)


def assert_refused(ran, error, words):
    """Find the error with these words, a regular expression, in the last line of the traceback."""
    assert ran.returncode == 1, ran.stdout
    assert re.search(rf"^(lucid\.errors\.)?{error}: .*{words}", ran.stderr.splitlines()[-1]), ran.stderr


def distribution(folder, name):
    """Make what pip leaves of a distribution of that name."""
    made = folder / f"{name.replace('-', '_')}-14.2.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 14.2.0\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("platform.machine = lambda: 'aarch64'", "this is linux on aarch64"),
        ("sys.platform = 'darwin'", "this is darwin on x86_64"),
    ],
)
def test_other_machines(change, words):
    """Another architecture or system is named, and the way out is the CPU."""
    ran = run(f"import numpy, platform, sys; {change}\nimport lucid")
    assert_refused(ran, "CudaUnavailableError", f"need Linux on x86-64, {words}; use device='cpu'")


def test_without_cupy():
    """Where CuPy is missing, the error says how to install it."""
    hide = "import importlib.machinery as m; find = m.PathFinder.find_spec\n"
    hide += "m.PathFinder.find_spec = lambda name, *rest: None if name == 'cupy' else find(name, *rest)\nimport lucid"
    assert_refused(
        run(hide),
        "CudaUnavailableError",
        rf"CuPy \(cupy-cuda12x or cupy-cuda13x\), which is not installed; install it: {INSTALL}",
    )


@needs_cupy
def test_two_wheels_of_cupy(tmp_path):
    """Two wheels write into one folder: both are named, and that all must go."""
    distribution(tmp_path, "cupy-cuda11x")
    words = (
        f"several CuPy are installed: cupy-cuda11x, cupy-cuda1[23]x; .*uninstall all, then install one with: {INSTALL}"
    )
    assert_refused(run("import lucid", tmp_path), "CudaUnavailableError", words)


@needs_cupy
@pytest.mark.parametrize("name", ["cupy-cuda11x", "cupy", "cupy-rocm-5-0"])
def test_another_wheel(tmp_path, name):
    """A wheel for other CUDA is named, and those that it takes."""
    distribution(tmp_path, name)
    hide = "import importlib.metadata as m; found = m.distributions\n"
    hide += f"m.distributions = lambda: [one for one in found() if one.name not in {[*WHEELS]}]\nimport lucid"
    ran = run(hide, tmp_path)
    words = f"need the wheel cupy-cuda12x or cupy-cuda13x, and {name} is installed.*{INSTALL}"
    assert_refused(ran, "CudaUnavailableError", words)


@needs_cupy
def test_a_cupy_of_no_wheel():
    """Without metadata nobody knows what CUDA it is for: its folder is named."""
    hide = "import importlib.metadata as m; m.distributions = list\nimport lucid"
    words = f"need the wheel cupy-cuda12x or cupy-cuda13x, and the CuPy in /.*/cupy is of no wheel; .*{INSTALL}"
    assert_refused(run(hide), "CudaUnavailableError", words)


@needs_cupy
def test_what_a_broken_installation_has_left_is_passed_over(tmp_path):
    """A folder without metadata is no wheel."""
    (tmp_path / "upy_cuda12x-14.2.0.dist-info").mkdir()
    assert run("import lucid", tmp_path).returncode == 0


@needs_cupy
def test_a_wheel_that_names_no_functions(tmp_path):
    """A CuPy whose binaries are stripped is told with its folder, and nothing crashes."""
    binary = Path(find_spec("cupy").origin).parents[1].glob("cupy_backends/cuda/api/runtime.*.so")
    for folder in ("cupy", "cupy_backends/cuda/api"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "cupy/__init__.py").touch()
    stripped = shutil.copy(next(binary), tmp_path / "cupy_backends/cuda/api")
    subprocess.run(["strip", "--strip-all", stripped], check=True)
    words = f"{tmp_path}/cupy cannot be simulated: its cupy_backends/cuda/api/runtime does not name.*{INSTALL}"
    assert_refused(run("import lucid", tmp_path), "CudaUnavailableError", words)
    Path(stripped).unlink()
    assert_refused(run("import lucid", tmp_path), "CudaUnavailableError", words)


@needs_cupy
@pytest.mark.parametrize("library", ["cuda", "nvrtc", "cublas"])
def test_a_real_cuda_in_use(tmp_path, library):
    """Where NVIDIA's library is loaded, CuPy would go on using it: lucid is to be imported first."""
    name = DRIVER if library == "cuda" else installed()[1].soname(library)
    command = ["g++", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-x", "c++", "/dev/null", "-o", str(tmp_path / name)]
    subprocess.run(command, check=True)
    ran = run(f"import ctypes; ctypes.CDLL({str(tmp_path / name)!r})\nimport lucid")
    words = f"uses a real CUDA: it has loaded {name}, .*import lucid before .*, or unset LUCID_CUDA_SIMULATOR"
    assert_refused(ran, "CudaUnavailableError", words)


@needs_cupy
def test_cupy_may_be_imported_before_lucid():
    """Then it has the simulated device too, and what it made is lucid's."""
    code = (
        "import cupy\nx = cupy.cuda.runtime\nimport lucid\nassert x.getDeviceCount() == 1\n"
        "y = cupy.arange(4.0); k = cupy.ElementwiseKernel('T a', 'T b', 'b = a + 1', 'next_of')\n"
        "print(lucid.from_dlpack(k(y)) * 2, y.sum(), cupy.sort(-y)[0], (y @ y).item())"
    )
    ran = run(code)
    assert ran.stdout == "tensor([2., 4., 6., 8.], device='cuda:0', dtype=lucid.float64) 6.0 -3.0 14.0\n", ran.stderr


@needs_cupy
def test_a_cache_that_cannot_be_written(tmp_path):
    """Kernels are then built for this process only, and a warning names the folder and the setting."""
    (tmp_path / "file").touch()
    code = "from lucid.cuda.simulator.builder import build\nbuild('t', '', ['-shared'], what='t', source=str)"
    ran = run(code, LUCID_CUDA_SIMULATOR="0", LUCID_CACHE_DIR=str(tmp_path / "file"))
    assert ran.returncode == 0, ran.stderr
    assert "nor kept there: " in ran.stderr
    assert re.search(rf"compiled kernels are neither taken from {tmp_path}/file .*LUCID_CACHE_DIR", ran.stderr)


@needs_cupy
@pytest.mark.parametrize("text", ["1G", "-1", "1e9"])
def test_memory_that_is_no_number(text):
    """The setting is named, with what it may hold."""
    ran = run("import lucid", LUCID_SIMULATOR_MEMORY=text)
    assert_refused(ran, "SettingError", f"LUCID_SIMULATOR_MEMORY holds a whole number of 0 to .*, got {text!r}")


ABSENT = {
    "cupy.random.default_rng(0)": "generators of cupy.random.default_rng",
    "cupy.random.XORWOW(0)": "generators of cupy.random.default_rng",
    "__import__('cupyx.cutensor')": "cuTENSOR",
    "cupy.cuda.jitify.jitify('', ())": "Jitify",
    "cupy.RawModule(code='', jitify=True).get_function('f')": "Jitify",
    "cupyx.cusparse.csrilu02(cupyx.scipy.sparse.eye(2, format='csr'))": "cusparseCreateCsrilu02Info",
    "cupy.cuda.cub.device_reduce(x, 0, (0,), (), None, False)": "CUB",
    "cupy.RawModule(code='', backend='nvcc').get_function('f')": "nvcc: leave out",
    "(cupy._core.set_routine_accelerators(['cub']), x.sum())": "CUB",
}


@needs_cupy
@pytest.mark.parametrize("order", ["cupy, lucid", "lucid, cupy"])
def test_libraries_that_are_not_there(order):
    """Each is refused by name with a way out, in whatever order CuPy and lucid are imported."""
    code = f"""import {order}
import cupyx.scipy.sparse, cupyx.cusparse
x = cupy.ones(4)
for text in {list(ABSENT)!r}:
    try:
        print("gave", eval(text))
    except (ImportError, cupy.cuda.cusparse.CuSparseError) as error:
        print(str(error).removeprefix("CUSPARSE_STATUS_NOT_SUPPORTED: "))
"""
    ran = run(code)
    assert ran.returncode == 0, ran.stderr
    told = ran.stdout.splitlines()
    for (text, words), line in zip(ABSENT.items(), told, strict=True):
        assert line.startswith(f"lucid's simulated CUDA devices have no {words}"), text
        assert line.endswith("docs/users/simulator.md lists what there is")


@needs_cupy
def test_what_the_driver_lacks_is_refused(tmp_path):
    """Machine code ends with CUDA's error and a reason."""
    (tmp_path / "kernel.cubin").write_bytes(b"\x7fELF")
    code = f"""import lucid, cupy
for path in {str(tmp_path / "kernel.cubin")!r}, "missing.cubin":
    try:
        cupy.RawModule(path=path).get_function("f")
    except cupy.cuda.driver.CUDADriverError as error:
        print(error)
try:
    cupy.cuda.function.LinkState()
except cupy.cuda.driver.CUDADriverError as error:
    print(error)
"""
    ran = run(code)
    assert ran.stdout.splitlines() == [
        "CUDA_ERROR_INVALID_IMAGE: the simulator loads what its own NVRTC has compiled, no machine code",
        "CUDA_ERROR_FILE_NOT_FOUND: file not found",
        "CUDA_ERROR_NOT_SUPPORTED: the simulator links no machine code",
    ], ran.stderr


@needs_cupy
def test_nccl_is_not_available():
    """CuPy itself says so, with the reason."""
    ran = run("import lucid, cupy.cuda.nccl as nccl; print(nccl.available)")
    assert ran.stdout == "False\n", ran.stderr
    assert "have no NCCL" in ran.stderr
