"""The runtime of the simulated device does nothing undefined itself, and touches no memory that is not its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lucid.cuda.simulator import builder, runtime

PROGRAM = Path(__file__).with_name("simulator_itself.cpp")


@pytest.mark.slow
def test_runtime_under_the_sanitizers(tmp_path):
    """Launches that end well and that are stopped, on ucontext's fibers, under the address and undefined sanitizers."""
    compiler, _ = builder._compiler()
    program = tmp_path / "itself"
    # The sanitizers' own handlers stand in for those of undefined.cpp.
    sources = [runtime.FOLDER / name for name in runtime.SOURCES if not name.endswith("undefined.cpp")]
    options = ["-std=c++17", "-O0", "-g", "-DLUCID_UCONTEXT", "-DLUCID_VERSION=13020",
               "-fsanitize=address,undefined", "-fno-sanitize=vptr",
               "-fno-sanitize-recover=all", "-D_GLIBCXX_ASSERTIONS", "-I", runtime.FOLDER]  # fmt: skip
    subprocess.run([compiler, *options, PROGRAM, *sources, "-o", program, "-ldl", "-pthread"], check=True)
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    offset = next(line.split()[0] for line in symbols.splitlines() if "shared" in line.split()[-1] and " d " in line)
    environment = {**os.environ, "LUCID_SHARED_OFFSET": offset, "ASAN_OPTIONS": "detect_leaks=0"}
    ran = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "all as it should be\n"), ran.stderr
