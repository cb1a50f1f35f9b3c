"""Tensors as collectives take them: contiguous arrays, read now or written when the collective has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import unfit
from lucid.autograd.base import INFERENCE, TensorBase, describe, version_of
from lucid.autograd.engine.node import AccumulateGrad
from lucid.autograd.recording.views import before_change, check_change, memory_error
from lucid.backend.arrays import namespace, on
from lucid.backend.device import device_of
from lucid.backend.memory import writeable
from lucid.errors import DeviceError, GraphError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lucid.backend.arrays import Array
    from lucid.collectives.work import Steps

__all__ = ["Target", "check_alike", "contiguous", "device_type", "filled", "stacked", "tensors_of"]


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


def check_alike(tensors: Iterable[TensorBase], like: TensorBase, name: str) -> None:
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


class Target:
    """A tensor that a collective writes into.

    Raises
    ------
    GraphError
        If it is the result of an op on the graph: backward would go on as if nothing had been written.
    InplaceError
        If its memory is to be read only, or several of its elements share some.
    """

    def __init__(self, tensor: TensorBase, name: str) -> None:
        if tensor.edge is not None and type(tensor.edge[0]) is not AccumulateGrad:
            raise GraphError(
                f"{name}: the tensor of {describe(tensor)} is on the graph, and a collective has no derivative: pass "
                "tensor.detach(), whose memory it shares, or a clone of that"
            )
        check_memory(tensor)
        check_change(tensor, recording=False)
        before_change(tensor)
        self.tensor = tensor
        self.array = tensor.array
        self.buffer = contiguous(self.array)

    def begun(self) -> None:
        """Take note that its elements change from now on."""
        version = version_of(self.tensor)
        if version is not INFERENCE:
            version[0] += 1

    def store(self) -> None:
        """Write what has come into the tensor."""
        if self.buffer is not self.array:
            with on(self.array):
                self.array[...] = self.buffer


def filled(steps: Steps, targets: Sequence[Target], buffer: Any = None) -> Steps:
    """Take `steps`, then write what has come: each target's own buffer, or the rows of `buffer`."""
    yield from steps
    for index, target in enumerate(targets):
        if buffer is None:
            target.store()
        else:
            with on(target.array):
                target.array[...] = buffer[index].reshape(target.array.shape)
