"""Values out of a tensor, and the same values elsewhere: numbers, lists, other dtypes and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, registered, wrap
from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.arrays import Array, asarray, namespace, on, to_device
from lucid.base.capture import captures, check_not_capturing
from lucid.base.device import Device, as_device, device, device_of
from lucid.base.dtype import as_dtype, dtype, dtype_of
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.core import clone
from lucid.ops.base.dims import sizes_in
from lucid.ops.base.promotion import cast_to
from lucid.ops.base.scalars import as_bool, as_scalar
from lucid.ops.creation.constructors import TYPES, TensorType, construct, type_of
from lucid.ops.creation.data import pinned
from lucid.ops.creation.filling import shape_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


@primitive
def _transfer(_xp: object, x: Array, *, target: device, source: device, non_blocking: bool) -> Array:  # noqa: ARG001 - `source` is for the way back
    return to_device(x, target, non_blocking)


@_transfer.vjp
def _transfer_vjp(m: Namespace, grad: Array, source: device, target: device) -> Any:
    return m.transfer(grad, target=source, source=target, non_blocking=False)


def move(tensor: Any, target: device, *, non_blocking: bool = False) -> Any:
    """Return `tensor` on a device; itself if it is there."""
    source = device_of(tensor.array)
    if source == target:
        return tensor
    return _transfer(tensor, target=target, source=source, non_blocking=non_blocking)


def to(self: Tensor, *args: Any, non_blocking: bool = False, copy: bool = False, **kwargs: Any) -> Tensor:
    """Return the tensor in another dtype, on another device, or both; itself if nothing changes.

    Parameters
    ----------
    *args : dtype, or device and dtype, or Tensor
        ``to(dtype)``, ``to(device)``, ``to(device, dtype)``, or ``to(other)``, which takes both from a tensor; then
        `non_blocking` and `copy`. Also by keyword: ``dtype=``, ``device=``, ``other=``.
    non_blocking : bool
        Whether a copy between devices may still run when the call returns.
    copy : bool
        Whether to return a new tensor even if nothing changes.

    Returns
    -------
    Tensor
        Joined to this one in the graph.

    Raises
    ------
    DeviceError
        If there is no such device.
    DtypeError
        If there is no such dtype.
    TypeError
        If the arguments are of none of the forms.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([1, 2]).to(lucid.float64)
    tensor([1., 2.], dtype=lucid.float64)
    """
    wanted_device, wanted_dtype, non_blocking, copy = target_of(args, kwargs, non_blocking=non_blocking, copy=copy)
    non_blocking, copy = as_bool(non_blocking, "non_blocking"), as_bool(copy, "copy")
    moved: Any = self
    if wanted_dtype is not None and wanted_dtype.itemsize <= self.array.dtype.itemsize:
        # the smaller form travels
        moved = cast_to(moved, wanted_dtype)
    if wanted_device is not None:
        moved = move(moved, as_device(wanted_device), non_blocking=non_blocking)
    if wanted_dtype is not None:
        moved = cast_to(moved, wanted_dtype)
    return clone(moved) if copy and moved is self else moved


def target_of(args: tuple[Any, ...], kwargs: dict[str, Any], *, non_blocking: bool, copy: bool) -> tuple[Any, ...]:
    """Return device, dtype, non_blocking and copy of a call of `to`; None for a property that stays."""
    settings: Any = dict(kwargs)
    rest = list(args)
    if rest and isinstance(rest[0], TensorBase):
        settings["other"] = rest.pop(0)
    elif rest and is_dtype(rest[0]):
        settings["dtype"] = rest.pop(0)
    elif rest:
        settings["device"] = rest.pop(0)
        if rest and not isinstance(rest[0], bool):
            settings["dtype"] = rest.pop(0)
    if rest:
        non_blocking = rest.pop(0)
    if rest:
        copy = rest.pop(0)
    other = settings.pop("other", None)
    if other is not None:
        settings.setdefault("device", device_of(other.array))
        settings.setdefault("dtype", dtype_of(other.array))
    wanted_device, wanted_dtype = settings.pop("device", None), settings.pop("dtype", None)
    if rest or settings:
        raise DtypeError(
            "to: expected to(dtype), to(device, dtype) or to(other), each with non_blocking and copy, got "
            f"{(*args, *kwargs)}"
        )
    return wanted_device, None if wanted_dtype is None else as_dtype(wanted_dtype), non_blocking, copy


def is_dtype(value: object) -> bool:
    """Return whether `value` names a dtype, in a place of a dtype or a device."""
    return isinstance(value, dtype | np.dtype | type)


def cast(name: str) -> Callable[[Tensor], Tensor]:
    """Return the method that gives a tensor in the dtype `name`."""
    wanted = as_dtype(name)

    def convert(self: Tensor) -> Tensor:
        return cast_to(self, wanted)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"""Return the tensor in `lucid.{wanted.name}`; itself if it has that dtype."""
    return convert


def cpu(self: Tensor) -> Tensor:
    """Return the tensor on the CPU; itself if it is there.

    Examples
    --------
    >>> import lucid
    >>> lucid.ones(2).cpu().device
    device(type='cpu')
    """
    return move(self, as_device("cpu"))


def cuda(self: Tensor, device: Device = None, non_blocking: bool = False) -> Tensor:
    """Return the tensor on a CUDA device, the current one by default; itself if it is there.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    """
    non_blocking = as_bool(non_blocking, "non_blocking")
    return move(self, as_device("cuda" if device is None else device), non_blocking=non_blocking)


def pin_memory(self: Tensor) -> Tensor:
    """Return a copy in page-locked host memory, for copies to a CUDA device without the host waiting.

    The copy is in no graph.

    Raises
    ------
    DeviceError
        If the tensor is on a CUDA device.
    CudaUnavailableError
        If there is no CUDA device.
    """
    return wrap(pinned(self.array))


def is_pinned(self: Tensor) -> bool:
    """Return whether the tensor is in page-locked memory of the host.

    Examples
    --------
    >>> import lucid
    >>> lucid.ones(2, device="cpu").is_pinned()
    False
    """
    return type(self.array) is np.ndarray and gpu.is_pinned(self.array)


def type_(self: Tensor, dtype: Dtype | TensorType | str | None = None, non_blocking: bool = False) -> Any:
    """Return the name of the tensor's type, or the tensor in another.

    Parameters
    ----------
    dtype : dtype, tensor type, or the name of one, optional
        What to convert to; a tensor type also says whether the tensor is to be on a CUDA device.
    non_blocking : bool
        Whether a copy to a device need not be waited for, as in `to`.

    Returns
    -------
    str or Tensor

    Examples
    --------
    >>> import lucid
    >>> lucid.ones(2).type()
    'lucid.FloatTensor'
    >>> lucid.ones(2).type(lucid.int64), lucid.ones(2).type("lucid.BoolTensor")
    (tensor([1, 1]), tensor([True, True]))
    """
    non_blocking = as_bool(non_blocking, "non_blocking")
    if dtype is None:
        return type_of(self.array).name
    if isinstance(dtype, str):
        # a script may have kept the name that PyTorch gives it
        dtype = TYPES.get("lucid." + dtype.removeprefix("torch.").removeprefix("lucid."), dtype)
    if not isinstance(dtype, TensorType):
        return cast_to(self, as_dtype(dtype))
    if self.is_cuda == dtype.is_cuda:
        return cast_to(self, dtype.dtype)
    return to(self, "cuda" if dtype.is_cuda else "cpu", dtype.dtype, non_blocking=non_blocking)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the tensor in the dtype and on the device of `other`.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([1, 2]).type_as(lucid.ones(1))
    tensor([1., 2.])
    """
    return to(self, other)


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
    if captures and self.is_cuda:
        check_not_capturing("item()")
    value = array.item()
    # NumPy does not know how to make a Python number of bfloat16
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


