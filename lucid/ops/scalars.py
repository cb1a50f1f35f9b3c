"""Numbers as users write them: where an op takes one, a tensor of no dimension counts as its element."""

from __future__ import annotations

import operator
from typing import Any, cast

import numpy as np

from lucid.autograd.base import TensorBase, describe
from lucid.autograd.views import live_edge
from lucid.errors import LucidError


class NumberError(LucidError, TypeError):
    """What should be a number is none, or a tensor that does not count as one."""


def as_int(value: Any, argument: str, name: str = "") -> int:
    """Return `value` as an int.

    Parameters
    ----------
    value : int, or 0-dim Tensor of integers
        On CUDA a tensor is waited for.
    argument, name : str
        The parameter and the op, for the message.

    Raises
    ------
    NumberError
        If it is anything else.
    """
    if type(value) is int:
        return value
    if not isinstance(value, TensorBase):
        try:
            return operator.index(value)
        except TypeError:
            pass
    elif not value.array.ndim and value.array.dtype.kind in "iu":
        return int(value.array)
    raise unfit(value, f"{argument} to be an int or a 0-dim tensor of integers", name)


def as_number(value: Any, argument: str, name: str = "") -> Any:
    """Return `value` as a Python number.

    Parameters
    ----------
    value : number, or 0-dim Tensor that does not require grad
        On CUDA a tensor is waited for.
    argument, name : str
        The parameter and the op, for the message.

    Raises
    ------
    NumberError
        If it is anything else. A setting has no gradient: a tensor that requires grad would silently get none.
    """
    if type(value) is float or type(value) is int:
        return value
    if isinstance(value, TensorBase):
        if not value.array.ndim and live_edge(value) is None:
            return plain(value.array)
    elif isinstance(value, np.ndarray | np.generic):
        array = cast("Any", value)
        if not array.ndim and array.dtype.kind in "biufcV":
            return plain(array)
    elif isinstance(value, int | float | complex):
        return value
    raise unfit(value, f"{argument} to be a number or a 0-dim tensor that does not require grad", name)


def plain(array: Any) -> Any:
    """Return the element of an array of no dimension as a Python number; NumPy's bfloat16 has none of its own."""
    return float(array) if array.dtype.kind == "V" else array.item()


def unfit(value: Any, wanted: str, name: str) -> NumberError:
    """Return the error of a value that is not what was wanted."""
    got = f"{type(value).__name__} {value!r}"
    if isinstance(value, TensorBase):
        got = f"a tensor of {describe(value)}" + (" that requires grad" if live_edge(value) is not None else "")
    return NumberError(f"{name}: expected {wanted}, got {got}" if name else f"expected {wanted}, got {got}")


def is_single(value: Any) -> bool:
    """Whether a setting is one number, and not one for each dimension; arrays of no dimension have no length."""
    return not (hasattr(value, "__len__") and getattr(value, "ndim", 1))
