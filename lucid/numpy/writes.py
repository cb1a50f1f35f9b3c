"""Writes of NumPy's functions into tensors: counted as changes in place, once the values saved of them are kept."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.autograd.base import INFERENCE, TensorBase, version_of
from lucid.autograd.recording.views import before_change, check_change
from lucid.base import gpu
from lucid.base.arrays import namespace
from lucid.ops.shape.reshape import clone
from lucid.tensor.numpy_calls.definition import tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES = frozenset(("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"))
"""The functions that write into their first argument."""


def count_writes(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a write into tensors: those given to a function as `out`, and those that it is meant to change.

    Raises
    ------
    InplaceError
        If one may not be changed.
    """
    for target in written(name, function, args, kwargs):
        check_change(target, recording=False)
        before_change(target)
        if (version := version_of(target)) is not INFERENCE:
            version[0] += 1


def written(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[TensorBase]:
    """Return the tensors that a function writes into."""
    if name in WRITES or name.endswith(".at"):
        targets = args[:1] or tuple(kwargs.values())[:1]
    elif isinstance(function, np.ufunc):
        targets = (*args[function.nin :], kwargs.get("out"))
    elif name.startswith("scipy."):
        targets = written_by_scipy(name, function, args, kwargs)
    else:
        place = place_of_out(function)
        targets = (args[place] if 0 <= place < len(args) else kwargs.get("out"),)
    return [*tensors_in(targets)]


def apart(result: Any, arguments: tuple[Any, ...]) -> Any:
    """Return results of a function that gives no views, copied if they share memory with an argument."""
    if type(result) is tuple:
        return tuple([apart(each, arguments) for each in cast("tuple[Any, ...]", result)])
    is_tensor, array = isinstance(result, TensorBase), array_of(result)
    if is_plain(array):
        for x in map(array_of, arguments):
            if type(x) is type(array) and namespace(array).may_share_memory(array, x):
                return clone(result) if is_tensor else array.copy()
    return result


def is_plain(value: object) -> bool:
    """Return whether a value is an array of NumPy's or CuPy's."""
    return isinstance(value, np.ndarray) or gpu.is_gpu_array(value)


def array_of(value: Any) -> Any:
    """Return the array of a tensor; anything else as it is."""
    return value.array if isinstance(value, TensorBase) else value


def written_by_scipy(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
    """Return the outputs of one of SciPy's functions, and the operands that it may overwrite."""
    names = parameters_of(function)
    operands = {**dict(zip(names, args, strict=False)), **kwargs}
    targets = [operands.get(key) for key in ("out", "output")]
    if name.startswith("scipy.ndimage.distance"):
        targets += [operands.get(key) for key in ("distances", "indices")]
    for key, value in operands.items():
        if key.startswith("overwrite_") and value:
            target = key.removeprefix("overwrite_").lower()
            # of a decomposition's factors and an update, all in one word
            letters = target if target.startswith("qr") else ""
            targets += [each for other, each in operands.items() if other.lower() in {target, *letters}]
    return targets


@functools.lru_cache(256)  # methods of objects among them
def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters of a function that may be given by position."""
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    try:
        return tuple([key for key, each in inspect.signature(function).parameters.items() if each.kind in kinds])
    except (TypeError, ValueError):
        return ()


@functools.cache
def place_of_out(function: Callable[..., Any]) -> int:
    """Return the place of `out` among the arguments of a function; -1 if it goes by its name, or there is none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return -1
    names = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    return names.index("out") if "out" in names else -1
