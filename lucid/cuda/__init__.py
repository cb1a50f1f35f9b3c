"""CUDA devices, their memory and their streams, under PyTorch's names.

Importing this package imports no CuPy. On a machine without a CUDA device `is_available` is False, `device_count` and
the memory figures are 0, `empty_cache` does nothing, and everything else raises `CudaUnavailableError`.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from lucid.backend.gpu import device_count, is_available
from lucid.cuda.compiler import compile
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

if TYPE_CHECKING:
    from lucid.cuda import amp
    from lucid.graphs.callables import make_graphed_callables
    from lucid.graphs.graph import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing
    from lucid.graphs.step import graphed_step
    from lucid.graphs.warmup import warmup
else:
    # what builds on tensors, which build on this package, is imported when it is first asked for
    _LATER = {
        "amp": "lucid.cuda.amp",
        "make_graphed_callables": "lucid.graphs.callables",
        "graphed_step": "lucid.graphs.step",
        "warmup": "lucid.graphs.warmup",
        **dict.fromkeys(
            ("CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing"), "lucid.graphs.graph"
        ),
    }

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module 'lucid.cuda' has no attribute {name!r}")
        module = import_module(_LATER[name])
        return getattr(module, name, module)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


if os.environ.get("LUCID_CUDA_SIMULATOR", "0") not in {"", "0"}:
    from lucid.cuda.simulator.bootstrap import start

    start()

__all__ = [
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "amp",
    "compile",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "graph",
    "graph_pool_handle",
    "graphed_step",
    "is_available",
    "is_current_stream_capturing",
    "is_debug",
    "make_graphed_callables",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_debug",
    "set_device",
    "stream",
    "synchronize",
    "warmup",
]
