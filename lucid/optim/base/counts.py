"""The numbers of the states of parameters, such as counts of steps, read and written together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lucid.base.ownership import SOLE, references
from lucid.optim.base.slots import put

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


class Counts:
    """The numbers of the states of some parameters that have the same ones, as many of each.

    Each stays what its tensor shows: who reads it there, or writes to it, sees and changes these.

    Parameters
    ----------
    held : list of list of Tensor
        By parameter; float32 numbers of no dimension.
    initial : float
        What stands for the count of those that have none: 0 before the first step, infinity after it.
    """

    def __init__(self, held: list[list[Tensor]], initial: float) -> None:
        self._initial = initial
        self._rows, self._each = len(held), len(held[0])
        self._arrays = [tensor.array for own in held for tensor in own]
        self._vector: Array | None = None
        self._places: Array | None = None

    def lay_side_by_side(self, tensors: list[Tensor]) -> None:
        """Put the CPU numbers that only their tensors hold into one vector, read or written by one call."""
        self._arrays = []
        self._vector, self._places = _side_by_side(tensors)
        self._arrays = [tensor.array for tensor in tensors]

    def read(self) -> tuple[float, ...] | None:
        """Return the numbers that all parameters have; None if they no longer have the same."""
        if not self._each:
            return (self._initial,)
        if self._vector is not None:
            now = self._vector[self._places]
        else:
            now = np.array([array.item() for array in self._arrays])
        first = now[: self._each]
        return tuple(first.tolist()) if now.tobytes() == first.tobytes() * self._rows else None

    def write(self, values: list[float]) -> None:
        """Give all parameters these numbers."""
        self._initial = math.inf
        if self._vector is not None:
            self._vector[self._places] = values * self._rows
            return
        for number, array in enumerate(self._arrays):
            put(array, values[number % self._each])


def _side_by_side(tensors: list[Tensor]) -> tuple[Array | None, Array | None]:
    """Return a vector with the numbers of tensors, and their places in it; None if they lie elsewhere."""
    if len(set(map(id, tensors))) != len(tensors):
        return None, None
    alone = [tensor for tensor in tensors if references(tensor, "array") == SOLE and _is_number(tensor.array)]
    if len(alone) > 1:
        made = np.array([tensor.array for tensor in alone])
        for place, tensor in enumerate(alone):
            tensor.array = made[place, ...]
    vector = tensors[0].array.base if tensors and type(tensors[0].array) is np.ndarray else None
    if type(vector) is not np.ndarray or vector.ndim != 1 or not vector.flags.c_contiguous:
        return None, None
    if not all(tensor.array.base is vector and tensor.array.dtype is vector.dtype for tensor in tensors):
        return None, None
    addresses = [tensor.array.__array_interface__["data"][0] for tensor in tensors]
    start = vector.__array_interface__["data"][0]
    return vector, (np.array(addresses) - start) // vector.itemsize


def _is_number(array: Array) -> bool:
    """Return whether an array is one float32 number in memory of its own on the CPU."""
    return type(array) is np.ndarray and array.base is None and array.dtype == np.float32 and not array.shape
