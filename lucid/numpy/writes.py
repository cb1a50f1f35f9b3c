"""Writes of NumPy's functions into tensors: counted as changes in place, once the values saved of them are kept."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.autograd.base import INFERENCE, TensorBase, version_of
from lucid.autograd.recording.views import before_change, check_change
from lucid.base import gpu
from lucid.base.arrays import copied, namespace
from lucid.ops.shape.reshape import clone
from lucid.tensor.numpy_calls.definition import parameters_of
from lucid.tensor.numpy_calls.operands import is_sequence, tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

WRITES = {
    "copyto": "dst", "fill_diagonal": "a", "place": "arr", "put": "a", "put_along_axis": "arr", "putmask": "a",
    "random.shuffle": "x",
}  # fmt: skip
"""The functions that write into their first argument, and the name of that."""

OUTPUTS = ("out", "output", "distances")
"""Parameters for arrays to write into: NumPy's, and those of `scipy.ndimage`."""


@contextmanager
def counted(name: str, targets: list[TensorBase]) -> Generator[None]:
    """Count the writes of a function into tensors, at the end of the block.

    Raises
    ------
    InplaceError
        If one may not be changed.
    """
    for target in targets:
        check_change(target, recording=False)
        before_change(target)
    is_refused = False
    try:
        yield
    except (TypeError, ValueError):
        # NumPy looks at shapes and dtypes before it writes; SciPy's solvers fail with their operands written over
        is_refused = not name.startswith("scipy.")
        raise
    finally:
        for target in targets:
            if not is_refused and (version := version_of(target)) is not INFERENCE:
                version[0] += 1


def written(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[TensorBase]:
    """Return the tensors that a function writes into: those given as `out`, and those that it is meant to change."""
    if next(tensors_in((*args, *kwargs.values())), None) is None:
        return []
    if name in WRITES:
        targets = args[:1] or (kwargs.get(WRITES[name]),)
    elif name.endswith(".at"):
        targets = args[:1]
    elif isinstance(function, np.ufunc):
        targets = (*args[function.nin :], kwargs.get("out"))
    elif not (kwargs or name == "nan_to_num" or may_write(function)):
        return []
    else:
        parameters = parameters_of(function)
        arguments = {**dict(zip(parameters.positional if parameters else (), args, strict=False)), **kwargs}
        targets = [arguments.get(key) for key in OUTPUTS]
        if name == "nan_to_num" and not arguments.get("copy", True):
            targets.append(arguments["x"])
        if name.startswith("scipy.ndimage.distance"):
            targets.append(arguments.get("indices"))
        for key, value in arguments.items():
            if key.startswith("overwrite_") and value:
                targets += overwritten(key, arguments)
    return [*tensors_in(targets)]


def overwritten(option: str, arguments: dict[str, Any]) -> list[Any]:
    """Return the arguments that an option names: one by ``overwrite_a``, some by ``overwrite_qru``, or else all."""
    name = option.removeprefix("overwrite_").lower()
    names = {name, *name} if name.startswith("qr") else {name}
    return [value for key, value in arguments.items() if key.lower() in names] or [*arguments.values()]


def apart(result: object, arguments: tuple[Any, ...]) -> Any:
    """Return results of a function that gives no views, copied if they share memory with an argument."""
    if type(result) is tuple:
        return tuple([apart(each, arguments) for each in cast("tuple[Any, ...]", result)])
    if not shares_memory(result, arguments):
        return result
    return clone(cast("Any", result)) if isinstance(result, TensorBase) else copied(result)


def shares_memory(result: object, arguments: Iterable[object]) -> bool:
    """Return whether an array lies in the memory of an argument, or of an entry of one."""
    array = array_of(result)
    return is_plain(array) and any(
        shares_memory(array, x)
        if is_sequence(x)
        else is_plain(x) and namespace(x) is namespace(array) and namespace(array).may_share_memory(array, x)
        for x in map(array_of, arguments)
    )


def is_plain(value: object) -> bool:
    """Return whether a value is an array of NumPy's or CuPy's."""
    return isinstance(value, np.ndarray) or gpu.is_gpu_array(value)


def array_of(value: object) -> Any:
    """Return the array of a tensor; anything else as it is."""
    return value.array if isinstance(value, TensorBase) else value


@functools.cache
def may_write(function: Callable[..., Any]) -> bool:
    """Return whether a function has parameters for arrays to write into."""
    parameters = parameters_of(function)
    return parameters is not None and any(
        key in OUTPUTS or key.startswith("overwrite_") for key in parameters.positional
    )
