"""Processes that train one model together, under PyTorch's names: on CPU tensors through MPI, on CUDA tensors NCCL.

A process that no launcher has started is a group of one, and every collective computes there without any call.
"""

from __future__ import annotations

from lucid.collectives.group import ProcessGroup
from lucid.collectives.objects import all_gather_object, broadcast_object_list, gather_object, scatter_object_list
from lucid.collectives.operations import all_reduce, barrier, broadcast, reduce
from lucid.collectives.pairs import P2POp, batch_isend_irecv, irecv, isend, monitored_barrier, recv, send
from lucid.collectives.questions import (
    GroupMember,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    is_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    set_timeout,
)
from lucid.collectives.reduction import ReduceOp
from lucid.collectives.spreading import (
    all_gather,
    all_gather_into_tensor,
    all_to_all,
    all_to_all_single,
    gather,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from lucid.collectives.work import Work
from lucid.collectives.world import destroy_process_group, init_process_group, new_group
from lucid.distributed import algorithms, device_mesh, elastic, fsdp, optim, tensor
from lucid.errors import DistributedError, DistributedTimeoutError
from lucid.nn.parallel.buckets import GradBucket
from lucid.public import publish as _publish

__all__ = [
    "DistributedError", "DistributedTimeoutError", "GradBucket", "GroupMember", "P2POp", "ProcessGroup", "ReduceOp",
    "Work", "algorithms", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group",
    "device_mesh", "elastic", "fsdp", "gather", "gather_object", "get_backend", "get_default_backend_for_device",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank", "get_world_size",
    "group", "init_process_group", "irecv", "is_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "is_torchelastic_launched", "isend", "monitored_barrier", "new_group", "optim", "recv",
    "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send", "set_timeout",
    "tensor",
]  # fmt: skip

_publish(globals())
