"""Operands of NumPy's functions: recorded or not, in sequences, of one dtype, and on one device."""

from __future__ import annotations

import operator
from collections import deque
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.borrowing import borrowed
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.views import live_edge
from lucid.base.arrays import asarray, zeros_beside
from lucid.base.device import device_of
from lucid.base.dtype import as_dtype, result_type
from lucid.base.gpu import is_gpu_array
from lucid.errors import LinAlgError, LucidError, ShapeError, warn
from lucid.ops.base.dims import sizes_in
from lucid.ops.base.promotion import as_operand, cast_to, host_beside, is_settled, no_matrix
from lucid.ops.shape.joining import stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import SupportsIndex, TypeGuard

    from lucid.base.arrays import Array
    from lucid.base.dtype import dtype
    from lucid.tensor import Tensor


class NumpyCallError(LucidError, TypeError):
    """A NumPy function was called with a tensor that lucid cannot follow."""


class MatrixShapeError(ShapeError, LinAlgError):
    """Shapes that a function of `numpy.linalg` does not take: NumPy reports them by either of the two classes."""


Axis: TypeAlias = "int | tuple[int, ...] | None"
"""What is reduced over: a dimension, several, or all."""


Operand: TypeAlias = "Tensor | complex"
"""An array to NumPy, which is a tensor when a rule is called, or a number of Python's."""


Indices: TypeAlias = "Tensor | Array | Sequence[int] | int"
"""Indices or counts, which have no gradient and come to the host or the device as they are needed."""


Sizes: TypeAlias = "int | Sequence[int]"
"""One size, place or shift, or one for each of several dimensions."""


NO_VALUE: Any = getattr(np, "_NoValue")  # noqa: B009 - NumPy gives it no public name
"""What NumPy's functions have for a parameter that is not given."""


untyped: Any = np
"""NumPy, where its stubs know nothing of arrays of any dtype."""


WEAK = frozenset((bool, int, float, complex))
"""Python's numbers, which have no dtype of their own: those of NumPy's that inherit from them have one."""


SETTINGS = frozenset((type(None), bool, int, float, str))
"""Types of settings, which nobody records."""


def is_whole(value: object) -> bool:
    """Return whether a value is a tensor of integers or bools."""
    return isinstance(value, TensorBase) and value.array.dtype.kind in "biu"


def to_one_dtype(places: list[tuple[Any, Any]], common: Callable[[list[Any]], dtype]) -> None:
    """Bring the tensors at these places, pairs of container and key, to one dtype."""
    values = [container[key] for container, key in places]
    if common in BY_OPERANDS and is_settled(values):
        return
    wanted = common(values)
    for (container, key), value in zip(places, values, strict=True):
        if isinstance(value, TensorBase):
            container[key] = cast_to(value, wanted)


def pytorch_dtype(values: list[Any]) -> dtype:
    """Return the common dtype of tensors and numbers by PyTorch's rules."""
    return result_type(*[value.array if isinstance(value, TensorBase) else value for value in values])


def numpy_dtype(values: list[Any]) -> dtype:
    """Return the common dtype of tensors and numbers by NumPy's rules: an array of no dimension counts as any other."""
    kinds = [value.array.dtype if isinstance(value, TensorBase) else value for value in values]
    return as_dtype(np.result_type(*kinds))


BY_OPERANDS = frozenset((pytorch_dtype, numpy_dtype))
"""What leaves operands of one dtype as they are."""


def dtype_named(dtype: object) -> dtype:
    """Return the dtype that a name of lucid's or NumPy's, such as ``"f4"`` or ``"?"``, says."""
    return as_dtype(np.dtype(dtype) if isinstance(dtype, str) else dtype)


def is_tensor(value: object) -> TypeGuard[Tensor]:
    """Return whether a value is a tensor."""
    return isinstance(value, TensorBase)


def is_recorded(value: object) -> bool:
    """Return whether ops on a value are recorded: of a tensor that requires grad, while gradients are on."""
    return isinstance(value, TensorBase) and live_edge(value) is not None and thread.state.grad_mode.enabled


def is_usual(key: str, value: object, default: object) -> bool:
    """Return whether an option is the default, or without effect on recorded values, as of a class or a layout."""
    if isinstance(value, str):
        return value == default or (key == "order" and value in {"K", "C", "A"})
    is_true = value is True or value is np.True_
    return value is default or (key == "subok" and isinstance(value, bool)) or (key == "where" and is_true)


SEQUENCES: Any = (list, tuple, deque)
"""Sequences whose entries may be tensors; named tuples and others that inherit from these are such too."""


CONTAINERS: Any = (*SEQUENCES, dict)
"""What values are looked for in."""


def any_recorded(values: Iterable[Any]) -> bool:
    """Return whether one of the values is recorded, or one in sequences and dictionaries of them."""
    for value in values:
        if isinstance(value, TensorBase):
            if is_recorded(value):
                return True
        elif isinstance(value, CONTAINERS) and any_recorded(entries_of(value)):
            return True
    return False


def entries_of(value: Any) -> Iterable[Any]:
    """Return the entries of a sequence, or the values of a dictionary."""
    return cast("dict[Any, Any]", value).values() if isinstance(value, dict) else value