def new(self: Tensor, *arguments: Any) -> Tensor:
    """Return a tensor of sizes or data, as ``Tensor(...)`` does, in the dtype and on the device of this one.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(1, dtype=lucid.int64).new([1, 2]), lucid.zeros(1).new(2, 3).shape
    (tensor([1, 2]), lucid.Size([2, 3]))
    """
    return construct(registered.tensor, arguments, dtype_of(self.array), device_of(self.array))


def new_zeros(
    self: Tensor, *size: object, dtype: Dtype | None = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return zeros of shape `size`; dtype and device are this tensor's unless they are given.

    Examples
    --------
    >>> import lucid
    >>> lucid.ones(1, dtype=lucid.float64).new_zeros(2)
    tensor([0., 0.], dtype=lucid.float64)
    """
    return new_full(self, sizes_in(size), 0, dtype=dtype, device=device, requires_grad=requires_grad)


def new_ones(
    self: Tensor, *size: object, dtype: Dtype | None = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return ones of shape `size`; dtype and device are this tensor's unless they are given.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(1, dtype=lucid.int64).new_ones((2,))
    tensor([1, 1])
    """
    return new_full(self, sizes_in(size), 1, dtype=dtype, device=device, requires_grad=requires_grad)


def new_empty(
    self: Tensor, *size: object, dtype: Dtype | None = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor of shape `size` for values to be written; dtype and device are this tensor's unless given.

    Examples
    --------
    >>> import lucid
    >>> lucid.ones(1).new_empty(2, 3).shape
    lucid.Size([2, 3])
    """
    return new_full(self, sizes_in(size), 0, dtype=dtype, device=device, requires_grad=requires_grad)


def new_full(
    self: Tensor,
    size: object,
    fill_value: object,
    *,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of shape `size` filled with `fill_value`; dtype and device are this tensor's unless given.

    Examples
    --------
    >>> import lucid
    >>> lucid.ones(1).new_full((2,), 3)
    tensor([3., 3.])
    """
    made_of = dtype_of(self.array) if dtype is None else as_dtype(dtype)
    target = device_of(self.array) if device is None else as_device(device)
    shape = shape_of((size,), "new tensor", made_of.numpy)
    number = to_device(asarray(as_scalar(fill_value, "fill_value"), made_of, "cpu"), target)
    xp = namespace(number)
    with on(number):
        made: Any = wrap(xp.full(shape, number, made_of.numpy))
    return made.requires_grad_(requires_grad)


def new_tensor(
    self: Tensor, data: object, *, dtype: Dtype | None = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return a new tensor of the elements of `data`; dtype and device are this tensor's unless they are given.

    Examples
    --------
    >>> import lucid
    >>> lucid.ones(1).new_tensor([1, 2])
    tensor([1., 2.])
    """
    values = data.array if isinstance(data, TensorBase) else data
    target = device_of(self.array) if device is None else as_device(device)
    made: Any = wrap(asarray(values, dtype_of(self.array) if dtype is None else dtype, target, copy=True))
    return made.requires_grad_(requires_grad)
