"""The functions of the array API that make arrays."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lucid.array_api.operands import checked_tensor, together
from lucid.autograd.base import TensorBase
from lucid.base.device import as_device
from lucid.base.dtype import get_default_dtype
from lucid.errors import SettingError
from lucid.ops.base.promotion import cast_to
from lucid.ops.creation import data, filling, ranges
from lucid.ops.elementwise import comparison
from lucid.ops.shape import diagonal
from lucid.ops.shape.joining import stack
from lucid.tensor import interop
from lucid.tensor.numpy_calls.operands import is_sequence, tensors_in
from lucid.tensor.numpy_calls.rules import creation as rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.array_api.operands import Number
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Dtype | None = None, device: Device = None
) -> Tensor:
    """Return ``arange`` of the array API."""
    first, last = (0, start) if stop is None else (start, stop)
    if (last - first) * step <= 0:
        # nothing lies between the two, which is no mistake
        first = last = 0.0 * step if isinstance(first + last, float) else 0 * step
    return ranges.arange(first, last, step, dtype=dtype, device=device)


def asarray(obj: Any, /, *, dtype: Dtype | None = None, device: Device = None, copy: bool | None = None) -> Tensor:
    """Return ``asarray`` of the array API: nested lists of tensors stay on the graph.

    Raises
    ------
    SettingError
        If a copy is needed, and `copy` is False.
    """
    if is_sequence(obj) and next(tensors_in(obj), None) is not None:
        if copy is False:
            raise SettingError("asarray: copy=False: tensors in a sequence are copied into one array: leave copy out")
        obj, copy = _stacked(obj, next(tensors_in(obj))), None
    return data.asarray(obj, dtype=dtype, device=device, copy=copy)


def _stacked(value: Any, like: Any) -> Any:
    """Return a number, or nested lists of tensors and numbers, as one tensor, beside `like`."""
    if is_sequence(value):
        return stack(together([_stacked(each, like) for each in value]))
    return value if isinstance(value, TensorBase) else data.as_tensor(value, device=like.device)


def empty(shape: int | Sequence[int], *, dtype: Dtype | None = None, device: Device = None) -> Tensor:
    """Return ``empty`` of the array API."""
    return filling.empty(_sizes(shape), dtype=dtype, device=device)


def zeros(shape: int | Sequence[int], *, dtype: Dtype | None = None, device: Device = None) -> Tensor:
    """Return ``zeros`` of the array API."""
    return filling.zeros(_sizes(shape), dtype=dtype, device=device)


def ones(shape: int | Sequence[int], *, dtype: Dtype | None = None, device: Device = None) -> Tensor:
    """Return ``ones`` of the array API."""
    return filling.ones(_sizes(shape), dtype=dtype, device=device)


def full(
    shape: int | Sequence[int], fill_value: Number | Tensor, *, dtype: Dtype | None = None, device: Device = None
) -> Tensor:
    """Return ``full`` of the array API: a tensor that fills has the sum of all gradients."""
    if isinstance(fill_value, TensorBase):
        return rules.full(_sizes(shape), asarray(fill_value, dtype=dtype, device=device))
    return filling.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def _sizes(shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes: Any = shape
    return (operator.index(sizes),) if hasattr(sizes, "__index__") else tuple(sizes)


def empty_like(x: Tensor, /, *, dtype: Dtype | None = None, device: Device = None) -> Tensor:
    """Return ``empty_like`` of the array API."""
    return filling.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Dtype | None = None, device: Device = None) -> Tensor:
    """Return ``zeros_like`` of the array API."""
    return filling.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Dtype | None = None, device: Device = None) -> Tensor:
    """Return ``ones_like`` of the array API."""
    return filling.ones_like(x, dtype=dtype, device=device)


def full_like(
    x: Tensor, /, fill_value: Number | Tensor, *, dtype: Dtype | None = None, device: Device = None
) -> Tensor:
    """Return ``full_like`` of the array API."""
    like: Any = checked_tensor(x)
    return full(like.shape, fill_value, dtype=dtype or like.dtype, device=device or like.device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Dtype | None = None, device: Device = None
) -> Tensor:
    """Return ``eye`` of the array API."""
    columns = n_rows if n_cols is None else n_cols
    # beyond the corners there is no diagonal, how far ever
    k = max(-n_rows, min(k, columns))
    row: Any = ranges.arange(n_rows, device=device)
    ones_at = comparison.eq(row.reshape(n_rows, 1) + k, ranges.arange(columns, device=device))
    return cast_to(ones_at, get_default_dtype() if dtype is None else dtype)


def linspace(
    start: Number,
    stop: Number,
    /,
    num: int,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    endpoint: bool = True,
) -> Tensor:
    """Return ``linspace`` of the array API: ends that are tensors have their gradients."""
    if isinstance(start, TensorBase) or isinstance(stop, TensorBase):
        return asarray(rules.linspace(*together((start, stop)), num, endpoint), dtype=dtype, device=device)
    if dtype is None:
        is_complex = isinstance(start, complex) or isinstance(stop, complex)
        dtype = get_default_dtype().to_complex() if is_complex else get_default_dtype()
    return data.as_tensor(np.linspace(start, stop, num, endpoint=endpoint), dtype, as_device(device))


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> list[Tensor]:
    """Return ``meshgrid`` of the array API."""
    return list(rules.meshgrid(arrays, indexing=indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return ``tril`` of the array API."""
    return diagonal.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return ``triu`` of the array API."""
    return diagonal.triu(x, k)


def from_dlpack(x: Any, /, *, device: Device = None, copy: bool | None = None) -> Tensor:
    """Return ``from_dlpack`` of the array API."""
    return interop.from_dlpack(x, device=device, copy=copy)
