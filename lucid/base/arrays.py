"""Raw arrays on either device: making them, moving them, changing their dtype."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from lucid.base import gpu
from lucid.base.capture import captures, note_arrays
from lucid.base.device import as_device, device_of
from lucid.base.dtype import (
    DTYPES,
    as_dtype,
    bfloat16,
    dtype,
    dtype_of,
    float16,
    get_default_dtype,
    promote_types,
    scalar_dtype,
)
from lucid.base.foreign.reading import check_unmasked, read
from lucid.base.functions import cupy_functions
from lucid.base.memory import c_copy
from lucid.errors import DeviceError, DtypeError, NumberRangeError, ShapeError

Array: TypeAlias = Any
"""A NumPy or CuPy array. The two share no base class, so types cannot say more."""

Ints: TypeAlias = tuple[int, ...]
"""A shape, steps, or dimensions: one number for each."""

Number: TypeAlias = bool | int | float | complex
"""One of Python's numbers, which takes the dtype of the tensor beside it where its kind allows."""

_NUMBERS = frozenset((bool, int, float, complex))

# Casts in which no value can overflow or lose its meaning, so that NumPy has nothing to warn about.
_WIDENING = frozenset(
    (a.numpy, b.numpy)
    for a in DTYPES.values()
    for b in DTYPES.values()
    if promote_types(a, b) is b and (b is not float16 or a.itemsize == 1)
)


def is_array(x: object) -> bool:
    """Whether ``x`` is a NumPy array, a NumPy scalar or a CuPy array.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.arrays import is_array
    >>> is_array(np.zeros(2)), is_array(np.float32(1)), is_array(1.0)
    (True, True, False)
    """
    return isinstance(x, (np.ndarray, np.generic)) or gpu.is_gpu_array(x)


def namespace(array: Array) -> Any:
    """Return the module of functions for ``array``: ``numpy`` for NumPy's arrays and scalars, ``cupy`` for CuPy's.

    Raises
    ------
    DeviceError
        If ``array`` is neither.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.arrays import namespace
    >>> namespace(np.zeros(2)) is np
    True
    """
    if type(array) is np.ndarray or isinstance(array, (np.ndarray, np.generic)):
        return np
    if gpu.is_gpu_array(array):
        if captures:
            note_arrays((array,))
        return cupy_functions()
    raise DeviceError(f"expected a NumPy or CuPy array, got {type(array).__name__}")


def on(array: Array) -> AbstractContextManager[Any]:
    """Context with the device of ``array`` as the current one, as calls of its `namespace` need it."""
    return nullcontext() if isinstance(array, (np.ndarray, np.generic)) else gpu.use_device(gpu.device_index(array))


def copied(array: Array) -> Array:
    """Copy of an array, on its device: CuPy's own copies lie on the current one, wherever their array does."""
    if type(array) is np.ndarray:
        return c_copy(array)
    with on(array):
        return array.copy()


def zeros_beside(array: Array, shape: tuple[int, ...] | None = None) -> Array:
    """Zeros of the dtype and device of ``array``, of its shape unless another is given."""
    with on(array):
        return namespace(array).zeros(array.shape if shape is None else shape, array.dtype)


def ones_beside(array: Array) -> Array:
    """Ones of the shape, dtype and device of ``array``."""
    with on(array):
        return namespace(array).ones(array.shape, array.dtype)


def astype(array: Array, dtype: object, copy: bool = False) -> Array:
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
    >>> from lucid.base.arrays import astype
    >>> astype(np.array([1.5, -2.5]), "int32")
    array([ 1, -2], dtype=int32)
    """
    target = as_dtype(dtype).numpy
    if array.dtype == target:
        return copied(array) if copy else array
    if array.dtype.kind == "c" and target.kind not in "cb":
        array = array.real
    elif (array.dtype, target) in _WIDENING and type(array) is np.ndarray:
        widened: Any = array.astype(target)
        return widened
    with on(array), np.errstate(over="ignore", invalid="ignore"):
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
    >>> from lucid.base.arrays import to_device
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
    data : Array, number, or nested list, tuple, range, deque or other sequence of these
        Sequences nest evenly; a tensor in one is the number that it holds. What lends its memory counts as an array:
        `lucid.base.foreign.reading` says how.
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
        If ``data`` holds something that is not a number, an array holds a type that lucid does not hold, or a Python
        number does not fit ``dtype`` (a complex one into a real type, 300 or -1 into uint8, NaN into int32).
    ShapeError
        If the sequences do not nest evenly.
    DeviceError
        If there is no such device, or a sequence mixes arrays of both devices.

    Examples
    --------
    >>> from lucid.base.arrays import asarray
    >>> asarray([[1.0, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    >>> asarray([1, 2], dtype="bfloat16").dtype
    dtype(bfloat16)
    """
    source = _as_array(data)
    if source is None:
        return to_device(_from_sequence(data, None if dtype is None else as_dtype(dtype)), device)
    if dtype is None:
        wanted = dtype_of(source)
    elif source.dtype.kind in "biufc" or source.dtype == bfloat16.numpy:
        wanted = as_dtype(dtype)
    else:
        raise DtypeError(f"expected an array of numbers, got NumPy's dtype {source.dtype!r}")
    stays = device is None and gpu.is_gpu_array(source)
    converted = astype(source, wanted)
    moved = converted if stays else to_device(converted, device)
    return copied(moved) if copy and moved is source else moved


