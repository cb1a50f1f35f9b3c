"""Tensors made of data: numbers, lists, arrays. Common rules: `lucid.ops.creation`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.engine.node import accumulator_of
from lucid.autograd.modes.decorating import check_bool
from lucid.base import arrays, gpu
from lucid.base.dtype import as_dtype, dtype_of, get_default_dtype
from lucid.base.foreign.reading import read
from lucid.errors import DeviceError, DtypeError, SettingError, ShapeError
from lucid.ops.base.core import clone
from lucid.ops.base.scalars import as_bool, as_element, as_int

if TYPE_CHECKING:
    from lucid.base.arrays import Array, Number
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


def leaf(array: Array, requires_grad: bool, *, pin_memory: bool = False) -> Any:
    """Return a tensor around `array` at the beginning of the graph."""
    if requires_grad and check_bool(requires_grad, "requires_grad") and array.dtype.kind not in "fcV":
        raise DtypeError(
            f"only Tensors of floating point and complex dtype can require gradients, got {dtype_of(array).name}"
        )
    tensor = wrap(pinned(array) if pin_memory and check_bool(pin_memory, "pin_memory") else array)
    if requires_grad:
        tensor.edge = (accumulator_of(tensor), 0)
    return tensor


def pinned(array: Array) -> Array:
    """Return a copy of a NumPy array in page-locked memory, for copies to a CUDA device without waiting."""
    if gpu.is_gpu_array(array):
        raise DeviceError("pin_memory: expected a tensor on the CPU, got one on a CUDA device")
    memory = gpu.cupy().cuda.alloc_pinned_memory(max(array.nbytes, 1))
    copy: Array = np.ndarray(array.shape, array.dtype, memory)
    copy[...] = array
    return copy


def plain(data: Any) -> Any:
    """Return the array of a tensor, and anything else unchanged."""
    return data.array if isinstance(data, TensorBase) else data


def tensor(
    data: Any,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a new tensor with a copy of `data`: a number, an array, a tensor, or nested lists of these.

    Sequences nest evenly, or a ShapeError is raised; a tensor in one is the number that it holds. No graph comes along.
    None as `dtype` is that of an array or tensor, and of Python's numbers bool, int64, the default dtype or its complex
    type; None as `device` that of an array or tensor on CUDA, else the default one.

    >>> import lucid
    >>> lucid.tensor([[1.0, 2.0], [3.0, 4.0]]), lucid.tensor([1, 2], dtype=lucid.float64)
    (tensor([[1., 2.],
            [3., 4.]]), tensor([1., 2.], dtype=lucid.float64))
    """
    return leaf(arrays.asarray(plain(data), dtype, device, copy=True), requires_grad, pin_memory=pin_memory)


def as_tensor(data: Any, dtype: Dtype | None = None, device: Device = None) -> Tensor:
    """Return `data` as a tensor: itself if it is one, on the memory of an array if dtype and device allow it.

    `data`, `dtype` and `device` are as for `tensor`; a tensor stays in its graph.

    >>> import lucid, numpy
    >>> array = numpy.zeros(2)
    >>> x = lucid.as_tensor(array)
    >>> array[0] = 5.0
    >>> x
    tensor([5., 0.], dtype=lucid.float64)
    """
    if isinstance(data, TensorBase):
        known: Any = data
        wanted = {name: value for name, value in (("dtype", dtype), ("device", device)) if value is not None}
        return known.to(**wanted) if wanted else known
    return wrap(arrays.asarray(data, dtype, device))


def asarray(
    obj: Any,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `obj` as a tensor, as `as_tensor` does, copied or not as asked for.

    With `copy` True it always is, with False never: a ValueError where it has to be. A tensor that requires grad stays
    in its graph.

    >>> import lucid
    >>> lucid.asarray([1, 2])
    tensor([1, 2])
    """
    if copy is not None:
        copy = as_bool(copy, "copy")
    source = obj if isinstance(obj, TensorBase) else read(obj, copies=copy is not False)
    made: Any = as_tensor(obj if source is None else source, dtype, device)
    shares = source is not None and (made is source or made.array is source)
    if copy is False and not shares:
        raise SettingError(
            f"asarray: cannot make a tensor of this {type(obj).__name__} without a copy, and copy is False"
        )
    if copy and shares:
        made = clone(made)
    if requires_grad and made.edge is None:
        return leaf(made.array, requires_grad)
    return made


def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor:
    """Return a tensor on the memory of a NumPy array `ndarray`: changes of one are seen in the other.

    Anything else raises a DtypeError.

    >>> import lucid, numpy
    >>> lucid.from_numpy(numpy.arange(3))
    tensor([0, 1, 2])
    """
    if not isinstance(ndarray, np.ndarray):
        raise DtypeError(f"from_numpy: expected a numpy.ndarray, got {type(ndarray).__name__}; use lucid.as_tensor")
    return wrap(arrays.asarray(ndarray, device="cpu"))


def frombuffer(buffer: Any, *, dtype: Dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Return a tensor of one dimension on the memory of `buffer`, an object with Python's buffer protocol.

    It begins `offset` bytes from the start and has `count` elements, all that there are if that is below zero; what
    does not fit raises a ShapeError, another object a DtypeError. Memory that is read-only stays so.

    >>> import lucid
    >>> lucid.frombuffer(bytearray(b"abc"), dtype=lucid.uint8, offset=1)
    tensor([98, 99], dtype=lucid.uint8)
    """
    try:
        memory = np.frombuffer(buffer, np.uint8) if memoryview(buffer).nbytes else np.empty(0, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise DtypeError(
            f"frombuffer: expected an object with contiguous memory (Python's buffer protocol), got "
            f"{type(buffer).__name__}"
        ) from error
    kind, number, first = as_dtype(dtype).numpy, as_int(count, "count"), as_int(offset, "offset")
    if not memory.size or not number:
        raise ShapeError(
            f"frombuffer: expected bytes and a count other than 0, got {memory.size} bytes, count={number}"
        )
    if not 0 <= first < memory.size:
        raise ShapeError(f"frombuffer: expected an offset of 0 to {memory.size - 1} bytes, got {first}")
    room = memory.size - first
    if number < 0 and room % kind.itemsize:
        raise ShapeError(
            f"frombuffer: expected whole elements of {kind.itemsize} bytes, got {room} from {first} on; give a count"
        )
    if number * kind.itemsize > room:
        raise ShapeError(
            f"frombuffer: expected count={number} elements of {kind.itemsize} bytes, got {room} bytes from {first} on"
        )
    end = first + number * kind.itemsize if number > 0 else None
    return leaf(memory[first:end].view(kind), requires_grad)


def scalar_tensor(
    s: Number | Tensor, *, dtype: Dtype | None = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor of no dimension that holds the number `s`, of the default dtype unless another is given.

    >>> import lucid
    >>> lucid.scalar_tensor(2)
    tensor(2.)
    """
    kind = as_dtype(dtype or get_default_dtype())
    return leaf(arrays.asarray(as_element(s, kind, "s"), kind, device), requires_grad)
