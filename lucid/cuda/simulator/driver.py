"""Kernels on the simulated device: compiled by g++, run by the runtime in the order of their launches."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Any

from lucid.cuda.simulator.builder import build
from lucid.cuda.simulator.counting import counters
from lucid.cuda.simulator.places import current_device
from lucid.cuda.simulator.runtime import FOLDER, runtime
from lucid.errors import KernelError

if TYPE_CHECKING:
    from pathlib import Path

    from lucid.cuda.kernels import Unit

__all__ = ["SimulatedDriver"]

_HEADERS = ("runtime.h", "device.h", "device_math.h", "device_types.h")
_OPTIONS = (
    "-std=c++17",
    "-Og",  # with the sanitizers, half the time of -O1 to build, and about the same to run
    "-g1",
    "-gdwarf-4",  # addr2line mixes up the files of version 5
    "-w",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    # The runtime is called before each load and store, and for misaligned pointers, bad indices and divisions by zero.
    # The address sanitizer would leave out a store behind a load of the same place.
    "-fsanitize=thread,alignment,bounds,integer-divide-by-zero",
    "--param=tsan-instrument-func-entry-exit=0",
    "-nodefaultlibs",  # the sanitizers' own libraries
)
_SANITIZE = ("-fsanitize=undefined,float-cast-overflow", "-fno-sanitize=vptr")
_DYNAMIC_SHARED = re.compile(r"extern\s+__shared__\s+(?:__align__\(\w+\)\s*)?([\w\s:]+?)\s*(\w+)\s*\[\s*\]\s*;")
_SHARED = re.compile(r"//[^\n]*|/\*.*?\*/|(?:\bstatic\s+)?\b__shared__\s([^;=]+);", re.DOTALL)
_DECLARED = re.compile(r"(.*?)\b(\w+)\s*((?:\[[^]]*\]\s*)*)", re.DOTALL)
_BETWEEN = re.compile(r",(?=\s*\w+\s*(?:\[|,|$))")
_SYMBOL = re.compile(r"^([0-9a-f]+) .*\blucid_shared_(\w+)$", re.MULTILINE)
_INCLUDE = re.compile(r"^#include <(.+)>$", re.MULTILINE)
_DEVICE_VARIABLE = re.compile(r"^\s*(?:static\s+)?__device__\s+[^(){};]*;", re.MULTILINE)
_CODE = re.compile(r"\{code ([0-9a-f]+)\}")
_OF_DEVICE = ("cuda_fp16.h", "cuda_bf16.h", "cuda_runtime.h")


class _Instance(ctypes.Structure):
    """``lucid_simulator::Instance``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("codes", ctypes.c_char_p),
        ("size", ctypes.c_uint),
        ("run", ctypes.c_void_p),
        ("unit", ctypes.c_void_p),
    )


class _Unit(ctypes.Structure):
    """``lucid_simulator::Unit``."""

    _fields_ = (
        ("instances", ctypes.POINTER(_Instance)),
        ("count", ctypes.c_uint),
        ("constants_begin", ctypes.c_void_p),
        ("constants_end", ctypes.c_void_p),
    )


@cache
def _headers() -> str:
    return "".join((FOLDER / name).read_text(encoding="utf-8") for name in _HEADERS)


def sanitizes() -> bool:
    """Whether kernels are built with g++'s undefined-behaviour sanitizer: under LUCID_SIMULATOR_SANITIZE=1."""
    return os.environ.get("LUCID_SIMULATOR_SANITIZE", "0") not in {"", "0"}


def _in_memory_of_a_block(declaration: re.Match[str]) -> str:
    """Shared variables with room around each, so that what lies beside one is no other."""
    if declaration[1] is None:
        return declaration[0]  # a comment
    first, *others = (_DECLARED.fullmatch(one) for one in _BETWEEN.split(declaration[1]))
    if first is None:
        return declaration[0]
    variables = [first, *(other for other in others if other)]
    return " ".join(f"LUCID_SHARED(({first[1]}), {one[2]}, {one[3]})" for one in variables)


def source_for_host(unit: Unit) -> str:
    """C++ whose library holds the kernels of a unit."""
    source = _SHARED.sub(_in_memory_of_a_block, _DYNAMIC_SHARED.sub(r"DYN_SHARED(\1, \2);", unit.source))
    if found := _DEVICE_VARIABLE.search(source):
        raise KernelError(
            f"{unit.name}: {found[0].strip()} is a __device__ variable, and the simulator has none; pass a pointer"
        )
    headers = [name for name in _INCLUDE.findall(source) if name not in _OF_DEVICE]
    # Static variables of templates are only told to the runtime if no other library can have the same template.
    lines = [*(f"#include <{name}>" for name in headers), '#include "device.h"', "namespace {"]
    lines += [_INCLUDE.sub("", source), "}", '#line 1 "device_instances"', "namespace lucid_instances {"]
    lines += ["extern const lucid_simulator::Instance all[] = {"]
    lines += [f'lucid_simulator::instance<&{name}>("{name}", &lucid_unit),' for name in unit.signatures]
    lines += ["};", "}", "const lucid_simulator::Unit lucid_unit = {", "lucid_instances::all,"]
    lines += [f"{len(unit.signatures)}, __start_lucid_constant, __stop_lucid_constant}};", ""]
    return "\n".join(lines)


