"""The class of results: an `ndarray` if they require grad or can be filled, else a plain array.

Ops make tensors of one class. What an op has just made nobody else holds, so that its class can be exchanged in place,
which costs 0.1 us; a tensor that was given stays what it was.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, version_of, wrap
from lucid.autograd.borrowing import ContentsVersion, counter_of
from lucid.autograd.recording.views import live_edge
from lucid.base import gpu
from lucid.base.dtype import DTYPES
from lucid.errors import ShapeError
from lucid.numpy.writes import array_of, is_plain, shares_memory
from lucid.ops.base.strided import address_of, as_strided, offset_of, strides_of
from lucid.ops.index.indexing import getitem
from lucid.tensor.numpy_calls.operands import is_sequence, tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lucid.base.arrays import Array

CAN_REQUIRE_GRAD = frozenset([each.numpy for each in DTYPES.values() if each.is_floating_point or each.is_complex])
"""NumPy's dtypes of which an array can hold what requires grad."""


class _Arrays:
    """The class of recorded arrays here; `lucid.numpy.arrays` sets its own."""

    kind: type[TensorBase] = TensorBase


arrays = _Arrays()


def settled(result: Any, arguments: Iterable[Any]) -> Any:
    """Return results as an `ndarray` if they require grad, else as plain arrays.

    If one of the `arguments` is returned, the result is a view of it.
    """
    if isinstance(result, TensorBase):
        if live_edge(result) is None:
            array: Any = result.array
            return array[()] if type(array) is np.ndarray and not array.ndim else array
        if type(result) is arrays.kind:
            return result
        if any(result is value for value in arguments):
            result = getitem(result, ...)  # pyright: ignore[reportArgumentType]
        result.__class__ = arrays.kind
        return result
    return rebuilt(result, [settled(each, arguments) for each in result]) if is_sequence(result) else result


def rebuilt(sequence: Any, entries: list[Any]) -> Any:
    """Return entries as a sequence of the same class, a named tuple too."""
    kind = sequence.__class__
    return kind(*entries) if hasattr(sequence, "_fields") else kind(entries)


def made(result: Any, *operands: object) -> Any:
    """Return the new result of an op, as `settled` of one tensor that is no view."""
    if result.edge is None:
        return to_fill(result) if result.array.ndim and any(map(is_to_fill, operands)) else settled(result, ())
    result.__class__ = arrays.kind
    return result


def is_to_fill(value: object) -> bool:
    """Return whether a value is an `ndarray` that can be filled: nothing that requires grad was written so far."""
    return type(value) is arrays.kind and live_edge(value) is None


def to_fill(array: object) -> Any:
    """Return a new array as an `ndarray` without a gradient so far, to be filled; integers as a plain array."""
    values: Any = array_of(array)
    # a matrix or a masked array stays one
    is_array = type(values) is np.ndarray or gpu.is_gpu_array(values)
    if not (is_array and values.dtype in CAN_REQUIRE_GRAD):
        return settled(array, ())
    result: Any = array if isinstance(array, TensorBase) else wrap(array)
    if not hasattr(result, "version"):
        # NumPy's iterators, and other libraries, write to it unseen
        result.version = counter_of(values)
    result.__class__ = arrays.kind
    return result


def new_to_fill(result: object, operands: tuple[object, ...]) -> Any:
    """Return results of plain values with new arrays as such that can be filled; views and numbers as they are."""
    if is_sequence(result):
        return rebuilt(result, [new_to_fill(each, operands) for each in result])
    # of memory that is no array's, as a buffer, there may be other arrays
    is_own = is_plain(result) and isinstance(getattr(result, "base", None), np.ndarray | None)
    return to_fill(result) if is_own and not shares_memory(result, operands) else result


def hand_over(values: Iterable[object]) -> None:
    """Mark arrays to be filled as kept by others, so that nothing that requires grad is written into their memory."""
    for x in tensors_in(values):
        if is_to_fill(x) and type(version := version_of(x)) is ContentsVersion:
            version.is_read_by_others = True


def view_in(array: Array, tensors: list[Any]) -> Any:
    """Return a plain view as one of the tensor with its memory; one of none, or with negative steps, as it is."""
    for x in tensors:
        is_like = array.dtype == x.array.dtype and type(array) is type(x.array)
        if is_like and min(array.strides, default=0) >= 0 and shares_memory(array, (x,)):
            start = offset_of(x) + (address_of(array) - address_of(x.array)) // array.dtype.itemsize
            with suppress(ShapeError):
                return as_strided(x, array.shape, strides_of(array), start)
    return array
