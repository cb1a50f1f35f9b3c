"""Numbers as users write them: a tensor of no dimension counts as its element."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import named, unfit
from lucid.autograd.base import TensorBase, describe
from lucid.autograd.recording.views import live_edge
from lucid.base.arrays import asarray
from lucid.base.dtype import bfloat16
from lucid.base.foreign.reading import plain as unmasked
from lucid.errors import ArgumentError, DtypeError

if TYPE_CHECKING:
    from lucid.base.dtype import dtype as dtype_class


def as_int(value: Any, argument: str) -> int:
    """Return `value` as an int.

    Parameters
    ----------
    value : int, or 0-dim Tensor of integers
        On CUDA a tensor is waited for.
    argument : str
        The parameter, for the message.

    Raises
    ------
    ArgumentError
        If it is anything else.
    """
    if type(value) is int:
        return value
    if not isinstance(value, TensorBase):
        known: Any = unmasked(value) if isinstance(value, np.ndarray) else value
        try:
            return operator.index(known)
        except TypeError:
            pass
    elif not value.array.ndim and value.array.dtype.kind in "iu":
        return int(value.array)
    raise no_number(value, "an int or a 0-dim tensor of integers", argument)


def as_bool(value: Any, argument: str) -> bool:
    """Return `value`, a bool; raise for anything else: another true value is likely a misplaced argument."""
    if type(value) in {bool, np.bool_}:
        return bool(value)
    raise no_number(value, "a bool", argument)


def as_number(value: Any, argument: str) -> Any:
    """Return `value` as a real Python number.

    Parameters, and what is refused, as for `as_scalar`; besides, a DtypeError says that a complex number is none.
    """
    if type(value) is float or type(value) is int:
        return value
    number = as_scalar(value, argument)
    if isinstance(number, complex):
        raise unfit(value, "a real number", argument, DtypeError)
    return number


def as_scalar(value: Any, argument: str) -> Any:
    """Return `value` as a Python number, real or complex.

    Parameters
    ----------
    value : number, or 0-dim Tensor that does not require grad
        On CUDA a tensor is waited for.
    argument : str
        The parameter, for the message.

    Raises
    ------
    ArgumentError
        If it is anything else. A setting has no gradient: a tensor that requires grad would silently get none.
    """
    if type(value) is float or type(value) is int:
        return value
    if isinstance(value, TensorBase):
        if not value.array.ndim and live_edge(value) is None:
            return plain(value.array)
    elif isinstance(value, np.ndarray | np.generic):
        array: Any = unmasked(value)
        if not array.ndim and (array.dtype.kind in "biufc" or array.dtype == bfloat16.numpy):
            return plain(array)
    elif isinstance(value, int | float | complex):
        return value
    raise no_number(value, "a number or a 0-dim tensor that does not require grad", argument)


def as_element(value: Any, dtype: dtype_class, argument: str) -> Any:
    """Return `value`, a number as for `as_scalar`, as an element of `dtype`; a DtypeError says that it does not fit."""
    number = as_scalar(value, argument)
    if isinstance(number, complex) and not dtype.is_complex:
        raise DtypeError(f"{named(value, argument)}: complex numbers do not fit {dtype}, got {number}")
    return asarray(number, dtype, "cpu").item()


def plain(array: Any) -> Any:
    """Return the element of an array of no dimension as a Python number; NumPy's bfloat16 has none of its own."""
    return float(array) if array.dtype.kind == "V" else array.item()


def no_number(value: Any, wanted: str, argument: str) -> ArgumentError:
    """Return the error of a value that is no such number; for a tensor it names shape and dtype."""
    if not isinstance(value, TensorBase):
        return unfit(value, wanted, argument)
    got = f"a tensor of {describe(value)}" + (" that requires grad" if live_edge(value) is not None else "")
    return ArgumentError(f"{named(value, argument)}: expected {wanted}, got {got}")


def is_single(value: Any) -> bool:
    """Whether a setting is one number, and not one for each dimension; arrays of no dimension have no length."""
    return not (hasattr(value, "__len__") and getattr(value, "ndim", 1)) or isinstance(value, str)
