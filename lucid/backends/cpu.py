"""Switches of the CPU: compiled loops, and the number of threads of matrix products, OpenBLAS being part of NumPy.

Everything else on the CPU runs in the thread that calls it.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from lucid.arguments import checked
from lucid.errors import SettingError
from lucid.public import publish as _publish

__all__ = ["compiled", "get_num_threads", "set_num_threads"]

_VARIABLE = "LUCID_CPU_COMPILED"
_told = os.environ.get(_VARIABLE, "1")
if _told not in ("", "0", "1"):
    raise SettingError(f"{_VARIABLE}: expected 0, so that NumPy computes without loops in C++, or 1, got {_told!r}")

compiled = _told != "0"
"""Whether loops in C++ do what NumPy does in many passes, where there is a compiler; 0 in `LUCID_CPU_COMPILED`, too."""

MAPPED = "/proc/self/maps"
# Names of one function: with NumPy's prefix and suffix, with 64-bit integers, and as it is.
FORMS = [f"{prefix}openblas_{{}}_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "")]


@functools.cache
def _function(verb: str) -> Any:
    """Return the function of the loaded OpenBLAS that says or sets its threads; None if there is none."""
    try:
        with open(MAPPED, encoding="utf-8") as lines:  # noqa: PTH123 - pathlib is loaded where files are
            paths = {line.split(maxsplit=5)[-1].strip() for line in lines if "openblas" in line}
    except OSError:
        return None
    for path in sorted(paths):
        library = ctypes.CDLL(path)
        for form in FORMS:
            function = getattr(library, form.format(verb), None)
            if function is not None:
                function.argtypes = [ctypes.c_int] if verb == "set" else []
                function.restype = None if verb == "set" else ctypes.c_int
                return function
    return None


def get_num_threads() -> int:
    """Return how many threads compute matrix products on the CPU; the number of processors if NumPy does not say.

    Examples
    --------
    >>> import lucid
    >>> lucid.get_num_threads() >= 1
    True
    """
    function = _function("get")
    return (os.cpu_count() or 1) if function is None else int(function())


@checked
def set_num_threads(num: int) -> None:
    """Let that many threads compute matrix products on the CPU.

    Parameters
    ----------
    num : int
        At least 1; OpenBLAS has a limit of its own above.

    Raises
    ------
    SettingError
        If it is below 1, or NumPy computes by another library than OpenBLAS.

    Examples
    --------
    >>> import lucid
    >>> lucid.set_num_threads(lucid.get_num_threads())
    """
    if num < 1:
        raise SettingError(f"set_num_threads: num: expected at least 1, got {num}")
    function = _function("set")
    if function is None:
        raise SettingError(
            "set_num_threads: num: NumPy does not compute by OpenBLAS here: set OMP_NUM_THREADS, or what its library "
            "reads, before Python starts"
        )
    function(int(num))


_publish(globals(), get_num_threads="lucid", set_num_threads="lucid")
