"""Tensors of given values: zeros, ones, any other. Common rules: `lucid.ops.creation`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.base import gpu
from lucid.base.device import Device, as_device, device_of
from lucid.base.dtype import as_dtype, get_default_dtype, scalar_dtype
from lucid.base.functions import cupy_functions
from lucid.base.memory import check_size, no_room
from lucid.errors import ShapeError
from lucid.ops.base.dims import sizes_in
from lucid.ops.base.promotion import array_of, tensor_dtype
from lucid.ops.base.scalars import as_element, as_scalar
from lucid.ops.creation.data import leaf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.base.arrays import Number
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


def on_device(
    make: Callable[[Any], Any], device: Device, requires_grad: bool, *, pin_memory: bool = False, sized: bool = False
) -> Any:
    """Return the tensor that ``make(numpy or cupy)`` gives on a device; `sized` if its size was looked at before."""
    where = as_device(device)
    if where.type != "cpu":
        with gpu.use_device(where.index or 0):
            array = make(gpu.cupy() if sized else cupy_functions())
            return leaf(array, requires_grad, pin_memory=pin_memory)
    try:
        array = make(np)
    except MemoryError as error:
        raise no_room(error) from error
    return leaf(array, requires_grad, pin_memory=pin_memory)


def shape_of(sizes: tuple[Any, ...], name: str, dtype: Any) -> tuple[int, ...]:
    """Return the shape that a user wrote, of elements of NumPy's `dtype`."""
    shape = sizes_in(sizes)
    if any(size < 0 for size in shape):
        raise ShapeError(f"{name}: trying to create tensor with negative dimension: {list(shape)}; expected sizes >= 0")
    check_size(name, shape, dtype.itemsize)
    return shape


def dtype_for(dtype: Dtype | None) -> Any:
    """Return NumPy's form of `dtype`; of the default dtype for None."""
    return (get_default_dtype() if dtype is None else as_dtype(dtype)).numpy


def zeros(
    *size: int | Sequence[int],
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return zeros.

    >>> import lucid
    >>> lucid.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    kind = dtype_for(dtype)
    shape = shape_of(size, "zeros", kind)
    return on_device(lambda xp: xp.zeros(shape, kind), device, requires_grad, pin_memory=pin_memory, sized=True)


def ones(
    *size: int | Sequence[int],
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return ones.

    >>> import lucid
    >>> lucid.ones(2, dtype=lucid.int64)
    tensor([1, 1])
    """
    kind = dtype_for(dtype)
    shape = shape_of(size, "ones", kind)
    return on_device(lambda xp: xp.ones(shape, kind), device, requires_grad, pin_memory=pin_memory, sized=True)


def empty(
    *size: int | Sequence[int],
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor without set values: its memory keeps its former content.

    >>> import lucid
    >>> lucid.empty(2, 3).shape
    lucid.Size([2, 3])
    """
    kind = dtype_for(dtype)
    shape = shape_of(size, "empty", kind)
    return on_device(lambda xp: xp.empty(shape, kind), device, requires_grad, pin_memory=pin_memory, sized=True)


def full(
    size: int | Sequence[int],
    fill_value: Number | Tensor,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of one `size`, an int or a tuple, filled with `fill_value`.

    None as `dtype` is bool for a bool, int64 for an int, the default dtype for a float, its complex type for a complex
    number.

    >>> import lucid
    >>> lucid.full((2,), 3.5)
    tensor([3.5000, 3.5000])
    """
    value = as_scalar(fill_value, "fill_value")
    if dtype is None:
        dtype = tensor_dtype(fill_value) if isinstance(fill_value, TensorBase) else scalar_dtype(value)
    kind = as_dtype(dtype).numpy
    shape = shape_of((size,), "full", kind)
    number = as_element(value, as_dtype(dtype), "fill_value")
    return on_device(lambda xp: xp.full(shape, number, kind), device, requires_grad, pin_memory=pin_memory, sized=True)


def zeros_like(
    input: Tensor, *, dtype: Dtype | None = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return zeros of the shape of `input`.

    >>> import lucid
    >>> lucid.zeros_like(lucid.tensor([1, 2]))
    tensor([0, 0])
    """
    return zeros(array_of(input).shape, requires_grad=requires_grad, **like(input, dtype, device))


def like(input: Tensor, dtype: Dtype | None, device: Device) -> dict[str, Any]:
    """Return dtype and device, with those of `input` in place of None."""
    return {
        "dtype": tensor_dtype(input) if dtype is None else dtype,
        "device": device_of(input.array) if device is None else device,
    }


def ones_like(
    input: Tensor, *, dtype: Dtype | None = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return ones of the shape of `input`.

    >>> import lucid
    >>> lucid.ones_like(lucid.tensor([1.0, 2.0]))
    tensor([1., 1.])
    """
    return ones(array_of(input).shape, requires_grad=requires_grad, **like(input, dtype, device))


def empty_like(
    input: Tensor, *, dtype: Dtype | None = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor of the shape of `input` without set values: its memory keeps its former content.

    >>> import lucid
    >>> lucid.empty_like(lucid.zeros(2, 3)).shape
    lucid.Size([2, 3])
    """
    return empty(array_of(input).shape, requires_grad=requires_grad, **like(input, dtype, device))


def full_like(
    input: Tensor,
    fill_value: Number | Tensor,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of the shape of `input`, filled with `fill_value`.

    >>> import lucid
    >>> lucid.full_like(lucid.tensor([1, 2]), 7)
    tensor([7, 7])
    """
    return full(array_of(input).shape, fill_value, requires_grad=requires_grad, **like(input, dtype, device))
