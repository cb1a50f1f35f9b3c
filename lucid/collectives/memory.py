"""Tensors as collectives take them: contiguous arrays, read now or written when the collective has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

from lucid.arguments import unfit
from lucid.autograd.base import INFERENCE, TensorBase, describe, version_of
from lucid.autograd.engine.node import AccumulateGrad, Node
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.attach import attach
from lucid.autograd.recording.views import before_change, check_change, live_edge, memory_error, place_anew
from lucid.base.arrays import namespace, on
from lucid.base.device import device_of
from lucid.base.memory import writeable
from lucid.errors import DeviceError, NotDifferentiableError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lucid.autograd.base import Edge
    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.collectives.work import Steps


def contiguous(array: Array) -> Array:
    """Return `array`, or a copy of it in one piece."""
    if array.flags.c_contiguous:
        return array
    with on(array):
        return namespace(array).ascontiguousarray(array)


def stacked(arrays: Sequence[Array]) -> Array:
    """Return arrays of one shape as the rows of one."""
    with on(arrays[0]):
        xp = namespace(arrays[0])
        return xp.ascontiguousarray(xp.stack(arrays))  # `stack` keeps the order of strides


def tensor_of(tensor: object, name: str) -> TensorBase:
    """Return `tensor` if it is one."""
    if not isinstance(tensor, TensorBase):
        raise unfit(tensor, "a Tensor", name)
    return tensor


def tensors_of(tensors: object, name: str, count: int) -> list[TensorBase]:
    """Return a list of so many tensors, as a user gave it."""
    if not isinstance(tensors, list | tuple):
        raise unfit(tensors, f"a list of {count} tensors, one for each process", name)
    checked = [tensor_of(each, name) for each in cast("list[object]", tensors)]
    if len(checked) != count:
        raise ShapeError(f"{name}: expected {count} tensors, one for each process, got {len(checked)}")
    return checked


def check_same_form(tensors: Iterable[TensorBase], like: TensorBase, name: str) -> None:
    """Raise unless all tensors are of the shape, the dtype and the device of `like`."""
    for each in tensors:
        if describe(each) != describe(like):
            raise ShapeError(f"{name}: expected tensors alike, of {describe(like)}, got {describe(each)}")


def check_device(tensors: Iterable[TensorBase], like: TensorBase, name: str) -> None:
    """Raise unless all tensors are on the device of `like`."""
    for each in tensors:
        if device_of(each.array) != device_of(like.array):
            raise DeviceError(
                f"{name}: expected tensors on one device, got {device_of(like.array)} and {device_of(each.array)}"
            )


def device_type(tensor: TensorBase) -> str:
    """Return "cpu" or "cuda"."""
    return device_of(tensor.array).type


def check_memory(tensor: TensorBase) -> None:
    """Raise `InplaceError` if a tensor's memory is to be read only, or several of its elements share some."""
    if not writeable(tensor.array):
        raise memory_error(tensor)


class CollectiveBackward(Node):
    """The node of a tensor on the graph after a collective has written into it: backward ends here."""

    __slots__ = ("what",)

    def __init__(self, what: str, tensor: TensorBase) -> None:
        self.what = what
        attach(self, (tensor.edge,), tensor.array)

    def backward(self, m: Namespace, grad: Array, quiet: Callable[..., Any]) -> NoReturn:
        """Raise: the graph of this process does not know the values received from others."""
        raise NotDifferentiableError(
            f"backward: {self.what} has written into a tensor on the graph, and a collective has no derivative: let "
            "backward begin with the values from before, and give the collective tensor.detach().clone()"
        )


class Target:
    """A tensor that a collective writes into.

    The result of an op on the graph may be one, such as a loss that is only shown: backward through it raises.

    Raises
    ------
    InplaceError
        If its memory is to be read only, or several of its elements share some; if it is a view which an op may not
        change in place while that is recorded.
    """

    def __init__(self, tensor: TensorBase, name: str) -> None:
        check_memory(tensor)
        base = tensor if tensor.origin is None else tensor.origin.base
        self.recorded = bool(thread.state.recording) and (_is_result(live_edge(tensor)) or _is_result(base.edge))
        check_change(tensor, recording=self.recorded)
        before_change(tensor)
        self.name = name
        self.tensor = tensor
        self.array = tensor.array
        self.buffer = contiguous(self.array)

    def mark_written(self) -> None:
        """Take note that its elements change from now on."""
        version = version_of(self.tensor)
        if version is not INFERENCE:
            version[0] += 1
        if self.recorded:
            place_anew(self.tensor, (CollectiveBackward(self.name, self.tensor), 0))

    def store(self) -> None:
        """Write the received values into the tensor."""
        if self.buffer is not self.array:
            with on(self.array):
                self.array[...] = self.buffer


def _is_result(edge: Edge | None) -> bool:
    """Return whether a tensor at this position of the graph is the result of an op, and no leaf."""
    return edge is not None and type(edge[0]) is not AccumulateGrad


def filled(steps: Steps, targets: Sequence[Target], buffer: Any = None) -> Steps:
    """Take `steps`, then write the received values: each target's own buffer, or the rows of `buffer`."""
    yield from steps
    for index, target in enumerate(targets):
        if buffer is None:
            target.store()
        else:
            with on(target.array):
                target.array[...] = buffer[index].reshape(target.array.shape)
