"""Who is there: versions, the library that each path takes, and what the device does at its best.

What must be there and is not is a failure with its name: without it the figures would be those of another path. Beside
a simulated device neither cuDNN nor PyTorch's CUDA is asked for, and tools may be missing.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.command import machine
from benchmarks.gpu import device
from benchmarks.gpu.rows import Row, Stage, unasked, working

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.gpu.rows import Scope

    Told = dict[str, object]

# Modules by what they are for; those of the second kind work on a GPU only.
ANYWHERE = {
    "nvtx": "names of ranges in profiles",
    "ml_dtypes": "bfloat16 on the host",
    "opt_einsum": "einsum",
    "rich": "tables",
    "pytest": "the tests on the device",
    "hypothesis": "the tests on the device",
}
ON_A_GPU = {
    "cudnn": "convolution and half-type attention (nvidia-cudnn-frontend)",
    "torch": "comparisons and references in float64",
}
LIBRARIES = {"cudnn": "cuDNN", "torch": "PyTorch's CUDA"}
TOOLS = {
    "nvidia-smi": ("--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem,ecc.mode.current",
                   "--format=csv,noheader"),
    "compute-sanitizer": ("--version",),
    "ncu": ("--version",),
}  # fmt: skip
OWN, CUDNN = "lucid's kernels", "cuDNN"
# By path: what cuDNN calls its parts, and the dtypes in which it must take them.
PATHS = {
    "convolution": (("conv_fprop", "conv_dgrad", "conv_wgrad"), ("float32", "float16", "bfloat16")),
    "attention": (("sdpa", "sdpa_backward"), ("float16", "bfloat16")),
}
C_TYPES = {"float32": "float", "float16": "__half", "bfloat16": "__nv_bfloat16"}


def absent(what: str, purpose: str, *, anywhere: bool = False) -> Told:
    """Return the fact of something that is not there: a failure, but for what a simulated device can do without."""
    if device.simulated() and not anywhere:
        return {"ok": None, "absent": f"no {what} here, and none is needed beside a simulated device"}
    return {"ok": False, "error": f"{what} is missing: {purpose}"}


def module(name: str, purpose: str) -> Told:
    """Return whether a module is installed; PyTorch must see the device, and the frontend of cuDNN its library."""
    from lucid.cuda.libraries import cudnn

    if name in ON_A_GPU and device.simulated():
        return unasked(LIBRARIES[name])
    found = importlib.util.find_spec(name) is not None
    if name in ON_A_GPU:
        found = found and bool(device.torch() if name == "torch" else cudnn.is_able())
    return {} if found else absent(name, purpose, anywhere=True)


def tool(name: str, *arguments: str) -> Told:
    """Return what a command says of itself."""
    if shutil.which(name) is None:
        return absent(name, "it is not on the path")
    done = subprocess.run([name, *arguments], capture_output=True, text=True, timeout=15, check=False)
    return {"ok": done.returncode == 0, "said": (done.stdout + done.stderr).strip()[-300:]}


def host() -> Told:
    return {**machine(), "load": os.getloadavg()}


def first() -> Told:
    """Return how long the import, the first array and the first kernel take, and whether that is right."""
    marks = [time.perf_counter()]
    import lucid

    marks.append(time.perf_counter())
    x = lucid.ones(8, device="cuda")
    device.synchronize()
    marks.append(time.perf_counter())
    right = (x + x).tolist() == [2.0] * 8
    marks.append(time.perf_counter())
    imported, array, kernel = (round(end - begin, 3) for begin, end in itertools.pairwise(marks))
    return {"ok": right, "import": imported, "array": array, "kernel": kernel}


def nvrtc() -> Told:
    """Return the compiler that lucid takes for its kernels."""
    from lucid.cuda.build.nvrtc import compiler
    from lucid.errors import CudaUnavailableError

    try:
        return {"version": compiler().version}
    except CudaUnavailableError as error:
        return absent("NVRTC", str(error))


def built() -> Told:
    """Return how many kernels come from an archive, and need no compiling here."""
    from lucid.cuda.build import archive
    from lucid.cuda.build.__main__ import units

    if device.simulated():
        return unasked("an archive of kernels")
    import cupy

    every = units()
    found = sum(archive.find(unit, cupy.cuda.Device().compute_capability) is not None for unit in every)
    return {"units": len(every), "found": found}


def run_path(path: str, dtype: str) -> None:
    """Go a path forward and backward, at sizes as in training."""
    import lucid

    functional = lucid.nn.functional
    shapes = ((8, 32, 16, 16), (32, 32, 3, 3)) if path == "convolution" else ((2, 4, 128, 64),) * 3
    given = [lucid.randn(*shape, device="cuda").to(getattr(lucid, dtype)).requires_grad_() for shape in shapes]
    if path == "convolution":
        y = functional.conv2d(*given, padding=1)
    else:
        y = functional.scaled_dot_product_attention(*given, is_causal=True)
    y.backward(lucid.ones_like(y))
    device.synchronize()


def path(name: str, dtype: str) -> Told:
    """Return which library took each part of a path: on a GPU it must be cuDNN."""
    from lucid.cuda.libraries import cudnn

    run_path(name, dtype)
    built = [key for key, graph in cudnn._graphs._made.items() if graph]
    taken = {key.operation for key in built if key.inputs[0][1].dtype == C_TYPES[dtype]}
    took = {part: CUDNN if part in taken else OWN for part in PATHS[name][0]}
    expected = OWN if device.simulated() else CUDNN
    if slow := [part for part, library in took.items() if library != expected]:
        return {"ok": False, "took": took, "error": f"{', '.join(slow)} in {dtype}: {OWN} instead of {CUDNN}"}
    return {"took": took}


def copy() -> Told:
    return {"gb_per_s": round(device.copy_bandwidth(0.25 if device.simulated() else 1024), 1)}


def product() -> Told:
    """Return the rate of a product of bfloat16 matrices."""
    side, told = 64 if device.simulated() else 8192, {}
    for peer in device.peers():
        x = peer.lib.randn(side, side, device="cuda").to(peer.lib.bfloat16)
        told[peer.name] = round(2 * side**3 / device.seconds(lambda x=x: x @ x) / 1e12, 2)
    return {"tflop_per_s": told}


def rows(_scope: Scope) -> Sequence[Row]:
    return [
        Row("host", host),
        *(Row(f"tool: {name}", partial(tool, name, *arguments)) for name, arguments in TOOLS.items()),
        *(Row(f"module: {name}", partial(module, name, purpose)) for name, purpose in {**ANYWHERE, **ON_A_GPU}.items()),
        Row("first kernel", first),
        Row("NVRTC", nvrtc),
        Row("built kernels", built),
        *(
            Row(f"path: {name}, {dtype}", partial(path, name, dtype))
            for name, (_, dtypes) in PATHS.items()
            # the simulated device takes the same way in each
            for dtype in (dtypes[-1:] if device.simulated() else dtypes)
        ),
        Row("copy", copy),
        Row("product of bfloat16", product),
    ]


STAGE = Stage(working(rows), rehearsed=0)
