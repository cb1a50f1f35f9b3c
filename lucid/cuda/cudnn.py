"""Convolutions through cuDNN's graphs, where NVIDIA's package ``nvidia-cudnn-frontend`` and the library are found.

Names and arguments were checked against version 1.28.0 of the package; none of this has run on a GPU yet. Everything
that is missing, refused or not supported is answered by NotImplemented, and lucid's own kernels do the work. Plans that
cuDNN calls non-deterministic, or that round float32 to fewer bits while `lucid.backends.cuda.matmul.allow_tf32` is
False, are not taken. The simulator never comes here.
"""

from __future__ import annotations

import logging
import threading
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.backend import gpu
from lucid.backends import cudnn as settings
from lucid.backends.cuda import matmul
from lucid.cuda.kernels import C_TYPES

if TYPE_CHECKING:
    from lucid.backend.arrays import Array

__all__ = ["conv_forward", "conv_grad_input", "conv_grad_weight"]

_log = logging.getLogger("lucid.cuda")

# cuDNN's names of dtypes. Its convolutions of float64 are slow and rarely there.
_DTYPES = {"float": "FLOAT", "__half": "HALF", "__nv_bfloat16": "BFLOAT16"}
# What an operation calls its two inputs.
_INPUTS = {
    "conv_fprop": ("image", "weight"),
    "conv_dgrad": ("loss", "filter"),
    "conv_wgrad": ("image", "loss"),
}


class Key(NamedTuple):
    """What a plan is made for.

    Attributes
    ----------
    device : int
        The index of the CUDA device.
    operation : str
        The name of cuDNN's operation.
    dtype : str
        The dtype in C.
    tf32 : bool
        Whether float32 may be rounded.
    arrays : tuple
        Shape and steps, in elements, of both inputs and the output, each of four dimensions.
    windows : tuple
        Padding before, padding after, stride and dilation, each of two numbers.
    """

    device: int
    operation: str
    dtype: str
    tf32: bool
    arrays: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    windows: tuple[tuple[int, ...], ...]


class Plan(NamedTuple):
    """A graph that is ready to run, its two inputs and its output, and the bytes of memory that it needs beside."""

    graph: Any
    tensors: tuple[Any, Any, Any]
    workspace: int


@cache
def _package() -> Any:
    """Return NVIDIA's package, None if it or the library is missing."""
    try:
        package: Any = import_module("cudnn")
        package.backend_version()
    except Exception as error:  # noqa: BLE001 - a library that does not load says so in its own ways
        _log.info("convolutions without cuDNN: %s", error)
        return None
    return package


_handles: dict[tuple[int, int], Any] = {}
_plans: dict[Key, Plan | None] = {}
_lock = threading.Lock()


def _handle(package: Any, device: int, stream: int) -> Any:
    """Return the handle of a thread on a device, set to its current stream."""
    key = threading.get_ident(), device
    handle = _handles.get(key)
    if handle is None:
        handle = _handles[key] = package.create_handle()
    package.set_stream(handle, stream)
    return handle


def _build(package: Any, key: Key, handle: Any) -> Plan | None:
    """Return the plan that cuDNN's heuristics choose, None if it has none that may be taken."""
    dtype = getattr(package.data_type, _DTYPES[key.dtype])
    wide = package.data_type.FLOAT
    graph = package.pygraph(io_data_type=dtype, intermediate_data_type=wide, compute_data_type=wide, handle=handle)
    shapes = [list(shape) for shape, _ in key.arrays]
    steps = [list(step) for _, step in key.arrays]
    names = _INPUTS[key.operation]
    inputs = [graph.tensor(name=name, dim=shapes[i], stride=steps[i], data_type=dtype) for i, name in enumerate(names)]
    before, after, stride, dilation = map(list, key.windows)
    output = getattr(graph, key.operation)(
        **dict(zip(names, inputs, strict=True)),
        pre_padding=before, post_padding=after, stride=stride, dilation=dilation, compute_data_type=wide,
    )  # fmt: skip
    output.set_output(True).set_dim(shapes[2]).set_stride(steps[2]).set_data_type(dtype)
    notes = package.numerical_note
    refused = [notes.NONDETERMINISTIC, notes.DOWN_CONVERT_INPUTS, notes.REDUCED_PRECISION_REDUCTION]
    if key.dtype == "float" and not key.tf32:
        refused.append(notes.TENSOR_CORE)
    try:
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([package.heur_mode.A, package.heur_mode.FALLBACK])
        graph.deselect_numeric_notes(refused)
        graph.check_support()
        graph.build_plans()
    except (package.cudnnGraphNotSupportedError, RuntimeError, NotImplementedError, ValueError) as error:
        _log.info("cuDNN has no %s for %s: %s", key.operation, key.arrays, error)
        return None
    return Plan(graph, (inputs[0], inputs[1], output), int(graph.get_workspace_size()))


