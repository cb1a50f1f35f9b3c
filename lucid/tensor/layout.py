"""How a tensor's elements lie in memory: sizes, strides, offsets."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, cast, overload

from lucid.arguments import unfit
from lucid.autograd.base import INFERENCE, TensorBase, describe, is_numpy, version_of
from lucid.base.device import device_of
from lucid.base.dtype import dtype_of
from lucid.base.ownership import SOLE, references
from lucid.base.sharing import block_of, shared
from lucid.cuda.devices import cuda_index
from lucid.cuda.held import hold
from lucid.cuda.streams import Stream
from lucid.errors import DeviceError, InplaceError
from lucid.ops.base.dims import common_shape, dim_in, sizes_in
from lucid.ops.base.formats import channels_last, channels_last_3d, contiguous_format, memory_format
from lucid.ops.base.promotion import array_of
from lucid.ops.base.strided import address_of, offset_of, strides_of

if TYPE_CHECKING:
    from lucid.tensor import Tensor


class Size(tuple[int, ...]):
    """The sizes of a tensor's dimensions: a tuple of integers that knows their product.

    It equals a tuple of the same integers; sums, repetitions and slices of one are of this class, too.

    Parameters
    ----------
    sizes : iterable of int
        The sizes.

    Raises
    ------
    TypeError
        If one of them is no integer.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 3).shape
    lucid.Size([2, 3])
    >>> lucid.Size([2, 3]).numel(), lucid.zeros(2, 3).shape == (2, 3)
    (6, True)
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = ()) -> Self:
        """Return the integers that `sizes` gives."""
        if not isinstance(sizes, Iterable):
            raise unfit(sizes, "an iterable of int", "sizes")
        integers: list[int] = []
        for place, size in enumerate(sizes):
            try:
                integers.append(operator.index(size))
            except TypeError:
                raise unfit(size, "an int", f"sizes[{place}]") from None
        return super().__new__(cls, integers)

    def numel(self) -> int:
        """Return the number of elements of a tensor of this shape: the product of the sizes, 1 of none.

        Examples
        --------
        >>> import lucid
        >>> lucid.Size([2, 3]).numel()
        6
        """
        return math.prod(self)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> Size: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> int | Size:
        part = super().__getitem__(index)
        return part if isinstance(part, int) else size_of(part)

    def __add__(self, other: tuple[SupportsIndex, ...], /) -> Size:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Size(super().__add__(other))

    def __radd__(self, other: tuple[SupportsIndex, ...], /) -> Size:
        return Size((*other, *self))

    def __mul__(self, count: SupportsIndex, /) -> Size:
        return size_of(super().__mul__(count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"lucid.Size({list(self)})"


# Twice as fast as `Size`, which looks at each size: of shapes of arrays.
size_of: Callable[[tuple[int, ...]], Size] = functools.partial(cast("Any", tuple).__new__, Size)


@overload
def size(self: Tensor, dim: None = None) -> Size: ...
@overload
def size(self: Tensor, dim: int) -> int: ...
def size(self: Tensor, dim: int | None = None) -> Size | int:
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
    (lucid.Size([2, 3]), 3)
    """
    shape = self.array.shape
    return size_of(shape) if dim is None else shape[dim_in(dim, len(shape))]


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
    shape = self.array.shape
    strides = list(strides_of(self.array))
    following = 1
    for d in reversed(range(len(shape))):
        if not strides[d] and (shape[d] == 1 or 0 in shape):
            # NumPy steps nowhere along a new dimension: what PyTorch says steps over the next one
            strides[d] = following
        following = max(shape[d], 1) * strides[d]
    return tuple(strides) if dim is None else strides[dim_in(dim, len(strides))]


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
    return array_of(self).size


def element_size(self: Tensor) -> int:
    """Return the bytes of one element.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2).element_size()
    4
    """
    return self.array.dtype.itemsize


def is_shared(self: Tensor) -> bool:
    """Return whether the elements lie in memory that `share_memory_` or `Module.share_memory` made.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2).is_shared(), lucid.zeros(2).share_memory_().is_shared()
    (False, True)
    """
    return block_of(self.array) is not None


def record_stream(self: Tensor, stream: Stream) -> None:
    """Keep the memory from reuse, once this tensor and all that share its memory are gone, until `stream` is done.

    To be called for a tensor that was made on one stream and is used on another. Done means: with all that was queued
    on it when the memory was found to be free, for which later calls of this method, `lucid.cuda.synchronize` and
    `lucid.cuda.empty_cache` look. No stream and no host waits but in `empty_cache`.

    Parameters
    ----------
    stream : lucid.cuda.Stream
        A stream of any device.

    Raises
    ------
    DeviceError
        If the tensor is on the CPU, where no stream works.

    Examples
    --------
    >>> side = lucid.cuda.Stream()  # doctest: +SKIP
    >>> with lucid.cuda.stream(side):  # doctest: +SKIP
    ...     batch = next(batches).to("cuda", non_blocking=True)
    >>> lucid.cuda.current_stream().wait_stream(side)  # doctest: +SKIP
    >>> batch.record_stream(lucid.cuda.current_stream())  # doctest: +SKIP
    """
    if not isinstance(stream, Stream):
        raise unfit(stream, "a lucid.cuda.Stream", "stream")
    if is_numpy(self.array):
        raise DeviceError(
            f"record_stream: expected a tensor on a CUDA device, got {describe(self)}; streams do not work on the CPU"
        )
    hold(self.array, stream.raw, cuda_index(stream.device))


def share_memory_(self: Tensor) -> Tensor:
    """Return this tensor after moving it to memory that processes started with `multiprocessing` share.

    As `Module.share_memory` of one tensor. Its position in the graph stays.

    Raises
    ------
    DeviceError
        If it is on a CUDA device, whose memory is not shared.
    InplaceError
        If it is a view, has views, or is saved for backward: the others would stay in the old memory.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2)
    >>> x.share_memory_() is x
    True
    """
    array = shared(self.array)
    if array is self.array:
        return self
    if self.origin is not None or (version_of(self) is not INFERENCE and references(self, "version") > SOLE):
        raise InplaceError(
            f"share_memory_: this tensor of {describe(self)} is a view, has views or is saved for backward: share its "
            "base before views of it are taken, or a clone()"
        )
    self.array = array
    return self


def is_contiguous(self: Tensor, memory_format: memory_format = contiguous_format) -> bool:
    """Return whether the elements lie one after the other, the last dimension running fastest.

    With `memory_format` `lucid.channels_last` or `lucid.channels_last_3d` the second dimension runs fastest, and the
    others behind it as they stand.

    Raises
    ------
    ArgumentError
        If that is no memory format, or `lucid.preserve_format`, which is no order.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.zeros(2, 3)
    >>> x.is_contiguous(), x.t().is_contiguous()
    (True, False)
    """
    if memory_format is contiguous_format:
        return bool(self.array.flags.c_contiguous)
    ndim = 4 if memory_format is channels_last else 5
    if ndim == 5 and memory_format is not channels_last_3d:
        raise unfit(memory_format, "contiguous_format, channels_last or channels_last_3d", "memory_format")
    array = self.array
    return array.ndim == ndim and bool(array.transpose(0, *range(2, ndim), 1).flags.c_contiguous)


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Return whether a tensor has the shape of this one.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 3).is_same_size(lucid.ones(2, 3))
    True
    """
    return array_of(self).shape == array_of(other).shape


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Return whether a tensor is on the same memory, with the same shape and strides.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.zeros(2, 3)
    >>> x.is_set_to(x.detach()), x.is_set_to(x.clone())
    (True, False)
    """
    own, other = self.array, array_of(tensor)
    return (address_of(own), own.shape, own.strides) == (address_of(other), other.shape, other.strides)


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
    return dtype_of(array_of(self)).is_floating_point


def is_complex(self: Tensor) -> bool:
    """Return whether the elements are complex numbers.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2).is_complex()
    False
    """
    return dtype_of(array_of(self)).is_complex


def is_conj(self: Tensor) -> bool:
    """Return False: a tensor is neither sparse, nor lazily conjugated or negated, nor part of a distributed one."""
    array_of(self)
    return False


never = is_conj  # in older pickles


def is_signed(self: Tensor) -> bool:
    """Return whether the elements can be negative.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, dtype=lucid.uint8).is_signed()
    False
    """
    return dtype_of(array_of(self)).is_signed


def get_device(self: Tensor) -> int:
    """Return the index of the CUDA device that holds the elements; -1 for the CPU.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2).get_device()
    -1
    """
    index = device_of(array_of(self)).index
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


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """Return the common shape of broadcasting all of `shapes`, tuples or numbers.

    >>> import lucid
    >>> lucid.broadcast_shapes((2, 1), 3)
    lucid.Size([2, 3])
    """
    return Size(common_shape(*[sizes_in((shape,)) for shape in shapes]))
