"""Raw arrays on either device: making them, moving them, changing their dtype."""

from __future__ import annotations

from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from lucid.backend import gpu
from lucid.backend.device import CPU, as_device, device, device_of
from lucid.backend.dtype import as_dtype, dtype, dtype_of, get_default_dtype, promote_types, scalar_dtype
from lucid.errors import DeviceError, DtypeError, ShapeError

__all__ = ["Array", "asarray", "astype", "is_array", "namespace", "to_device"]

Array: TypeAlias = Any
"""A NumPy or CuPy array. The two share no base class, so types cannot say more."""


def is_array(x: object) -> bool:
    """Whether ``x`` is a NumPy array, a NumPy scalar or a CuPy array.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.backend.arrays import is_array
    >>> is_array(np.zeros(2)), is_array(np.float32(1)), is_array(1.0)
    (True, True, False)
    """
    return isinstance(x, (np.ndarray, np.generic)) or gpu.is_gpu_array(x)


def namespace(array: Array) -> Any:
    """Module whose functions work on ``array``: ``numpy`` for NumPy's arrays and scalars, ``cupy`` for CuPy's.

    Raises
    ------
    DeviceError
        If ``array`` is neither.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.backend.arrays import namespace
    >>> namespace(np.zeros(2)) is np
    True
    """
    if type(array) is np.ndarray or isinstance(array, (np.ndarray, np.generic)):
        return np
    if gpu.is_gpu_array(array):
        return gpu.cupy()
    raise DeviceError(f"expected a NumPy or CuPy array, got {type(array).__name__}")


def astype(array: Array, dtype: Any, copy: bool = False) -> Array:
    """Array with the same values in another dtype, on the same device.

    Silent where PyTorch is: complex to real keeps the real part, and a value outside the range of the new type becomes
    what the machine's conversion makes of it (infinity for floating types).

    Parameters
    ----------
    array : Array
    dtype : dtype
        Anything that `as_dtype` understands.
    copy : bool
        Whether to copy an array that already has that dtype; without it, that array itself comes back.

    Returns
    -------
    Array

    Raises
    ------
    DtypeError
        If ``dtype`` names no dtype of lucid.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.backend.arrays import astype
    >>> astype(np.array([1.5, -2.5]), "int32")
    array([ 1, -2], dtype=int32)
    """
    target = as_dtype(dtype).numpy
    if array.dtype == target:
        return array.copy() if copy else array
    if array.dtype.kind == "c" and target.kind not in "cb":
        array = array.real
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(target)


def to_device(array: Array, device: Any, non_blocking: bool = False) -> Array:
    """Array with the same values on ``device``; the array itself if it is there already.

    Parameters
    ----------
    array : Array
    device : device
        Anything that `as_device` understands.
    non_blocking : bool
        Whether the call may return before the copy is done. To the CPU, the values are then there only after the stream
        is synchronised; from the CPU, pinned memory must not be written before.

    Returns
    -------
    Array

    Raises
    ------
    DeviceError
        If there is no such device, or ``array`` is neither NumPy's nor CuPy's.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.backend.arrays import to_device
    >>> x = np.zeros(2)
    >>> to_device(x, "cpu") is x
    True
    """
    target = as_device(device)
    source = device_of(array)
    if source is target:
        return array
    return gpu.transfer(array, source.index, target.index, blocking=not non_blocking)


def asarray(data: Any, dtype: Any = None, device: Any = None, copy: bool = False) -> Array:
    """Array made of ``data``, with PyTorch's choice of dtype.

    Parameters
    ----------
    data : Array, number or nested sequence of these
        Sequences nest evenly and hold numbers or arrays.
    dtype : dtype, optional
        Anything that `as_dtype` understands. If left out: arrays and NumPy scalars keep theirs, Python bools become
        bool, ints int64, floats the default dtype, complex numbers its complex type; a mixture is promoted; an empty
        sequence has the default dtype.
    device : device, optional
        Anything that `as_device` understands. If left out, CuPy arrays stay where they are and everything else goes to
        the default device.
    copy : bool
        Whether to copy even where ``data`` could be used as it is.

    Returns
    -------
    Array

    Raises
    ------
    DtypeError
        If ``data`` holds something that is not a number, an array holds a type that lucid does not hold, or the values
        do not fit ``dtype`` (a Python complex number into a real type, 300 into uint8).
    ShapeError
        If the sequences do not nest evenly.
    DeviceError
        If there is no such device, or a sequence mixes arrays of both devices.

    Examples
    --------
    >>> from lucid.backend.arrays import asarray
    >>> asarray([[1.0, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    >>> asarray([1, 2], dtype="bfloat16").dtype
    dtype(bfloat16)
    """
    if is_array(data):
        array = np.asarray(data)[()] if isinstance(data, np.generic) else data
        if isinstance(array, np.generic):
            array = np.asarray(array)
        on_gpu = gpu.is_gpu_array(data)
        target = device_of(data) if device is None and on_gpu else as_device(device)
        wanted = dtype_of(array) if dtype is None else as_dtype(dtype)
        moved = to_device(astype(array, wanted), target)
        return moved.copy() if copy and moved is array else moved
    wanted = infer_dtype(data) if dtype is None else as_dtype(dtype)
    try:
        array = np.array(data, wanted.numpy)
    except (TypeError, OverflowError) as error:
        raise DtypeError(f"cannot make an array of {wanted} from this data: {error}") from error
    except ValueError as error:
        raise ShapeError(f"cannot make an array from sequences that do not nest evenly: {error}") from error
    return to_device(array, device)


def infer_dtype(data: Any) -> dtype:
    """Dtype that PyTorch gives to a tensor made of this number or nested sequence; empty ones have the default dtype."""
    level: list[Any] = [data]
    found: dtype | None = None
    while level:
        nested: list[Any] = []
        for kind in set(map(type, level)):
            members = [item for item in level if type(item) is kind]
            if issubclass(kind, (list, tuple, range)):
                nested.extend(members)
                continue
            for leaf in members if hasattr(members[0], "dtype") else members[:1]:
                one = dtype_of(leaf) if hasattr(leaf, "dtype") else scalar_dtype(leaf)
                found = one if found is None else promote_types(found, one)
        level = list(chain.from_iterable(nested))
    return get_default_dtype() if found is None else found
