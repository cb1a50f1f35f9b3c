"""In-place ops, each made of the op that returns a new tensor: its result is written into the first operand.

The graph follows the write (`change_in_place`), and everything is checked before anything changes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from lucid.autograd.base import INFERENCE, TensorBase, describe, version_of, wrap_on_graph
from lucid.autograd.engine.node import AccumulateGrad
from lucid.autograd.engine.retain import expect_form
from lucid.autograd.hooks.functions import in_positions, seen, seen_as_one
from lucid.autograd.modes.autocast import casting_on, without_autocast
from lucid.autograd.modes.state import inference_mode, intercepted, thread, unusual
from lucid.autograd.recording.namespace import PRIMITIVES, Namespace
from lucid.autograd.recording.primitive import primitive
from lucid.autograd.recording.views import before_change, change_in_place, check_change, live_edge, memory_error, rebase
from lucid.base import gpu
from lucid.base.device import device_of
from lucid.base.dtype import can_cast, dtype_of
from lucid.base.functions import cupy_functions
from lucid.base.memory import writeable
from lucid.base.ownership import SOLE, references
from lucid.cuda.launch.elementwise import Elementwise, converted, overlap
from lucid.errors import InplaceError, ShapeError
from lucid.ops.base.core import clone, expand
from lucid.ops.base.promotion import array_of, as_operand, cast_to
from lucid.ops.base.scalars import as_bool
from lucid.ops.creation.filling import full
from lucid.ops.shape import diagonal
from lucid.tensor.conversion import move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor

P = ParamSpec("P")


@primitive
def _copy(xp: ModuleType, x: Array, source: Array) -> Array:
    return xp.array(xp.broadcast_to(source, x.shape), order="C")


@_copy.cuda
def _copy_cuda(x: Array, source: Array) -> Any:
    return converted(source, source.dtype, cupy_functions().empty(x.shape, source.dtype))


@_copy.vjp("x")
def _copy_x(m: Namespace, grad: Array) -> Any:
    return m.zeros_like(grad)


@_copy.vjp("source")
def _copy_source(m: Namespace, grad: Array, source_shape: Ints) -> Any:
    return m.sum_to(grad, shape=source_shape)


def check_target(target: Tensor, operands: Iterable[Any] = ()) -> bool:
    """Return whether a change of `target` by an op of `operands` is recorded.

    Raises
    ------
    InplaceError
        If `target` may not be changed.
    """
    recording = False
    if not unusual or thread.state.recording:
        recording = target.edge is not None or (target.origin is not None and _requires_grad(target.origin.base))
        for operand in operands:
            recording = recording or _requires_grad(operand)
    check_change(target, recording=recording)
    return recording


def _requires_grad(operand: Any) -> bool:
    """Return whether the gradient of an operand goes anywhere."""
    if not isinstance(operand, TensorBase):
        return False
    return (operand.edge if operand.origin is None else live_edge(operand)) is not None


def write(target: Tensor, value: Any) -> Tensor:
    """Return `target` with `value` written into it, in the dtype of `target` if that loses no category."""
    if value.array.dtype is not target.array.dtype:
        dtype = dtype_of(target.array)
        if can_cast(dtype_of(value.array), dtype):
            value = cast_to(value, dtype)
    return change_in_place(target, value)


def in_place(function: Callable[Concatenate[Tensor, P], Tensor]) -> Callable[Concatenate[Tensor, P], Tensor]:
    """Return the in-place form of an op: ``x.op_(...)`` gives `x`, with the values of ``op(x, ...)``.

    What backward needs of the old values is kept apart from the memory that changes.
    """
    name = function.__name__.strip("_")
    # an op with a short path is one primitive and nothing more, for floating-point numbers
    op = PRIMITIVES.get(name)
    kernel: Any = op.kernel if op is not None and op.general is not op else None
    direct = isinstance(kernel, Elementwise) and kernel.out is None

    def change(self: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> Tensor:
        if intercepted:
            if thread.state.function_hooks:
                return seen(change.__name__, change, *in_positions(function, (self, *args), kwargs))
            if casting_on():
                with without_autocast():
                    return change(self, *args, **kwargs)
        if not check_target(self, (*args, *kwargs.values())):
            if direct and not kwargs and len(args) == len(kernel.operands) - 1 and wrote(kernel, self, args):
                return self
            return write(self, function(self, *args, **kwargs))
        old: Any = wrap_on_graph(clone.raw([self.array], {}), live_edge(self), [0])
        return write(self, function(old, *args, **kwargs))

    change.__name__ = change.__qualname__ = f"{name}_"
    change.__doc__ = f"""Return this tensor after setting it to ``{name}(self, ...)``; see `lucid.{name}`.

    Raises
    ------
    InplaceError
        If it is a leaf that requires grad or a view of one, or otherwise may not be changed while gradients are
        recorded.
    ShapeError
        If the result has another shape than this tensor.
    DtypeError
        If the result is of a higher category (bool < integer < floating < complex). Nothing is changed then.
    """
    return change


def wrote(kernel: Elementwise, target: Tensor, others: Sequence[object]) -> bool:
    """Return whether a kernel has changed a CUDA tensor in its memory: in one launch, and without a new array.

    It has not where operands would have to be converted or broadcast the target, or share some of its memory: elements
    of theirs would be read after they were written.
    """
    array = target.array
    if not gpu.is_gpu_array(array) or array.dtype.kind not in "fV":
        return False
    # its own attribute takes a tenth of the time of `flags.c_contiguous`
    contiguous: bool = array._c_contiguous  # noqa: SLF001
    if not contiguous and not writeable(array):
        return False
    dtype, memory = array.dtype, array.data
    operands: list[Any] = []
    for other in others:
        if isinstance(other, TensorBase):
            x = other.array
            if type(x) is not type(array) or x.dtype != dtype or x.data.device_id != memory.device_id:
                return False
            apart = x.shape == array.shape and abs(x.data.ptr - memory.ptr) >= array.nbytes
            if not (apart and contiguous and x._c_contiguous):  # noqa: SLF001
                same = (x.data.ptr, x.shape, x.strides) == (memory.ptr, array.shape, array.strides)
                if not same and (overlap(x, array) or not fits(x.shape, array.shape)):
                    return False
            operands.append(x)
        elif type(other) in {float, int}:
            operands.append(other)
        else:
            return False
    before_change(target)
    array = target.array
    try:
        if len(operands) == 1 and type(operands[0]) is type(array):
            gpu.run_on(memory.device_id, kernel.change, array, operands[0])
        elif gpu.run_on(memory.device_id, partial(kernel, out=array), array, *operands) is NotImplemented:
            return False
    except TypeError:
        return False
    if target.version is not INFERENCE:
        target.version[0] += 1
    return True


def fits(shape: Ints, into: Ints) -> bool:
    """Return whether an array of `shape` broadcasts to the shape `into`."""
    return len(shape) <= len(into) and all(
        size in {1, wide} for size, wide in zip(reversed(shape), reversed(into), strict=False)
    )


@seen_as_one
def copy_(self: Tensor, src: object, non_blocking: bool = False) -> Tensor:
    """Return this tensor after copying the elements of `src` into it.

    Parameters
    ----------
    src : Tensor, array or number
        Broadcast to the shape of this tensor; converted to its dtype and moved to its device.
    non_blocking : bool
        Whether a copy between devices may still run when the call returns.

    Raises
    ------
    InplaceError
        If this tensor is a leaf that requires grad, or otherwise may not be changed.
    ShapeError
        If `src` does not broadcast to the shape of this tensor.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 2).copy_(lucid.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    non_blocking = as_bool(non_blocking, "non_blocking")
    source = as_operand(src)
    recording = check_target(self, (source,))
    if isinstance(source, TensorBase):
        source = cast_to(move(source, device_of(self.array), non_blocking=non_blocking), dtype_of(self.array))
    else:
        source = full((), source, dtype=dtype_of(self.array), device=device_of(self.array))
    if recording and self.origin is None:
        return change_in_place(self, _copy(self, source))
    if source.array.shape != self.array.shape:
        source = expand(source, shape=self.array.shape)
    return change_in_place(self, source)


@seen_as_one
def fill_(self: Tensor, value: object) -> Tensor:
    """Return this tensor after setting all elements to `value`, a number or a tensor of no dimension.

    Raises
    ------
    InplaceError
        If this tensor is a leaf that requires grad, or otherwise may not be changed.
    ShapeError
        If `value` has dimensions.
    DtypeError
        If a number does not fit the dtype.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2).fill_(7)
    tensor([7., 7.])
    """
    if isinstance(value, TensorBase) and value.array.ndim:
        raise ShapeError(f"fill_: expected a number or a tensor of no dimension, got {describe(value)}; use copy_()")
    return copy_(self, value)


def fill(input: Tensor, value: Number | Tensor) -> Tensor:
    """Return a tensor like `input` with all elements `value`, a number or a tensor of no dimension.

    The gradient of `value` is the sum, that of `input` zero. What `fill_` refuses is refused.

    >>> import lucid
    >>> lucid.fill(lucid.zeros(2), 7)
    tensor([7., 7.])
    """
    array_of(input)
    return fill_(clone(input), value)


@seen_as_one
def zero_(self: Tensor) -> Tensor:
    """Return this tensor after setting all elements to zero.

    Raises
    ------
    InplaceError
        If this tensor is a leaf that requires grad, or otherwise may not be changed.

    Examples
    --------
    >>> import lucid
    >>> lucid.ones(2).zero_()
    tensor([0., 0.])
    """
    return copy_(self, 0)


@seen_as_one
def fill_diagonal_(self: Tensor, fill_value: object) -> Tensor:
    """Return this matrix after setting the elements of its main diagonal to `fill_value`.

    Parameters
    ----------
    fill_value : number
        The value.

    Raises
    ------
    ShapeError
        If this tensor has not two dimensions.
    InplaceError
        If it is a leaf that requires grad, or otherwise may not be changed.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 3).fill_diagonal_(1)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if self.array.ndim != 2:
        raise ShapeError(f"fill_diagonal_: expected a matrix, got {describe(self)}")
    check_target(self)
    if not writeable(self.array):  # its diagonal may not share what the matrix does
        raise memory_error(self)
    fill_(diagonal.diagonal(self), fill_value)
    return self


def reshaped_in_place(function: Callable[Concatenate[Tensor, P], Tensor]) -> Callable[Concatenate[Tensor, P], Tensor]:
    """Return the in-place form of an op that gives another shape of the same memory.

    A view becomes another view of its base, which does not change. Views know their base by its shape, so that this may
    change only while nothing else is on the same memory.
    """

    def change(self: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> Tensor:
        if intercepted and thread.state.function_hooks:
            return seen(name, change, *in_positions(function, (self, *args), kwargs))
        check_target(self)
        view = self.origin
        if view is None and version_of(self) is not INFERENCE and references(self, "version") > SOLE:
            raise InplaceError(
                f"{name}: this tensor of {describe(self)} has views or is saved for backward: use {name[:-1]}(), which "
                "returns a view"
            )
        edge = live_edge(self)
        old: Any = wrap_on_graph(self.array, edge, self.version)
        old.origin = view
        # the shape changes whether that is recorded or not, and so must the position in the graph
        with inference_mode(False):
            other: Any = function(old, *args, **kwargs)
        self.array = other.array
        if self.version is not INFERENCE:
            self.version[0] += 1
        if view is not None:
            self.origin = other.origin
            other.origin.seen = self.version[0]
        if edge is not None and type(edge[0]) is AccumulateGrad:
            expect_form(self, edge)
        else:
            rebase(self, other.edge)
        return self

    name = f"{function.__name__}_"
    change.__name__ = change.__qualname__ = name
    change.__doc__ = f"""Return this tensor after giving it the shape of ``{name[:-1]}(self, ...)``.

    The elements stay where they are: a view becomes another view of its base. It counts as an in-place change.

    Raises
    ------
    InplaceError
        If it has views or is saved for backward, or is a leaf that requires grad, or otherwise may not be changed while
        gradients are recorded. Nothing is changed then.
    """
    return change
