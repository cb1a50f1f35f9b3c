"""The source of a kernel as one text: headers of ours pasted in, so that compilers and their caches see all of it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from lucid.errors import KernelError

__all__ = ["folder", "joined", "paste"]

_INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*(?:include|import|embed)(?:_next)?\b[ \t]*(?:"(?P<ours>[^"\n]+)"|<(?P<theirs>[^>\n]+)>)?.*$',
    re.MULTILINE,
)
_MARK = "lucid.cuh"


@cache
def folder() -> Path:
    """Return where the kernels are: beside the package in a checkout, inside it when installed.

    Raises
    ------
    KernelError
        If they are in neither place.
    """
    package = Path(__file__).parents[2]
    candidates = package / "kernels", package.parent / "kernels"
    for candidate in candidates:
        # Another project's folder may have this name.
        if (candidate / _MARK).is_file():
            return candidate
    raise KernelError(f"no {_MARK} in {candidates[0]} nor in {candidates[1]}: the installation of lucid is incomplete")


@cache
def joined(stem: str) -> str:
    """Return the text of ``kernels/<stem>.cu``, ready for a compiler."""
    path = folder() / f"{stem}.cu"
    return paste(path.read_text(encoding="utf-8"), f"kernels/{path.name}")


def paste(text: str, name: str) -> str:
    r"""Return a source with lucid's headers pasted in, each once, and the compiler's own included at the top.

    Parameters
    ----------
    text : str
        CUDA C++.
    name : str
        What errors call it.

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
            if ours not in {path.name for path in folder().iterdir() if path.is_file()}:
                raise KernelError(f'{name} includes "{ours}", which is none of the headers in {folder()}')
            line = text.count("\n", 0, match.start()) + 2
            header = (folder() / ours).read_text(encoding="utf-8")
            return f'{expand(header, f"kernels/{ours}")}\n#line {line} "{name}"'

        return f'#line 1 "{name}"\n{_INCLUDE.sub(include, text)}'

    body = expand(text, name)
    return "".join(f"#include <{header}>\n" for header in system) + body
