"""What a machine with a GPU and no network lacks, put into a folder that travels with the checkout.

Wheels for its Python, and kernels compiled for its GPU, so that no time of the device is spent on compiling.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = ROOT / ".prepared"
PYTHON = "3.12"
ARCHITECTURE = "sm_90"
WHEELS = (
    "nvidia-cudnn-frontend==1.28.0", "nvtx==0.2.17", "einops==0.8.2", "torchinfo==1.8.0",
    # not NCCL itself, of 305 MB, which PyTorch for CUDA brings
    "nccl4py==0.6.0", "cuda-core==1.2.2", "cuda-bindings==13.5.0", "cuda-pathfinder==1.9.1",
)  # fmt: skip
# pip matches the version of glibc exactly
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 17, 24, 34, 31, 35)]
PLATFORMS += ["manylinux2014_x86_64", "manylinux1_x86_64"]


def commands(folder: Path) -> list[list[str]]:
    """Return what fills the folder."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    pip += ["--python-version", PYTHON, "--implementation", "cp", "--dest", str(folder / "wheels")]
    pip += [word for platform in PLATFORMS for word in ("--platform", platform)]
    build = [sys.executable, "-m", "lucid.cuda.build", "--arch", ARCHITECTURE, "--out", str(folder / "built")]
    return [[*pip, *WHEELS], build]


def prepare(folder: Path) -> int:
    """Fill the folder; return 0, or 1 if a command failed."""
    folder.mkdir(parents=True, exist_ok=True)
    for command in commands(folder.resolve()):
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            return 1
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 1e6:.0f} MB; there: python -m benchmarks.gpu --prepared {folder} --out FOLDER")
    return 0
