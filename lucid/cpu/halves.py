"""float16 and bfloat16 on NumPy by ``kernels/cpu/halves.cpp``: conversions and arithmetic with the bits of NumPy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from lucid.cpu.functions import Function, address, first_element

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.base.arrays import Array
    from lucid.cpu.functions import Call

FEW = 1 << 8
"""Elements below which a call costs more than what NumPy does."""

_FLOAT32, _FLOAT16, _BFLOAT16 = map(np.dtype, (np.float32, np.float16, ml_dtypes.bfloat16))
_TYPES = {_FLOAT16: "__half", _BFLOAT16: "__nv_bfloat16"}
_EACH = [(name,) for name in _TYPES.values()]
_WIDEN, _NARROW = Function("halves.cpp", "widen", _EACH), Function("halves.cpp", "narrow", _EACH)
_CONVERSIONS = {
    **{(half, _FLOAT32): (_WIDEN, name) for half, name in _TYPES.items()},
    **{(_FLOAT32, half): (_NARROW, name) for half, name in _TYPES.items()},
}

# of two arrays, or of one and a number
_BESIDE = [(half, *operands) for (half,) in _EACH for operands in ((half, half), (half, "float"), ("float", half))]
_ARITHMETIC = {name: Function("halves.cpp", name, _BESIDE) for name in ("add", "subtract", "multiply", "divide")}
_COMPARISONS = {
    name: Function("halves.cpp", name, _EACH)
    for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
}
_CHOICES = {name: Function("halves.cpp", name, _EACH) for name in ("maximum", "minimum")}


def converted(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return ``array.astype(dtype)``, in its layout too."""
    out = by_loop(array, dtype) if type(array) is np.ndarray else None
    return array.astype(dtype) if out is None else out


def by_loop(array: Array, dtype: np.dtype[Any]) -> Array | None:
    """Return ``array.astype(dtype)`` of an array of NumPy's; None if NumPy is to do it."""
    run = _conversion(array, dtype)
    if run is None:
        return None
    flags = array.flags
    if not (flags.forc and flags.aligned):
        # dense, its dimensions in the order of their strides
        array = array.copy("K")
    out = np.empty_like(array, dtype)
    run(first_element(out), first_element(array), array.size)
    return out


def convert(out: Array, array: Array) -> None:
    """Write an array to another one of its shape and any dtype; both contiguous."""
    run = _conversion(array, out.dtype)
    if run is None:
        out[...] = array
    else:
        run(first_element(out), first_element(array), array.size)


def _conversion(array: Array, dtype: np.dtype[Any]) -> Call | None:
    if array.size < FEW:
        return None
    loop, name = _CONVERSIONS.get((array.dtype, dtype)) or (None, "")
    return None if loop is None else loop(array.size, name)


def of_halves(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the results of a ufunc that is quicker for half types; others are returned as they are."""
    name = function.__name__ if isinstance(function, np.ufunc) else ""
    compute: Any = None
    for loops, way in (_ARITHMETIC, _arithmetic), (_COMPARISONS, _compared), (_CHOICES, _chosen):
        if name in loops:
            compute = partial(way, loops[name])
    if compute is None:
        return function

    def run(a: Any, b: Any) -> Any:
        for operand in (a, b):
            if type(operand) is np.ndarray and operand.size >= FEW:
                half = _TYPES.get(operand.dtype)
                out = None if half is None else compute(half, operand.dtype, a, b)
                return function(a, b) if out is None else out
        return function(a, b)

    return run


def _is_number(operand: Any) -> bool:
    """Whether this is a number that lucid puts beside half types; NumPy would round any other, or widen the result."""
    return isinstance(operand, float) and type(operand) is not float and not isinstance(operand, np.generic)


def _arithmetic(loop: Function, half: str, dtype: np.dtype[Any], *operands: Any) -> Array | None:
    arrays: list[Array] = []
    names = [half]
    for operand in operands:
        if type(operand) is np.ndarray and operand.dtype is dtype:
            arrays.append(operand)
            names.append(half)
        elif _is_number(operand):
            # the result is rounded, not the number before it
            arrays.append(np.array(operand, _FLOAT32))
            names.append("float")
        else:
            return None
    return _by_rows(loop, names, dtype, *arrays)


def _compared(loop: Function, half: str, dtype: np.dtype[Any], *operands: Any) -> Array | None:
    arrays: list[Array] = []
    for operand in operands:
        if type(operand) is np.ndarray and operand.dtype is dtype:
            arrays.append(operand)
        elif _is_number(operand):
            # what is compared is of one dtype: the float16 next to 0.1 equals 0.1
            arrays.append(np.array(operand, dtype))
        else:
            return None
    return _by_rows(loop, [half], np.dtype(np.bool_), *arrays)


def _chosen(loop: Function, half: str, dtype: np.dtype[Any], a: Any, b: Any) -> Array | None:
    for operand in (a, b):
        if type(operand) is not np.ndarray or operand.dtype is not dtype:
            return None
    return _by_rows(loop, [half], dtype, a, b)


def _shape(a: Array, b: Array) -> tuple[int, ...] | None:
    if a.shape == b.shape:
        return a.shape
    try:
        return np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        # the ufunc says so
        return None


def _by_rows(loop: Function, names: Sequence[str], dtype: np.dtype[Any], a: Array, b: Array) -> Array | None:
    """Return the result of a loop over rows of two arrays; None if NumPy is to give it."""
    shape = _shape(a, b)
    run = None if shape is None else loop(max(a.size, b.size), *names)
    if shape is None or run is None:
        return None
    out: Array = np.empty(shape, dtype)
    if out.size:
        (a, of_a), (b, of_b) = _rows(a, out.shape), _rows(b, out.shape)
        width = out.shape[-1]
        if all(steps in ((width, True), (0, False)) for steps in (of_a, of_b)):
            # one row: there are no others than those of the dense, and of one number
            width = out.size
        run(address(out), first_element(a), first_element(b), out.size // width, width, *of_a, *of_b)
    return out


def _rows(array: Array, shape: tuple[int, ...]) -> tuple[Array, tuple[int, bool]]:
    """Return an array broadcast to a shape, the step from row to row with whether there are steps along a row.

    Where steps are not all the same, or elements of a row do not follow one another, it is copied.
    """
    if array.size == 1:
        return array, (0, False)
    flags = array.flags
    if not flags.aligned:
        array = array.copy()
    elif array.shape == shape and flags.c_contiguous:
        return array, (shape[-1], True)
    wide = np.broadcast_to(array, shape)
    *strides, inner = wide.strides
    steps = {stride for stride, size in zip(strides, shape[:-1], strict=True) if size > 1}
    if inner in (0, array.itemsize) and (not any(steps) or (len(steps) == 1 and len(shape) == 2)):
        return wide, (max(steps, default=0) // array.itemsize, inner != 0)
    return np.ascontiguousarray(wide), (shape[-1], True)
