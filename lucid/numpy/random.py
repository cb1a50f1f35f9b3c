"""`numpy.random`, or CuPy's where the default device is a CUDA device: what it draws from cannot require grad."""

from __future__ import annotations

import functools
from typing import Any

import numpy as _np

from lucid.backend import gpu as _gpu
from lucid.backend.device import get_default_device as _default_device
from lucid.numpy.border import any_recorded as _any_recorded
from lucid.numpy.border import on_device as _on_device
from lucid.numpy.border import plain as _plain
from lucid.tensor.numpy_calls.rules import NumpyCallError as _NumpyCallError


def __getattr__(name: str) -> Any:
    function = getattr(_np.random, name)
    if not callable(function) or isinstance(function, type):
        return function

    @functools.wraps(function)
    def draw(*args: Any, **kwargs: Any) -> Any:
        if _any_recorded((*args, *kwargs.values())):
            raise _NumpyCallError(
                f"numpy.random.{name}: what is drawn from requires grad: draw standard numbers and shape them, "
                "loc + scale * standard_normal(), or use rsample() of lucid.distributions"
            )
        args, kwargs = _plain(args), {key: _plain(value) for key, value in kwargs.items()}
        device = _default_device()
        if device.type == "cpu":
            return function(*args, **kwargs)
        with _gpu.use_device(device.index or 0):
            return _on_device(f"random.{name}")(*args, **kwargs)

    globals()[name] = draw
    return draw


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_np.random)})
