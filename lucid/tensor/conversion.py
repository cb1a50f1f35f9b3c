"""Values out of a tensor, and the same values elsewhere: numbers, lists, other dtypes and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.backend.arrays import to_device
from lucid.errors import DtypeError, GraphError, ShapeError

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def item(self: Tensor) -> Any:
    """Return the only element as a Python number.

    Raises
    ------
    ShapeError
        If there is not exactly one element.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([2.5]).item()
    2.5
    """
    array = self.array
    if array.size != 1:
        raise ShapeError(
            f"a Tensor with {array.size} elements cannot be converted to Scalar: expected one element, got shape "
            f"{tuple(array.shape)}; use tolist(), or reduce it"
        )
    return number(array)


def number(array: Any) -> Any:
    """Return the only element of an array as a Python number; of bfloat16, NumPy gives no Python number."""
    value = array.item()
    return float(value) if array.dtype.kind == "V" else value


def tolist(self: Tensor) -> Any:
    """Return the elements as nested lists of Python numbers; a number for a tensor of no dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    array = to_device(self.array, "cpu")
    return (array.astype(np.float32) if array.dtype.kind == "V" else array).tolist()
