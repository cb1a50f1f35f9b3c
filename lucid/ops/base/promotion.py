"""Operands of one op brought to one dtype, by PyTorch's rules, the same on both devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import named, shown, unfit
from lucid.autograd.base import TensorBase, wrap, wrap_on_graph
from lucid.autograd.borrowing import borrowed
from lucid.autograd.modes.state import unusual
from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.arrays import Array, asarray, astype
from lucid.base.device import CPU
from lucid.base.dtype import as_dtype, bfloat16, dtype_of, float16, get_default_dtype, result_type
from lucid.base.dtype import dtype as dtype_class
from lucid.base.foreign.reading import NUMPY
from lucid.base.functions import cupy_functions
from lucid.cpu.halves import by_loop
from lucid.cuda.launch.elementwise import converted
from lucid.cuda.launch.plans import launches_only
from lucid.errors import ArgumentError, DtypeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace


class OperandTypeError(ArgumentError, DtypeError):
    """An operand is neither a tensor, nor an array, nor a number."""


@primitive
def cast(xp: ModuleType, x: Array, *, dtype: Any) -> Array:
    """Return `x` in another dtype."""
    out = by_loop(x, dtype) if xp is np else None
    return astype(x, dtype, copy=True) if out is None else out


@cast.cuda
@launches_only
def _cast_cuda(x: Array, *, dtype: Any) -> Any:
    return converted(x, dtype)


@cast.vjp
def cast_vjp(m: Namespace, grad: Array, x_dtype: Any) -> Any:
    """Return the gradient in the dtype of the input."""
    return m.cast(grad, dtype=x_dtype)


def cast_to(x: Any, dtype: dtype_class) -> Any:
    """Return `x` in `dtype`; itself if it has that dtype already."""
    return x if x.array.dtype == dtype.numpy else cast(x, dtype=dtype.numpy)


def as_operand(value: Any, like: Any = None) -> Any:
    """Return `value` as an operand: tensors and numbers stay, arrays become tensors.

    Beside a tensor `like` on the CPU an array of NumPy's stays there, whatever the default device.

    Raises
    ------
    OperandTypeError
        For anything else.
    """
    if isinstance(value, TensorBase):
        return value
    if type(value) is gpu.array_type() and value.dtype in NUMPY:
        # what is kept for backward asks for a version, and would find none by an exception
        return wrap(value) if unusual else wrap_on_graph(value, None, [0])
    if isinstance(value, np.float64 | np.complex128):
        # Python's float and complex by inheritance, but not weak beside an array as those are
        return value.item()
    if isinstance(value, bool | int | float | complex):
        return value
    if isinstance(value, np.ndarray | np.generic) or gpu.is_gpu_array(value):
        return borrowed(asarray(value, device=host_beside(like)))
    raise unfit(value, "a Tensor, an array or a number", kind=OperandTypeError)


def host_beside(like: object) -> Any:
    """Return the CPU beside a tensor there; None otherwise, for the default device."""
    return CPU if isinstance(like, TensorBase) and not gpu.is_gpu_array(like.array) else None


def no_matrix(*operands: Any) -> None:
    """Refuse `numpy.matrix` in operators and functions of NumPy, as it has its own meaning of them.

    Raises
    ------
    ArgumentError
        As its ``*`` is the matrix product, and all that comes of it is a matrix.
    """
    if np.matrix in map(type, operands):
        raise ArgumentError(
            "expected an array, got a numpy.matrix, of which * is the matrix product, as of no "
            "tensor: give np.asarray(matrix), and use @ for the product"
        )


def only_tensors(*operands: Any) -> None:
    """Refuse operands that are no tensors.

    Raises
    ------
    OperandTypeError
        For the first one.
    """
    for operand in operands:
        if not isinstance(operand, TensorBase):
            raise no_tensor(operand)


def no_tensor(value: Any) -> OperandTypeError:
    """Return the error of a value in place of a tensor."""
    advice = "; lucid.as_tensor makes one of an array" if hasattr(value, "__array__") else ""
    return OperandTypeError(f"{named(value)}: expected a Tensor, got {shown(value)}{advice}")


def array_of(tensor: Any) -> Array:
    """Return the array of an argument that must be a tensor.

    Raises
    ------
    OperandTypeError
        If it is none.
    """
    try:
        return tensor.array
    except AttributeError:
        raise no_tensor(tensor) from None


def promote(*operands: Any, at_least_float: bool = False) -> tuple[Any, ...]:
    """Return the operands in their common dtype.

    Parameters
    ----------
    *operands : Tensor, array or number
        Numbers are weak: they raise the kind of the result, never its size.
    at_least_float : bool
        Whether integers and bools become the default floating-point dtype.
    """
    if is_settled(operands):
        return operands
    tensor = next((o for o in operands if isinstance(o, TensorBase)), None)
    known = [as_operand(operand, tensor) for operand in operands]
    dtype = result_type(*[o.array if isinstance(o, TensorBase) else o for o in known])
    if at_least_float and not (dtype.is_floating_point or dtype.is_complex):
        dtype = get_default_dtype()
    like = next((o.array for o in known if isinstance(o, TensorBase)), None)
    return tuple(cast_to(o, dtype) if isinstance(o, TensorBase) else number_in(o, dtype, like) for o in known)


def is_settled(operands: Iterable[Any]) -> bool:
    """Return whether promotion leaves operands as they are: tensors of float32 or float64, and numbers beside them."""
    dtype = None
    for operand in operands:
        if isinstance(operand, TensorBase):
            if dtype is None:
                dtype = operand.array.dtype
            elif operand.array.dtype is not dtype:
                return False
        elif type(operand) is not float and type(operand) is not int:
            return False
    return dtype is not None and dtype.kind == "f" and dtype.itemsize > 2


def promote_to_tensors(*operands: Any, at_least_float: bool = False) -> tuple[Any, ...]:
    """Return the operands in their common dtype, numbers as tensors on the device of the others.

    For what is composed of several ops: one of a number alone would give a tensor on the CPU.
    """
    promoted = promote(*operands, at_least_float=at_least_float)
    like = next((each.array for each in promoted if isinstance(each, TensorBase)), None)
    if like is None:
        return promoted
    return tuple(each if isinstance(each, TensorBase) else wrap(_number_beside(each, like)) for each in promoted)


def _number_beside(value: Any, like: Array) -> Array:
    if not gpu.is_gpu_array(like):
        return np.asarray(value, like.dtype)
    with gpu.use_device(gpu.device_index(like)):
        return cupy_functions().full((), value, like.dtype)


class NumberOfHalf(float):
    """A Python number beside NumPy's arrays of a half type: the ufunc's result is rounded, not the number before it.

    So do kernels. NumPy would round it to float16 first, and does not know that it is weak beside bfloat16. What is
    compared is of one dtype: the float16 next to 0.1 equals 0.1.
    """

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Return the ufunc's result beside arrays, in their dtype."""
        half: Any = next((x.dtype for x in inputs if type(x) is not NumberOfHalf), np.dtype(np.float64))
        compared = "ff->?" in ufunc.types
        number = half.type if compared else np.float32
        out = getattr(ufunc, method)(*[number(x) if type(x) is NumberOfHalf else x for x in inputs], **options)
        return out if compared else out.astype(half, copy=False)


