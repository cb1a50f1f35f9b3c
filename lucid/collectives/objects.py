"""Collectives of Python objects, pickled: unpickling runs whatever code another process has sent."""

from __future__ import annotations

import functools
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import unfit
from lucid.collectives.operations import root_of
from lucid.collectives.world import member
from lucid.errors import SettingError, ShapeError, warn

if TYPE_CHECKING:
    from lucid.collectives.group import ProcessGroup


@functools.cache
def _say_pickled() -> None:
    warn(
        "object collectives unpickle what other processes send, which runs code that they choose: use them among "
        "processes that you trust, and tensors for numbers"
    )


def _exchange(group: ProcessGroup, kind: str, value: object) -> list[bytes]:
    """Return the pickled objects of all processes of a group; also those for one process travel to all."""
    _say_pickled()
    engine = group.engine("cpu", kind)
    mine = np.frombuffer(pickle.dumps(value), np.uint8)
    sizes = np.zeros(group.size(), np.int64)
    group.begin(engine, kind, "sizes", lambda: engine.all_gather(sizes, np.array([mine.size]))).wait()
    row = np.pad(mine, (0, int(sizes.max()) - mine.size))
    rows = np.empty((group.size(), row.size), np.uint8)
    group.begin(engine, kind, "objects", lambda: engine.all_gather(rows, row)).wait()
    return [bytes(each[:size]) for each, size in zip(rows, sizes, strict=True)]


def all_gather_object(object_list: list[Any], obj: object, group: ProcessGroup | None = None) -> None:
    """Fill `object_list`, in each process, with the `obj` of all; it has an entry for each process.

    Examples
    --------
    >>> import lucid, warnings
    >>> into = [None]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     lucid.distributed.all_gather_object(into, {"loss": 0.5})
    >>> into
    [{'loss': 0.5}]
    """
    chosen = member(group, "all_gather_object")
    if chosen is not None:
        _check_count(object_list, chosen, "all_gather_object: object_list")
        object_list[:] = map(pickle.loads, _exchange(chosen, "all_gather_object", obj))


def gather_object(
    obj: object,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Fill `object_gather_list`, in the process `dst`, the first if None, with the `obj` of all.

    Examples
    --------
    >>> import lucid, warnings
    >>> into = [None] * lucid.distributed.get_world_size() if lucid.distributed.get_rank() == 0 else None
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     lucid.distributed.gather_object("mine", into)
    >>> into
    ['mine']
    """
    chosen = member(group, "gather_object")
    if chosen is None:
        return
    root = root_of(chosen, dst, group_dst, "gather_object: dst", default=0)
    if root == chosen.rank():
        _check_count(object_gather_list, chosen, "gather_object: object_gather_list")
    everything = _exchange(chosen, "gather_object", obj)
    if root == chosen.rank() and object_gather_list is not None:
        object_gather_list[:] = map(pickle.loads, everything)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: object = None,
    group_src: int | None = None,
) -> None:
    """Fill `object_list`, in each process, with the objects of the one of process `src`, the first if None.

    Examples
    --------
    >>> import lucid, warnings
    >>> settings = [{"lr": 0.1}] if lucid.distributed.get_rank() == 0 else [None]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     lucid.distributed.broadcast_object_list(settings)
    >>> settings
    [{'lr': 0.1}]
    """
    chosen = member(group, "broadcast_object_list")
    if chosen is None:
        return
    root = root_of(chosen, src, group_src, "broadcast_object_list: src", default=0)
    if not isinstance(object_list, list):
        raise unfit(object_list, "a list", "broadcast_object_list: object_list")
    mine = [len(object_list), object_list if root == chosen.rank() else None]
    count, objects = pickle.loads(_exchange(chosen, "broadcast_object_list", mine)[root])
    if count != len(object_list):
        raise ShapeError(
            f"broadcast_object_list: expected a list of {count} entries, as process {chosen.ranks[root]} has, got one "
            f"of {len(object_list)}"
        )
    if root != chosen.rank():
        object_list[:] = objects


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Set the first entry of the output list to this process's one of the list of process `src`, the first if None.

    Examples
    --------
    >>> import lucid, warnings
    >>> mine, parts = [None], ["part"] * lucid.distributed.get_world_size()
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     lucid.distributed.scatter_object_list(mine, parts)
    >>> mine
    ['part']
    """
    chosen = member(group, "scatter_object_list")
    if chosen is None:
        return
    root = root_of(chosen, src, group_src, "scatter_object_list: src", default=0)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise SettingError("scatter_object_list: scatter_object_output_list: expected a list of at least one entry")
    if root == chosen.rank():
        _check_count(scatter_object_input_list, chosen, "scatter_object_list: scatter_object_input_list")
    everything = _exchange(chosen, "scatter_object_list", scatter_object_input_list if root == chosen.rank() else None)
    scatter_object_output_list[0] = pickle.loads(everything[root])[chosen.rank()]


def _check_count(entries: Any, group: ProcessGroup, name: str) -> None:
    if not isinstance(entries, list) or len(entries) != group.size():  # pyright: ignore[reportUnknownArgumentType]
        raise ShapeError(
            f"{name}: expected a list with an entry for each of {group.size()} processes, got {entries!r:.80}"
        )
