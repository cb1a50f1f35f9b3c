"""Tensors that a graph reads its inputs from: made like samples, checked, and filled before each replay."""

from __future__ import annotations

from typing import Any

from lucid.arguments import shown
from lucid.autograd.base import TensorBase, describe, wrap
from lucid.autograd.hooks.structure import StructureError, map_leaves, paired
from lucid.base import gpu
from lucid.errors import ArgumentError, DeviceError, DtypeError, ShapeError

_DEVICE_TO_DEVICE = 3


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors in nested tuples, lists and dicts, in their order."""
    tensors: list[Any] = []

    def visit(leaf: Any) -> Any:
        if isinstance(leaf, TensorBase):
            tensors.append(leaf)
        return leaf

    map_leaves(value, visit)
    return tensors


def static_input(name: str, device: int, value: Any) -> Any:
    """Return a tensor for the values of an input, a tensor on the device, of the function of this name."""
    if not isinstance(value, TensorBase):
        raise ArgumentError(
            f"{name}: expected tensors as inputs, got {shown(value)}: a graph would go on with this one; make it a "
            "CUDA tensor, or let the function close over it"
        )
    tensor: Any = value
    if not tensor.is_cuda or tensor.array.data.device_id != device:
        raise DeviceError(
            f"{name}: expected inputs on cuda:{device}, the current device, got one of {describe(tensor)}"
        )
    return tensor.detach().clone().contiguous().requires_grad_(tensor.requires_grad)


def tensors_like(name: str, static: Any, inputs: Any) -> list[Any]:
    """Return the tensors of inputs in the order of the static ones: dicts by their keys.

    Raises
    ------
    ArgumentError
        If there are others, or something else than a tensor stands in the place of one.
    """
    try:
        pairs = paired(static, inputs)
    except StructureError as error:
        raise ArgumentError(f"{name}: expected inputs as it was made for: {error}") from None
    tensors = [value for pattern, value in pairs if isinstance(pattern, TensorBase)]
    for value in tensors:
        if not isinstance(value, TensorBase):
            raise ArgumentError(f"{name}: expected tensors as inputs, got {shown(value)}")
    return tensors


def check_form(name: str, static: list[Any], inputs: list[Any]) -> None:
    """Raise unless the inputs have the form of those that a graph was captured for."""
    for number, (own, other) in enumerate(zip(static, inputs, strict=True)):
        ours, theirs = own.array, other.array
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            kind = ShapeError if ours.shape != theirs.shape else DtypeError
            raise kind(
                f"{name}: expected input {number} of {describe(own)}, as it was made for, got one of "
                f"{describe(other)}: make one for each shape, or pad"
            )


def copy_to_static(static: list[Any], inputs: list[Any]) -> None:
    """Copy inputs of the right form to the graph's own, on the current stream."""
    memory_copy, stream = gpu.cupy().cuda.runtime.memcpyAsync, gpu.current_stream().ptr
    held = {id(own.array.data.mem) for own in static}
    pairs = zip(static, inputs, strict=True)
    if any(x.is_cuda and id(x.array.data.mem) in held and x.array is not own.array for own, x in pairs):
        # one that lies where another one is copied to
        inputs = [wrap(x.array).clone() for x in inputs]
    for own, other in zip(static, inputs, strict=True):
        target, source = own.array, other.array
        if target is source:
            continue
        if other.is_cuda and source.data.device_id == target.data.device_id and source._c_contiguous:  # noqa: SLF001
            memory_copy(target.data.ptr, source.data.ptr, target.nbytes, _DEVICE_TO_DEVICE, stream)
        else:
            wrap(target).copy_(wrap(source))


def detached(leaf: Any, static: list[Any]) -> Any:
    """Return a tensor without its graph; a copy if it lies in the memory of inputs, as that changes."""
    if not isinstance(leaf, TensorBase):
        return leaf
    made = wrap(leaf.array)
    memory = getattr(leaf.array.data, "mem", None)
    return made.clone() if any(memory is own.array.data.mem for own in static) else made
