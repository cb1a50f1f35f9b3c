"""The short path: `Primitive.__call__` for an op of one or two operands, without its generality.

An op on small tensors costs more for its bookkeeping than for its arithmetic. These callers handle arrays of one
floating-point dtype, and Python numbers beside them, in straight-line code and leave the rest to `general`. The caller
for NumPy arrays leaves what it does not take to the one for CUDA arrays, which is made once there are any: `Arrays` is
all in which they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np

from lucid.autograd.base import TensorBase, broadcast_error, mark_inference, registered, version_of
from lucid.autograd.engine.node import sequences
from lucid.autograd.hooks.functions import seen
from lucid.autograd.modes.casting import cast_operands
from lucid.autograd.modes.reading import note_leaves, watching
from lucid.autograd.modes.state import GRAD, PLAIN, NumPyComplaints, intercepted, thread, unusual
from lucid.autograd.recording.views import live_edge
from lucid.base import gpu
from lucid.cpu.halves import FEW
from lucid.cuda.launch.elementwise import Elementwise
from lucid.errors import LucidError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.recording.plan import DerivativePlan
    from lucid.autograd.recording.primitive import Primitive
    from lucid.base.arrays import Array

# Promotion leaves them as they are, beside a Python number too, and no op that has a short path refuses them.
F32, F64, F16, BF16 = map(np.dtype, (np.float32, np.float64, np.float16, ml_dtypes.bfloat16))
asarray = np.asarray

# The class of tensors, as `register` has set it: a global costs half of what an attribute of `registered` does.
Tensor: type[TensorBase] = TensorBase
new_tensor: Callable[[], Any] = registered.new


def register(tensor: type[TensorBase]) -> None:
    """Make `tensor` the class that ops return."""
    global Tensor, new_tensor
    registered.register(tensor)
    Tensor, new_tensor = tensor, registered.new


NO_SETTINGS: dict[str, Any] = {}
# The operands, the output, and a number that is kept in place of an operand, as bits.
FIRST, SECOND, BOTH, OUT, NUMBER = 1, 2, 3, 4, 8


class Arrays(NamedTuple):
    """The arrays that a caller takes.

    Attributes
    ----------
    kind : type
        Their class.
    function : callable
        Computes on them; it raises TypeError for what is to be left to `general`.
    of_halves : callable
        The same on those of half types.
    stream : callable or None
        Gives the stream on which a CUDA device was asked to compute.
    """

    kind: type
    function: Callable[..., Any]
    of_halves: Callable[..., Any]
    stream: Callable[[], Any] | None


def unary(primitive: Primitive, general: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return the caller of an op of one tensor."""
    on_cuda: Callable[[Any], Any] | None = None

    def others(x: Any) -> Any:
        nonlocal on_cuda
        if on_cuda is None:
            if not gpu.is_loaded() or primitive.kernel is None:
                return general(x)
            on_cuda = _unary(primitive, general, cuda_arrays(primitive.kernel))
        return on_cuda(x)

    return _unary(primitive, others, Arrays(np.ndarray, primitive.cpu, primitive.of_halves, None))


def _unary(primitive: Primitive, general: Callable[..., Any], arrays: Arrays) -> Callable[[Any], Any]:
    ndarray, plain, of_halves, current_stream = arrays
    cuda = current_stream is not None
    default = gpu.default_stream().ptr if cuda else None
    policy = primitive.policy
    differentiable = bool(primitive.seal())
    # made when first asked for
    of_plain: list[Any] = []
    of_half: list[Any] = []

    def call(x: Any) -> Any:
        if not isinstance(x, TensorBase):
            return general(x)
        if intercepted:
            if thread.state.function_hooks:
                return seen(primitive.name, call, (x,), {})
            if policy is not None:
                (x,) = cast_operands(primitive.name, policy, (x,))
        array = x.array
        dtype = array.dtype
        function, forms = plain, of_plain
        if type(array) is not ndarray or (dtype is not F32 and dtype is not F64):
            if type(array) is not ndarray or (dtype is not F16 and dtype is not BF16):
                return general(x)
            function, forms = of_halves, of_half
        state = thread.state
        edge = x.edge if x.origin is None or not differentiable else live_edge(x)
        recording = edge is not None and differentiable
        if recording and unusual:
            # what `recording` asks first, without the call
            recording = state.grad_mode is GRAD
            if recording and state.recording != PLAIN:
                return general(x)
        try:
            out = state.quiet(function, array)
        except (TypeError, MemoryError):
            return general(x)
        if type(out) is not ndarray:
            out = asarray(out)
        tensor: Any = new_tensor()
        tensor.array = out
        tensor.origin = None
        if not recording:
            tensor.edge = None
            if unusual:
                mark_inference(tensor)
                if watching:
                    note_leaves((edge,))
            return tensor
        tensor.version = version = [0]
        if not forms:
            forms.append(form(primitive, FIRST, cuda=cuda, halves=forms is of_half and not cuda))
        plan, saves, _, node_type = forms[0]
        node = node_type()
        node.extra = None
        if current_stream is not None and (stream := current_stream()).ptr != default:
            node.keep_stream(stream)
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
    on_cuda: Callable[[Any, Any], Any] | None = None

    def others(a: Any, b: Any) -> Any:
        nonlocal on_cuda
        if on_cuda is None:
            if not gpu.is_loaded() or primitive.kernel is None:
                return general(a, b)
            on_cuda = by_plan(primitive, general)
            if on_cuda is None:
                on_cuda = _binary(primitive, general, cuda_arrays(primitive.kernel))
        return on_cuda(a, b)

    return _binary(primitive, others, Arrays(np.ndarray, primitive.cpu, primitive.of_halves, None))


