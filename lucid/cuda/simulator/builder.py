"""Builds C++ into libraries, once for each text: they are kept on disk and shared by processes."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from lucid.cuda.cache import alone, find, keep
from lucid.errors import KernelError

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence


_log = logging.getLogger("lucid.cuda")

# Without it a text of nothing but errors takes a minute, and its report 30 MB.
_FEW_ERRORS = "-fmax-errors=20"


@cache
def _compiler() -> tuple[str, str]:
    """Path and version of g++."""
    named = os.environ.get("CXX") or "g++"
    path = shutil.which(named)
    if path is None:
        raise KernelError(
            f"kernels of the simulated CUDA device and loops for the CPU are built by g++ 12 or newer, and {named!r} "
            "was not found; install it (apt-get install g++), or give the name or path of one program in CXX"
        )
    try:
        # Resolved, because the version is all that the key of a library knows of the compiler.
        told = subprocess.run(  # noqa: S603
            [path, "--version"], capture_output=True, encoding="utf-8", errors="backslashreplace", check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise KernelError(f"{path} is no C++ compiler that can be used: {error}; name g++ in CXX") from error
    if not told.stdout.strip():
        raise KernelError(f"{path} is no C++ compiler that can be used: it tells no version; name g++ in CXX")
    return path, told.stdout.splitlines()[0]


def portable(arguments: Sequence[str], places: Sequence[Path]) -> list[str]:
    """Return arguments with numbers for folders, so that installations in several places share compiled code."""
    moved = list(arguments)
    for number, place in enumerate(places):
        moved = [argument.replace(str(place), f"<{number}>") for argument in moved]
    return moved


def kept(name: str, text: str, arguments: Sequence[str]) -> Path | None:
    """Return the library that `build` made of the same before, by whatever compiler; None if there is none."""
    return find(_file(name, text, arguments, (), any_compiler=True))


def build(
    name: str,
    text: str,
    arguments: Sequence[str],
    *,
    what: str,
    source: Callable[[], str] | None = None,
    headers: tuple[str, re.Pattern[str]] | None = None,
    folder: Path | None = None,
    places: Sequence[Path] = (),
    any_compiler: bool = False,
) -> Path:
    """Library that g++ makes, or that was kept when it was made before.

    Parameters
    ----------
    name : str
        Beginning of the file's name.
    text : str
        All that the result depends on besides ``arguments`` and the compiler, `source` included.
    arguments : sequence of str
        For g++, without the output and without ``source``; files in them are relative to `folder`, so that
        installations in several places share libraries.
    what : str
        What it is, for the log.
    source : callable, optional
        Gives C++ for g++ to read from its standard input; called if the library was not made before.
    headers : (str, re.Pattern), optional
        All that some headers depend on, and the lines that include one of these: those that `source` begins with g++
        reads once, and has them from then on in the form that it made of them.
    folder : pathlib.Path, optional
        Where g++ runs; by default here.
    places : sequence of pathlib.Path, optional
        Folders in `arguments` that may be anywhere: what is in them is told by `text`.
    any_compiler : bool
        Whether another version of the compiler would make as good a library: then it is kept for `kept`.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    KernelError
        If there is no g++, it finds an error in the source, or the disk has no room.
    """
    file = _file(name, text, arguments, places, any_compiler=any_compiler)
    if path := find(file):
        return path
    if source is None:
        return _made(file, arguments, None, what, folder)
    code = source()
    with suppress(KernelError):  # which is told by g++ without them, or was theirs
        if headers and (quicker := _precompiled(code, headers, arguments, folder, places)):
            return _made(file, [*arguments, *quicker, "-x", "c++"], code, what, folder)
    return _made(file, [*arguments, "-x", "c++"], code, what, folder)


def _file(name: str, text: str, arguments: Sequence[str], places: Sequence[Path], *, any_compiler: bool = False) -> str:
    return f"{name[:60]}-{_key(text, arguments, places, '' if any_compiler else _compiler()[1])}.so"


def _key(text: str, arguments: Sequence[str], places: Sequence[Path], version: str) -> str:
    # Libraries of the time when keys were of what g++ read have other ones.
    parts = ["of texts", version, *portable(arguments, places), text]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _precompiled(
    code: str,
    headers: tuple[str, re.Pattern[str]],
    arguments: Sequence[str],
    folder: Path | None,
    places: Sequence[Path],
) -> list[str]:
    """Return g++'s arguments for the headers in the first lines of a code; an empty list without such lines."""
    text, line = headers
    includes = "".join(f"{each}\n" for each in takewhile(line.fullmatch, code.splitlines()))
    if not includes:
        return []
    arguments = [each for each in arguments if each != "-shared"]
    file = f"includes-{_key(text + includes, arguments, places, _compiler()[1])}.h.gch"
    path = find(file) or _made(file, [*arguments, "-x", "c++-header"], includes, "headers", folder)
    return ["-include", str(path.with_suffix(""))]


def _made(file: str, arguments: Sequence[str], code: str | None, what: str, folder: Path | None) -> Path:
    """Return the path of a file that g++ makes, unless another process has made it meanwhile."""
    compiler, _ = _compiler()
    # Few locks, because none can be removed safely.
    with alone(file.rpartition("-")[2][:2]):
        if path := find(file):
            return path
        if code is None:  # one of the simulator's own libraries, not a kernel
            _log.warning("building %s, a library of the simulated CUDA devices, once", what)
        started = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="lucid-") as workplace:
            output, source = Path(workplace, file), "-"
            if output.suffix == ".gch":  # which g++ makes of files alone
                source = str(output.with_suffix(""))
                Path(source).write_text(code or "", encoding="utf-8")
            ran = subprocess.run(  # noqa: S603
                [compiler, _FEW_ERRORS, *arguments, *([] if code is None else [source]), "-o", str(output)],
                cwd=folder,
                input=code,
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",
                check=False,
            )
            if ran.returncode or not output.exists():
                said = (
                    ran.stderr.strip() or f"it made no library, and said nothing; is {compiler} a C++ compiler (CXX)?"
                )
                raise KernelError(f"{compiler} cannot build {what}:\n{said}")
            try:
                path = keep(file, output.read_bytes())
            except OSError as error:
                raise KernelError(f"{what} cannot be kept: {error}") from error
        _log.info("built %s in %.1f s", what, time.perf_counter() - started)
    return path
