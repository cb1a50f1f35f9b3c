"""The mean of gradients over all processes, and means of gradients that travel in a half type.

Over MPI half types are summed in float32 and travel so: a half type saves bytes over NCCL only, and costs its rounding
on both.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from lucid.base.dtype import bfloat16, float16
from lucid.collectives.operations import all_reduce
from lucid.collectives.reduction import ReduceOp
from lucid.errors import DtypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.dtype import dtype as Dtype
    from lucid.collectives.group import ProcessGroup
    from lucid.collectives.work import Work
    from lucid.futures import Future
    from lucid.nn.parallel.buckets import GradBucket
    from lucid.tensor import Tensor

    CommHook: TypeAlias = Callable[[Any, GradBucket], Future[Tensor]]

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Return the future of the mean of a bucket over all processes, as computed without a hook, too.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> from lucid.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model.register_comm_hook(None, allreduce_hook)
    """
    return _mean(bucket.buffer(), process_group)


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Return the future of the mean of a bucket that goes to the other processes in float16.

    A gradient above 65504 becomes infinite: scale the loss down, or take `bf16_compress_hook`.
    """
    return _compressed_mean(process_group, bucket, float16)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Return the future of the mean of a bucket that goes to the other processes in bfloat16."""
    return _compressed_mean(process_group, bucket, bfloat16)


def fp16_compress_wrapper(hook: CommHook) -> CommHook:
    """Return a communication hook that hands each bucket to `hook` in float16, and its result on in the bucket's dtype.

    Examples
    --------
    >>> from lucid import nn
    >>> from lucid.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_wrapper
    >>> from lucid.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model.register_comm_hook(PowerSGDState(None), fp16_compress_wrapper(powerSGD_hook))
    """
    return _wrapped(hook, float16)


def bf16_compress_wrapper(hook: CommHook) -> CommHook:
    """Return a communication hook that hands each bucket to `hook` in bfloat16, as `fp16_compress_wrapper` does."""
    return _wrapped(hook, bfloat16)


def _mean(tensor: Tensor, group: ProcessGroup | None) -> Future[Tensor]:
    work = cast("Work", all_reduce(tensor, ReduceOp.AVG, group, async_op=True))
    return work.get_future().then(lambda future: cast("Tensor", future.value()[0]))


def _compressed(bucket: GradBucket, dtype: Dtype) -> Tensor:
    buffer = bucket.buffer()
    if not buffer.dtype.is_floating_point:
        raise DtypeError(f"comm hook: expected real gradients, which {dtype} can hold, got {buffer.dtype}")
    return buffer.to(dtype)


def _compressed_mean(group: ProcessGroup | None, bucket: GradBucket, dtype: Dtype) -> Future[Tensor]:
    before = bucket.buffer().dtype
    return _mean(_compressed(bucket, dtype), group).then(lambda future: future.value().to(before))


def _wrapped(hook: CommHook, dtype: Dtype) -> CommHook:
    @functools.wraps(hook)
    def compressed(state: Any, bucket: GradBucket) -> Future[Tensor]:
        whole = bucket.buffer()
        bucket.set_buffer(_compressed(bucket, dtype))

        def restored(future: Future[Tensor]) -> Tensor:
            bucket.set_buffer(whole)
            return future.value().to(whole.dtype)

        return hook(state, bucket).then(restored)

    return compressed
