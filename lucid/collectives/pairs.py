"""Point-to-point transfers between two processes, and a barrier that names the missing ones."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.collectives.group import ProcessGroup, text_of
from lucid.collectives.memory import Target, contiguous, device_type, filled, tensor_of
from lucid.collectives.operations import root_of
from lucid.collectives.work import as_seconds
from lucid.collectives.world import default_group, member
from lucid.errors import DistributedTimeoutError, SettingError
from lucid.ops.base.scalars import as_int

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from lucid.collectives.engines.base import Engine
    from lucid.collectives.work import Work
    from lucid.tensor import Tensor


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Send a tensor to one process, the caller of `recv` or `irecv`, and return the `Work`.

    Parameters
    ----------
    tensor : Tensor
        May not be changed before the work's `wait` has returned.
    dst, group_dst : int
        The process that receives, one of the two: its number in the job, or in the group.
    group : ProcessGroup, optional
        All processes if None.
    tag : int
        What is received under the same one; 0 with NCCL.

    Examples
    --------
    >>> import lucid
    >>> from lucid import distributed as dist
    >>> x = lucid.full((2,), float(dist.get_rank()))
    >>> if dist.get_world_size() == 2 and dist.get_rank() == 0:  # the other process calls `recv`
    ...     dist.isend(x, 1).wait()
    """
    chosen = member(group, "isend")
    if chosen is None:
        return None
    peer = _peer(chosen, dst, group_dst, "isend: dst")
    array = contiguous(tensor_of(tensor, "tensor").array)
    engine = chosen.engine(device_type(tensor), "isend")
    number = _tag(tag, "isend: tag")
    return chosen.begin(
        engine, "send", text_of(array), lambda: engine.send(array, peer, number), peer=chosen.ranks[peer]
    )


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Receive a tensor from one process, and return the `Work`.

    Parameters
    ----------
    tensor : Tensor
        Of the shape and dtype of what is sent.
    src, group_src : int
        The process that sends, one of the two: its number in the job, or in the group.
    group : ProcessGroup, optional
        All processes if None.
    tag : int
        That under which it is sent; 0 with NCCL.

    Examples
    --------
    >>> import lucid
    >>> from lucid import distributed as dist
    >>> x = lucid.full((2,), float(dist.get_rank()))
    >>> if dist.get_world_size() == 2 and dist.get_rank() == 1:  # the other process calls `send`
    ...     dist.irecv(x, 0).wait()
    """
    chosen = member(group, "irecv")
    if chosen is None:
        return None
    peer = _peer(chosen, src, group_src, "irecv: src")
    engine = chosen.engine(device_type(tensor_of(tensor, "tensor")), "irecv")
    target = Target(tensor, "irecv")
    number = _tag(tag, "irecv: tag")
    work = chosen.begin(
        engine, "recv", text_of(target.array), lambda: filled(engine.recv(target.buffer, peer, number), [target]),
        peer=chosen.ranks[peer],
    )  # fmt: skip
    target.mark_written()
    return work


def _tag(tag: Any, name: str) -> int:
    number = as_int(tag, name)
    if not 0 <= number < _TAG:
        raise SettingError(f"{name}: expected 0 .. {_TAG - 1}, got {number}")
    return number


def _peer(group: ProcessGroup, rank: Any, index: Any, name: str) -> int:
    peer = root_of(group, rank, index, name)
    if peer == group.rank():
        raise SettingError(f"{name}: expected another process, got this one, {group.ranks[peer]}")
    return peer


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to one process, as `isend` does, and wait until it may be changed.

    Examples
    --------
    >>> import lucid
    >>> from lucid import distributed as dist
    >>> x = lucid.full((2,), float(dist.get_rank()))
    >>> if dist.get_world_size() == 2:  # the second process has the numbers of the first then
    ...     dist.recv(x, 0) if dist.get_rank() else dist.send(x, 1)
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from one process, as `irecv` does, and return the rank of that process in the job.

    Examples
    --------
    >>> import lucid
    >>> from lucid import distributed as dist
    >>> x = lucid.full((2,), float(dist.get_rank()))
    >>> if dist.get_world_size() == 2:  # the second process has the numbers of the first then
    ...     dist.recv(x, 0) if dist.get_rank() else dist.send(x, 1)
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.call.peer


class P2POp:
    """One of several things that two processes do, for `batch_isend_irecv`.

    Parameters
    ----------
    op : callable
        `isend` or `irecv`.
    tensor, peer, group, tag, group_peer
        What it is called with.
    """

    def __init__(
        self,
        op: Callable[..., Work | None],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in {isend, irecv}:
            raise SettingError(f"P2POp: op: expected lucid.distributed.isend or irecv, got {op!r}")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.peer, self.group, self.group_peer = peer, group, group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin a list of sends and receives, in any order in each process, and return the works.

    Examples
    --------
    >>> import lucid
    >>> from lucid import distributed as dist
    >>> x = lucid.full((2,), float(dist.get_rank()))
    >>> if dist.get_world_size() == 2:  # two that give each other what they have
    ...     other, into = 1 - dist.get_rank(), lucid.empty(2)
    ...     for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, into, other)]):
    ...         work.wait()
    """
    if not p2p_op_list or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise SettingError("batch_isend_irecv: p2p_op_list: expected a list of P2POp, at least one")
    engines: set[Engine] = set()
    for each in p2p_op_list:
        chosen = default_group("batch_isend_irecv") if each.group is None else each.group
        if isinstance(chosen, ProcessGroup):
            engines.add(chosen.engine(device_type(tensor_of(each.tensor, "tensor")), "batch_isend_irecv"))
    with contextlib.ExitStack() as stack:
        for engine in engines:
            stack.enter_context(engine.together())
        works = [each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer) for each in p2p_op_list]
    return [work for work in works if work is not None]


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all processes of the group have called this; the error of the first process names missing ones.

    Parameters
    ----------
    group : ProcessGroup, optional
        All processes if None; with CPU tensors' engine.
    timeout : timedelta or float, optional
        For how long, in seconds if it is a number; the group's time limit if None.
    wait_all_ranks : bool
        Whether all that are missing are named, rather than the first.

    Raises
    ------
    DistributedTimeoutError
        In the first process of the group, if it is not answered; in the others, if the first has not answered.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.monitored_barrier()
    """
    chosen = member(group, "monitored_barrier")
    if chosen is None or chosen.size() == 1:
        return
    limit = chosen.timeout if timeout is None else as_seconds(timeout, "monitored_barrier: timeout")
    engine = chosen.engine("cpu", "monitored_barrier")
    here, first, others = np.zeros(1, np.int64), chosen.ranks[0], list(range(1, chosen.size()))

    def begin(steps: Callable[[], Any], peer: int) -> Work:
        return chosen.begin(engine, "monitored_barrier", "", steps, peer=chosen.ranks[peer])

    if chosen.rank():
        begin(lambda: engine.send(here, 0, _TAG), 0).wait(limit)
        begin(lambda: engine.recv(here, 0, _TAG), 0).wait(limit)
        return
    answers = {peer: begin(lambda peer=peer: engine.recv(np.zeros(1, np.int64), peer, _TAG), peer) for peer in others}
    deadline = time.monotonic() + limit
    missing: list[int] = []
    for peer, answer in answers.items():
        while not answer.is_completed() and time.monotonic() < deadline:
            engine.watch.receive()
            time.sleep(0.001)
        if not answer.is_completed() or answer.error is not None:
            missing.append(chosen.ranks[peer])
            if not wait_all_ranks:
                break
    if missing:
        words = f"rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}"
        chosen.broken = f"monitored_barrier: {words} failed to pass"
        raise DistributedTimeoutError(
            f"monitored_barrier: {words} of {chosen!r} failed to pass within {limit:g} s", rank=first
        )
    for peer in others:
        begin(lambda peer=peer: engine.send(here, peer, _TAG), peer).wait(limit)


_TAG = 32_000  # apart from the tags of users
