"""The base of collectives of tensors, and those that reduce or spread values.

This holds for each of them, unless it says otherwise:

- `group` is what `init_process_group` or `new_group` gave; None is all processes. Where no launcher has started
  several, the process is a group of one, without any call. In a process that is not in `group` nothing is done, with a
  warning.
- With ``async_op=True`` a `Work` is returned, and results are there when its `wait` has returned; else None is, when
  they are.
- What is received is written into tensors in place, in any strides, and their version counts it. A leaf that
  requires grad is written, and so is a tensor on the graph, such as a loss that is only shown: backward through what
  was received raises, as a collective has no derivative. Under `no_grad` the graph does not follow, as of any change.
- Half types are summed in float32 on the CPU, on CUDA devices as NCCL does, which has no operation bit by bit, and of
  complex numbers SUM and AVG.
- A process number (`src`, `dst`) is that in the whole job, `group_src` and `group_dst` are those in `group`.
- A DistributedError is raised where another process has failed, or has left, a DistributedTimeoutError where the time
  limit of the group has passed. CPU tensors in the capture of a CUDA graph raise a CaptureError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.collectives.group import index_in, text_of
from lucid.collectives.memory import Target, contiguous, device_type, filled, tensor_of
from lucid.collectives.reduction import ReduceOp, check_op
from lucid.collectives.world import member
from lucid.errors import SettingError
from lucid.ops.base.scalars import as_int

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from lucid.collectives.engines.base import Engine
    from lucid.collectives.group import ProcessGroup
    from lucid.collectives.work import Steps, Work
    from lucid.tensor import Tensor


def run(
    kind: str,
    group: ProcessGroup,
    like: Any,
    steps: Callable[[Engine], Steps],
    text: str,
    targets: Sequence[Target] = (),
    buffer: Any = None,
    *,
    async_op: bool,
) -> Work | None:
    """Begin a collective on the device of the tensor `like`, and wait for it unless it is asynchronous."""
    engine = group.engine(device_type(like), kind)
    work = group.begin(engine, kind, text, lambda: filled(steps(engine), targets, buffer))
    for target in targets:
        target.mark_written()
        work.tensors.append(target.tensor)
    if async_op:
        return work
    work.wait()
    return None


def root_of(group: ProcessGroup, rank: Any, index: Any, name: str, *, default: int | None = None) -> int:
    """Return the number in `group` of a process that is given by its number in the job or in the group.

    `default` is that of a process which is not given.
    """
    if rank is None and index is None:
        index = default
    if (rank is None) == (index is None):
        word = name.rpartition(" ")[2]
        raise SettingError(f"{name}: expected {word} or group_{word}, and not both")
    if index is None:
        return index_in(group, as_int(rank, name), name)
    number = as_int(index, name)
    if not 0 <= number < group.size():
        raise SettingError(f"{name}: expected a number of 0 .. {group.size() - 1} in {group!r}, got {number}")
    return number


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Put the values of all processes together, elementwise, in `tensor` of each of them.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype in all processes.
    op : ReduceOp
        How.

    Raises
    ------
    DtypeError
        If `op` is not defined for the dtype.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0])
    >>> lucid.distributed.all_reduce(x)  # alone: as it was
    >>> x
    tensor([1., 2.])
    """
    chosen = member(group, "all_reduce")
    if chosen is None:
        return None
    op = check_op(op, tensor_of(tensor, "tensor").array)
    target = Target(tensor, "all_reduce")
    text = f"{text_of(target.array)}, {op.name}"
    return run(
        "all_reduce", chosen, tensor, lambda e: e.all_reduce(target.buffer, op), text, [target], async_op=async_op
    )


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Take the values that `tensor` has in one process, in `tensor` of all.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype in all processes.
    src, group_src : int
        The process that has them, one of the two.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.broadcast(lucid.ones(2), 0)
    """
    chosen = member(group, "broadcast")
    if chosen is None:
        return None
    root = root_of(chosen, src, group_src, "broadcast: src")
    tensor_of(tensor, "tensor")
    text = f"{text_of(tensor.array)}, from {root}"
    targets = [] if root == chosen.rank() else [Target(tensor, "broadcast")]
    array = targets[0].buffer if targets else contiguous(tensor.array)
    return run("broadcast", chosen, tensor, lambda e: e.broadcast(array, root), text, targets, async_op=async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Put the values of all processes together, elementwise, in `tensor` of one of them; the others' stay.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype in all processes.
    dst, group_dst : int
        The process that gets them, one of the two.
    op : ReduceOp
        How.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.reduce(lucid.ones(2), dst=0)
    """
    chosen = member(group, "reduce")
    if chosen is None:
        return None
    root = root_of(chosen, dst, group_dst, "reduce: dst")
    op = check_op(op, tensor_of(tensor, "tensor").array)
    text = f"{text_of(tensor.array)}, {op.name}, to {root}"
    targets = [Target(tensor, "reduce")] if root == chosen.rank() else []
    array = targets[0].buffer if targets else contiguous(tensor.array)
    return run("reduce", chosen, tensor, lambda e: e.reduce(array, op, root), text, targets, async_op=async_op)


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | float | None = None,
) -> Work | None:
    """Wait until all processes of the group have called this, for up to `timeout`, or as long as the group allows.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.barrier()
    """
    chosen = member(group, "barrier")
    if chosen is None:
        return None
    engine = chosen.engine(chosen.backends[0], "barrier")
    work = chosen.begin(engine, "barrier", "", engine.barrier)
    if async_op:
        return work
    work.wait(chosen.timeout if timeout is None else timeout)  # the host waits, whichever the device
    return None
