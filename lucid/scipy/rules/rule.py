"""How a rule of SciPy's is written: as a function of arrays, in the names of `lucid.numpy`.

So it takes NumPy's and CuPy's arrays and what is recorded, and its derivatives follow from those of its parts, to any
order and on both devices. Its parameters have SciPy's names; one that it leaves out is refused by name where something
requires grad.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lucid import numpy as lnp
from lucid.autograd.base import TensorBase
from lucid.autograd.borrowing import borrowed
from lucid.base import gpu
from lucid.base.arrays import asarray, on
from lucid.base.device import device_of
from lucid.errors import DeviceError
from lucid.numpy.border import OTHERS, any_recorded, array_on_device, plain
from lucid.numpy.results import settled
from lucid.numpy.writes import is_plain
from lucid.tensor.numpy_calls.definition import Rule
from lucid.tensor.numpy_calls.operands import NumpyCallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.function import Function
    from lucid.base.arrays import Array as Plain

Array: TypeAlias = Any
"""An array, plain or recorded, or what SciPy takes for one: a number, or nested lists."""

PerAxis: TypeAlias = Any
"""A setting, or one for each of several axes."""


def rule(names: str, takes: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function as the rule of SciPy's functions of these names, below `scipy`.

    Its parameters are SciPy's. `takes` names all in order where it hands some on, ``**settings``, or where SciPy has
    others beside them, that only say how it computes and change no result.
    """

    def entered(function: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(function).parameters
        hands_on = any(each.kind is each.VAR_KEYWORD for each in own.values())
        parameters = {name: name if name in own or hands_on else "" for name in takes.split() or own}
        for name in names.split():
            OTHERS[f"scipy.{name}"] = Rule(function, parameters, {})
        return function

    return entered


def constants(names: str) -> None:
    """Enter functions without gradients for any result: they are SciPy's own, of plain values."""
    for name in names.split():
        OTHERS[f"scipy.{name}"] = None


def library(name: str, like: Plain) -> Any:
    """Return a module of SciPy's, or CuPy's of the name for an array on a device."""
    return gpu.part(f"cupyx.scipy.{name}") if gpu.is_gpu_array(like) else host_library(name)


def host_library(name: str) -> Any:
    """Return a module of SciPy's."""
    return import_module(f"scipy.{name}")


# ---- arrays ----


def counted(count: int) -> Any:
    """Return the whole numbers below a count, on the host."""
    return np.arange(count)


def arrays(*values: Array) -> list[Any]:
    """Return operands as arrays, recorded or plain; lists and numbers come to the device of the others."""
    operands = [as_array(value) for value in values]
    like = array_on_device(map(plain, operands))
    if like is not None:
        for value, x in zip(values, map(plain, operands), strict=True):
            if isinstance(value, Arrays) and x.ndim and device_of(x) != device_of(like):
                one, other = device_of(like), device_of(x)
                raise DeviceError(
                    f"expected all arrays on one device, got shape {tuple(like.shape)} on {one} and shape "
                    f"{tuple(x.shape)} on {other}: move one, lucid.as_tensor(x).to({str(one)!r})"
                )
    return [x if isinstance(value, Arrays) else put(x, like) for value, x in zip(values, operands, strict=True)]


def as_array(value: Array) -> Any:
    """Return a value as an array on its own device, recorded or plain; lists and numbers on the host.

    The default device is that of what a program makes, and not of what stands beside its arrays.
    """
    array = plain(value)
    stays = any_recorded((value,)) or array_on_device((array,)) is not None
    return lnp.asarray(value) if stays else np.asarray(array)


def put(value: Array, like: Array) -> Any:
    """Return a constant of the host's on the device of an array."""
    like = plain(like)
    if isinstance(value, TensorBase) or not gpu.is_gpu_array(like) or gpu.is_gpu_array(value):
        return value
    with on(like):
        return asarray(value, device=device_of(like))


def host(value: Array) -> np.ndarray[Any, Any]:
    """Return the values of an operand on the host, without a gradient."""
    array = plain(value)
    return array.get() if gpu.is_gpu_array(array) else np.asarray(array)


def real_or_complex(name: str, *values: Array) -> list[Any]:
    """Return operands as arrays; the first must be of floats, as SciPy's result has its dtype."""
    operands = arrays(*values)
    if operands[0].dtype.kind not in "fc":
        raise NumpyCallError(
            f"scipy.{name}: the result has the dtype of the array that is filtered, {operands[0].dtype}, which has no "
            "gradient: give it as floats, x.astype(float)"
        )
    check_precision(operands[0])
    return operands


def check_precision(x: Array) -> None:
    """Refuse half precision, as SciPy's filters do."""
    if x.dtype == np.float16:
        raise RuntimeError("array type dtype('float16') not supported: give it as x.astype(np.float32)")


def in_dtype(x: Array, dtype: object) -> Any:
    """Return an array in a dtype, as it is if it has that."""
    return x if x.dtype == dtype else x.astype(dtype)


def at_least_single(*values: Array) -> list[Any]:
    """Return operands as arrays, those of half precision in single, as SciPy's transforms and LAPACK take them."""
    return [in_dtype(x, np.float32) if x.dtype == np.float16 else x for x in arrays(*values)]


def arrays_or_none(*values: Array) -> list[Any]:
    """Return operands as `arrays` does, and None unchanged."""
    operands = iter(arrays(*[value for value in values if value is not None]))
    return [None if value is None else next(operands) for value in values]


def in_double(*values: Array) -> list[Any]:
    """Return operands in double precision, as SciPy takes them in many a place, and None unchanged."""
    operands = arrays_or_none(*values)
    return [x if x is None else in_dtype(x, np.dtype("c16" if x.dtype.kind == "c" else "f8")) for x in operands]


def in_one_dtype(*values: Array) -> list[Any]:
    """Return operands in the dtype of floats that all promote to, and None unchanged."""
    operands = arrays_or_none(*values)
    common = np.result_type(*[x.dtype for x in operands if x is not None])
    dtype = common if common.kind in "fc" else np.dtype(np.float64)
    return [x if x is None else in_dtype(x, dtype) for x in operands]


def recorded(function: type[Function], *values: Array) -> Any:
    """Return the result of a Function of `lucid.autograd` for arrays, converted to tensors, and settings."""
    return by_op(function.apply, *values)


def by_op(op: Callable[..., Any], *values: Array, **settings: Array) -> Any:
    """Return the result of an op of lucid for arrays, converted to tensors."""
    like = array_on_device(map(plain, values))
    # a product of arrays without dimensions is a number of NumPy's
    known = [put(np.asarray(x), like) if type(x) in NUMBERS else x for x in values]
    operands = [borrowed(x) if is_plain(x) else x for x in known]
    return settled(op(*operands, **settings), ())


NUMBERS = frozenset((np.float32, np.float64, np.complex64, np.complex128))

Arrays: Any = (TensorBase, lnp.ndarray)
