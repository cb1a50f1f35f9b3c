"""What annotations of code around tensors name: numbers, devices, files, storages."""

from __future__ import annotations

import os
from typing import IO, TypeAlias

from lucid.backend.device import Device
from lucid.ops.base.storage import UntypedStorage as Storage

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number: TypeAlias = int | float | bool
"""A number of Python's."""

FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
"""What `save` writes to and `load` reads from."""
