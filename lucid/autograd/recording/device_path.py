"""The short paths of calls with CUDA tensors: of ops that run by launch plans, and of views.

What `Primitive.__call__` does for tensors of one device, in straight-line code, in the ordinary modes and under
`no_grad`. An op of any operands, settings and outputs is done so once it has a launch plan: the form of the operands is
looked up, and with it comes all that follows from it, what is launched and what a node keeps. A view is one of one
operand. The rest is left to the general path.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import INFERENCE, TensorBase, registered, version_of, wrap, wrap_on_graph
from lucid.autograd.engine.node import sequences
from lucid.autograd.modes.reading import note_leaves, watching
from lucid.autograd.modes.state import PLAIN, SPECIAL, thread, unusual
from lucid.autograd.recording.views import View, live_edge
from lucid.backends.cuda import matmul
from lucid.base import gpu
from lucid.base.functions import cupy_functions
from lucid.cuda.launch.plans import ALIGNMENT, can_be_noted, number_form, recordings
from lucid.errors import LucidError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.autograd.base import Edge
    from lucid.autograd.recording.primitive import Primitive

    Caller = Callable[[Sequence[Any], dict[str, Any]], Any]


# What an operand may be beside a tensor: it is part of the form.
_CONSTANTS = frozenset((type(None), bool, int, float))


def caller(primitive: Primitive) -> Caller | None:
    """Return the short path of a primitive: a function of its operands and settings; None if it has none.

    It gives NotImplemented for what is left to the general path.
    """
    if primitive.kernel is not None:
        return _planned(primitive) if can_be_noted(primitive.kernel) and primitive.outputs else None
    return _view(primitive) if primitive.view and len(primitive.inputs) == len(primitive.outputs) == 1 else None


def _planned(primitive: Primitive) -> Caller:
    plans, rules, differentiable = primitive.launch_plans, bool(primitive.seal()), primitive.differentiable
    ndarray, make = gpu.cupy().ndarray, gpu.array_maker()
    current_device, current_stream = gpu.cupy().cuda.runtime.getDevice, gpu.cupy().cuda.get_current_stream
    default, several = gpu.default_stream().ptr, len(primitive.outputs) != 1

    def call(operands: Sequence[Any], settings: dict[str, Any]) -> Any:
        recording = thread.state.recording if unusual else PLAIN
        if recordings or recording == SPECIAL:
            return NotImplemented
        device = current_device()
        arrays: list[Any] = []
        addresses: list[int] = []
        edges: list[Edge | None] = []
        needed = 0
        # as `with_plan` makes it
        form: list[Any] = [matmul.allow_tf32, *settings.items()] if settings else [matmul.allow_tf32]
        for operand in operands:
            edge = None
            if isinstance(operand, TensorBase):
                array: Any = operand.array
                if type(array) is not ndarray:
                    return NotImplemented
                edge = operand.edge if operand.origin is None or not rules else live_edge(operand)
                if edge is not None:
                    needed |= 1 << len(edges)
            elif type(operand) is ndarray:
                array = operand
            elif type(operand) in _CONSTANTS:
                edges.append(None)
                form.append(operand if operand is None else number_form(operand))
                continue
            else:
                return NotImplemented
            edges.append(edge)
            memory = array.data
            if memory.device_id != device:
                return NotImplemented
            address = memory.ptr
            if address in addresses:
                place = ~addresses.index(address)
            else:
                place = address % ALIGNMENT
                arrays.append(array)
                addresses.append(address)
            form += (array.dtype, array.shape, None if array._c_contiguous else array.strides, place)  # noqa: SLF001
        try:
            launched = plans.get(tuple(form))
        except TypeError:
            return NotImplemented
        if launched is None or (launched.tied and not launched.fits(addresses)):
            return NotImplemented
        recorded = None
        if needed and rules and recording:
            recorded = launched.recorded.get(needed)
            if recorded is None:
                return NotImplemented
        try:
            out = launched.run(arrays, addresses, make)
        except Exception as error:
            gpu.raise_for(error)
            raise
        if recorded is None:
            if watching:
                note_leaves(edges)
            return tuple([wrap(array) for array in out]) if several else wrap(out)
        plan, values = recorded
        node = plan.node_type()
        node.edges = tuple(edges)
        node.extra = None
        stream = current_stream()
        if stream.ptr != default:
            node.keep_stream(stream)
        if several:
            tensors = [wrap_on_graph(array, None, [0]) for array in out]
            node.outputs = len(tensors)
            for index in differentiable:
                tensors[index].edge = (node, index)
            result: Any = tuple(tensors)
        else:
            result = registered.new()
            result.array = out
            result.edge = (node, 0)
            result.version = [0]
            result.origin = None
            tensors = (result,)
            node.outputs = 1
        saved: list[Any] = []
        versions: list[Any] = []
        for position in plan.saves:
            operand = operands[position]
            if isinstance(operand, TensorBase):
                counter = version_of(operand)
                saved.append(operand.array)
                versions += (counter, counter[0])
                continue
            saved.append(operand)
            if operand.__class__ is ndarray:
                # whose changes nobody counts; every saved array has its pair
                versions += ([0], 0)
        for output in plan.saves_outs:
            tensor = tensors[output]
            saved.append(tensor.array)
            versions += (tensor.version, 0)
        node.kept = plan, tuple(saved), tuple(versions), values
        node.sequence = next(sequences)
        return result

    return call


def _view(primitive: Primitive) -> Caller:
    reference, rules = functools.partial(primitive.reference, cupy_functions()), bool(primitive.seal())
    ndarray, default = gpu.cupy().ndarray, gpu.default_stream().ptr
    plain = primitive.plan((True,), cuda=True) if rules else None
    if plain is not None and (plain.saves or plain.saves_outs):
        raise TypeError(f"{primitive.name}: a view on the short path keeps no arrays")

    def call(operands: Sequence[Any], settings: dict[str, Any]) -> Any:
        recording = thread.state.recording if unusual else PLAIN
        if recording == SPECIAL:
            return NotImplemented
        (x,) = operands
        array: Any = x.array
        if type(array) is not ndarray or array.dtype.kind == "c":
            return NotImplemented
        edge = x.edge if x.origin is None or not rules else live_edge(x)
        try:
            out = reference(array, **settings)
        except LucidError:
            raise
        except ValueError:
            # the general path says of what
            return NotImplemented
        version = version_of(x)
        tensor = wrap_on_graph(out, None, version)
        if version is INFERENCE:
            return tensor
        tensor.origin = View(x, primitive, settings, 0)
        if watching:
            note_leaves((edge,))
        if edge is None or not recording or plain is None or array.dtype.kind not in "fV":
            return tensor
        node: Any = plain.node_type()
        node.edges = (edge,)
        node.extra = None
        stream = gpu.current_stream(array.data.device_id)
        if stream.ptr != default:
            node.keep_stream(stream)
        node.outputs = 1
        node.kept = plain, (), (), plain.values_of((array,), settings)
        node.sequence = next(sequences)
        tensor.edge = (node, 0)
        return tensor

    return call
