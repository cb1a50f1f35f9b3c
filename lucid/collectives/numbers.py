"""Collectives of a few numbers on the host, NumPy arrays, whichever devices a group computes with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.arrays import asarray, copied, to_device
from lucid.base.device import CPU, device

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lucid.collectives.engines.base import Engine
    from lucid.collectives.group import ProcessGroup
    from lucid.collectives.reduction import ReduceOp
    from lucid.collectives.work import Steps


def on_device(*arrays: NDArray[Any]) -> tuple[Any, ...]:
    """Return copies on the current CUDA device."""
    return tuple([asarray(array, device=device("cuda")) for array in arrays])


def _run(
    group: ProcessGroup,
    kind: str,
    text: str,
    arrays: tuple[NDArray[Any], ...],
    steps: Callable[[Engine, tuple[Any, ...]], Steps],
) -> NDArray[Any]:
    """Return the last of `arrays` after a collective of them; over NCCL they go to the device and back."""
    on_host = "cpu" in group.backends
    engine = group.engine("cpu" if on_host else "cuda", kind)
    moved: tuple[Any, ...] = arrays if on_host else on_device(*arrays)
    # the host waits, since it is about to read, and what it reads after a failure would mean nothing
    group.begin(engine, kind, text, lambda: steps(engine, moved)).wait(group.timeout)
    return moved[-1] if on_host else to_device(moved[-1], CPU)


def all_reduced(group: ProcessGroup, array: NDArray[Any], op: ReduceOp, text: str) -> NDArray[Any]:
    """Return the reduction of the arrays of all processes."""
    return _run(group, "all_reduce", text, (copied(array),), lambda engine, moved: engine.all_reduce(moved[0], op))


def broadcasted(group: ProcessGroup, array: NDArray[Any], root: int, text: str) -> NDArray[Any]:
    """Return the array of one process."""
    return _run(group, "broadcast", text, (copied(array),), lambda engine, moved: engine.broadcast(moved[0], root))


def all_gathered(group: ProcessGroup, array: NDArray[Any], text: str) -> NDArray[Any]:
    """Return the arrays of all processes as rows."""
    rows = np.empty((group.size(), *array.shape), array.dtype)
    return _run(group, "all_gather", text, (array, rows), lambda engine, moved: engine.all_gather(moved[1], moved[0]))


def gathered(group: ProcessGroup, array: NDArray[Any], root: int, text: str) -> NDArray[Any]:
    """Return the arrays of all processes as rows in one of them; no rows in the others."""
    here = group.rank() == root
    rows = np.empty((group.size() if here else 0, *array.shape), array.dtype)
    return _run(
        group,
        "gather",
        text,
        (array, rows),
        lambda engine, moved: engine.gather(moved[1] if here else None, moved[0], root),
    )