def _two(values: Any, neutral: int) -> tuple[int, ...]:
    """Return one number for each of two dimensions."""
    return tuple(values) if len(values) == 2 else (neutral, *values)


def _described(x: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and steps, a sequence as an image of height 1."""
    shape, steps = tuple(x.shape), tuple([step // x.dtype.itemsize for step in x.strides])
    if len(shape) == 4:
        return shape, steps
    return (*shape[:2], 1, shape[2]), (*steps[:2], shape[2] * steps[2], steps[2])


def _padding_after(size: Any, out: Any, kernel: Any, stride: Any, before: Any, dilation: Any) -> tuple[int, ...] | None:
    """Return the padding behind the last element with which there are `out` windows; None if there is none."""
    after: list[int] = []
    for n, windows, k, s, p, d in zip(size, out, kernel, stride, before, dilation, strict=True):
        span = d * (k - 1) + 1
        least = max(0, (windows - 1) * s + span - n - p)
        if (n + p + least - span) // s + 1 != windows:
            return None
        after.append(least)
    return tuple(after)


def _run(
    operation: str, first: Array, second: Array, shape: Any, sizes: tuple[Any, Any, Any], windows: tuple[Any, Any, Any]
) -> Any:
    """Return the output of an operation on two arrays; NotImplemented where cuDNN cannot."""
    package = None if gpu.is_simulated() or not settings.enabled else _package()
    name = C_TYPES.get(first.dtype, "")
    if package is None or name not in _DTYPES or second.dtype != first.dtype:
        return NotImplemented
    stride, before, dilation = windows
    after = _padding_after(*sizes, stride, before, dilation)
    if after is None:
        return NotImplemented
    out = gpu.cupy().empty(shape, first.dtype)
    packed = _two(before, 0), _two(after, 0), _two(stride, 1), _two(dilation, 1)
    arrays = _described(first), _described(second), _described(out)
    key = Key(gpu.device_index(first), operation, name, matmul.allow_tf32, arrays, packed)
    handle = _handle(package, key.device, gpu.current_stream().ptr)
    with _lock:
        if key not in _plans:
            _plans[key] = _build(package, key, handle)
        plan = _plans[key]
    if plan is None:
        return NotImplemented
    workspace = gpu.cupy().empty(max(1, plan.workspace), "u1")
    addresses = (first.data.ptr, second.data.ptr, out.data.ptr)
    plan.graph.execute(dict(zip(plan.tensors, addresses, strict=True)), workspace.data.ptr, handle=handle)
    return out


def conv_forward(x: Array, weight: Array, shape: Any, *, stride: Any, before: Any, dilation: Any) -> Any:
    """Return the convolution of images with kernels, of shape `shape`; NotImplemented where cuDNN cannot."""
    sizes = x.shape[2:], shape[2:], weight.shape[2:]
    return _run("conv_fprop", x, weight, shape, sizes, (stride, before, dilation))


def conv_grad_input(g: Array, weight: Array, shape: Any, *, stride: Any, before: Any, dilation: Any) -> Any:
    """Return the gradient of images of shape `shape`; NotImplemented where cuDNN cannot."""
    sizes = shape[2:], g.shape[2:], weight.shape[2:]
    return _run("conv_dgrad", g, weight, shape, sizes, (stride, before, dilation))


def conv_grad_weight(g: Array, x: Array, shape: Any, *, stride: Any, before: Any, dilation: Any) -> Any:
    """Return the gradient of kernels of shape `shape`; NotImplemented where cuDNN cannot."""
    sizes = x.shape[2:], g.shape[2:], shape[2:]
    return _run("conv_wgrad", x, g, shape, sizes, (stride, before, dilation))
