"""Jobs of several processes: how tests start them, and how what one checked in each process comes back.

To start a job takes seconds. So a job is a module of `tests/collectives/scripts`, a table of checks which all its
processes go through, and the test that has started it compares with nothing the failures of all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

import numpy as np

import lucid
from lucid import distributed as dist
from lucid.distributed.run import mpiexec
from tests.device import DEVICE
from tests.seeds.drawing import VARIABLE

ROOT = Path(__file__).parents[2]
# A process of a test has to end by itself; what hangs is killed after so many seconds, however busy the machine is.
LONGEST = 240
# What a job has whose CUDA tensors go through a stand-in of NCCL, each process with a simulated device.
NCCL = {
    "LUCID_TEST_DEVICE": "cuda", "LUCID_CUDA_SIMULATOR": "1",
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "collectives" / "standins")]),
}  # fmt: skip
# Who starts this process says nothing to those that it starts.
LAUNCHERS = ("PMI_", "PMIX_", "OMPI_", "MV2_", "SLURM_", "LUCID_DISTRIBUTED_")
NAMES = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LUCID_TEST_DEVICE"}


class Job(NamedTuple):
    """How a job ended, and what its processes wrote."""

    status: int
    out: str
    err: str


def environment(**more):
    """Return that of a process which no launcher has started."""
    kept = {name: value for name, value in os.environ.items() if name not in NAMES and not name.startswith(LAUNCHERS)}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**kept, **threads, "PYTHONUNBUFFERED": "", "PYTHONPATH": path, **more}  # with buffers, as for users


def run(command, cwd, **more):
    """Run a command to its end."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment(**more), capture_output=True, text=True, check=False,
        timeout=LONGEST,
    )  # fmt: skip
    return Job(done.returncode, done.stdout, done.stderr)


def job(processes, command, cwd, **more):
    """Run Python with `command` in several processes."""
    return run([mpiexec(), "-n", processes, sys.executable, *command], cwd, **more)


def failures(processes, script, cwd, **more):
    """Run all checks of a script in several processes, and return which have failed in which, with the traceback."""
    module = script if "." in script else f"tests.collectives.scripts.{script}"
    ended = job(processes, ["-m", module, cwd], cwd, **more)
    found = {}
    for rank in range(processes):
        path = cwd / f"{rank}.json"
        assert path.exists(), f"rank {rank} has not come to its end: {ended}"
        found |= {f"{name}, rank {rank}": why for name, why in json.loads(path.read_text()).items() if why}
    assert ended.status == 0 or found, ended
    return found


# ---- in the processes ----


def begin(timeout, cpu=None, cuda="nccl"):
    """Come together over the backend that is for the device of this job, on which tensors are made from then on."""
    if DEVICE == "cuda":
        lucid.set_default_device("cuda")
    dist.init_process_group(cuda if DEVICE == "cuda" else cpu, timeout=timeout)


def host(tensor):
    """Return the elements of a tensor as a NumPy array."""
    return tensor.detach().cpu().array


def go_through(checks, rank, *arguments):
    """Call each check, and write into a file of the folder that the command names what each has raised."""
    said = {}
    for check in checks:
        try:
            check(*arguments)
            said[check.__name__] = ""
        except Exception:  # noqa: BLE001 - it is told, and the other checks say more
            said[check.__name__] = traceback.format_exc()
    (Path(sys.argv[1]) / f"{rank}.json").write_text(json.dumps(said))


def numbers(rank, dtype, shape, most=4):
    """Return numbers that every process can draw for each of them; small whole ones, whose sums are exact."""
    rng = np.random.default_rng([int(os.environ.get(VARIABLE, "0")), rank])
    whole = rng.integers(0, most, shape)
    if dtype.is_complex:
        whole = whole + 1j * rng.integers(0, most, shape)
    return whole % 2 == 1 if dtype is lucid.bool else whole
