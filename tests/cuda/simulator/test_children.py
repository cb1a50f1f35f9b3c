"""Python processes that a simulated one starts have its devices, whatever they import first."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from tests.pieces.children import ROOT, python, simulator

pytestmark = pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'")

CHILD = "import cupy, sys; print(cupy.cuda.runtime.getDeviceCount(), cupy.arange(4).sum())"

SPAWNED = """import cupy
import multiprocessing


def sum_on(device):
    with cupy.cuda.Device(device):
        return int(cupy.arange(4).sum())


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(sum_on, [0, 1]))
"""

TESTED = """import cupy


def test_sum():
    assert cupy.arange(4).sum() == 6
    assert cupy.cuda.runtime.getDeviceCount() == 2
"""


def run(*arguments, **variables):
    """Return what a process prints that begins with two devices, by the command; LUCID_CUDA_SIMULATOR is not set."""
    ran = simulator("--devices", "2", *arguments, **variables)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_spawned(tmp_path):
    """Workers of multiprocessing, whose main module imports CuPy first."""
    (tmp_path / "script.py").write_text(SPAWNED, encoding="utf-8")
    assert run(tmp_path / "script.py") == "[6, 6]\n"


def test_workers_of_pytest(tmp_path):
    """Under ``pytest -n 2`` too, of tests that know nothing of lucid."""
    (tmp_path / "test_it.py").write_text(TESTED, encoding="utf-8")
    assert "1 passed" in run("-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path)


def test_scripts(tmp_path):
    """Also those of a process that has its devices by `import lucid`; what they do not want they need not have."""
    script = tmp_path / "script.py"
    script.write_text(f"import os, subprocess, sys\n{{}}\nsubprocess.run([sys.executable, '-c', {CHILD!r}])", "utf-8")
    begun = script.read_text(encoding="utf-8")
    script.write_text(begun.format("import cupy"), encoding="utf-8")
    assert run(script) == "2 6\n"
    for line, told in (("import lucid", "3 6\n"), ("import lucid; os.environ['LUCID_CUDA_SIMULATOR'] = '0'", "")):
        script.write_text(begun.format(line), encoding="utf-8")
        ran = python(script, LUCID_CUDA_SIMULATOR="3")
        assert ran.stdout == told
        assert ("cudaErrorInsufficientDriver" in ran.stderr) == (not told)


def test_site_customize(tmp_path):
    """The user's file of the name by which Python starts the devices runs as well, as it would without them."""
    (tmp_path / "sitecustomize.py").write_text("print(__name__, 'of the user')", encoding="utf-8")
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"
    places = os.pathsep.join([str(tmp_path), str(ROOT)])
    assert run("-c", script, PYTHONPATH=places) == "sitecustomize of the user\n" * 2 + "2 6\n"
