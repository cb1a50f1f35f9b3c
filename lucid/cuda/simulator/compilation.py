"""CUDA C++ for g++: a library of the host in the place of NVRTC's code."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lucid.cuda.simulator.builder import build
from lucid.cuda.simulator.settings import whole_number
from lucid.cuda.simulator.source.declarations import marked, symbols
from lucid.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Sequence


FOLDER = Path(__file__).parent
_OPTIONS = (
    "-std=c++17",
    "-Og",  # with the sanitizers, half the time of -O1 to build, and about the same to run
    "-g1",
    "-fno-var-tracking",  # lines are told, and no variables: a sixth of the time to build
    "-gdwarf-4",  # addr2line mixes up the files of version 5
    "-w",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fno-threadsafe-statics",
    "-fstack-clash-protection",  # large local arrays meet the guard of their stack, and not the stack behind it
    # The runtime is called before each load and store, and for misaligned pointers, bad indices and divisions by zero.
    # The address sanitizer would leave out a store behind a load of the same place.
    "-fsanitize=thread,alignment,bounds,integer-divide-by-zero",
    "--param=tsan-instrument-func-entry-exit=0",
    "-nodefaultlibs",  # the sanitizers' own libraries
)
_SANITIZE = ("-fsanitize=undefined,float-cast-overflow", "-fno-sanitize=vptr")
# Patterns that match to the end of a text what is never closed in it, so that none is sought there once more.
_SHARED = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|(?:\b(?P<how>static|extern)\s+)?\b__shared__\s(?P<declared>[^;=]+)(?P<closed>;?)",
    re.DOTALL,
)
_ALIGN = re.compile(r"__align__\(\w+\)")
_DECLARED = re.compile(r"(.*?)\b(\w+)\s*((?:\[[^][]*\]\s*)*)", re.DOTALL)
_BETWEEN = re.compile(r",(?=\s*\w+\s*(?:\[|,|$))")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"](.+)[>\"].*$", re.MULTILINE)
# The simulator's headers and CuPy's, which come before those of any other folder.
_KNOWN = r"cuda_[bf][fp]16\.h|cupy/[\w/]+\.(?:cuh|h)"
_KEPT = re.compile(rf"#include (?:\"device/device\.h\"|<(?:{_KNOWN})>)")
# Functions of headers that no kernel calls are left out, a third of the time to build one of CuPy's; variables in a
# header of the user's own would be taken for constants.
_WHOLE = "-fwhole-program"
# What g++ says of what CUDA has and the simulator has not.
_NO_HEADER = re.compile(r"fatal error: (\S+): No such file")
_UNKNOWN = re.compile(r"error: ['\u2018](\w+)['\u2019] (?:was not declared|is not a member|has not been declared)")
_PTX = re.compile(r"Assembler messages:|error: (?:impossible|inconsistent|invalid .asm.|unknown register)")
_HEADER_OF_THE_HOST = re.compile(r"c?(?:math|stdlib|stdio|string|assert|float|limits|complex|stdint|time)(?:\.h)?")
_OF_THE_HOST = (
    "{} is a header of the host, which NVRTC does not have either: leave it out, CUDA's functions are there without it"
)
# What a source adds to the standard library stands in no other namespace.
_OF_STD = re.compile(r"^[ \t]*namespace\s+std\b|\b(?:struct|class)\s+std::\w+\s*<", re.MULTILINE)
_BOUNDS = r"(?:__launch_bounds__\s*\([^)]*\)\s*)?"
_KERNEL = re.compile(rf"__global__\s+{_BOUNDS}void\s+{_BOUNDS}(\w+)\s*\(")
_BOUNDED = re.compile(
    r"__global__\s+(?:static\s+)?(?:void\s+)?__launch_bounds__\s*\(([^,()]*)[^()]*\)\s*(?:void\s+)?(\w+)\s*\("
)
_NUMBER = r"(?:#[ \t]*define[ \t]+{0}[ \t]+|\bconstexpr\s+[\w ]*\b{0}\s*=\s*)(\d+)\s*[;\n]"
# CuPy's fused kernels with reductions wait for all blocks, and stride over the grid: one block does what all would.
_WAITS = "_cg::grid_group _grid = _cg::this_grid();"
_GRID = (
    "namespace cooperative_groups { struct grid_group {}; inline grid_group this_grid() { return {}; }"
    " inline void sync(grid_group) { __syncthreads(); } }"
)
_EXPORTED = '__attribute__((visibility("default"), externally_visible)) extern const'
_PLAIN_SHARED = 48 << 10
_AROUND_SHARED = 128  # bytes that LUCID_SHARED adds
_PLAIN = re.compile(r'\bextern\s+"C"\s*')
_LINKAGE = re.compile(r'\bextern\s+"C"(\s*\{)?')
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.DOTALL)
_FUNCTION = re.compile(
    r"\b__device__\b[^(){};=]{0,999}?\b(?!operator\b|alignas\b|decltype\b|__\w+__\b)(\w+)[ \t]*\([^;{}]{0,999}[;{]"
)
_TYPE = re.compile(r"\b(?:struct|class|union|enum|namespace)\s+(\w+)")
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*")
_MACRO = re.compile(r"^#define(?:.*\\\n)*.*", re.MULTILINE)
_CALLED = re.compile(r"\bLUCID_[A-Z_0-9]+\(([^()]*)\)|\b([A-Za-z_]\w*)\(")
_IN_STEP = frozenset({"argpartition_kernel", "partition_kernel"})


@cache
def _translation() -> str:
    """Return all dependencies of a library besides its source and options: headers, and the translation to C++."""
    paths = [
        *(FOLDER / part for part in ("compilation.py", "source/declarations.py", "execution/runtime.h")),
        *sorted(FOLDER.glob("device/*.h")),
        *sorted(FOLDER.glob("toolkit/**/*.h")),
    ]
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def sanitizes() -> bool:
    """Whether kernels are built with g++'s undefined-behaviour sanitizer: under LUCID_SIMULATOR_SANITIZE=1."""
    return whole_number("LUCID_SIMULATOR_SANITIZE", 0, 1) == 1


