"""CUDA devices, their memory and their streams, under PyTorch's names.

Importing this package imports no CuPy. On a machine without a CUDA device `is_available` is False, `device_count` and
the memory figures are 0, `empty_cache` does nothing, and everything else raises `CudaUnavailableError`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lucid.base.gpu import current_device, device_count, is_available
from lucid.cuda.devices import device, get_device_name, set_device, synchronize
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
    _LATER = {
        "derivative": "lucid.autograd.kernels.derivative", "amp": "lucid.cuda.amp", "compile": "lucid.cuda.compiler",
        "get_device_capability": "lucid.cuda.properties", "get_device_properties": "lucid.cuda.properties",
        "init": "lucid.cuda.properties", "ipc_collect": "lucid.cuda.properties",
        "is_bf16_supported": "lucid.cuda.properties", "is_initialized": "lucid.cuda.properties",
        "mem_get_info": "lucid.cuda.properties", "memory_summary": "lucid.cuda.properties",
        "make_graphed_callables": "lucid.graphs.callables", "CUDAGraph": "lucid.graphs.graph",
        "graph": "lucid.graphs.graph", "graph_pool_handle": "lucid.graphs.graph",
        "is_current_stream_capturing": "lucid.graphs.graph", "graphed_step": "lucid.graphs.step",
        "warmup": "lucid.graphs.warmup", "get_rng_state": "lucid.ops.creation.cuda_generators",
        "get_rng_state_all": "lucid.ops.creation.cuda_generators", "initial_seed": "lucid.ops.creation.cuda_generators",
        "manual_seed": "lucid.ops.creation.cuda_generators", "manual_seed_all": "lucid.ops.creation.cuda_generators",
        "seed": "lucid.ops.creation.cuda_generators", "seed_all": "lucid.ops.creation.cuda_generators",
        "set_rng_state": "lucid.ops.creation.cuda_generators",
        "set_rng_state_all": "lucid.ops.creation.cuda_generators", "BFloat16Tensor": "lucid.ops.creation.cuda_types",
        "BoolTensor": "lucid.ops.creation.cuda_types", "ByteTensor": "lucid.ops.creation.cuda_types",
        "CharTensor": "lucid.ops.creation.cuda_types", "DoubleTensor": "lucid.ops.creation.cuda_types",
        "FloatTensor": "lucid.ops.creation.cuda_types", "HalfTensor": "lucid.ops.creation.cuda_types",
        "IntTensor": "lucid.ops.creation.cuda_types", "LongTensor": "lucid.ops.creation.cuda_types",
        "ShortTensor": "lucid.ops.creation.cuda_types",
    }  # fmt: skip
    __getattr__, __dir__ = _later(globals(), _LATER)


if os.environ.get("LUCID_CUDA_SIMULATOR", "0") not in {"", "0"}:
    from lucid.cuda.simulator.bootstrap import start

    start()

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CUDAGraph", "CharTensor", "DoubleTensor", "Event", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "OutOfMemoryError", "ShortTensor", "Stream", "amp", "compile",
    "current_device", "current_stream", "default_stream", "derivative", "device", "device_count", "empty_cache",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "graph",
    "graph_pool_handle", "graphed_step", "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported",
    "is_current_stream_capturing", "is_debug", "is_initialized", "make_graphed_callables", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "mem_get_info", "memory_allocated", "memory_reserved", "memory_summary",
    "reset_peak_memory_stats", "seed", "seed_all", "set_debug", "set_device", "set_rng_state", "set_rng_state_all",
    "stream", "synchronize", "warmup",
]  # fmt: skip

_publish(globals())
