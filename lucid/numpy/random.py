"""`numpy.random`, or CuPy's if the default device is a CUDA device: parameters of draws cannot require grad."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.recording.mutation import allows_mutation
from lucid.base.device import get_default_device
from lucid.numpy.border import any_recorded, called, made_on, names_of, plain
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
        with counted(name, written(name, function, args, kwargs)):
            args, kwargs = plain(args), {key: plain(value) for key, value in kwargs.items()}
            drawn = made_on(get_default_device(), name, function, args, kwargs)
        return to_fill(drawn) if allows_mutation() else drawn

    return draw


class _Kind(type):
    """The class of the classes of generators: NumPy's own generators are instances of these, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__base__ or cls)


def _shuffling(kind: Any) -> Any:
    """Return a class of NumPy's generators with a `shuffle` that also takes tensors."""

    @functools.wraps(kind.shuffle)
    def shuffle(self: Any, x: Any, axis: int = 0) -> None:
        if not isinstance(x, TensorBase):
            kind.shuffle(self, x, *(axis,) * bool(axis))
            return
        # NumPy would exchange rows in place, of which each is a view, and lose some
        into: Any = x
        size: int = into.array.shape[axis]
        order = np.arange(size)
        kind.shuffle(self, order)
        into[...] = called("take", np.take, (into, order, axis), {})

    def reduced(self: object) -> tuple[object, ...]:
        return made, *kind.__reduce__(self)[1:]

    made: Any = _Kind(kind.__name__, (kind,), {"shuffle": shuffle, "__reduce__": reduced, "__module__": __name__})
    return made


Generator, RandomState = _shuffling(np.random.Generator), _shuffling(np.random.RandomState)


def default_rng(seed: object = None) -> Any:
    """Return a generator of NumPy's, or CuPy's if the default device is a CUDA device.

    Parameters
    ----------
    seed : int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        What NumPy's takes; without one the system's entropy.

    Raises
    ------
    NumpyCallError
        If `seed` requires grad.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> x = np.arange(4.0)
    >>> np.random.default_rng(0).shuffle(x)
    >>> sorted(x.tolist())
    [0.0, 1.0, 2.0, 3.0]
    """
    made = drawing("random.default_rng", np.random.default_rng)(seed)
    return Generator(made.bit_generator) if type(made) is np.random.Generator else made


__getattr__, __dir__ = names_of("random", globals(), drawing)