def by_plan(primitive: Primitive, general: Callable[..., Any]) -> Callable[[Any, Any], Any] | None:
    """Return the caller of an op of two operands on CUDA arrays that has launch plans; None of one that has none."""
    planned: Any = primitive.on_device
    if planned is None:
        return None

    def call(a: Any, b: Any) -> Any:
        out = planned((a, b), NO_SETTINGS)
        return general(a, b) if out is NotImplemented else out

    return call


def _binary(primitive: Primitive, general: Callable[..., Any], arrays: Arrays) -> Callable[[Any, Any], Any]:
    ndarray, plain, of_halves, current_stream = arrays
    cuda = current_stream is not None
    default = gpu.default_stream().ptr if cuda else None
    name = primitive.name
    policy = primitive.policy
    differentiable = bool(primitive.seal())
    # by the operands that require grad, as bits; made when first asked for, as most are in no program
    among_tensors: list[Any] = [None] * (BOTH + 1)
    among_halves = among_tensors if cuda else [None] * (BOTH + 1)
    beside_number: list[Any] = [None] * BOTH

    def made(forms: list[Any], needed: int) -> tuple[Any, int, int, Any]:
        number = BOTH - needed if forms is beside_number else 0
        halves = forms is among_halves and not cuda
        forms[needed] = made_form = form(primitive, needed, number, cuda=cuda, halves=halves)
        return made_form

    def call(a: Any, b: Any) -> Any:
        only = None
        if intercepted:
            if thread.state.function_hooks:
                return seen(name, call, (a, b), {})
            if policy is not None:
                a, b = cast_operands(name, policy, (a, b))
        if type(b) is Tensor or isinstance(b, TensorBase):
            y = b.array
            try:
                x = a.array
            except AttributeError:
                x, only = a, b
        elif isinstance(a, TensorBase):
            x, y, only = a.array, b, a
        else:
            return general(a, b)
        if only is None:
            dtype = x.dtype
            function, forms = plain, among_tensors
            if y.dtype is not dtype or type(x) is not ndarray or (dtype is not F32 and dtype is not F64):
                if y.dtype is not dtype or type(x) is not ndarray or (dtype is not F16 and dtype is not BF16):
                    return general(a, b)
                forms = among_halves
                if x.size >= FEW or y.size >= FEW:
                    function = of_halves
            try:
                out = function(x, y)
            except LucidError:
                raise
            except ValueError as error:
                raise broadcast_error(name, x, y) from error
            except (TypeError, MemoryError, *NumPyComplaints):
                # operands of two devices; or infinities, where NumPy's warnings are turned into errors
                return general(a, b)
            first, second = a.edge, b.edge
            if first is None and second is None and a.origin is None and b.origin is None:
                tensor: Any = new_tensor()
                tensor.array = out if type(out) is ndarray else asarray(out)
                tensor.edge = tensor.origin = None
                if unusual:
                    mark_inference(tensor)
                return tensor
            if differentiable:
                if a.origin is not None:
                    first = live_edge(a)
                if b.origin is not None:
                    second = live_edge(b)
        else:
            array, number = (x, b) if only is a else (y, a)
            dtype = array.dtype
            if type(array) is not ndarray or (
                dtype is not F32 and dtype is not F64 and (not cuda or (dtype is not F16 and dtype is not BF16))
            ):
                return general(a, b)
            if type(number) is not float and type(number) is not int:
                return general(a, b)
            try:
                out = thread.state.quiet(plain, x, y)
            except (TypeError, MemoryError):
                return general(a, b)
            first = only.edge if only.origin is None or not differentiable else live_edge(only)
            second = None
            if only is b:
                first, second = None, first
            forms = beside_number
        tensor = new_tensor()
        tensor.array = out if type(out) is ndarray else asarray(out)
        tensor.origin = None
        if first is not None:
            needed = FIRST if second is None else BOTH
        else:
            needed = 0 if second is None else SECOND
        if needed and unusual:
            state = thread.state
            if state.grad_mode is not GRAD:
                needed = 0
            elif state.recording != PLAIN:
                return general(a, b)
        if not needed or not differentiable:
            tensor.edge = None
            if unusual:
                mark_inference(tensor)
                if watching:
                    note_leaves((first, second))
            return tensor
        tensor.version = [0]
        plan, saves, shapes, node_type = forms[needed] or made(forms, needed)
        node = node_type()
        node.extra = None
        if current_stream is not None and (stream := current_stream()).ptr != default:
            node.keep_stream(stream)
        node.outputs = 1
        node.edges = (first, second)
        if not shapes or x.shape == y.shape:
            values = plan.plain_values
        else:
            values = (x.shape, y.shape) if shapes == BOTH else (x.shape,) if shapes == FIRST else (y.shape,)
        try:
            if not saves:
                node.kept = plan.plain if values is plan.plain_values else (plan, (), (), values)
            elif saves == BOTH:
                one, two = a.version, b.version
                node.kept = plan, (x, y), (one, one[0], two, two[0]), values
            elif saves == FIRST:
                one = a.version
                node.kept = plan, (x,), (one, one[0]), values
            elif saves == SECOND:
                two = b.version
                node.kept = plan, (y,), (two, two[0]), values
            elif saves == NUMBER:
                node.kept = plan, (b if only is a else a,), (), values
            else:
                node.kept = plan, *saved_and_versions(saves, (a, b, tensor), (x, y, tensor.array)), values
        except AttributeError:
            # a tensor that has had no version counter until now
            node.kept = plan, *saved_and_versions(saves, (a, b, tensor), (x, y, tensor.array)), values
        node.sequence = next(sequences)
        tensor.edge = (node, 0)
        return tensor

    return call


