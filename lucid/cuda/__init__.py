"""CUDA devices, their memory and their streams, under PyTorch's names.

Importing this package imports no CuPy. On a machine without a CUDA device `is_available` is False, `device_count` and
the memory figures are 0, `empty_cache` does nothing, and everything else raises `CudaUnavailableError`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lucid.base.gpu import device_count, is_available
from lucid.cuda.devices import current_device, device, get_device_name, set_device, synchronize
from lucid.cuda.memory import (
    empty_cache,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
)
from lucid.cuda.streams import Event, Stream, current_stream, default_stream, stream
from lucid.cuda.switches import is_debug, set_debug
from lucid.errors import OutOfMemoryError
from lucid.public import later as _later
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from lucid.autograd.kernels.derivative import derivative
    from lucid.cuda import amp
    from lucid.cuda.compiler import compile
    from lucid.cuda.properties import (
        get_device_capability,
        get_device_properties,
        init,
        ipc_collect,
        is_bf16_supported,
        is_initialized,
        mem_get_info,
        memory_summary,
    )
    from lucid.graphs.callables import make_graphed_callables
    from lucid.graphs.graph import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing
    from lucid.graphs.step import graphed_step
    from lucid.graphs.warmup import warmup
    from lucid.ops.creation.cuda_generators import (
        get_rng_state,
        get_rng_state_all,
        initial_seed,
        manual_seed,
        manual_seed_all,
        seed,
        seed_all,
        set_rng_state,
        set_rng_state_all,
    )
    from lucid.ops.creation.cuda_types import (
        BFloat16Tensor,
        BoolTensor,
        ByteTensor,
        CharTensor,
        DoubleTensor,
        FloatTensor,
        HalfTensor,
        IntTensor,
        LongTensor,
        ShortTensor,
    )
else:
    # what builds on tensors, which build on this package, and what few ask for, is imported when it is first asked for
    __getattr__, __dir__ = _later(
        globals(),
        {
            "amp": "lucid.cuda.amp",
            "compile": "lucid.cuda.compiler",
            "derivative": "lucid.autograd.kernels.derivative",
            **dict.fromkeys(
                (
                    "get_device_capability",
                    "get_device_properties",
                    "init",
                    "ipc_collect",
                    "is_bf16_supported",
                    "is_initialized",
                    "mem_get_info",
                    "memory_summary",
                ),
                "lucid.cuda.properties",
            ),
            "make_graphed_callables": "lucid.graphs.callables",
            "graphed_step": "lucid.graphs.step",
            "warmup": "lucid.graphs.warmup",
            **dict.fromkeys(
                ("CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing"), "lucid.graphs.graph"
            ),
            **dict.fromkeys(
                (
                    "get_rng_state",
                    "get_rng_state_all",
                    "initial_seed",
                    "manual_seed",
                    "manual_seed_all",
                    "seed",
                    "seed_all",
                    "set_rng_state",
                    "set_rng_state_all",
                ),
                "lucid.ops.creation.cuda_generators",
            ),
            **dict.fromkeys(
                (
                    "BFloat16Tensor",
                    "BoolTensor",
                    "ByteTensor",
                    "CharTensor",
                    "DoubleTensor",
                    "FloatTensor",
                    "HalfTensor",
                    "IntTensor",
                    "LongTensor",
                    "ShortTensor",
                ),
                "lucid.ops.creation.cuda_types",
            ),
        },
    )


if os.environ.get("LUCID_CUDA_SIMULATOR", "0") not in {"", "0"}:
    from lucid.cuda.simulator.bootstrap import start

    start()

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CUDAGraph",
    "CharTensor",
    "DoubleTensor",
    "Event",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "OutOfMemoryError",
    "ShortTensor",
    "Stream",
    "amp",
    "compile",
    "current_device",
    "current_stream",
    "default_stream",
    "derivative",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "graphed_step",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_debug",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_summary",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_debug",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "stream",
    "synchronize",
    "warmup",
]

_publish(globals())
