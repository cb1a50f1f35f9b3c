"""Kernels that were built beforehand: a folder with an archive for each architecture, ``sm_90.zip``.

It lies beside the kernels' sources, in an installed lucid inside the package; LUCID_BUILT_KERNELS names another, or is
0 for none. An archive holds an `Image` of each unit, and one whose text has changed since is not used.
"""

from __future__ import annotations

import lzma
import os
import re
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lucid.base.reports import logger
from lucid.base.trust import distrusted
from lucid.cuda.build.image import Image, fitting, key_of
from lucid.cuda.cache import replacing
from lucid.cuda.source import sources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lucid.cuda.launch.kernels import Unit


# What an archive holds.
Entry = tuple["Unit", Image]

COMMAND = "python -m lucid.cuda.build"
_SETTING = "LUCID_BUILT_KERNELS"
# What reading an archive raises that is damaged, or none.
_DAMAGED = (OSError, EOFError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile, lzma.LZMAError)
_SAME_DATE = 1980, 1, 1, 0, 0, 0

_told: set[Path] = set()


def standard() -> Path:
    """Return the folder beside the kernels' sources."""
    return sources.folder() / "built"


def folder() -> Path | None:
    """Return the folder in use; None if there is none."""
    named = os.environ.get(_SETTING)
    return None if named in {"", "0"} else _checked(named) if named else standard()


@cache
def _checked(named: str) -> Path | None:
    """Return a folder of kernels that no other user could have written; None for an empty or distrusted one."""
    path = Path(named).expanduser().absolute()
    if not any(path.glob("sm_*.zip")):
        reason = f"holds no kernels such as sm_90.zip; fill it with: {COMMAND} --out {path}"
    elif reason := distrusted(path, ours=False):
        reason = f"is not used: {reason}; take the rights to write away from others, and build again"
    if reason:
        logger().warning("%s names %s, which %s", _SETTING, path, reason)
        return None
    return path


@cache
def _fitting(where: Path, capability: str) -> Path | None:
    """Return the archive with the best code for a device; None if the device runs none of it."""
    archives = {path.stem: path for path in where.glob("sm_*.zip") if re.fullmatch(r"sm_\d+", path.stem)}
    if chosen := fitting(archives, capability):
        return archives[chosen]
    if archives:
        logger().info(
            "%s has kernels for %s, and none for this device; build them: %s --arch sm_%s --out %s",
            where, ", ".join(sorted(archives)), COMMAND, capability, where,
        )  # fmt: skip
    return None


def find(unit: Unit, capability: str) -> tuple[Path, Image] | None:
    """Return the image of a whole unit for a device, and its archive; None if there is none.

    One that is there and cannot be used is told in a warning, once for each archive.

    Parameters
    ----------
    unit : Unit
        Declared in a file of ``kernels/``.
    capability : str
        The device's, such as ``"90"``.
    """
    where = folder()
    path = _fitting(where, capability) if where else None
    if path is None:
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            image = Image.unpacked(archive.read(unit.name))
    except KeyError:
        return None
    except _DAMAGED as error:
        distrust(path, f"is damaged ({error})")
        return None
    if image.key != key_of(unit):
        distrust(path, f"was built from another text of {unit.stem}.cu")
        return None
    return path, image


def distrust(path: Path, reason: str) -> None:
    """Warn that kernels of an archive are compiled instead, and how to mend it; once for each archive."""
    if path in _told:
        return
    _told.add(path)
    logger().warning(
        "%s %s: such kernels are compiled when they are launched, which takes seconds; build it again: "
        "%s --arch %s --out %s",
        path, reason, COMMAND, path.stem, path.parent,
    )  # fmt: skip


def write(path: Path, images: Iterable[Entry]) -> None:
    """Write an archive; whoever reads sees the one before or all of this one.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
            for unit, image in images:
                # the same content makes the same bytes
                archive.writestr(zipfile.ZipInfo(unit.name, _SAME_DATE), image.packed(), zipfile.ZIP_LZMA)
        # what is readable for all of an installed package is so here, whoever installs it
        os.fchmod(file.fileno(), 0o644)
