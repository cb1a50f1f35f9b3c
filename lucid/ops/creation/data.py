"""Tensors made of data: numbers, lists, arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.engine.node import accumulator_of
from lucid.autograd.modes.decorating import check_bool
from lucid.backend import arrays, gpu
from lucid.backend.dtype import dtype_of, get_default_dtype
from lucid.errors import DeviceError, DtypeError, SettingError
from lucid.ops.base.core import clone
from lucid.ops.base.scalars import as_bool

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


def leaf(array: Array, requires_grad: bool, *, pin_memory: bool = False) -> Any:
    """Return a tensor around `array` at the beginning of the graph.

    Raises
    ------
    DtypeError
        If it is to require grad and holds no floating-point or complex numbers.
    """
    if requires_grad and check_bool(requires_grad, "requires_grad") and array.dtype.kind not in "fcV":
        raise DtypeError(
            f"only Tensors of floating point and complex dtype can require gradients, got {dtype_of(array).name}"
        )
    tensor = wrap(pinned(array) if pin_memory and check_bool(pin_memory, "pin_memory") else array)
    if requires_grad:
        tensor.edge = (accumulator_of(tensor), 0)
    return tensor


def pinned(array: Array) -> Array:
    """Return a copy of a NumPy array in page-locked memory, from which a CUDA device copies without waiting.

    Raises
    ------
    DeviceError
        If the array is on a CUDA device.
    CudaUnavailableError
        If there is no CUDA device.
    """
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
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Return a new tensor with a copy of the elements of `data`, at the beginning of the graph.

    Parameters
    ----------
    data : number, array, Tensor, or nested list or tuple of numbers
        Sequences nest evenly; a tensor in one is the number that it holds, and its gradient is left behind.
    dtype : dtype, optional
        If None: that of an array or tensor; for Python numbers bool, int64, the default dtype, or its complex type.
    device : device, optional
        If None: that of an array or tensor on CUDA, else the default device.
    requires_grad : bool
        Whether operations on the tensor are recorded.
    pin_memory : bool
        Whether to put it into page-locked memory; for the CPU only.

    Returns
    -------
    Tensor
        On memory of its own.

    Raises
    ------
    DtypeError
        If `data` holds something else than numbers, a number that does not fit the dtype, or an integer tensor is to
        require grad.
    ShapeError
        If the sequences do not nest evenly.
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    >>> lucid.tensor([1, 2], dtype=lucid.float64)
    tensor([1., 2.], dtype=lucid.float64)
    """
    return leaf(arrays.asarray(plain(data), dtype, device, copy=True), requires_grad, pin_memory=pin_memory)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return `data` as a tensor: itself if it is one, on the memory of an array where dtype and device allow it.

    Parameters
    ----------
    data : number, array, Tensor, or nested list or tuple of numbers
        Of a tensor the graph is kept.
    dtype, device : optional
        As for :func:`tensor`.

    Returns
    -------
    Tensor
        On the memory of `data` if nothing had to be converted.

    Raises
    ------
    DtypeError, ShapeError, DeviceError
        As for :func:`tensor`.

    Examples
    --------
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
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """Return `obj` as a tensor, copied or not as asked for.

    Parameters
    ----------
    obj : number, array, Tensor, or nested list or tuple of numbers
        What it is made of.
    dtype, device : optional
        As for :func:`tensor`.
    copy : bool, optional
        True: always copied. False: never. None: copied where dtype or device do not fit.
    requires_grad : bool
        Whether operations on the result are recorded. A tensor that requires grad stays in its graph.

    Returns
    -------
    Tensor
        Of the elements of `obj`.

    Raises
    ------
    ValueError
        If `copy` is False and a copy is needed.
    DtypeError, ShapeError, DeviceError
        As for :func:`tensor`.

    Examples
    --------
    >>> import lucid
    >>> lucid.asarray([1, 2])
    tensor([1, 2])
    """
    if copy is not None:
        copy = as_bool(copy, "copy")
    made: Any = as_tensor(obj, dtype, device)
    shares = made is obj or made.array is obj
    if copy is False and not shares:
        raise SettingError(
            f"asarray: cannot make a tensor of this {type(obj).__name__} without a copy, and copy is False"
        )
    if copy and shares:
        made = clone(made)
    if requires_grad and made.edge is None:
        return leaf(made.array, requires_grad)
    return made


def from_numpy(ndarray: Any) -> Tensor:
    """Return a tensor on the memory of a NumPy array.

    Parameters
    ----------
    ndarray : numpy.ndarray
        Changes of one are seen in the other.

    Returns
    -------
    Tensor
        On the CPU.

    Raises
    ------
    DtypeError
        If it is no NumPy array, or of a dtype that lucid does not hold.

    Examples
    --------
    >>> import lucid, numpy
    >>> lucid.from_numpy(numpy.arange(3))
    tensor([0, 1, 2])
    """
    if not isinstance(ndarray, np.ndarray):
        raise DtypeError(f"from_numpy: expected a numpy.ndarray, got {type(ndarray).__name__}; use lucid.as_tensor")
    return wrap(arrays.asarray(ndarray, device="cpu"))


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of no dimension.

    Parameters
    ----------
    s : number
        Its value.
    dtype : dtype, optional
        The default dtype if None.
    device : device, optional
        The default device if None.
    requires_grad : bool
        Whether operations on the tensor are recorded.

    Returns
    -------
    Tensor
        Of shape ().

    Raises
    ------
    DtypeError, DeviceError
        As for :func:`tensor`.

    Examples
    --------
    >>> import lucid
    >>> lucid.scalar_tensor(2)
    tensor(2.)
    """
    return leaf(arrays.asarray(s, dtype or get_default_dtype(), device), requires_grad)
