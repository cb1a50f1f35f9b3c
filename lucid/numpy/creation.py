"""Functions that make arrays, on the wanted device: NumPy's function of the name, or CuPy's."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, wrap
from lucid.base import gpu
from lucid.base.device import as_device
from lucid.numpy.border import any_recorded, array_on_device, called, computed, on_device, plain, settled, wrapped
from lucid.tensor.numpy_calls.operands import is_sequence

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.device import Device

CREATED = frozenset(
    (
        "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "empty", "eye", "full", "geomspace",
        "identity", "indices", "linspace", "logspace", "ones", "tri", "zeros",
    )
)  # fmt: skip


def creating(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's; with `device`, the default device if it is left out, one that makes arrays."""
    if name not in CREATED:
        return wrapped(name, function)

    @functools.wraps(function)
    def create(*args: object, device: Any = None, **kwargs: object) -> Any:
        if any_recorded(args) or any_recorded(kwargs.values()):
            made = called(name, function, args, kwargs)
            return made if device is None else lying_on(device, made)
        args, kwargs = plain(args), {key: plain(value) for key, value in kwargs.items()}
        if device is None and array_on_device((*args, *kwargs.values())) is not None:
            return computed(name, function, args, kwargs)
        place = as_device(device)
        if place.type == "cpu":
            return function(*args, **kwargs)
        with gpu.use_device(place.index or 0):
            return on_device(name)(*args, **kwargs)

    return create


def lying_on(device: Device, made: object) -> Any:
    """Return a result on a device, recorded by the graph; also all results of a tuple, such as points and a step."""
    if is_sequence(made):
        return tuple([lying_on(device, each) for each in made])
    tensor: Any = made if isinstance(made, TensorBase) else wrap(made)
    return settled(tensor.to(as_device(device)), ())
