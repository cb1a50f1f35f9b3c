"""NVIDIA's compiler without a GPU: what each kernel of a unit takes of a processor, read from the assembler's report.

It needs the two wheels of the `nvrtc` extra, no driver and no CuPy.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from lucid.cuda import cache
from lucid.cuda.build.image import OPTIONS
from lucid.cuda.build.nvrtc import compiler
from lucid.cuda.launch.kernels import Unit
from lucid.errors import CudaUnavailableError

VERBOSE = ("--ptxas-options=-v",)
ENTRY = re.compile(r"Compiling entry function '(\w+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


@dataclass
class Usage:
    """What one kernel takes: registers, bytes spilled and bytes of stack of a thread, and a block's shared memory.

    Spills lie on the stack too; beside them arrays do that are indexed by what is known only when the kernel runs, and
    parameters that it copies to take their address.
    """

    registers: int = 0
    spilled: int = 0
    stack: int = 0
    shared: int = 0


def is_installed():
    """Tell whether the compiler and its headers are there."""
    try:
        compiler()
    except CudaUnavailableError:
        return False
    return True


def compile_unit(source, names, architecture):
    """Return the usage of each of the kernels `names` of a source on an architecture such as ``sm_90``, and a bool.

    It is True if nothing was compiled, because what the compiler says of this is known from an earlier time.
    """
    file = f"nvrtc-{key_of(compiler(), source, names, architecture)}.json"
    kept = cache.read(file)
    if kept is None:
        unit = Unit("unit.cu", "unit", source, dict.fromkeys(names, ""))
        lowered, _, log = compiler().told(unit, architecture, VERBOSE)
        cache.keep(file, json.dumps([lowered, log]).encode())
    else:
        lowered, log = json.loads(kept)
    return read(log, {mangled: name for name, mangled in lowered.items()}), kept is not None


def key_of(nvrtc, source, names, architecture):
    """Return what tells all that a compiler's report depends on from any other."""
    said = [compiler_key(nvrtc), architecture, *OPTIONS, *VERBOSE, *names, source]
    return hashlib.sha256("\0".join(said).encode()).hexdigest()


@functools.cache
def compiler_key(nvrtc):
    """Return what tells a compiler and its headers from others: releases that mend a fault have one version."""
    read = hashlib.sha256()
    for path in (Path(nvrtc._library._name), *sorted(nvrtc._headers.glob("cuda_*16.h*"))):
        read.update(path.read_bytes())
    return read.hexdigest()


def read(log, lowered):
    """Return the usage of each kernel by its name, from the assembler's report and the names by mangled name."""
    usages, current = {}, None
    for line in log.splitlines():
        if entry := ENTRY.search(line):
            current = usages.setdefault(lowered[entry[1]], Usage()) if entry[1] in lowered else None
        elif current is not None:
            if found := STACK.search(line):
                current.stack = int(found[1])
                current.spilled = int(found[2]) + int(found[3])
            if found := USED.search(line):
                current.registers = int(found[1])
            if found := SHARED.search(line):
                current.shared = int(found[1])
    missing = set(lowered.values()) - usages.keys()
    if missing:
        raise AssertionError(f"the assembler's report does not name {sorted(missing)}")
    return usages
