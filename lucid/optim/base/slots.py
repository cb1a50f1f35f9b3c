"""The declared state of a parameter: initial values, places, the settings that require it, and counts of several."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import wrap
from lucid.base.arrays import Array, namespace, on, to_device
from lucid.base.device import beside, device_of
from lucid.base.ownership import SOLE, references
from lucid.errors import DeviceError, ShapeError
from lucid.optim.base.settings import rate_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lucid.optim.optimizer import Group, Optimizer
    from lucid.tensor import Tensor


class Slot(NamedTuple):
    """One entry of a parameter's state: an array like the parameter, or one float32 number.

    Attributes
    ----------
    begins : float or str
        Each element at first, of complex ones both parts: a number, or the setting that says it.
    asked_by : str
        The setting without which, being 0 or False, a parameter has no such state; or "".
    scalar : bool
        Whether it is one number: on the CPU, since reading it back from a device would wait for it, unless steps are
        counted on the device.
    """

    begins: float | str = 0.0
    asked_by: str = ""
    scalar: bool = False

    def made(self, param: Tensor, group: Group, *, on_device: bool) -> Tensor:
        """Return the initial state of a parameter; a number is on its device if `on_device`."""
        value: Any = self.begins
        if isinstance(value, str):
            value = rate_of(group) if value == "lr" else group[value]
        array = param.array
        shape, dtype = ((), np.dtype(np.float32)) if self.scalar else (array.shape, array.dtype)
        if dtype.kind == "c":
            value = complex(value, value)
        xp = np if self.scalar and not on_device else namespace(array)
        with on(array):
            return wrap(xp.full(shape, value, dtype) if value else xp.zeros(shape, dtype))


def counts_on_device(optimizer: Optimizer, group: Group) -> bool:
    """Return whether the numbers of the state of a group lie on the parameters' CUDA devices."""
    return bool(group.get(optimizer.counted_by))


STEPS = Slot(scalar=True)
"""The number of steps that a parameter has made, which stands under ``"step"``."""


def moved(state: Mapping[str, Tensor], names: Iterable[str], like: Array) -> dict[str, Tensor]:
    """Return the numbers of a parameter's state that lie on another device than an array, copied to its device."""
    elsewhere: dict[str, Tensor] = {}
    for name in names:
        array = state[name].array
        if not beside(array, like):
            elsewhere[name] = wrap(to_device(array, device_of(like)))
    return elsewhere


def check_devices(param: Array, beside_it: Iterable[tuple[str, Array]]) -> None:
    """Raise `DeviceError` if an array that a step takes with a parameter, by its name, is on another device."""
    for name, array in beside_it:
        if not beside(array, param):
            raise DeviceError(
                f"step: a parameter of shape {param.shape} lies on {device_of(param)}, and {name} on "
                f"{device_of(array)}: expected both on one device; move parameters before the optimizer is made, or, "
                "moved since, clear their gradients and load the optimizer's state_dict() again, which moves the state"
            )


def unlike_parameters(words: str) -> ShapeError:
    """Return the error of gradients or state that are not shaped like their parameters, as `words` say."""
    return ShapeError(f"step: {words}: where p.data was set to another shape, clear p.grad and make a new optimizer")


def put(array: Array, value: float) -> None:
    """Write a number of a state, wherever it lies."""
    if type(array) is np.ndarray:
        # two thirds of the time of `+= 1`
        array.fill(value)
    else:
        with on(array):
            array.fill(value)


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