def is_sequence(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Return whether a value is one of `SEQUENCES`."""
    return isinstance(value, SEQUENCES)


def remade(value: object, entries: Iterable[Any]) -> Any:
    """Return entries as a tuple if a sequence is a kind of tuple, else as a list."""
    return tuple(entries) if isinstance(value, tuple) else list(entries)


def tensors_in(values: Any) -> Iterator[Any]:
    """Yield the tensors among values, also those in sequences and dictionaries."""
    for value in values:
        if isinstance(value, TensorBase):
            yield value
        elif isinstance(value, CONTAINERS):
            yield from tensors_in(entries_of(value))


def operand(value: object, like: TensorBase | None, *, strong: bool = False) -> Any:
    """Return an array, or nested lists of arrays and numbers, as a tensor; lists come to the device of `like`.

    Numbers of Python's stay what they are unless `strong`.
    """
    if isinstance(value, TensorBase) or value is None or (type(value) in WEAK and not strong):
        return value
    if is_gpu_array(value):
        return as_operand(of_known_dtype(value))
    if isinstance(value, np.ndarray | np.generic):
        no_matrix(value)
        array = of_known_dtype(in_native_order(value))
        if not array.ndim and like is not None and is_gpu_array(like.array):
            # a number of NumPy's, of which its operators make an array without dimensions, is one on the device too
            return placed(array, like)
        return borrowed(asarray(array, device=host_beside(like)))
    if is_sequence(value) and next(tensors_in(value), None) is not None:
        entries = [operand(entry, like, strong=True) for entry in value]
        to_one_dtype([(entries, k) for k in range(len(entries))], numpy_dtype)
        return stack(entries)
    return wrap(asarray(of_known_dtype(np.asarray(value)), device=None if like is None else device_of(like.array)))


def listed(value: object, like: TensorBase | None) -> Any:
    """Return a sequence as an array, of any dtype; as a tensor if it has tensors, or `like` is on a device."""
    on_host = like is None or not is_gpu_array(like.array)
    return np.asarray(value) if on_host and next(tensors_in((value,)), None) is None else operand(value, like)


UNSIGNED = {np.dtype(np.uint16): np.float32, np.dtype(np.uint32): np.int64, np.dtype(np.uint64): np.float64}
"""What unsigned integers are taken as that lucid has no dtype for: with floats they promote to NumPy's dtypes."""


def of_known_dtype(array: Any) -> Any:
    """Return an array or scalar of NumPy's, or an array of CuPy's, with its values in a dtype that lucid has."""
    other = UNSIGNED.get(array.dtype)
    return array if other is None else array.astype(other)


def in_native_order(array: Any) -> Any:
    """Return an array or scalar of NumPy's in the order of bytes of this machine, as tensors have."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def axis_in(axis: SupportsIndex, ndim: int) -> int:
    """Return an axis counted from the front; NumPy's AxisError, an IndexError and a ValueError, if there is none."""
    if isinstance(axis, bool):
        raise NumpyCallError(f"expected an integer as an axis, got the bool {axis}")
    number = operator.index(axis)
    if not -ndim <= number < ndim:
        raise np.exceptions.AxisError(number, ndim)
    return number % ndim


def the_axis(axis: Sizes) -> Any:
    """Return an axis as `numpy.moveaxis` takes it: a sequence of one is that one, too."""
    several: Any = np.asarray(axis)
    return several.tolist()[0] if several.shape == (1,) and several.dtype.kind in "iu" else axis


def sizes_of(shape: Sizes) -> tuple[int, ...]:
    """Return a shape, given as one size or a sequence of sizes, as a tuple."""
    sizes: Any = shape
    return sizes_in((sizes,) if np.ndim(sizes) == 0 else tuple(sizes.tolist() if hasattr(sizes, "tolist") else sizes))


def tensor_of(value: object, like: TensorBase) -> Any:
    """Return a number as a tensor beside `like`, in its dtype; a tensor as it is."""
    if isinstance(value, TensorBase):
        return value
    return cast_to(operand(value, like, strong=True), as_dtype(like.array.dtype))


def written_as(value: TensorBase, dtype: dtype) -> Any:
    """Return a tensor in another dtype; as NumPy, warn of an imaginary part that is lost."""
    if value.array.dtype.kind == "c" and dtype.numpy.kind not in "cb":
        warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)
    return cast_to(value, dtype)


def strong_operands(values: Sequence[Any]) -> list[Any]:
    """Return values as tensors, numbers in dtypes of their own, and lists on the device of the first tensor."""
    like = next(tensors_in(values), None)
    return [operand(value, like, strong=True) for value in values]


def tensors_of(*values: Operand) -> list[Any]:
    """Return tensors and numbers, some of them tensors, as tensors: numbers in the dtype of the first of these."""
    like = next(tensors_in(values))
    return [tensor_of(value, like) for value in values]


def placed(array: object, like: TensorBase) -> Any:
    """Return an array that a rule has computed on the host as a tensor on the device of `like`."""
    return wrap(asarray(np.asarray(array), device=device_of(like.array)))


def beside(array: object, like: TensorBase) -> Any:
    """Return such an array in the dtype of `like`, too."""
    return cast_to(placed(array, like), as_dtype(like.array.dtype))


def zeros_for(like: TensorBase, shape: tuple[int, ...] | None = None) -> Any:
    """Return zeros of the dtype and on the device of a tensor, in its shape or another one."""
    return wrap(zeros_beside(like.array, shape))


def same_kind(made: object, like: TensorBase) -> Any:
    """Return a tensor that was just made in the class of `like`: user code that is given it expects its methods."""
    if type(made) is not type(like):
        made.__class__ = type(like)
    return made