def _in_memory_of_a_block(declaration: re.Match[str]) -> str:
    """Shared variables with padding around each, so that no access beside one hits another; dynamic as lucid.cuh's."""
    if not declaration["closed"]:
        return declaration[0]  # a comment, or what g++ refuses
    first, *others = (_DECLARED.fullmatch(one) for one in _BETWEEN.split(declaration["declared"]))
    if first is None:
        return declaration[0]
    variables = [first, *(other for other in others if other)]
    if declaration["how"] == "extern":
        return " ".join(f"DYN_SHARED({_ALIGN.sub('', first[1])}, {one[2]});" for one in variables)
    return " ".join(f"LUCID_SHARED(({first[1]}), {one[2]}, {one[3]})" for one in variables)


def source_for_host(text: str, names: Sequence[str], *, flushes: bool = False) -> str:
    """C++ for a library with the kernels of a source.

    Parameters
    ----------
    text : str
        CUDA C++.
    names : sequence of str
        C++ names of kernels, with template arguments; those that are ``extern "C"`` are held beside them.
    flushes : bool, default False
        Whether subnormal floats are zeros in its kernels.

    Raises
    ------
    KernelError
        If it has a kernel of CuPy's that needs more than CUDA promises.
    """
    source = marked(_SHARED.sub(_in_memory_of_a_block, text))
    # The host has functions of C, with which none of the source's may be confused.
    # With words left of it, a variable would only be declared.
    source = _LINKAGE.sub(lambda of: f'extern "C++"{of[1]}' if of[1] else "", source)
    headers = _INCLUDE.findall(source)
    kernels = list(dict.fromkeys([*names, *_plain_kernels(text)]))
    if in_step := sorted(_IN_STEP.intersection(kernels)):
        raise KernelError(
            f"{in_step[0]} of CuPy (partition, argpartition of many elements) believes that the lanes of a warp run in "
            "step, which CUDA does not promise, and the simulator does not do; use sort or argsort"
        )
    # Static variables of templates are only told to the runtime if no other library can have the same template.
    # In a namespace, so that a kernel of the name of a function of CUDA's is found there.
    begin, end, inside = "namespace lucid_source { namespace {", "} } using namespace lucid_source;", "lucid_source::"
    if _OF_STD.search(source):
        begin, end, inside = "", "", "::"
    one_block = _WAITS in source
    if one_block:
        headers.remove("cooperative_groups.h")
    lines = ['#include "device/device.h"', *([_GRID] if one_block else []), *(f"#include <{name}>" for name in headers)]
    if inside != "::":
        # One of the source's stands beside those of its name that CUDA has, and does not hide them.
        code = _code(source)
        functions = {*_FUNCTION.findall(code)}.difference(kernels, _TYPE.findall(code)) & _of_cuda(code)
        lines += [f"void {name}(lucid_simulator::Nobody);" for name in sorted(functions)]
        begin += "".join(f" using ::{name};" for name in sorted(functions))
    lines += [begin]
    lines += ['#line 1 "kernel.cu"', _INCLUDE.sub("", source), end]
    lines += ['#line 1 "device_instances"', "namespace lucid_instances {"]
    lines += ["extern const lucid_simulator::Instance all[] = {"]
    lines += [f'lucid_simulator::instance<&{inside}{name.lstrip(": ")}>("{name}", &lucid_unit),' for name in kernels]
    lines += ["};", "}", "const lucid_simulator::Unit lucid_unit = {", "lucid_instances::all,"]
    lines += [f"{len(kernels)}, __start_lucid_constant, __stop_lucid_constant, __start_lucid_variable,"]
    lines += [f"__stop_lucid_variable, {str(flushes).lower()}}};", ""]
    bounds = _bounds(_code(text))
    if most := [bounds.get(name.partition("<")[0].rpartition("::")[2].strip(), 0) for name in kernels]:
        if any(most):
            lines += [f'extern "C" {{ {_EXPORTED} unsigned lucid_most_threads[] = {{{str(most)[1:-1]}}}; }}', ""]
    if one_block:
        lines += [f'extern "C" {{ {_EXPORTED} bool lucid_one_block = true; }}', ""]
    return "\n".join(lines)


