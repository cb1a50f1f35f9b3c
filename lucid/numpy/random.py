"""`numpy.random`, or CuPy's if the default device is a CUDA device: parameters of draws cannot require grad."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.mutation import allows_mutation
from lucid.base import gpu
from lucid.base.device import get_default_device
from lucid.numpy.border import any_recorded, names_of, on_device, plain
from lucid.numpy.results import to_fill
from lucid.numpy.writes import counted, written
from lucid.tensor.numpy_calls.operands import NumpyCallError

if TYPE_CHECKING:
    from collections.abc import Callable


def drawing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return one of NumPy's functions that draw, on the default device."""

    @functools.wraps(function)
    def draw(*args: object, **kwargs: object) -> Any:
        if any_recorded((*args, *kwargs.values())):
            raise NumpyCallError(
                f"numpy.{name}: what is drawn from requires grad: draw standard numbers and shape them, "
                "loc + scale * standard_normal(), or use rsample() of lucid.distributions"
            )
        device = get_default_device()
        with counted(name, written(name, function, args, kwargs)):
            args, kwargs = plain(args), {key: plain(value) for key, value in kwargs.items()}
            if device.type == "cpu":
                drawn = function(*args, **kwargs)
            else:
                with gpu.use_device(device.index or 0):
                    drawn = on_device(name)(*args, **kwargs)
        return to_fill(drawn) if allows_mutation() else drawn

    return draw


__getattr__, __dir__ = names_of("random", globals(), drawing)
