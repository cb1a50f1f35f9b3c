"""The source of a kernel as one text: headers of ours pasted in, so that compilers and their caches see all of it."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

from lucid.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


_INCLUDE = (
    r'(?m)^[ \t]*#[ \t]*(?:include|import|embed)(?:_next)?\b[ \t]*(?:"(?P<ours>[^"\n]+)"|<(?P<theirs>[^>\n]+)>)?.*$'
)
_MARK = "lucid.cuh"

# By file and name, functions that give the text of a functor.
_made: dict[str, dict[str, Callable[[], str]]] = defaultdict(dict)
_headers: dict[str, str] = {}


@cache
def folder() -> Path:
    """Return the folder of the kernels: beside the package in a checkout, inside it when installed.

    Raises
    ------
    KernelError
        If they are in neither folder.
    """
    from pathlib import Path  # noqa: PLC0415  it takes a twentieth of the time of `import lucid`

    package = Path(__file__).parents[2]
    candidates = package / "kernels", package.parent / "kernels"
    for candidate in candidates:
        # Another project's folder may have this name.
        if (candidate / _MARK).is_file():
            return candidate
    raise KernelError(f"no {_MARK} in {candidates[0]} nor in {candidates[1]}: the installation of lucid is incomplete")


def files() -> dict[str, Path]:
    """Return the kernels and headers by their names, whatever family's folder they are in."""
    return _files(folder())


@cache
def _files(where: Path) -> dict[str, Path]:
    # by levels, since `**` leaves out folders that are links
    return {path.name: path for level in ("*.cu*", "*/*.cu*") for path in where.glob(level)}


def named(path: Path) -> str:
    """Return the name of a file for compilers and errors: ``kernels/activation/softmax.cu``."""
    return f"kernels/{path.relative_to(folder()).as_posix()}"


def make(file: str, name: str, text: Callable[[], str], header: str = "elementwise.cuh") -> None:
    """Add a functor, or kernels, to a file that is composed of such, and stands nowhere.

    Parameters
    ----------
    file : str
        What it is called, as none of the files in ``kernels/`` is.
    name : str
        Of the functor: they stand in the order of their names.
    text : callable
        Gives the functor, when the text of the file is first asked for.
    header : str
        What the file includes.
    """
    _made[file][name] = text
    _headers[file] = header


def made(file: str) -> tuple[str, ...]:
    """Return the names of the functors of a file that is composed of such; () of any other."""
    return tuple(_made.get(file, ()))


def joined(file: str) -> str:
    """Return the text of a file in ``kernels/``, or of one that is made, ready for a compiler.

    Raises
    ------
    KernelError
        If there is none of this name.
    """
    return _joined(file, made(file))


@cache
def _joined(file: str, functors: tuple[str, ...]) -> str:
    if functors:
        text = "\n".join([_made[file][name]() for name in sorted(functors)])
        return paste(f'#include "{_headers[file]}"\n\n{text}', file)
    path = files().get(file)
    if path is None:
        raise KernelError(f"no file {file!r} in {folder()} or its folders")
    return paste(path.read_text(encoding="utf-8"), named(path))


def paste(text: str, name: str, headers: Mapping[str, Path] | None = None) -> str:
    r"""Return a source with lucid's headers pasted in, each once, and the compiler's own included at the top.

    Parameters
    ----------
    text : str
        CUDA C++.
    name : str
        What errors call it.
    headers : dict, optional
        The headers of lucid's by their names; by default those that kernels have.

    Returns
    -------
    str

    Raises
    ------
    KernelError
        If it includes a header in quotes that is not one of lucid's, or by a path that leads elsewhere.

    Examples
    --------
    >>> print(paste("#include <cuda_fp16.h>\n__device__ half zero();", "mine.cu"))
    #include <cuda_fp16.h>
    #line 1 "mine.cu"
    <BLANKLINE>
    __device__ half zero();
    """
    system: dict[str, None] = {}
    pasted: set[str] = set()

    def expand(text: str, name: str) -> str:
        def include(match: re.Match[str]) -> str:
            if theirs := match["theirs"]:
                if theirs.startswith("/") or ".." in theirs.split("/"):
                    raise KernelError(f"{name} includes <{theirs}>, which is none of the compiler's headers")
                system[theirs] = None
                return ""
            ours = match["ours"]
            if ours is None:
                raise KernelError(f"{name} has the line {match[0].strip()[:80]!r}, which names no header")
            if ours in pasted:
                return ""
            pasted.add(ours)
            # Told by the list of names, so that no path leads out of the folder.
            path = (files() if headers is None else headers).get(ours)
            if path is None:
                raise KernelError(f'{name} includes "{ours}", which is none of the headers in {folder()}')
            line = text.count("\n", 0, match.start()) + 2
            return f'{expand(path.read_text(encoding="utf-8"), named(path))}\n#line {line} "{name}"'

        return f'#line 1 "{name}"\n{re.sub(_INCLUDE, include, text)}'

    body = expand(text, name)
    return "".join(f"#include <{header}>\n" for header in system) + body