def _bounds(code: str) -> dict[str, int]:
    """Return the threads of the launch bounds of kernels, if these are a number or the name of one."""
    bounds: dict[str, int] = {}
    for bound, name in _BOUNDED.findall(code):
        most = bound.strip()
        values = {most} if most.isdigit() else set(re.findall(_NUMBER.format(re.escape(most)), code))
        if len(values) == 1 and f"typename {most}" not in code:
            bounds[name] = int(*values)
    return bounds


def _of_cuda(code: str) -> set[str]:
    """Return the names in a source that may be those of CUDA's functions."""
    ours, names = _declared_names(), set(_IDENTIFIER.findall(code))
    return {name for name in names if name in ours or name.startswith("__") or (name[-1] == "f" and name[:-1] in ours)}


@cache
def _declared_names() -> set[str]:
    """Names of functions in our headers, those made by macros included."""
    texts = (_MACRO.sub("", path.read_text(encoding="utf-8")) for path in FOLDER.glob("device/*.h"))
    return {name for text in texts for match in _CALLED.findall(text) for name in _IDENTIFIER.findall("".join(match))}


def _code(text: str) -> str:
    """Return a source without its comments and literals, except for that of a linkage."""
    return _NO_CODE.sub(lambda match: match[0] if match[0] == '"C"' else " ", text)


def _plain_kernels(text: str) -> list[str]:
    """Return the names of the kernels that are ``extern "C"``, alone or in braces."""
    kernels: list[str] = []
    text = _code(text)
    for mark in _PLAIN.finditer(text):
        begin = mark.end()
        if not text.startswith("{", begin):
            alone = _KERNEL.match(text, begin)
            kernels += [alone[1]] if alone else []
            continue
        depth, end = 1, begin + 1
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        kernels += _KERNEL.findall(text, begin, end)
    return kernels


def _of_a_toolkit(option: str) -> bool:
    """Whether an option names the headers of a CUDA toolkit; the simulator has its own."""
    return option.startswith("-I") and Path(option[2:], "cuda_runtime.h").exists()