class SimulatedDriver:
    """Launches on the host."""

    def __init__(self) -> None:
        self._run, self._bytes = runtime().lucid_launch, runtime().lucid_bytes
        self._stream = ctypes.c_void_p(0)
        self._names: dict[int | None, str] = {}

    def launch(self, handle: ctypes.c_void_p, *call: Any) -> int:
        """Run a kernel from beginning to end."""
        counters.launches += 1
        counters.kernels[self._names[handle.value]] += 1
        code = self._run(handle, *call)
        counters.bytes_loaded += self._bytes(0)
        counters.bytes_stored += self._bytes(1)
        return code

    def device(self) -> int:
        """Return the index of the current simulated device."""
        return current_device()

    def stream(self) -> ctypes.c_void_p:
        """Return null: launches end before they return, whatever their stream."""
        return self._stream

    def load(self, unit: Unit) -> dict[str, ctypes.c_void_p]:
        """Build with g++, or take from the cache folder."""
        host = runtime()
        options = [*_OPTIONS, *(_SANITIZE if sanitizes() else ()), "-I."]
        path = build(unit.stem, _headers(), options, folder=FOLDER, what=unit.name, source=source_for_host(unit))
        # Devices share a library: one that is there is not loaded again.
        library = ctypes.CDLL(str(path))
        description = _Unit.in_dll(library, "lucid_unit")
        shared = _shared_variables(path) if "__shared__" in unit.source else []
        host.lucid_load(
            ctypes.addressof(description),
            len(shared),
            (ctypes.c_size_t * len(shared))(*(offset for offset, _ in shared)),
            (ctypes.c_char_p * len(shared))(*(name for _, name in shared)),
        )
        first = ctypes.addressof(description.instances.contents)
        handles: dict[str, ctypes.c_void_p] = {}
        for i in range(description.count):
            instance = description.instances[i]
            name = instance.name.decode()
            _compare(name, unit.signatures[name], instance.codes.decode(), instance.size)
            address = first + i * ctypes.sizeof(_Instance)
            handles[name], self._names[address] = ctypes.c_void_p(address), name
        return handles

    def allow_shared(self, handle: ctypes.c_void_p, nbytes: int) -> None:
        """Every size up to the hardware's is allowed."""
        if nbytes > 227 << 10:
            raise KernelError(f"{nbytes:,} bytes of shared memory for a block: a device has at most {227 << 10:,}")

    def recovers(self, code: int) -> bool:
        """Return False."""
        return False

    def failure(self, code: int) -> str:
        """Return the report of the runtime, with lines of the source where g++'s tools can tell them."""
        host = runtime()
        report = host.lucid_report().decode()
        library = (host.lucid_fault_library() or b"").decode()
        return _CODE.sub(lambda mark: _line(library, mark[1]), report)


def _shared_variables(library: Path) -> list[tuple[int, bytes]]:
    """Where in a library its shared variables are, and their names."""
    command = [shutil.which("nm") or "nm", "--demangle", str(library)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return sorted((int(found[1], 16), found[2].encode()) for found in _SYMBOL.finditer(told))


def _line(library: str, address: str) -> str:
    """Line of the source that made the code at an address of a library, and the line that called it."""
    tool = shutil.which("addr2line")
    if tool is None:
        return ""
    command = [tool, "--inlines", "--exe", library, address]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()  # noqa: S603
    lines = [line.rsplit("/", 1)[-1].split(" ")[0] for line in told]
    lines = [line for line in lines if not line.startswith(("device", "?"))]
    return f" ({lines[0]}" + (f", called from {lines[1]}" if len(lines) > 1 else "") + ")" if lines else ""


def _compare(name: str, signature: str, codes: str, size: int) -> None:
    """Refuse a kernel that was declared with other parameters than it has."""
    packed = struct.calcsize(f"@{signature}")
    # long is long long; of a kernel with structs only the size can be compared.
    known = codes.replace("l", "q").replace("L", "Q")
    if packed != size or ("S" not in known and signature != known):
        raise KernelError(
            f"{name} is declared with parameters {signature!r} of {packed} bytes, but has {known!r} of {size} bytes"
        )
