"""Indices of NumPy's: those that PyTorch's indexing takes as they are, and the elements named by the others."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.base import gpu
from lucid.numpy.border import called, plain
from lucid.tensor.numpy_calls.operands import in_native_order, is_sequence, untyped


def parts_of(key: Any) -> tuple[Any, ...]:
    """Return the parts of an index."""
    return key if type(key) is tuple else (key,)  # pyright: ignore[reportUnknownVariableType] - anything


def plain_key(key: Any) -> Any:
    """Return an index with arrays and numbers of NumPy's for tensors, and a list of numbers as the array that it is."""
    if isinstance(key, tuple):
        parts: Any = cast("Any", key)
        return tuple([plain_key(part) if not isinstance(part, tuple) else untyped.asarray(part) for part in parts])
    if isinstance(key, TensorBase):
        key = plain(key)
    elif is_sequence(key) or isinstance(key, range):
        key = np.asarray(plain(key)) if key else np.zeros(0, np.int64)
    # lucid has no dtype for unsigned integers, or takes them for masks
    if isinstance(key, np.unsignedinteger):
        return cast("Any", key).item()
    array: Any = key
    is_array = isinstance(key, np.ndarray) or gpu.is_gpu_array(key)
    array = in_native_order(array) if is_array else array
    return array.astype(np.int64) if is_array and array.dtype.kind == "u" else array


def is_plain_index(key: object, shape: tuple[int, ...]) -> bool:
    """Return whether PyTorch's indexing gives NumPy's result.

    It does not for negative steps, bools beside others, integers beside arrays, which are arrays to NumPy, and an
    Ellipsis between arrays, which parts them in NumPy also where it stands for no axis.
    """
    parts = parts_of(key)
    numbers = several = parted = False
    for part in parts:
        if part is ...:
            parted = several
        elif part is None:
            continue
        elif isinstance(part, slice):
            step: Any = cast("Any", part).step
            if step is not None and step < 0:
                return False
        elif isinstance(part, bool | np.bool_):
            return False
        elif isinstance(part, int | np.integer):
            numbers = True
        elif np.ndim(part := plain(part)):
            if parted:
                return False
            several = True
            if part.dtype == bool and (len(parts) > 1 or part.shape != shape[: part.ndim]):
                return False
        else:
            return False
    return not (numbers and several)


def has_ellipsis(key: object) -> bool:
    """Return whether an index has an Ellipsis: a single element is a view then."""
    return any(part is ... for part in parts_of(key))


def places(key: Any, shape: tuple[int, ...]) -> Any:
    """Return an index of the elements in a row: NumPy's own index of their numbers."""
    key = tuple(map(on_host, cast("Any", key))) if type(key) is tuple else on_host(key)
    return np.asarray(np.arange(math.prod(shape)).reshape(shape)[key])


def is_scalar(x: TensorBase) -> bool:
    """Return whether NumPy has a scalar here, a value that nothing changes.

    Reductions, ufuncs and single elements give such; an array of no dimension is a view, ``x[0, ...]``.
    """
    return not x.array.ndim and x.origin is None


def written_once(key: Any, value: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return an index that names each element once, and the last of the recorded values that are written there."""
    parts = parts_of(key)
    if all(part is None or isinstance(part, slice | int) or not np.ndim(part) or part.dtype == bool for part in parts):
        return key, value
    named = places(key, shape)
    once, last = np.unique(named.ravel()[::-1], return_index=True)
    if once.size == named.size:
        return key, value
    own: tuple[int, ...] = value.array.shape
    extra = max(len(own) - named.ndim, 0)
    if set(own[:extra]) == {1}:  # NumPy writes (1, 1, n) into (n,)
        value = value.reshape(own[extra:])
    values = called("broadcast_to", np.broadcast_to, (value, named.shape), {}).ravel()
    return np.unravel_index(once, shape), values[named.size - 1 - last]


def on_host(part: Any) -> Any:
    """Return a part of an index as NumPy takes it."""
    part = plain(part)
    return part.get() if gpu.is_gpu_array(part) else part
