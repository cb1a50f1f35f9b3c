"""The short path of elementwise ops on NumPy: what `Primitive.__call__` does, without its generality.

An op on small tensors costs more for its bookkeeping than for its arithmetic. These callers handle float32 and float64
tensors of one device and dtype (and Python numbers beside them) in straight-line code and leave the rest to `general`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, broadcast_error, mark_inference, registered, version_of
from lucid.autograd.engine.node import sequences
from lucid.autograd.modes.state import PLAIN, NumPyComplaints, thread, unusual
from lucid.autograd.recording.plan import Plan
from lucid.autograd.recording.views import live_edge

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.recording.primitive import Primitive

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
ndarray = np.ndarray

# The class of tensors, as `register` has set it: a global costs half of what an attribute of `registered` does.
Tensor: type[TensorBase] = TensorBase


def register(tensor: type[TensorBase]) -> None:
    """Make `tensor` the class that ops return."""
    global Tensor
    Tensor = registered.tensor = tensor


# What a plan keeps, as bits: first operand, second operand, output.
FIRST, SECOND, BOTH, OUT = 1, 2, 3, 4


def kept(plan: Plan) -> int:
    """Return which of two operands and the output a plan saves."""
    return sum(1 << p for p in plan.saves) | (OUT if plan.saves_outs else 0)


def unary(primitive: Primitive, general: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return the caller of an op of one tensor."""
    cpu = primitive.cpu
    differentiable = bool(primitive.seal())
    plan = primitive.plan((True,)) if differentiable else Plan(primitive, (False,))
    saves = kept(plan)
    node_type: Any = primitive.node_type
    if plan.values:
        raise TypeError(f"{primitive.name}: the short path keeps arrays only")

    def call(x: Any) -> Any:
        if not isinstance(x, TensorBase):
            return general(x)
        array = x.array
        dtype = array.dtype
        if type(array) is not ndarray or (dtype is not F32 and dtype is not F64):
            return general(x)
        state = thread.state
        edge = x.edge if x.origin is None or not differentiable else live_edge(x)
        recording = edge is not None and differentiable and (state.recording if unusual else PLAIN)
        if recording and recording != PLAIN:
            return general(x)
        out = state.quiet(cpu, array)
        if type(out) is not ndarray:
            out = np.asarray(out)
        tensor: Any = Tensor()
        tensor.array = out
        tensor.origin = None
        if not recording:
            tensor.edge = None
            if unusual:
                mark_inference(tensor)
            return tensor
        tensor.version = version = [0]
        node = node_type()
        node.extra = None
        node.outputs = 1
        node.edges = (edge,)
        if saves == OUT:
            node.kept = plan, (out,), (version, 0), ()
        elif saves == FIRST:
            counter = version_of(x)
            node.kept = plan, (array,), (counter, counter[0]), ()
        elif saves:
            counter = version_of(x)
            node.kept = plan, (array, out), (counter, counter[0], version, 0), ()
        else:
            node.kept = plan.plain
        node.sequence = next(sequences)
        tensor.edge = (node, 0)
        return tensor

    return call


