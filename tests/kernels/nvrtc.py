"""NVIDIA's compiler without a GPU: what each kernel of a unit takes of a processor, read from the assembler's report.

It needs the two wheels of the `nvrtc` extra, no driver and no CuPy.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ENTRY = re.compile(r"Compiling entry function '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


@dataclass
class Usage:
    """What one kernel takes: registers of a thread, bytes spilled by a thread, bytes of shared memory of a block."""

    registers: int = 0
    spilled: int = 0
    shared: int = 0


class CompileError(Exception):
    """The compiler refused a source; the text is its log."""


def wheel(part):
    """Return the folder of one of NVIDIA's wheels; None if it is not installed."""
    try:
        spec = importlib.util.find_spec(f"nvidia.{part}")
    except ModuleNotFoundError:
        return None
    return Path(next(iter(spec.submodule_search_locations))) if spec else None


def is_installed():
    """Tell whether both wheels are there."""
    return wheel("cuda_nvrtc") is not None and wheel("cuda_runtime") is not None


@cache
def library():
    """Return the compiler's library."""
    return ctypes.CDLL(str(next((wheel("cuda_nvrtc") / "lib").glob("libnvrtc.so.*"))))


def compile_unit(source, names, architecture):
    """Return the usage of each of the kernels `names` of a source, compiled for an architecture such as ``sm_90``."""
    nvrtc, program = library(), ctypes.c_void_p()
    code = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"unit.cu", 0, None, None)
    if code:
        raise CompileError(f"nvrtcCreateProgram gave {code}")
    try:
        for name in names:
            nvrtc.nvrtcAddNameExpression(program, name.encode())
        # the flags that CuPy gives, and the assembler's report
        options = [
            "--std=c++17",
            f"-arch={architecture}",
            "-ftz=true",
            "--device-as-default-execution-space",
            "--ptxas-options=-v",
            f"-I{wheel('cuda_runtime') / 'include'}",
        ]
        given = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        code = nvrtc.nvrtcCompileProgram(program, len(options), given)
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        if code:
            raise CompileError(log.value.decode())
        lowered = {}
        for name in names:
            mangled = ctypes.c_char_p()
            if nvrtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(mangled)):
                raise CompileError(f"{name} is not in the compiled unit")
            lowered[mangled.value.decode()] = name
        return read(log.value.decode(), lowered)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def read(log, lowered):
    """Return the usage of each kernel by its name, from the assembler's report and the names by mangled name."""
    usages, current = {}, None
    for line in log.splitlines():
        if entry := ENTRY.search(line):
            current = usages.setdefault(lowered[entry[1]], Usage()) if entry[1] in lowered else None
        elif current is not None:
            if found := SPILLS.search(line):
                current.spilled = int(found[1]) + int(found[2])
            if found := USED.search(line):
                current.registers = int(found[1])
            if found := SHARED.search(line):
                current.shared = int(found[1])
    missing = set(lowered.values()) - usages.keys()
    if missing:
        raise CompileError(f"the assembler's report does not name {sorted(missing)}")
    return usages
