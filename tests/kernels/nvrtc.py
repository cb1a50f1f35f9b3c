"""NVIDIA's compiler without a GPU: what each kernel of a unit takes of a processor, read from the assembler's report.

It needs the two wheels of the `nvrtc` extra, no driver and no CuPy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lucid.cuda.build.nvrtc import compiler
from lucid.cuda.launch.kernels import Unit
from lucid.errors import CudaUnavailableError

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


def is_installed():
    """Tell whether the compiler and its headers are there."""
    try:
        compiler()
    except CudaUnavailableError:
        return False
    return True


def compile_unit(source, names, architecture):
    """Return the usage of each of the kernels `names` of a source, compiled for an architecture such as ``sm_90``."""
    unit = Unit("unit.cu", "unit", source, dict.fromkeys(names, ""))
    lowered, _, log = compiler().told(unit, architecture, ["--ptxas-options=-v"])
    return read(log, {mangled: name for name, mangled in lowered.items()})


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
        raise AssertionError(f"the assembler's report does not name {sorted(missing)}")
    return usages
