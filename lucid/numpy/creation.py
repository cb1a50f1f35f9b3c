"""Functions that make arrays, on the wanted device: NumPy's function of the name, or CuPy's."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.recording.mutation import allows_mutation
from lucid.base.device import as_device, device_of
from lucid.numpy.border import any_recorded, array_on_device, called, computed, made_on, plain, wrapped
from lucid.numpy.results import is_to_fill, new_to_fill, settled
from lucid.tensor.numpy_calls.operands import is_recorded, is_sequence, tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.device import Device

CREATED = {
    "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "empty", "eye", "full", "geomspace",
    "identity", "indices", "linspace", "logspace", "ones", "tri", "zeros",
}  # fmt: skip


def creating(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's; with `device`, the default device if it is left out, one that makes arrays.

    What is made `like` a recorded array lies beside that, and can be filled with what requires grad; so can all that is
    made inside of `lucid.autograd.graph.allow_mutation_on_saved_tensors`.
    """
    if name not in CREATED:
        return wrapped(name, function)

    @functools.wraps(function)
    def create(*args: object, device: Any = None, like: object = None, **kwargs: object) -> Any:
        if (args and is_to_fill(args[0])) or any_recorded(args) or any_recorded(kwargs.values()):
            made = called(name, function, args, kwargs)
            return made if device is None else lying_on(device, made)
        if device is None and isinstance(like, TensorBase):
            device = device_of(like.array)
        elif like is not None:
            kwargs["like"] = like
        can_be_filled = allows_mutation() or is_recorded(like) or any(map(is_to_fill, tensors_in(args)))
        args, kwargs = plain(args), {key: plain(value) for key, value in kwargs.items()}
        made = plain_of(args, device, kwargs)
        return new_to_fill(made, args) if can_be_filled else made

    def plain_of(args: tuple[object, ...], device: Any, kwargs: dict[str, object]) -> Any:
        if device is None and array_on_device((*args, *kwargs.values())) is not None:
            return computed(name, function, args, kwargs)
        return made_on(as_device(device), name, function, args, kwargs)

    return create


def lying_on(device: Device, made: object) -> Any:
    """Return a result on a device, recorded by the graph; also all results of a tuple, such as points and a step."""
    if is_sequence(made):
        return tuple([lying_on(device, each) for each in made])
    tensor: Any = made if isinstance(made, TensorBase) else wrap(made)
    return settled(tensor.to(as_device(device)), ())