def compiled(
    text: str, names: Sequence[str], options: Sequence[str], folders: Sequence[Path], version: str = ""
) -> Path:
    """Library that holds the kernels of a source, built unless it was before.

    Parameters
    ----------
    text : str
        CUDA C++.
    names : sequence of str
        C++ names of the kernels that are instances of templates.
    options : sequence of str
        NVRTC's, of which definitions, folders of headers and the last ``-ftz`` count.
    folders : sequence of pathlib.Path
        Folders of headers that come before those.
    version : str, default ""
        What tells these headers from others, wherever the folders are.

    Raises
    ------
    KernelError
        If g++ finds an error in it, or there is no g++.
    """
    forwarded = [option for option in options if option.startswith(("-D", "-I")) and not _of_a_toolkit(option)]
    flags = [*_OPTIONS, *(_SANITIZE if sanitizes() else ()), "-I.", *(f"-I{folder}" for folder in folders), *forwarded]
    if all(re.fullmatch(_KNOWN, header) for header in _INCLUDE.findall(text)):
        flags.append(_WHOLE)
    # Of definitions of the user's own there are too many to keep headers for each.
    is_plain = all(option.startswith(("-I", "-D__CUDACC_VER_")) for option in forwarded)
    flushes = [option[-4:] == "true" for option in options if option.lstrip("-").startswith("ftz=")][-1:] == [True]
    kernels = {*names, *(plain := _plain_kernels(text))}
    stem = re.sub(r"\W+", "-", next(iter([*names, *plain]), "nothing"))
    # g++ would take it, and its functions for CUDA's.
    if hosts := [name for name in _headers_of_the_host(text) if "math" in name]:
        raise KernelError(f"kernel.cu: {_OF_THE_HOST.format(hosts[0])}")
    # The text as it came, since to look up what is built takes less time than to write it for the host.
    all_of_it = "\0".join([_translation(), version, str(flushes), *names, text])
    try:
        path = build(
            stem,
            all_of_it,
            flags,
            folder=FOLDER,
            what=stem,
            source=lambda: source_for_host(text, names, flushes=flushes),
            headers=(f"{_translation()}\0{version}", _KEPT) if is_plain else None,
            places=(FOLDER, *folders),
        )
    except KernelError as error:
        if words := _explained(str(error), text):
            raise KernelError(f"{error}\n{words}") from error
        raise
    known = symbols(path)
    own = [size - _AROUND_SHARED for _, size, _ in known.shared]
    least = sum(own) if len(kernels) == 1 else max(own, default=0)
    if least > _PLAIN_SHARED:
        raise KernelError(
            f"kernel.cu: {stem} has {least:,} bytes of static shared memory, of which CUDA takes {_PLAIN_SHARED:,}: "
            "what is larger is dynamic, extern __shared__, and allowed by max_dynamic_shared_size_bytes"
        )
    return path


def _headers_of_the_host(text: str) -> list[str]:
    """Return the headers that a source includes and NVRTC has not, unless it asks whether NVRTC compiles it."""
    headers = [name for name in _INCLUDE.findall(text) if _HEADER_OF_THE_HOST.fullmatch(name)]
    return [] if "__CUDACC_RTC__" in text else headers


def _explained(said: str, text: str) -> str:
    """Return the CUDA cause behind errors of g++; nothing if it may be anything."""
    words: list[str] = []
    if header := _NO_HEADER.search(said):
        ours = sorted(path.name for path in FOLDER.glob("toolkit/include/*.h"))
        words.append(
            f"the simulated device has no header {header[1]}: of CUDA's it has {', '.join(ours)}, and what these "
            "declare is there without them; name the folder of one of your own in options, as -Ifolder"
        )
    if _PTX.search(said):
        words.append("the simulated device has no PTX: write what stands in asm() in C++")
    if unknown := list(dict.fromkeys(_UNKNOWN.findall(said))):
        words.append(
            f"the simulated device does not know {', '.join(unknown)}: if that is a function or type of CUDA's, a GPU "
            "may have it; docs/users/simulator.md says what is there"
        )
    if "/usr/" in said and (hosts := _headers_of_the_host(text)):
        words.append(_OF_THE_HOST.format(hosts[0]))
    return "; ".join(words)


def line_of(library: str, address: str) -> str:
    """Line of the source that made the code at an address of a library, and the line that called it."""
    tool = shutil.which("addr2line")
    if tool is None:
        return ""
    command = [tool, "--inlines", "--exe", library, address]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()  # noqa: S603
    lines = [line.rsplit("/", 1)[-1].split(" ")[0] for line in told]
    lines = [line for line in lines if not line.startswith(("device", "?"))]
    return f" ({lines[0]}" + (f", called from {lines[1]}" if len(lines) > 1 else "") + ")" if lines else ""
