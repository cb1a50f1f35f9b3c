"""How a tensor's elements lie in memory: sizes, strides, offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from lucid.autograd.base import TensorBase
from lucid.backend.device import device_of
from lucid.backend.dtype import dtype_of
from lucid.ops.dims import dim_in
from lucid.ops.strided import address_of, offset_of, strides_of

if TYPE_CHECKING:
    from lucid.tensor import Tensor


@overload
def size(self: Tensor, dim: None = None) -> tuple[int, ...]: ...
@overload
def size(self: Tensor, dim: int) -> int: ...
def size(self: Tensor, dim: int | None = None) -> tuple[int, ...] | int:
    """Return the shape, or the size of one dimension.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.zeros(2, 3)
    >>> x.size(), x.size(-1)
    ((2, 3), 3)
    """
    shape = self.array.shape
    return shape if dim is None else shape[dim_in(dim, len(shape))]


@overload
def stride(self: Tensor, dim: None = None) -> tuple[int, ...]: ...
@overload
def stride(self: Tensor, dim: int) -> int: ...
def stride(self: Tensor, dim: int | None = None) -> tuple[int, ...] | int:
    """Return how many elements lie from one index to the next, along every dimension or one.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 3).t().stride()
    (1, 3)
    """
    strides = strides_of(self.array)
    return strides if dim is None else strides[dim_in(dim, len(strides))]


def dim(self: Tensor) -> int:
    """Return the number of dimensions.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 3).dim()
    2
    """
    return self.array.ndim


def numel(self: Tensor) -> int:
    """Return the number of elements.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 3).numel()
    6
    """
    return self.array.size


def element_size(self: Tensor) -> int:
    """Return the bytes of one element.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2).element_size()
    4
    """
    return self.array.dtype.itemsize


def is_contiguous(self: Tensor) -> bool:
    """Return whether the elements lie one after the other, the last dimension running fastest.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.zeros(2, 3)
    >>> x.is_contiguous(), x.t().is_contiguous()
    (True, False)
    """
    return bool(self.array.flags.c_contiguous)


def data_ptr(self: Tensor) -> int:
    """Return the address of the first element."""
    return address_of(self.array)


def storage_offset(self: Tensor) -> int:
    """Return how many elements lie before the first one in the memory of the tensor that this one is a view of.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 3)[1].storage_offset()
    3
    """
    return offset_of(self)


def is_floating_point(self: Tensor) -> bool:
    """Return whether the elements are real numbers with a fraction.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2).is_floating_point()
    True
    """
    return dtype_of(self.array).is_floating_point


def is_complex(self: Tensor) -> bool:
    """Return whether the elements are complex numbers.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2).is_complex()
    False
    """
    return dtype_of(self.array).is_complex


def is_signed(self: Tensor) -> bool:
    """Return whether the elements can be negative.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, dtype=lucid.uint8).is_signed()
    False
    """
    return dtype_of(self.array).is_signed


def get_device(self: Tensor) -> int:
    """Return the index of the CUDA device that holds the elements; -1 for the CPU.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2).get_device()
    -1
    """
    index = device_of(self.array).index
    return -1 if index is None else index


def is_tensor(obj: object) -> bool:
    """Return whether an object is a tensor.

    Examples
    --------
    >>> import lucid
    >>> lucid.is_tensor(lucid.ones(1)), lucid.is_tensor([1.0])
    (True, False)
    """
    return isinstance(obj, TensorBase)
