"""Protection from other users of the machine: whether one could have written a file that is about to be loaded."""

from __future__ import annotations

import os
import stat
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def distrusted(folder: Path, *, ours: bool = True) -> str | None:
    """Reason why another user could change or replace a folder's files; None if only this user and root can.

    As ssh's StrictModes has it: the folder belongs to this user, everything above it to this user or root, and nobody
    else may write there. Above, a folder that all may write is allowed if it is sticky, as ``/tmp`` is, because others
    cannot rename what is not theirs in it; so is one that only the private group of its owner may write.

    Parameters
    ----------
    folder : pathlib.Path
        An absolute path.
    ours : bool
        Whether lucid made it. Another program's folder may also be root's, or be open to the user's private group.

    Returns
    -------
    str or None
    """
    if not hasattr(os, "geteuid"):  # Windows, whose rights are others
        return None
    try:
        real = folder.resolve(strict=True)
        if reason := others_may_write(real.stat(), lenient=not ours):
            return f"{real} {reason}"
        paths = [folder, *folder.parents]
        # with every link on the way the list grows by the way to what it names, which may be a link again
        for path in paths:
            status = path.lstat()
            trusted = status.st_uid in {0, os.geteuid()}
            if stat.S_ISLNK(status.st_mode):
                if not trusted:
                    return f"{path} is a link of user {status.st_uid}"
                target = path.parent / path.readlink()
                paths += [further for further in (target, *target.parents) if further not in paths]
                continue
            sticky = trusted and status.st_mode & stat.S_ISVTX
            if not sticky and (reason := others_may_write(status, lenient=True)):
                return f"{path} {reason}"
    except (OSError, RuntimeError) as error:
        return f"it cannot be looked at: {error}"
    return None


def others_may_write(status: os.stat_result, *, lenient: bool = False) -> str | None:
    """Reason why another user could change a file or folder of that status, as the end of a sentence; None if none can.

    Parameters
    ----------
    status : os.stat_result
    lenient : bool
        Whether root may own it, and the private group of its owner may write it.

    Returns
    -------
    str or None
    """
    if status.st_uid != os.geteuid() and not (lenient and status.st_uid == 0):
        return f"belongs to user {status.st_uid}, and this process runs as user {os.geteuid()}"
    group = status.st_mode & stat.S_IWGRP and not (lenient and _has_private_group(status))
    if group or status.st_mode & stat.S_IWOTH:
        return f"may be written by other users: its mode is {stat.S_IMODE(status.st_mode):04o}"
    return None


def _has_private_group(status: os.stat_result) -> bool:
    """Whether the owner is alone in the group, as on systems with a group for each user and the umask 002."""
    try:
        user = import_module("pwd").getpwuid(status.st_uid).pw_name
        group = import_module("grp").getgrgid(status.st_gid)
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}
