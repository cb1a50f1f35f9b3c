"""What is built, what it needs, and what importing it costs."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import lucid

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
KERNELS = ROOT / "kernels"
SOURCES = sorted(path.relative_to(KERNELS).as_posix() for path in KERNELS.rglob("*.cu*"))
HEAVY = {"cupy", "rich", "safetensors", "torch", "matplotlib", "opt_einsum", "scipy", "sklearn"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the folder with a wheel and an sdist, built from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    """Return the open wheel."""
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_carries_the_kernels_inside_the_package(wheel):
    """Every CUDA source lands in lucid/kernels; a top-level `kernels` would shadow another package of that name."""
    names = wheel.namelist()
    inside = sorted(name.removeprefix("lucid/kernels/") for name in names if name.startswith("lucid/kernels/"))
    assert SOURCES
    assert [name for name in inside if name.endswith((".cu", ".cuh"))] == SOURCES
    tops = {name.split("/")[0] for name in names}
    assert tops == {"lucid", "lucid-stubs", f"lucid_cupy-{lucid.__version__}.dist-info"}
    assert not [name for name in names if "/." in name]  # settings of developers' tools


def test_the_wheel_takes_along_what_was_built(tmp_path):
    """Archives of compiled kernels, which git ignores, land beside the sources where lucid looks for them."""
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore", "lucid/version.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    inside = "kernels/lucid.cuh", "kernels/built/sm_90.zip"
    for name in ("lucid/__init__.py", *inside):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert "/kernels/built/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    (tmp_path / ".git").mkdir()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(tmp_path / "dist")]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (path,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        assert {f"lucid/{name}" for name in inside} <= set(archive.namelist())
    (path,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(path) as archive:
        assert not [name for name in archive.getnames() if "built" in name]


def test_the_kernels_folder_is_no_python_package():
    """No Python in kernels/: it would become importable as a top-level package from a checkout."""
    assert not list((ROOT / "kernels").rglob("*.py"))


def test_the_wheel_carries_every_module(wheel):
    """What git holds under lucid/ is what a user gets."""
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "lucid").rglob("*.py")}
    assert modules <= set(wheel.namelist())


def test_the_sdist_can_be_built_again(built):
    """The source archive holds the kernels where the wheel's build looks for them, the licence and the tests."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        inner = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"kernels/{name}" for name in SOURCES} <= inner
    assert {"LICENSE", "pyproject.toml", "README.md", "lucid/__init__.py"} <= inner


def test_the_simulator_needs_nothing_but_cupy():
    """Its extra has CuPy in the versions that cuda12 allows, without CUDA's libraries; on other machines nothing."""
    extras = PROJECT["optional-dependencies"]
    (simulator,), cuda12 = map(Requirement, extras["simulator"]), Requirement(extras["cuda12"][0])
    assert (simulator.name, simulator.specifier, simulator.extras) == (cuda12.name, cuda12.specifier, set())
    machines = [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"), ("win32", "AMD64")]
    wanted = [simulator.marker.evaluate({"sys_platform": a, "platform_machine": b}) for a, b in machines]
    assert wanted == [True, False, False, False]


def test_the_metadata_says_what_the_project_says(wheel):
    """Version, supported Pythons and licence come from pyproject.toml."""
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert metadata["Name"] == "lucid-cupy"
    assert metadata["Version"] == lucid.__version__
    assert metadata["License-Expression"] == "MIT"
    base = [need for need in metadata.get_all("Requires-Dist") if "extra ==" not in need]
    assert len(base) == len(PROJECT["dependencies"])
    assert not [need for need in base if need.startswith(("cupy", "torch", "nvidia"))]


def test_the_page_on_the_index_has_no_dead_link(wheel):
    """Files of the repository are not there: their names are words, and nothing of the README is lost."""
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    page = Parser().parsestr(wheel.read(name).decode()).get_payload()
    assert not re.findall(r"\]\((?!https?://)", page)
    assert "<!--" not in page
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) == len(readme.splitlines()) - readme.count("<!--")


def test_no_more_than_one_cupy():
    """The extras never ask for two builds of CuPy at once: they overwrite each other's files."""
    for needs in PROJECT["optional-dependencies"].values():
        assert sum(need.startswith("cupy") for need in needs) <= 1
    assert not [need for need in PROJECT["dependencies"] if need.startswith("cupy")]


