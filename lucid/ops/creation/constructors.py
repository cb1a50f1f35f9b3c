"""Tensors by the names of their types, as older code makes them: ``Tensor(2, 3)``, ``LongTensor([1, 2])``.

Such a call takes sizes, and returns a tensor whose elements hold whatever was in memory; or data, of which it returns a
copy in its own dtype; or a tensor, of which it returns another on the same memory, which must be of its dtype. A
`lucid.Size` are sizes, any other sequence is data. `lucid.empty` and `lucid.tensor` say which of the two is meant.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import shown
from lucid.autograd.base import TensorBase, describe, mark_inference, registered, version_of
from lucid.base import dtype as dtypes
from lucid.base.arrays import Array, asarray, is_array
from lucid.base.device import Device, as_device, device_of
from lucid.base.dtype import dtype_of, get_default_dtype
from lucid.errors import ArgumentError, DeviceError, DtypeError
from lucid.ops.creation.filling import empty

if TYPE_CHECKING:
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


def construct(kind: type[TensorBase], arguments: tuple[Any, ...], dtype: Dtype | None, device: Device) -> Any:
    """Return a leaf of class `kind`, made of a constructor's arguments; `dtype` is None for any."""
    made: Any = object.__new__(kind)
    made.origin = made.edge = None
    only = arguments[0] if len(arguments) == 1 else None
    if isinstance(only, TensorBase):
        if dtype is not None and dtype_of(only.array) is not dtype:
            raise DtypeError(f"expected a tensor of {dtype}, got {describe(only)}: convert it with .to({dtype})")
        if device is not None and device_of(only.array).type != as_device(device).type:
            raise DeviceError(f"expected a tensor on {as_device(device)}, got {describe(only)}: move it with .to()")
        made.array, made.version = only.array, version_of(only)
    else:
        made.array = _array(arguments, dtype or get_default_dtype(), device)
        mark_inference(made)
    return made


def _array(arguments: tuple[Any, ...], dtype: Dtype, device: Device) -> Array:
    if not arguments:
        arguments = (0,)
    only = arguments[0] if len(arguments) == 1 else None
    if hasattr(only, "numel"):  # a Size
        arguments = tuple(cast("Any", only))
    elif (is_array(only) and cast("Any", only).ndim) or isinstance(only, list | tuple | range):
        return _data(only, dtype, device)
    try:
        # bools have an index, and so have arrays of no dimension, whatever they hold
        sizes = [operator.index(size) for size in arguments if not isinstance(size, bool)]
    except TypeError:
        sizes = []
    if len(sizes) < len(arguments):
        raise ArgumentError(
            f"arguments: expected sizes, a sequence of numbers, or a tensor, got {', '.join(map(shown, arguments))}: "
            "lucid.tensor makes a tensor of a number"
        )
    return empty(*sizes, dtype=dtype, device=device).array


def _data(data: Any, dtype: Dtype, device: Device) -> Array:
    try:
        return asarray(data, dtype, device, copy=True)
    except DtypeError:
        # integers of floats are cut off, as a conversion does
        return asarray(asarray(data, None, device).astype(dtype.numpy), dtype, device)


class TensorType:
    """The tensors of one dtype on one kind of device: makes them, and recognises them by `isinstance`.

    `help` of `lucid.ops.creation.constructors` says what it can be called with.

    Examples
    --------
    >>> import lucid
    >>> lucid.LongTensor([1, 2]), isinstance(lucid.ones(2), lucid.FloatTensor)
    (tensor([1, 2]), True)
    >>> lucid.ones(2).type(), lucid.ones(2).type(lucid.IntTensor)
    ('lucid.FloatTensor', tensor([1, 1], dtype=lucid.int32))
    """

    __slots__ = ("dtype", "is_cuda", "name")

    def __init__(self, name: str, dtype: Dtype, *, is_cuda: bool = False) -> None:
        self.name = f"lucid.{'cuda.' * is_cuda}{name}"
        self.dtype = dtype
        self.is_cuda = is_cuda

    def __call__(self, *arguments: Any) -> Tensor:
        """Return a tensor of this type, of sizes, data or a tensor."""
        return construct(registered.tensor, arguments, self.dtype, "cuda" if self.is_cuda else "cpu")

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, TensorBase) and self.holds(instance.array)

    def holds(self, array: Array) -> bool:
        """Return whether an array is of this type."""
        return dtype_of(array) is self.dtype and (device_of(array).type == "cuda") == self.is_cuda

    def __repr__(self) -> str:
        return f"<class '{self.name}'>"


_DTYPES = {
    "DoubleTensor": dtypes.float64, "FloatTensor": dtypes.float32, "HalfTensor": dtypes.float16,
    "BFloat16Tensor": dtypes.bfloat16, "ByteTensor": dtypes.uint8, "CharTensor": dtypes.int8,
    "ShortTensor": dtypes.int16, "IntTensor": dtypes.int32, "LongTensor": dtypes.int64, "BoolTensor": dtypes.bool_,
    "ComplexFloatTensor": dtypes.complex64, "ComplexDoubleTensor": dtypes.complex128,
}  # fmt: skip
_ALL = [TensorType(name, dtype, is_cuda=is_cuda) for is_cuda in (False, True) for name, dtype in _DTYPES.items()]
TYPES = {made.name: made for made in _ALL}
"""The types by their names, ``lucid.FloatTensor`` and ``lucid.cuda.FloatTensor`` among them."""


def type_of(array: Array) -> TensorType:
    """Return the type of the tensor of an array."""
    return next(made for made in TYPES.values() if made.holds(array))