def binary(primitive: Primitive, general: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return the caller of an op of two tensors, or of a tensor and a number."""
    cpu = primitive.cpu
    name = primitive.name
    # by number: 1 if only the first operand requires grad, 2 if only the second, 3 if both
    plans: list[Any] = [None] * 4
    differentiable = bool(primitive.seal())
    if differentiable:
        plans[1:] = [primitive.plan((True, False)), primitive.plan((False, True)), primitive.plan((True, True))]
    node_type: Any = primitive.node_type
    saves_by = [0 if plan is None else kept(plan) for plan in plans]
    # the operands whose shapes are kept, as bits
    shapes_by = [0 if plan is None else sum(1 << what for _, what in plan.values) for plan in plans]
    for plan in plans:
        if plan is not None and any(kind != "shape" for kind, _ in plan.values):
            raise TypeError(f"{name}: the short path keeps arrays and shapes only")

    plans_by = list(zip(plans, saves_by, shapes_by, strict=True))

    def call(a: Any, b: Any) -> Any:
        if type(b) is not Tensor and not isinstance(b, TensorBase):
            return with_number(a, b) if type(b) is float or type(b) is int else general(a, b)
        try:
            x = a.array
        except AttributeError:
            return with_number(a, b) if type(a) is float or type(a) is int else general(a, b)
        y = b.array
        dtype = x.dtype
        if y.dtype is not dtype or type(x) is not ndarray or (dtype is not F32 and dtype is not F64):
            return general(a, b)
        try:
            out = cpu(x, y)
        except ValueError as error:
            raise broadcast_error(name, x, y) from error
        except (TypeError, *NumPyComplaints):
            # operands of two devices; or infinities, where NumPy's warnings are turned into errors
            return general(a, b)
        tensor: Any = Tensor()
        tensor.array = out if type(out) is ndarray else np.asarray(out)
        tensor.origin = None
        if a.edge is b.edge is a.origin is b.origin is None:
            tensor.edge = None
            if unusual:
                mark_inference(tensor)
            return tensor
        first = a.edge if a.origin is None or not differentiable else live_edge(a)
        second = b.edge if b.origin is None or not differentiable else live_edge(b)
        if first is not None:
            needed = 1 if second is None else 3
        else:
            needed = 0 if second is None else 2
        if unusual and (recording := thread.state.recording) != PLAIN:
            if recording:
                return general(a, b)
            needed = 0
        if not needed or not differentiable:
            tensor.edge = None
            if unusual:
                mark_inference(tensor)
            return tensor
        tensor.version = [0]
        plan, saves, shapes = plans_by[needed]
        node = node_type()
        node.extra = None
        node.outputs = 1
        node.edges = (first, second)
        if not shapes or x.shape == y.shape:
            values = plan.plain_values
        else:
            values = (x.shape, y.shape) if shapes == BOTH else (x.shape,) if shapes == FIRST else (y.shape,)
        if not saves:
            node.kept = plan.plain if values is plan.plain_values else (plan, (), (), values)
        elif saves == BOTH:
            try:
                one, two = a.version, b.version
            except AttributeError:
                one, two = version_of(a), version_of(b)
            node.kept = plan, (x, y), (one, one[0], two, two[0]), values
        elif saves == FIRST:
            one = version_of(a)
            node.kept = plan, (x,), (one, one[0]), values
        elif saves == SECOND:
            two = version_of(b)
            node.kept = plan, (y,), (two, two[0]), values
        else:
            node.kept = plan, *saved_and_versions(saves, (a, b, tensor), (x, y, tensor.array)), values
        node.sequence = next(sequences)
        tensor.edge = (node, 0)
        return tensor

    def with_number(a: Any, b: Any) -> Any:
        """Return the result of a tensor and a Python number, which is weak: it takes the tensor's dtype."""
        if isinstance(a, TensorBase):
            operand, needed = a, 1
            array = x = a.array
            y = b
        elif isinstance(b, TensorBase):
            operand, needed = b, 2
            array = y = b.array
            x = a
        else:
            return general(a, b)
        dtype = array.dtype
        if type(array) is not ndarray or (dtype is not F32 and dtype is not F64):
            return general(a, b)
        edge = operand.edge if operand.origin is None or not differentiable else live_edge(operand)
        state = thread.state
        recording = edge is not None and differentiable and (state.recording if unusual else PLAIN)
        if recording and recording != PLAIN:
            return general(a, b)
        out = state.quiet(cpu, x, y)
        tensor: Any = Tensor()
        tensor.array = out if type(out) is ndarray else np.asarray(out)
        tensor.origin = None
        if not recording:
            tensor.edge = None
            if unusual:
                mark_inference(tensor)
            return tensor
        plan = plans[needed]
        node = node_type()
        node.extra = None
        node.outputs = 1
        node.edges = (edge, None) if needed == 1 else (None, edge)
        saves = saves_by[needed]
        if saves:
            node.kept = (
                plan,
                *saved_and_versions(saves, (a, b, tensor), (x, y, tensor.array)),
                plan.plain_values,
            )
        else:
            node.kept = plan.plain
        node.sequence = next(sequences)
        tensor.edge = (node, 0)
        return tensor

    return call


def saved_and_versions(
    saves: int, operands: tuple[Any, Any, Any], arrays: tuple[Any, Any, Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return those of two operands and the output that the bits of `saves` name, and the versions of the tensors."""
    saved: list[Any] = []
    versions: list[Any] = []
    for bit, operand, array in zip((FIRST, SECOND, OUT), operands, arrays, strict=True):
        if saves & bit:
            saved.append(array)
            if isinstance(operand, TensorBase):
                counter = version_of(operand)
                versions += (counter, counter[0])
    return tuple(saved), tuple(versions)