@pytest.mark.parametrize("version", ["12", "13"])
def test_cudnn_comes_with_cuda(version):
    """A CUDA extra brings the cuDNN of its CUDA, and the frontend below 1.29, which needs nothing beside it."""
    needs = [requirement(need) for need in PROJECT["optional-dependencies"][f"cuda{version}"]]
    names = {name for name, _ in needs}
    assert names == {f"cupy-cuda{version}x", f"nvidia-cudnn-cu{version}", "nvidia-cudnn-frontend"}
    bounds = dict(needs)
    assert "<1.29" in bounds["nvidia-cudnn-frontend"]
    assert "<10" in bounds[f"nvidia-cudnn-cu{version}"]
    assert not any("cudnn" in need for need in PROJECT["dependencies"])


def requirement(text):
    """Return the name of a requirement and its bounds."""
    name, bounds = re.fullmatch(r"([\w-]+)(?:\[\w+\])?(.*)", text).groups()
    return name, bounds.split(",")


def test_import_is_light():
    """`import lucid` loads none of the heavy or optional packages, whether or not they are installed."""
    code = f"import sys, lucid; print(*sorted({HEAVY!r} & set(sys.modules)))"
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    assert child.stdout.split() == []


def test_what_training_needs_comes_when_it_is_asked_for():
    """`import lucid` leaves nn, optim, amp, utils and files for later; they are there however they are named."""
    code = """
import sys, lucid
waiting = {"lucid.nn", "lucid.optim", "lucid.amp", "lucid.utils", "lucid.serialization"}
assert not waiting & set(sys.modules), waiting & set(sys.modules)
assert {"nn", "save"} <= set(dir(lucid)) and "nn" not in vars(lucid)
assert callable(lucid.save) and lucid.nn.Linear(1, 1) and lucid.nn is sys.modules["lucid.nn"]
assert not {"lucid.collectives", "lucid.nn.parallel"} & set(sys.modules)
assert lucid.nn.SyncBatchNorm(1) and lucid.nn.DataParallel and {"parallel", "SyncBatchNorm"} <= set(dir(lucid.nn))
assert "num_features : int" in lucid.nn.SyncBatchNorm.__doc__ and lucid.nn.SyncBatchNorm.__module__ == "lucid.nn"
assert lucid.optim.lr_scheduler.StepLR and "lucid.optim.swa_utils" not in sys.modules
assert lucid.optim.swa_utils.SWALR and {"lr_scheduler", "swa_utils"} <= set(dir(lucid.optim))
from lucid import amp, optim
from lucid import *
assert nn is lucid.nn and utils.checkpoint and load is lucid.load and callable(tensor)
try:
    lucid.nope
except AttributeError as error:
    print(error)
"""
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    assert child.stdout == "module 'lucid' has no attribute 'nope'\n"


def test_methods_of_what_is_imported_later_are_functions_like_the_others():
    """Methods whose module is not imported with `Tensor` call it when they are asked for, and take `axis` and `out`."""
    code = """
import sys, lucid, numpy
later = {"lucid.ops.decomposition", "lucid.ops.fft", "lucid.tensor.numpy_calls.protocols"}
assert not later & set(sys.modules), later & set(sys.modules)
x = lucid.tensor([[2.0, 0.0], [0.0, 4.0]])
assert x.det().item() == 8 and lucid.Tensor.det is lucid.Tensor.det and x.inverse().tolist() == [[0.5, 0], [0, 0.25]]
assert lucid.inverse(x).tolist() == x.matrix_power(-1).tolist() and "inverse" in dir(x)
class Own(lucid.Tensor):
    pass
assert Own.qr is lucid.Tensor.qr and vars(lucid.Tensor).keys() & {"slogdet"} == set()
assert numpy.sum(x).item() == 6 and numpy.exp(x).shape == (2, 2)
"""
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr


@pytest.mark.parametrize("watch", ["sys.settrace(keep)", "sys.setprofile(keep)"])
def test_what_watches_the_import_does_not_count(watch):
    """Who holds what is measured alike under a debugger, which keeps frames and with them what they hold."""
    code = f"""
import sys
kept = []
def keep(frame, event, argument):
    if frame.f_code.co_filename.endswith(("ownership.py", "engine/loop.py")):
        kept.append((frame, dict(frame.f_locals), argument))
    return keep
if len(sys.argv) > 1:
    {watch}
from lucid.base.ownership import ARGUMENT, SOLE
from lucid.autograd.engine import loop
sys.settrace(None)
sys.setprofile(None)
print(ARGUMENT, SOLE, *[value for name, value in sorted(vars(loop).items()) if isinstance(value, int)])
"""
    runs = [
        subprocess.run([sys.executable, "-c", code, *more], cwd=ROOT, capture_output=True, text=True, check=False)
        for more in ([], ["watched"])
    ]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout, runs[1].stderr
