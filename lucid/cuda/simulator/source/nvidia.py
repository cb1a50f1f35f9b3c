"""The diagnostics of NVIDIA's own compiler for a source, without a GPU: g++ accepts more than CUDA does."""

from __future__ import annotations

import functools
import hashlib
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lucid.cuda.build.image import OPTIONS
from lucid.cuda.build.nvrtc import compiler
from lucid.cuda.cache import keep, read
from lucid.cuda.launch.kernels import Unit
from lucid.cuda.simulator.builder import portable
from lucid.cuda.simulator.compilation import FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence


# Sources of kernels/, which tests/kernels/test_nvrtc.py compiles for three architectures: not once more by each device.
TESTED: set[str] = set()

# CuPy's own operations, which it compiles with NVRTC for each release: hundreds in a run of tests, 0.08 s each.
_OF_CUPY = re.compile(r"\bvoid\s+cupy_\w+\(")

_ARCHITECTURE = "sm_90"  # as device.h has it
# Lucid's own and the architecture are given once.
_PRESET = ("-arch", "--gpu-architecture", "-std", "--std", "-ftz", "--ftz", "--device-as-default", "-D__CUDACC_VER_")


@functools.cache
def anywhere(option: str) -> str:
    """Return an option; for the headers of a CUDA toolkit, its version in the place of the folder."""
    if not option.startswith("-I"):
        return option
    try:
        text = Path(option[2:], "cuda_runtime_api.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return option
    version = re.search(r"#define\s+CUDART_VERSION\s+(\d+)", text)
    return option if version is None else f"-I<toolkit {version[1]}>"


def compiles(text: str, names: Sequence[str], options: Sequence[str], folders: Sequence[Path], version: str) -> None:
    """Compile a source for the device that is simulated, with headers of a version, unless that is done elsewhere.

    It is of `kernels/` by their tests, and of CuPy's own operations by CuPy.

    Raises
    ------
    KernelError
        If NVRTC finds an error in it.
    CudaUnavailableError
        If it is not installed.
    """
    if text in TESTED or _OF_CUPY.search(text):
        return
    arguments = [each for each in options if not each.startswith(_PRESET)]
    arguments += [f"-I{folder}" for folder in folders if f"-I{folder}" not in arguments]
    nvrtc = compiler()
    told = [anywhere(each) for each in portable(arguments, [FOLDER, *folders])]
    parts = [nvrtc.version, version, *OPTIONS, *told, *names, text]
    file = f"nvrtc-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:24]}"
    if read(file) is not None:
        return
    nvrtc.told(Unit("kernel.cu", "kernel", text, dict.fromkeys(names, "")), _ARCHITECTURE, arguments)
    with suppress(OSError):
        keep(file, b"")
