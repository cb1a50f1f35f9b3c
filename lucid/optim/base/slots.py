"""The declared state of a parameter: initial values, places, and the settings that require it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import wrap
from lucid.base.arrays import Array, namespace, on, to_device
from lucid.base.device import beside, device_of
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
