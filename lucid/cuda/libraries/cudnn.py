"""cuDNN's operations, through NVIDIA's package ``nvidia-cudnn-frontend``, if it and the library are installed.

Names and arguments were checked against version 1.28.0 of the package; none of this has run on a GPU yet. What is
missing, switched off or not supported is answered by False, and lucid's own kernels do the work. Plans that round
float32 to fewer bits while `lucid.backends.cuda.matmul.allow_tf32` is False are not taken. The simulator never comes
here.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.backends import cudnn as switch
from lucid.backends.cuda import matmul
from lucid.base import gpu
from lucid.base.functions import cupy_functions
from lucid.base.locks import Once
from lucid.base.reports import logger
from lucid.cuda.launch.kernels import C_TYPES

if TYPE_CHECKING:
    from lucid.base.arrays import Array


# cuDNN's names of dtypes. Its operations on float64 are slow and rarely there.
_DTYPES = {"float": "FLOAT", "__half": "HALF", "__nv_bfloat16": "BFLOAT16"}


class Layout(NamedTuple):
    """How an array lies in memory: dtype in C, shape, and steps in elements."""

    dtype: str
    shape: tuple[int, ...]
    steps: tuple[int, ...]


class Key(NamedTuple):
    """The call that a graph is built for.

    Attributes
    ----------
    device : int
        The index of the CUDA device.
    operation : str
        The name of cuDNN's operation.
    inputs : tuple of tuple
        What the operation calls each input, and its layout.
    outputs : tuple of Layout
        The outputs in the operation's order.
    settings : tuple of tuple
        What else the operation is given, by name.
    refused : tuple of str
        The numerical notes of plans that are not taken.
    """

    device: int
    operation: str
    inputs: tuple[tuple[str, Layout], ...]
    outputs: tuple[Layout, ...]
    settings: tuple[tuple[str, Any], ...]
    refused: tuple[str, ...]


# A graph that is ready to run, its inputs and outputs, and the bytes of memory that it needs beside.
BuiltGraph = tuple[Any, tuple[Any, ...], int]


@cache
def _package() -> Any:
    """Return NVIDIA's package, None if it or the library is missing."""
    try:
        package: Any = import_module("cudnn")
        package.backend_version()
    except Exception as error:  # noqa: BLE001 - a library that does not load says so in its own ways
        logger().info("no cuDNN: %s", error)
        return None
    return package


_handles: dict[tuple[int, int], Any] = {}
_graphs: Once[Key, BuiltGraph | None] = Once()


def _handle(package: Any, device: int, stream: int) -> Any:
    """Return the handle of a thread on a device, set to its current stream."""
    key = threading.get_ident(), device
    handle = _handles.get(key)
    if handle is None:
        handle = _handles[key] = package.create_handle()
    package.set_stream(handle, stream)
    return handle


def _build(package: Any, key: Key, handle: Any) -> BuiltGraph | None:
    """Return the graph that cuDNN's heuristics choose, None if it has none that may be taken."""
    dtypes = {name: getattr(package.data_type, word) for name, word in _DTYPES.items()}
    wide = package.data_type.FLOAT
    graph = package.pygraph(
        io_data_type=dtypes[key.inputs[0][1].dtype], intermediate_data_type=wide, compute_data_type=wide, handle=handle
    )
    inputs = {
        name: graph.tensor(name=name, dim=list(x.shape), stride=list(x.steps), data_type=dtypes[x.dtype])
        for name, x in key.inputs
    }
    made = getattr(graph, key.operation)(**inputs, **dict(key.settings), compute_data_type=wide)
    outputs = (made,) if len(key.outputs) == 1 else tuple(made)
    for output, x in zip(outputs, key.outputs, strict=True):
        output.set_output(True).set_dim(list(x.shape)).set_stride(list(x.steps)).set_data_type(dtypes[x.dtype])
    try:
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([package.heur_mode.A, package.heur_mode.FALLBACK])
        graph.deselect_numeric_notes([getattr(package.numerical_note, note) for note in key.refused])
        graph.check_support()
        graph.build_plans()
    except (package.cudnnGraphNotSupportedError, RuntimeError, NotImplementedError, ValueError) as error:
        logger().info("cuDNN has no %s for %s: %s", key.operation, key.inputs, error)
        return None
    return graph, (*inputs.values(), *outputs), int(graph.get_workspace_size())


def _layout(x: Array) -> Layout:
    """Return the layout of an array; dimensions of size 1 get a dense array's stride, as their own is not used."""
    steps: list[int] = []
    dense = 1
    for size, stride in zip(reversed(x.shape), reversed(x.strides), strict=True):
        steps.append(dense if size == 1 else stride // x.dtype.itemsize)
        dense = size * steps[-1]
    return Layout(C_TYPES[x.dtype], tuple(x.shape), tuple(reversed(steps)))


def is_able() -> bool:
    """Whether there is a cuDNN that may be used."""
    return switch.enabled and not gpu.is_simulated() and _package() is not None


def run(
    operation: str,
    inputs: dict[str, Array],
    outputs: tuple[Array, ...],
    settings: dict[str, Any],
    *,
    repeatable: bool = True,
) -> bool:
    """Run an operation on arrays of four dimensions, and return whether cuDNN could.

    Parameters
    ----------
    operation : str
        The name of cuDNN's operation.
    inputs : dict
        Arrays by what the operation calls them.
    outputs : tuple of Array
        What is written, in the operation's order.
    settings : dict
        What else the operation is given, by name; hashable.
    repeatable : bool
        Whether a plan that cuDNN calls non-deterministic is refused.
    """
    package = _package() if is_able() else None
    arrays = *inputs.values(), *outputs
    if package is None or any(C_TYPES.get(x.dtype) not in _DTYPES for x in arrays):
        return False
    refused = ["DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION"]
    if repeatable:
        refused.append("NONDETERMINISTIC")
    if C_TYPES[arrays[0].dtype] == "float" and not matmul.allow_tf32:
        refused.append("TENSOR_CORE")
    key = Key(
        gpu.device_index(arrays[0]),
        operation,
        tuple([(name, _layout(x)) for name, x in inputs.items()]),
        tuple(map(_layout, outputs)),
        tuple(settings.items()),
        tuple(refused),
    )
    handle = _handle(package, key.device, gpu.current_stream().ptr)
    built = _graphs(key, lambda: _build(package, key, handle))
    if built is None:
        return False
    graph, tensors, size = built
    workspace = cupy_functions().empty(max(1, size), "u1")
    addresses = {tensor: x.data.ptr for tensor, x in zip(tensors, arrays, strict=True)}
    graph.execute(addresses, workspace.data.ptr, handle=handle)
    return True
