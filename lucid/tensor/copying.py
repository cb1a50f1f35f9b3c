"""Copies of whole tensors: `copy.deepcopy` and pickle."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import grad_of, mark_inference
from lucid.autograd.engine.node import accumulator_of
from lucid.base.arrays import Array, copied, to_device
from lucid.base.device import device_of
from lucid.errors import GraphError

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def check_leaf(self: Tensor, action: str) -> None:
    """Raise `GraphError` unless the tensor is a leaf: the graph of another cannot be copied with it."""
    if not self.is_leaf:
        raise GraphError(
            f"only Tensors created explicitly by the user (graph leaves) support {action}: this one was made by "
            f"{self.grad_fn}; use detach() or clone()"
        )


def rebuild(kind: type[Any], array: Array, device: str, requires_grad: bool, attributes: dict[str, Any]) -> Any:
    """Return a leaf of class `kind` from the values that pickle has kept of it."""
    tensor: Any = object.__new__(kind)
    tensor.array = to_device(array, device)
    tensor.origin = None
    mark_inference(tensor)
    tensor.edge = (accumulator_of(tensor), 0) if requires_grad else None
    for name, value in attributes.items():
        setattr(tensor, name, value)
    return tensor


def shallow_copy(self: Tensor) -> Tensor:
    """Return another leaf on the same memory with the same attributes of the user's, without its `.grad` and hooks.

    Raises
    ------
    GraphError
        If the tensor is no leaf.
    """
    check_leaf(self, "the copy protocol")
    return rebuild(type(self), self.array, str(device_of(self.array)), self.requires_grad, vars(self))


def deep_copy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """Return a copy of a leaf with memory of its own; its `.grad` and attributes are copied too, its hooks are not.

    Raises
    ------
    GraphError
        If the tensor is no leaf.
    """
    if id(self) in memo:
        return memo[id(self)]
    check_leaf(self, "the deepcopy protocol")
    array = copied(self.array)
    made = rebuild(type(self), array, str(device_of(array)), self.requires_grad, {})
    memo[id(self)] = made
    made.stored_grad = copy.deepcopy(grad_of(self), memo)
    for name, value in vars(self).items():
        setattr(made, name, copy.deepcopy(value, memo))
    return made


def reduce(self: Tensor) -> tuple[Any, ...]:
    """Return pickle's values of a leaf: elements, dtype, device, whether it requires grad, and the user's attributes.

    Raises
    ------
    GraphError
        If the tensor is no leaf.
    """
    check_leaf(self, "pickling")
    array = to_device(self.array, "cpu")
    return rebuild, (type(self), array, str(device_of(self.array)), self.requires_grad, dict(vars(self)))
