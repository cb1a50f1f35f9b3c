"""Builds C++ into libraries, once for each text: they are kept in a folder and shared by processes."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lucid.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

__all__ = ["build", "cache_folder"]

_log = logging.getLogger("lucid.cuda")


@cache
def cache_folder() -> Path:
    """Where built libraries are kept: LUCID_CACHE_DIR, else ~/.cache/lucid, else a temporary folder."""
    chosen = os.environ.get("LUCID_CACHE_DIR")
    folder = Path(chosen).absolute() if chosen else Path("~/.cache/lucid").expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        folder = Path(tempfile.mkdtemp(prefix="lucid-"))
        _log.warning("compiled kernels go to %s and are lost, because %s", folder, error)
        return folder


@cache
def _compiler() -> tuple[str, str]:
    """Path and version of g++."""
    path = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("g++")
    if path is None:
        raise KernelError(
            "the simulated CUDA device builds kernels with g++ 12 or newer, which was not found; "
            "install it (apt-get install g++) or name one in CXX"
        )
    # Resolved, because the version is all that the key of a library knows of the compiler.
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout  # noqa: S603
    return path, version.splitlines()[0]


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Keep other processes from building the same library meanwhile."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build(
    name: str, text: str, arguments: Sequence[str], *, what: str, source: str | None = None, folder: Path | None = None
) -> Path:
    """Library that g++ makes, from the cache folder if it is there.

    Parameters
    ----------
    name : str
        Beginning of the file's name.
    text : str
        All that the result depends on besides ``arguments`` and the compiler.
    arguments : sequence of str
        For g++, without the output and without ``source``; files in them are relative to `folder`, so that
        installations in several places share libraries.
    what : str
        What it is, for the log.
    source : str, optional
        C++ for g++ to read from its standard input.
    folder : pathlib.Path, optional
        Where g++ runs; by default here.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    KernelError
        If there is no g++, or it finds an error in the source.
    """
    compiler, version = _compiler()
    key = hashlib.sha256("\0".join([version, *arguments, text, source or ""]).encode()).hexdigest()[:24]
    kept = cache_folder()
    path = kept / f"{name}-{key}.so"
    if path.exists():
        return path
    # Few locks, because none can be removed safely.
    with _alone(kept / f"{key[:2]}.lock"):
        if path.exists():
            return path
        started = time.perf_counter()
        partial = kept / f"{path.name}.{os.getpid()}"
        command = [compiler, *arguments, *(["-x", "c++", "-"] if source is not None else []), "-o", str(partial)]
        ran = subprocess.run(  # noqa: S603
            command, cwd=folder, input=source, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            raise KernelError(f"g++ cannot build {what}:\n{ran.stderr.strip()}")
        partial.replace(path)
        _log.info("built %s in %.1f s", what, time.perf_counter() - started)
    return path