def number_in(value: Any, dtype: dtype_class, like: Array | None = None) -> Any:
    """Return a Python number as an operand of arrays of `dtype`; integers wrap around, as in PyTorch.

    `like` is the array that it stands beside, on whose device it may have to be.
    """
    if (dtype is bfloat16 or dtype is float16) and (like is None or not gpu.is_gpu_array(like)):
        return NumberOfHalf(value)
    if dtype.category != 1:
        return value
    span = 1 << 8 * dtype.itemsize
    lowest = -span // 2 if dtype.is_signed else 0
    return (int(value) - lowest) % span + lowest


def float_operand(x: Any) -> Any:
    """Return a tensor as floating point or complex; integers and bools become the default dtype."""
    operand = as_operand(x)
    if not isinstance(operand, TensorBase):
        raise unfit(x, "a Tensor", kind=OperandTypeError)
    return operand if operand.array.dtype.kind in "fcV" else cast_to(operand, get_default_dtype())


def accumulation_dtype(dtype: Any) -> Any:
    """Return the NumPy dtype of accumulators for `dtype`: float32 for the half types."""
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def in_float32(rule: Any, m: Namespace, arrays: tuple[Any, ...], *settings: Any) -> Any:
    """Return the result of a derivative rule for arrays of a half type, rounded once."""
    wide, own = np.dtype(np.float32), as_dtype(arrays[0].dtype).numpy
    return m.cast(rule(m, *[m.cast(x, dtype=wide) for x in arrays], *settings), dtype=own)


def tensor_dtype(x: Any) -> dtype_class:
    """Return lucid's dtype of a tensor."""
    return dtype_of(array_of(x))
