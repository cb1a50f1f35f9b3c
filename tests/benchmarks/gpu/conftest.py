"""A folder of facts, and a stage whose rows do what their names say."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.gpu.facts import Facts
from benchmarks.gpu.processes import ROOT, Workers
from benchmarks.gpu.rows import Group, Scope, Setting
from benchmarks.gpu.stages import BOXES

if TYPE_CHECKING:
    from pathlib import Path

ROWS = """
import json, os, signal, subprocess, sys, time
from benchmarks.gpu import device
from benchmarks.gpu.rows import Row, Scope, working

device.synchronize = lambda: None  # there is no device here
GRANDCHILD = '''
import fcntl, pathlib, sys, time
file = open(sys.argv[1] + "/lock", "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(30)
pathlib.Path(sys.argv[1], "survived").touch()
'''

def call(name):
    def row():
        if name == "falls":
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "loses":
            raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered")
        if name == "fails":
            raise ValueError("no such kernel")
        if name == "hangs":
            command = [sys.executable, "-c", GRANDCHILD, sys.argv[1]]
            subprocess.Popen(command, stdout=subprocess.PIPE).stdout.readline()
            open(sys.argv[1] + "/hanging", "w").close()
            time.sleep(600)
        return {"pid": os.getpid()}
    return row

names = sys.argv[2].split()
if "no_rows_at_all" in names:
    raise ImportError("no rows at all")
working(lambda scope: [Row(name, call(name)) for name in names])(Scope(**json.loads(sys.argv[3])))
"""


@pytest.fixture
def setting(tmp_path):
    """Return that of a run on a device that is not there."""
    folder, scratch = tmp_path / "out", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    return Setting(folder, scratch, simulated=False, rehearsed=False, processors=2, environment=variables)


@pytest.fixture
def facts(setting):
    """Return those of a stage."""
    return Facts(setting.folder, "stage")


@pytest.fixture
def workers(setting, facts):
    """Start processes that have rows of these names; return what waits for them."""
    log = (setting.folder / "log.txt").open("ab")

    def start(names, groups=(Group(),), **fields):
        made = Workers(setting, facts, log)
        made.command = (sys.executable, "-c", ROWS, str(setting.scratch), names)
        made.start_all(groups, Scope(str(setting.folder), "stage", **fields))
        return made

    yield start
    log.close()


@pytest.fixture
def planted():
    """Return what writes the facts of a rehearsal that went as planned, in short."""

    def write(folder: Path) -> None:
        battery, run = Facts(folder, "battery"), Facts(folder, "run")
        run(device={"name": "made up", "cupy": "14"}, machine={"date": "2026-01-01", "python": "3.12"}, simulated=True,
            rehearsed=True)  # fmt: skip
        battery(row="add float32", ok=True, seconds=0.1)
        battery(row="sub float32", ok=False, error="its process ended with -9", ended=-9)
        battery(restarted=0, ended=-9, behind="sub float32")
        battery(row="mul float32", ok=False, error="CUDA_ERROR_ILLEGAL_ADDRESS", lost="CUDA_ERROR_ILLEGAL_ADDRESS")
        battery(restarted=1, ended=77, behind="mul float32")
        battery(row="div float32", ok=True, moving=True)
        for name in ("hello", "large", "capture", "nccl", "host", "steps", "kernels", "tests", "sanitizer", "profile"):
            Facts(folder, name)(row=f"row of {name}", ok=True, lucid=0.5)
        for name in BOXES:
            run(ended=name, seconds=1.5, left=0)

    return write
