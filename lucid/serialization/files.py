"""Files that are replaced whole: readers find the old content or the new, whoever writes and however that ends.

A writer writes into a file of its own beside the target, `.NAME.HEX.part`, and renames it over the target when it is
complete and on the disk. It holds an advisory lock on that file until it is renamed. The system drops the lock with the
process, so what a killed writer left is known by its free lock, and the next writer of the same target removes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lucid.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable


def kind(mode: int) -> str:
    """Return the kind of a path that is neither a regular file nor a directory."""
    return "a fifo" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Return a file opened for reading; a fifo without a writer does not keep it waiting.

    Raises
    ------
    CheckpointError
        If it is a fifo or a device.
    OSError
        If it cannot be opened, or is a directory.
    """
    return open(path, "rb", opener=_open_regular)


def _open_regular(path: str, flags: int) -> int:
    """Return a descriptor of a regular file, or of a directory, as `open` itself refuses that."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        os.close(descriptor)
        raise CheckpointError(
            f"load: {path} is {kind(mode)}: expected a regular file; read what comes from it into io.BytesIO and load "
            "that"
        )
    return descriptor


def replace(path: str | os.PathLike[str], write: Callable[[BinaryIO], None]) -> None:
    """Have `write` fill a new file, and put it in the place of `path`, or of the target of a symbolic link there.

    The mode and, where the system allows it, group and owner of a replaced file stay; where the group cannot, the
    new one gets no more rights than everybody. A new file follows the umask.

    Raises
    ------
    CheckpointError
        If there is a fifo or a device at `path`.
    OSError
        If the file cannot be written. What was there stays.
    """
    target = Path(os.path.realpath(path))
    try:
        # as the path was given: Linux may refuse to follow a link that another user left in a folder like /tmp
        old = Path(path).stat()
    except FileNotFoundError:
        old = None
    if old and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if old and not stat.S_ISREG(old.st_mode):
        raise CheckpointError(
            f"save: {path} is {kind(old.st_mode)}, which a file would replace: open it and pass the file object"
        )
    remove_abandoned(target)
    part = fresh_part(target)
    # never wider than the file that it replaces, not even before it is complete and has that one's group
    mode = old.st_mode & 0o700 if old else 0o666
    try:
        while True:
            with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                if not is_ours(file):
                    # another writer took it for abandoned before it was locked, and a third may be about to: the name
                    # is not used again
                    part.unlink(missing_ok=True)
                    part = fresh_part(target)
                    continue
                write(file)
                file.flush()
                if old:
                    keep_owner_and_mode(file.fileno(), old)
                os.fsync(file.fileno())
                part.replace(target)
                break
    except OSError as error:
        # about the file that was asked for, and not about the unfinished one
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        with contextlib.suppress(OSError):  # most often it is gone, to its path
            part.unlink()
    sync_folder(target.parent)


def fresh_part(target: Path) -> Path:
    """Return a name for a new file beside `target` that no other writer has or had."""
    return target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")


def is_ours(file: BinaryIO) -> bool:
    """Lock a new file; return whether nobody else has locked or removed it, without waiting for whoever has."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks, where nobody takes this for abandoned
        pass
    return os.fstat(file.fileno()).st_nlink > 0


def keep_owner_and_mode(descriptor: int, old: os.stat_result) -> None:
    """Give a file the group, owner and mode of another, as far as the system allows it."""
    mode = old.st_mode & 0o777
    try:
        os.fchown(descriptor, -1, old.st_gid)
    except OSError:
        mode &= 0o707 | (mode & 0o7) << 3  # what the old group might do is not for another one
    with contextlib.suppress(OSError):
        os.fchown(descriptor, old.st_uid, -1)
    with contextlib.suppress(OSError):
        os.fchmod(descriptor, mode)


def remove_abandoned(target: Path) -> None:
    """Remove the remains of killed writers of `target`: part files with a lock that nobody holds."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{32}}\.part")
    # what cannot be listed, opened or locked is left alone
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for part in filter(lambda entry: name.fullmatch(entry.name), entries):
            with contextlib.suppress(OSError), open(part, "rb", opener=_open_part) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                Path(part).unlink()


def _open_part(path: str, flags: int) -> int:
    """Return a descriptor of a part file, without following links or waiting."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def sync_folder(folder: Path) -> None:
    """Bring a rename to the disk, if the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
