"""The cache of compiled code on disk: a folder that only this user may write, and a checksum at the end of each file.

Nothing is loaded that was not looked at: folder, owner, mode, and all bytes. Between the look and the loading only this
user could change a file, because nobody else may write the folder or rename anything above it.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import hashlib
import logging
import os
import shutil
import stat
import tempfile
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lucid.base.trust import distrusted, others_may_write

if TYPE_CHECKING:
    from collections.abc import Generator


_log = logging.getLogger("lucid.cuda")
_temporary: Path | None = None


def folder() -> Path:
    """Return the folder of compiled code: LUCID_CACHE_DIR, else ~/.cache/lucid.

    If that cannot be written, or other users could have changed what lies there, a warning says so, and this is a
    private folder that is removed when the process ends.
    """
    global _temporary
    if lasting := _lasting():
        return lasting
    # A forked child uses its parent's, which goes when the parent ends: then its name is free for other users.
    if _temporary is None or not _is_ours(_temporary):
        _temporary = Path(tempfile.mkdtemp(prefix="lucid-"))
        atexit.register(_remove, _temporary, os.getpid())
    return _temporary


@cache
def _lasting() -> Path | None:
    """Return the folder that outlives the process, or None if there is none to trust."""
    path = Path(os.environ.get("LUCID_CACHE_DIR") or "~/.cache/lucid")
    try:
        path = path.expanduser().absolute()
        for part in (*reversed(path.parents), path):
            if not part.exists():
                part.mkdir(mode=0o700, exist_ok=True)
        reason = distrusted(path)
        if reason is None:
            path = path.resolve()
            with tempfile.TemporaryFile(dir=path):
                return path
    except (OSError, RuntimeError) as error:
        reason = str(error)
    _log.warning(
        "compiled kernels are neither taken from %s nor kept there: %s; those of this process are lost when it ends. "
        "Mend that, or name a folder of your own in LUCID_CACHE_DIR",
        path,
        reason,
    )
    return None


def _is_ours(path: Path) -> bool:
    try:
        return others_may_write(path.lstat()) is None
    except OSError:
        return False


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


@cache
def _refuse(path: Path, reason: str) -> None:
    _log.warning("%s is not loaded, but built again: it %s", path, reason)


def find(name: str) -> Path | None:
    """Path of a file that was kept, found to be whole and written by this user; None if there is none.

    One that is there and cannot be trusted is named in a warning.
    """
    return folder() / name if read(name) is not None else None


def read(name: str) -> bytes | None:
    """Return the content of a file that was kept, as `find` looks at it; None if there is none."""
    path = folder() / name
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        _refuse(path, "is a link" if error.errno == errno.ELOOP else f"cannot be opened ({error.strerror})")
        return None
    try:
        status = os.fstat(descriptor)
        reason = others_may_write(status) if stat.S_ISREG(status.st_mode) else "is no file"
        if reason is None:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = memoryview(file.read())
            end = max(0, len(content) - hashlib.sha256().digest_size)
            if hashlib.sha256(content[:end]).digest() == content[end:]:
                return bytes(content[:end])
            reason = "is damaged: its checksum is not that of its content"
    finally:
        os.close(descriptor)
    _refuse(path, reason)
    return None


def keep(name: str, content: bytes) -> Path:
    """Keep bytes under a name, for `find`; whoever reads sees all of them or none.

    Raises
    ------
    OSError
        If the disk does not take them.
    """
    path = folder() / name
    with replacing(path) as file:
        file.write(content)
        file.write(hashlib.sha256(content).digest())
    return path


@contextmanager
def replacing(path: Path) -> Generator[BinaryIO]:
    """Open a file that replaces the one at `path` once it is whole and on the disk, so that nobody reads a part of it.

    Raises
    ------
    OSError
        If the folder or the disk does not take it.
    """
    descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


@contextmanager
def alone(name: str) -> Generator[None]:
    """Keep other processes from building the same code meanwhile; without a lock file, both build it."""
    path = folder() / f"{name}.lock"
    with ExitStack() as opened:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            opened.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            _log.warning("%s is not used as a lock: %s", path, error.strerror)
        yield
