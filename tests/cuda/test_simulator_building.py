"""Kernels for the simulated device are built once, by any number of processes, and errors of the compiler are told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lucid.cuda import kernels
from lucid.cuda.simulator import builder, driver
from lucid.errors import KernelError
from tests.cuda.launching import launcher, refused

pytestmark = pytest.mark.usefixtures("simulated")


def test_errors_of_the_compiler_name_the_file():
    """What g++ refuses is reported with the file and line of the source, also in a header of ours."""
    source = '#include "lucid.cuh"\n\nextern "C" __global__ void f(float* x) {\n    x[0] = missing;\n}'
    refused(lambda: launcher(source, "P"), "test.cu:4", "missing")
    refused(lambda: launcher('#include "lucid.cuh"\n__global__ void f() { lucid::to_real<int>(f); }', ""), "test.cu:2")


def test_built_once(tmp_path, monkeypatch, caplog):
    """A library is built once per text and folder, said in the log, and found again by other processes."""
    caplog.set_level("INFO", "lucid.cuda")
    monkeypatch.setattr(builder, "cache_folder", lambda: tmp_path)
    source = 'extern "C" __global__ void f() {}'
    for _ in range(2):
        kernels.drive(driver.SimulatedDriver)
        launcher(source, "")(1, 1)
    assert [r.message.split(" in ")[0] for r in caplog.records] == ["built test.cu"]
    assert len(list(tmp_path.glob("*.so"))) == 1


def test_processes_build_at_once(tmp_path):
    """Processes that need the same library at the same time all get one that works."""
    text = (
        "from lucid.cuda.simulator.builder import build\nimport ctypes\n"
        "p = build('t', '', ['-shared', '-fPIC'], what='t', source='extern \"C\" int f() { return 42; }')\n"
        "assert ctypes.CDLL(str(p)).f() == 42\n"
    )
    environment = {**os.environ, "LUCID_CACHE_DIR": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", text], env=environment) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert len(list(tmp_path.glob("*.so"))) == 1
    assert not list(tmp_path.glob("*.so.*"))


def test_folder_that_cannot_be_written(tmp_path, monkeypatch, caplog):
    """Where the cache folder cannot be written, libraries go to a temporary one, with a warning."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LUCID_CACHE_DIR", str(tmp_path / "file" / "cache"))
    folder = builder.cache_folder.__wrapped__()
    assert folder.is_dir()
    assert "are lost" in caplog.text
    folder.rmdir()


def test_without_a_compiler(monkeypatch):
    """Without g++ the error says what to install."""
    monkeypatch.setattr(builder.shutil, "which", lambda _: None)
    with pytest.raises(KernelError, match="apt-get install"):
        builder._compiler.__wrapped__()


def test_device_variables_are_refused():
    """A __device__ variable would be taken for shared memory, so the simulated device refuses it by name."""
    refused(lambda: launcher('__device__ int counter = 0;\nextern "C" __global__ void f() {}', ""), "int counter")