def _as_array(data: object) -> Array | None:
    """View of data that is an array or lends its buffer; None for numbers and sequences of them."""
    if type(data) in _NUMBERS:
        return None
    array = read(data)
    if array is not None:
        return array
    leaf = _first_leaf(data)
    if gpu.is_gpu_array(leaf):
        with gpu.use_device(gpu.device_index(leaf)):
            try:
                return gpu.cupy().asarray(data)
            except TypeError as error:
                raise DeviceError(f"a sequence of arrays must not mix devices; move them first ({error})") from error
            except ValueError as error:
                raise ShapeError(f"expected a sequence of arrays of one shape: {error}") from error
    return None


def _first_leaf(data: Any) -> Any:
    while _nests(data) and len(data):
        data = data[0]
    return data


def _from_sequence(data: object, wanted: dtype | None) -> np.ndarray[Any, Any]:
    """NumPy array made of a Python number or nested sequence."""
    inferred, tensors = _look_through(data)
    if tensors:
        data = _as_numbers(data)
    target = inferred if wanted is None else wanted
    if inferred.is_complex and not target.is_complex:
        raise DtypeError(
            f"complex numbers do not fit {target}; ask for complex64 or complex128, or pass the real parts"
        )
    try:
        with np.errstate(over="ignore"):
            return np.array(data, target.numpy)
    except ValueError as error:
        raise _why_not(data, target, error) from error
    except OverflowError as error:
        raise NumberRangeError(f"cannot make an array of {target}: {error}") from error
    except TypeError as error:
        raise DtypeError(f"cannot make an array of {target}: {error}") from error


def _why_not(data: Any, target: dtype, error: ValueError) -> ShapeError | DtypeError:
    """Error in place of NumPy's ValueError, for sequences that do not nest evenly, or for a value that does not fit."""
    try:
        np.shape(data)
    except ValueError:
        return ShapeError(f"sequences must nest evenly, all of one length at each depth: {error}")
    return DtypeError(f"cannot make an array of {target}: {error}")


def infer_dtype(data: object) -> dtype:
    """Dtype that PyTorch gives to a tensor made of this number or nested sequence.

    Parameters
    ----------
    data : number, array or nested sequence of these

    Returns
    -------
    dtype
        The promotion of all leaves; the default dtype if there are none.

    Raises
    ------
    DtypeError
        If a leaf is neither a number nor an array of a type that lucid holds.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.arrays import infer_dtype
    >>> infer_dtype([[1, 2], [3, 4]]), infer_dtype([1, 2.5]), infer_dtype([np.float64(1), 2])
    (lucid.int64, lucid.float32, lucid.float64)
    """
    return scalar_dtype(data) if type(data) in _NUMBERS else _look_through(data)[0]


def _look_through(data: object) -> tuple[dtype, bool]:
    """Dtype of a number or nested sequence, and whether tensors are among its leaves."""
    level: list[Any] = [data]
    common: dtype | None = None
    tensors = False
    while level:
        nested: list[Any] = []
        # One look per type and not per number: a list of a million floats is a list of one type.
        for kind in set(map(type, level)):
            members = (item for item in level if type(item) is kind)
            first = next(members)
            if _nests(first):
                nested += (first, *members)
                continue
            tensors = tensors or _is_tensor(first)
            check_unmasked(first)
            # nor one per tensor, but per dtype
            leaves = {leaf.dtype: leaf for leaf in (first, *members)}.values() if hasattr(kind, "dtype") else (first,)
            for one in map(_dtype_of_leaf, leaves):
                common = one if common is None else promote_types(common, one)
        level = list(chain.from_iterable(nested))
    return get_default_dtype() if common is None else common, tensors


def _is_tensor(leaf: object) -> bool:
    return isinstance(getattr(leaf, "dtype", None), dtype)


def _as_numbers(data: Any) -> Any:
    """Nested lists with a Python number in place of each tensor, whether or not it requires grad."""
    if not _nests(data):
        return _number_of(data) if _is_tensor(data) else data
    if len(set(map(type, data))) == 1 and _is_tensor(data[0]):
        return [_number_of(each) for each in data]
    return [_as_numbers(each) for each in data]


def _number_of(tensor: Any) -> Any:
    if tensor.array.size != 1:
        raise ShapeError(
            f"a tensor in a sequence stands for one number, got one of shape {tuple(tensor.array.shape)}: join tensors "
            "with lucid.stack"
        )
    return tensor.item()


def _nests(data: object) -> bool:
    return isinstance(data, (list, tuple)) or (
        isinstance(data, Sequence) and not isinstance(data, (str, bytes, bytearray))
    )


def _dtype_of_leaf(leaf: object) -> dtype:
    own = getattr(leaf, "dtype", None)
    if own is None:
        return scalar_dtype(leaf)
    return own if isinstance(own, dtype) else dtype_of(leaf)