def cuda_arrays(kernel: Callable[..., Any]) -> Arrays:
    """Return the `Arrays` of CUDA, computed by `kernel` on one or two operands; one of two may be a number."""
    straight = kernel.straight() if isinstance(kernel, Elementwise) else None
    ndarray, device = gpu.cupy().ndarray, gpu.cupy().cuda.runtime.getDevice

    def function(*operands: Any) -> Any:
        for operand in operands:
            if type(operand) is not ndarray:
                if hasattr(operand, "dtype"):
                    raise TypeError
            elif operand.data.device_id != device():
                raise TypeError
        out = kernel(*operands)
        if out is NotImplemented:
            raise TypeError
        return out

    run = straight or function
    return Arrays(ndarray, run, run, gpu.cupy().cuda.get_current_stream)


def form(
    primitive: Primitive, needed: int, number: int = 0, *, cuda: bool = False, halves: bool = False
) -> tuple[DerivativePlan | None, int, int, Any]:
    """Return the plan for the operands `needed` that require grad, bits of saved arrays and shapes, the node's class.

    The operand `number`, if there is one, is no tensor.
    """
    if not needed or not primitive.rules:
        return None, 0, 0, None
    pattern = tuple([bool(needed >> p & 1) for p in range(len(primitive.inputs))])
    plan = primitive.plan(pattern, cuda=cuda, halves=halves)
    if any(kind != "shape" for kind, _ in plan.values) or (plan.values and len(primitive.inputs) == 1):
        raise TypeError(f"{primitive.name}: the short path keeps arrays, and shapes of two operands, only")
    saves = sum(1 << p for p in plan.saves) | (OUT if plan.saves_outs else 0)
    if not number:
        return plan, saves, sum(1 << what for _, what in plan.values), plan.node_type
    return plan, NUMBER if saves == number else saves | NUMBER if saves & number else saves, 0, plan.node_type


def saved_and_versions(
    saves: int, operands: tuple[Any, Any, Any], arrays: tuple[Array, Array, Array]
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
