"""Machine code of kernels as stored: with the kernels' names, and the key of its source."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lucid.cuda.launch.kernels import Unit


# Those that CuPy gives NVRTC for the kernels of its users, so that both give the same code.
OPTIONS = ("--std=c++17", "-ftz=true", "--device-as-default-execution-space")


def key_of(unit: Unit) -> str:
    """Return the hash of a unit's text and options, its identity."""
    return hashlib.sha256("\0".join([*OPTIONS, unit.source]).encode()).hexdigest()


def fitting(architectures: Iterable[str], capability: str) -> str | None:
    """Return the best architecture for a device: its own, or the newest older one of its generation.

    Examples
    --------
    >>> fitting(["sm_80", "sm_86", "sm_90"], "89")
    'sm_86'
    """
    numbers = [each.removeprefix("sm_") for each in architectures]
    candidates = [each for each in numbers if each[:-1] == capability[:-1] and int(each) <= int(capability)]
    return f"sm_{max(candidates, key=int)}" if candidates else None


@dataclass(frozen=True)
class Image:
    """The code compiled by NVRTC from a unit for one architecture.

    Attributes
    ----------
    key : str
        Of the unit.
    compiler : str
        The version of NVRTC.
    kernels : dict of str to str
        What kernels are called in the code, by their C++ names.
    code : bytes
        A cubin.
    """

    key: str
    compiler: str
    kernels: dict[str, str]
    code: bytes

    def packed(self) -> bytes:
        """Return it as bytes: a line of JSON, and the code behind it."""
        head = {name: value for name, value in asdict(self).items() if name != "code"}
        return json.dumps(head).encode() + b"\n" + self.code

    @classmethod
    def unpacked(cls, content: bytes) -> Image:
        """Return the image that `packed` made bytes of.

        Raises
        ------
        ValueError
            If these are others.
        """
        line, _, code = content.partition(b"\n")
        try:
            head: Any = json.loads(line)
            return cls(str(head["key"]), str(head["compiler"]), dict(head["kernels"]), code)
        except (KeyError, TypeError) as error:
            raise ValueError(f"it does not begin with the names of kernels: {error}") from error
