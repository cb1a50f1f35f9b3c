"""Lets functions inside of a loaded binary begin with a jump to others: CuPy's wheel holds the CUDA runtime inside.

The wheel's binaries are not stripped: their symbol tables name every function of the runtime that they hold.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from lucid.errors import CudaUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable


# Of ELF: a table of symbols, a function among them; sizes and places of the fields that are read.
_SYMBOL_TABLE, _FUNCTION = 2, 2
_SECTION, _SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
_JUMP = struct.Struct("<6sQ")  # jmp [rip], and where to
_PAGE = mmap.PAGESIZE
_READ_WRITE_EXECUTE = 7


def functions(path: Path) -> dict[str, int]:
    """Return the addresses of the functions of a binary, local ones too, relative to its beginning."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        (table,) = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        sections: list[tuple[int, ...]] = [_SECTION.unpack_from(data, table + index * size) for index in range(count)]
        addresses: dict[str, int] = {}
        for _, kind, _, _, begin, length, names, *_ in sections:
            if kind != _SYMBOL_TABLE:
                continue
            strings = sections[names][4]
            for place in range(begin, begin + length, _SYMBOL.size):
                name, info, _, _, value, _ = _SYMBOL.unpack_from(data, place)
                if info & 15 == _FUNCTION and value:
                    start = strings + name
                    addresses[data[start : data.find(b"\0", start)].decode()] = value
        return addresses


def redirect(path: Path, choose: Callable[[str], int | None]) -> int:
    """Redirect functions of a binary that is loaded.

    Parameters
    ----------
    path : pathlib.Path
        The binary's file.
    choose : callable
        Gives for the name of each function the address to jump to, or None to leave it as it is.

    Returns
    -------
    int
        How many functions were redirected.

    Raises
    ------
    CudaUnavailableError
        If its memory cannot be written to.
    """
    base, host = _base_of(path), ctypes.CDLL(None, use_errno=True)
    count = 0
    for name, offset in functions(path).items():
        target = choose(name)
        if target is None:
            continue
        address = base + offset
        first = address // _PAGE * _PAGE
        length = address + _JUMP.size - first
        if host.mprotect(ctypes.c_void_p(first), ctypes.c_size_t(length), _READ_WRITE_EXECUTE):
            reason = os.strerror(ctypes.get_errno())
            raise CudaUnavailableError(
                f"the simulator cannot redirect {path.name}: this system lets no program change its own code ({reason})"
            )
        jump = _JUMP.pack(b"\xff\x25\0\0\0\0", target)
        ctypes.memmove(address, jump, len(jump))
        count += 1
    return count


def _base_of(path: Path) -> int:
    """Return the load address of a binary."""
    real = str(path.resolve())
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        place, _, offset, *_, file = line.split(maxsplit=5)
        if file == real and int(offset, 16) == 0:
            return int(place.split("-")[0], 16)
    raise CudaUnavailableError(f"{path} is not loaded")
