"""The libraries of the files in ``kernels/cpu``: compiled for the processor at hand, and kept in the cache of code.

Nothing is contracted or reordered: each operation rounds once, as in NumPy.
"""

from __future__ import annotations

import functools
import platform
import re
from typing import TYPE_CHECKING

from lucid.cuda.simulator.builder import build, kept
from lucid.cuda.source.signature import Source
from lucid.cuda.source.sources import files, folder, paste
from lucid.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_OPTIONS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-ffp-contract=off",
    # none of these changes a result; without the first two no choice and no root becomes an instruction of vectors
    "-fno-math-errno",
    "-fno-trapping-math",
    # it would put branches where a choice is, and no loop with branches is one of vectors
    "-fno-tree-pre",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-fPIC",
    "-shared",
    "-w",
)


def whole(file: str, made: Callable[[], str] | None = None) -> Source:
    """Return a file in ``kernels/cpu``, or one that is made, with the headers that it includes in their places."""
    own = folder() / "cpu"
    try:
        text = (own / file).read_text(encoding="utf-8") if made is None else made()
    except OSError as error:
        raise KernelError(f"no file {file!r} in {own}: the installation of lucid is incomplete") from error
    headers = {path.name: path for path in own.glob("*.h")}
    name = f"kernels/cpu/{file}" if made is None else file
    return Source(paste(text, name, {**files(), **headers}), name)


@functools.cache
def _processor() -> str:
    """Return all that the processor can do, as the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123 - pathlib is loaded where files are
            told = [line for line in lines if re.match(r"(model name|flags|Features|CPU part)\s*:", line)]
    except OSError:
        told = [platform.processor()]
    return "".join([platform.machine(), *dict.fromkeys(told)])


def library(file: Source, instances: Mapping[str, str], *, make: bool) -> Path | None:
    """Return the path of the library of a file; None if it was not built before, and is not to be.

    Parameters
    ----------
    file : Source
        Such as `whole` returns.
    instances : dict
        The functions that it exports: C++ names with template arguments, by the names of their symbols.
    make : bool
        Whether it is built if it was not before.

    Raises
    ------
    KernelError
        If there is no compiler, or it finds an error in the file.
    """
    lines = [
        f'extern "C" __attribute__((visibility("default"))) void* const {symbol} = (void*)&lucid::{name};\n'
        for symbol, name in sorted(instances.items())
    ]
    source = "\n".join([file.whole, *lines])
    options = [*_OPTIONS, *(["-mprefer-vector-width=512"] if platform.machine() in ("x86_64", "AMD64") else [])]
    text, stem = _processor() + source, file.name.rpartition("/")[2].partition(".")[0]
    if not make:
        return kept(stem, text, options)
    return build(stem, text, options, what=file.name, source=lambda: source, any_compiler=True)
