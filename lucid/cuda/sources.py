"""The source of a kernel as one text: headers of ours pasted in, so that compilers and their caches see all of it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from lucid.errors import KernelError

__all__ = ["folder", "joined", "paste"]

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"(?P<ours>[^"]+)"|<(?P<theirs>[^>]+)>).*$', re.MULTILINE)
_MARK = "lucid.cuh"


@cache
def folder() -> Path:
    """Return where the kernels are: beside the package in a checkout, inside it when installed.

    Raises
    ------
    KernelError
        If they are in neither place.
    """
    package = Path(__file__).parents[1]
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
        If it includes a header in quotes that is not one of lucid's.

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
                system[theirs] = None
                return ""
            ours = match["ours"]
            if ours in pasted:
                return ""
            pasted.add(ours)
            path = folder() / ours
            if not path.is_file():
                raise KernelError(f'{name} includes "{ours}", which is none of the headers in {folder()}')
            line = text.count("\n", 0, match.start()) + 2
            return f'{expand(path.read_text(encoding="utf-8"), f"kernels/{ours}")}\n#line {line} "{name}"'

        return f'#line 1 "{name}"\n{_INCLUDE.sub(include, text)}'

    body = expand(text, name)
    return "".join(f"#include <{header}>\n" for header in system) + body
