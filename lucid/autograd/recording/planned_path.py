"""The short path of ops that run by launch plans on CUDA: any operands, any settings, one output or several.

What `Primitive.__call__` does for tensors of one device, in straight-line code: the form of the operands is looked up
once, and with it comes all that follows from it, what is launched and what a node keeps. It takes what has been done
once before, in the ordinary modes and under `no_grad`, and leaves the rest to the general path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, registered, version_of, wrap, wrap_on_graph
from lucid.autograd.engine.node import sequences
from lucid.autograd.modes.state import OFF, PLAIN, thread, unusual
from lucid.autograd.recording.views import live_edge
from lucid.backend import gpu
from lucid.backends.cuda import matmul
from lucid.cuda.launch.plans import ALIGNMENT, number_form, recordings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lucid.autograd.base import Edge
    from lucid.autograd.recording.primitive import Primitive

__all__ = ["planned_caller"]

# What an operand may be beside a tensor: it is part of the form.
_CONSTANTS = frozenset((type(None), bool, int, float))


def planned_caller(primitive: Primitive) -> Callable[[Sequence[Any], Mapping[str, Any]], Any]:
    """Return what gives the output of a primitive for tensors and settings; NotImplemented for the general path."""
    plans, rules, differentiable = primitive.launch_plans, bool(primitive.seal()), primitive.differentiable
    ndarray, make = gpu.cupy().ndarray, gpu.array_maker()
    current_device, current_stream = gpu.cupy().cuda.runtime.getDevice, gpu.cupy().cuda.get_current_stream
    default, several = gpu.default_stream().ptr, len(primitive.outputs) != 1

    def call(operands: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        recording = thread.state.recording if unusual else PLAIN
        if recordings or (recording != PLAIN and recording != OFF):
            return NotImplemented
        device = current_device()
        given: list[Any] = []
        addresses: list[int] = []
        edges: list[Edge | None] = []
        needed = 0
        # as `with_plan` makes it
        form: list[Any] = [matmul._allow_tf32, *settings.items()]  # noqa: SLF001  a property costs a call
        for operand in operands:
            if isinstance(operand, TensorBase):
                array: Any = operand.array
                if type(array) is not ndarray:
                    return NotImplemented
                memory = array.data
                if memory.device_id != device:
                    return NotImplemented
                edge = operand.edge if operand.origin is None or not rules else live_edge(operand)
                if edge is not None:
                    needed |= 1 << len(edges)
                edges.append(edge)
                address = memory.ptr
                if address in addresses:
                    form += (array.dtype, array.shape, array.strides, ~addresses.index(address))
                else:
                    form += (array.dtype, array.shape, array.strides, address % ALIGNMENT)
                    given.append(array)
                    addresses.append(address)
            elif type(operand) in _CONSTANTS:
                edges.append(None)
                form.append(operand if operand is None else number_form(operand))
            else:
                return NotImplemented
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
            out = launched.run(given, addresses, make)
        except Exception as error:
            gpu.raise_for(error)
            raise
        if recorded is None:
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
            result = registered.tensor()
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
            if operand.__class__ in _CONSTANTS:
                saved.append(operand)
                continue
            counter = version_of(operand)
            saved.append(operand.array)
            versions += (counter, counter[0])
        for output in plan.saves_outs:
            tensor = tensors[output]
            saved.append(tensor.array)
            versions += (tensor.version, 0)
        node.kept = plan, tuple(saved), tuple(versions), values
        node.sequence = next(sequences)
        return result

    return call
