"""The check of LUCID_DISTRIBUTED_DEBUG=1: all processes compare their next collective before they begin it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.arrays import to_device
from lucid.base.device import CPU
from lucid.collectives.numbers import on_device
from lucid.collectives.work import Call, Work
from lucid.errors import DistributedError
from lucid.public import FOLDER

if TYPE_CHECKING:
    from types import FrameType

    from lucid.collectives.engines.base import Engine
    from lucid.collectives.group import ProcessGroup


_BYTES = 512  # what a process says of its call


def debugging() -> bool:
    """Return whether calls are compared: whether LUCID_DISTRIBUTED_DEBUG is set to more than 0."""
    return os.environ.get("LUCID_DISTRIBUTED_DEBUG", "0") not in {"", "0"}


def _line() -> str:
    """Return the line outside of lucid that called it."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - who calls is asked
    while frame.f_back is not None and frame.f_code.co_filename.startswith(FOLDER):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def agree(group: ProcessGroup, engine: Engine, kind: str, text: str) -> None:
    """Raise `DistributedError` in all processes if they do not call the same.

    What is compared is the number of the collective, its kind, and shape, dtype and whatever else has to be equal.
    """
    words = f"collective {group.started}, {kind} of {text}\0{_line()[-200:]}".encode()[:_BYTES]
    said = np.frombuffer(bytearray(words.ljust(_BYTES, b"\0")), np.uint8)
    all_said: Any = np.zeros((group.size(), _BYTES), np.uint8)
    # on the CPU also of CUDA tensors: what is compared are texts
    host = group.engine("cpu", kind) if "cpu" in group.backends else engine
    moved = on_device(all_said, said) if host.name == "nccl" else (all_said, said)
    work = Work(group, host, Call("the comparison of calls", group.started, ""), host.all_gather(*moved))
    host.begin(work)
    work.wait(group.timeout)
    rows = to_device(moved[0], CPU) if host.name == "nccl" else all_said
    calls = [bytes(row).rstrip(b"\0").decode(errors="replace").partition("\0") for row in rows]
    if len({call for call, _, _ in calls}) > 1:
        lines = "\n".join(
            f"  rank {rank}: {call}, at {line}" for rank, (call, _, line) in zip(group.ranks, calls, strict=True)
        )
        error = f"the processes of {group!r} call different collectives:\n{lines}"
        group.broken = error
        raise DistributedError(error)
