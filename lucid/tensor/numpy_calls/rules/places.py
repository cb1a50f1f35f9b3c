"""NumPy's functions that only move elements: run by NumPy on the numbers of places, they give the order.

Each element of the operands gets a number, from 1 on, and 0 is what fills. What the function makes of arrays of these
numbers is the index with which the result is selected: all of NumPy's arguments, and none of its rules written again.
It costs an array of integers on the host; what is called often has an op, in the files beside this one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.base.dtype import dtype_of
from lucid.base.gpu import is_gpu_array
from lucid.ops.base.promotion import cast_to
from lucid.ops.index.indexing import getitem, setitem
from lucid.ops.shape.diagonal import diagonal
from lucid.ops.shape.joining import cat
from lucid.ops.shape.reshape import ravel
from lucid.tensor.numpy_calls.definition import enter, rule
from lucid.tensor.numpy_calls.operands import (
    NumpyCallError,
    is_sequence,
    is_tensor,
    numpy_dtype,
    operand,
    placed,
    remade,
    tensors_in,
    zeros_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Operand


def selected(
    function: Callable[..., Any], arguments: dict[str, Any], moved: Container[str], *, weak: str | None = None
) -> Any:
    """Return the result of `function`, a selection from its arguments named in `moved`.

    Numbers of Python's among them have a dtype of their own, and lists are gone into. With `weak`, the name of an
    argument that is a sequence of operands, or "" if none is, they have none, and any other list is one array.
    """
    parts: list[Any] = []
    like = next(tensors_in(arguments.values()))
    count = 1

    def numbers(value: object, *, is_array: bool) -> Any:
        nonlocal count
        if is_sequence(value) and not is_array:
            return [numbers(entry, is_array=weak is not None) for entry in value]
        part = operand(value, like, strong=weak is None)
        shape = part.array.shape if is_tensor(part) else ()
        parts.append(part)
        count += math.prod(shape)
        return np.arange(count - math.prod(shape), count).reshape(shape)

    order = function(
        **{
            key: numbers(value, is_array=weak not in {None, key}) if key in moved else plain(value)
            for key, value in arguments.items()
        }
    )
    wanted = numpy_dtype(parts)
    lines = [ravel(cast_to(operand(part, like, strong=True), wanted)) for part in parts]
    return taken(cat([zeros_for(lines[0], (1,)), *lines]), order)


def taken(line: Tensor, order: object) -> Any:
    """Return the elements of a vector at the places of an array, or of each of several."""
    if is_sequence(order):
        return type(order)([taken(line, each) for each in order])
    return getitem(line, placed(np.asarray(order, order="C"), line))


def plain(value: Any) -> Any:
    """Return an argument as NumPy takes it."""
    if is_tensor(value):
        return value.numpy(force=True)
    if is_gpu_array(value):
        return value.get()
    return remade(value, map(plain, value)) if is_sequence(value) else value


def enter_moving(name: str, takes: str, moved: str, *, weak: str | None = None) -> None:
    """Enter a function that only moves the elements of its arguments named in `moved`."""
    function, names = getattr(np, name), frozenset(moved.split())

    def moving(**arguments: object) -> Any:
        return selected(function, arguments, names, weak=weak)

    enter(name, takes, moving)


enter_moving("append", "*arr *values axis", "arr values")
enter_moving("block", "+arrays", "arrays")
enter_moving("choose", "a +choices mode", "choices", weak="choices")
enter_moving("compress", "+condition *a axis", "a")
enter_moving("delete", "*arr obj axis", "arr")
enter_moving("diagflat", "*v k", "v")
enter_moving("extract", "+condition *arr", "arr")
enter_moving("resize", "*a new_shape", "a")
enter_moving("select", "+condlist +choicelist +default", "choicelist default", weak="choicelist")


@rule("diag", "*v k")
def matrix_or_diagonal(v: Tensor, k: int = 0) -> Any:
    """Return ``numpy.diag``: a matrix of a vector; of a matrix a view of its diagonal."""
    return diagonal(v, k) if v.array.ndim == 2 else selected(np.diag, {"v": v, "k": k}, {"v"})


def check_cast(name: str, into: Tensor, value: object, casting: str) -> None:
    """Raise the error of NumPy's function if it casts no such values into the dtype of an array.

    It is called with zeros of the same dtypes; numbers, which have none, stay what they are.
    """

    def stand_in(entry: object) -> Any:
        if is_sequence(entry):
            return [stand_in(each) for each in entry]
        array: Any = entry.array if isinstance(entry, TensorBase) else entry
        return np.zeros((1,) * array.ndim, array.dtype) if is_gpu_array(array) or type(array) is np.ndarray else entry

    values = stand_in(value)
    array = np.zeros(np.shape(values) or (1,), into.array.dtype)
    if name == "copyto":
        np.copyto(array, values, casting=cast("Any", casting))
    elif array.size:
        function = {"place": np.place, "putmask": np.putmask}.get(name, np.put)
        every: Any = np.arange(array.size) if function is np.put else np.ones(array.shape, bool)
        function(array, every, values)


def enter_writing(name: str, takes: str, target: str, values: str) -> None:
    """Enter a function that writes `values` into the elements of `target`, and returns nothing."""
    function = getattr(np, name)
    first = takes.replace("+", "").split()[: 2 if name in {"copyto", "fill_diagonal"} else 3]

    def written(**arguments: Any) -> Any:
        function(*[arguments[key] for key in first], **{key: v for key, v in arguments.items() if key not in first})
        return arguments[target]

    def writing(**arguments: Any) -> None:
        into = arguments[target]
        if not is_tensor(into):
            raise NumpyCallError(
                f"numpy.{name}: {target} is no Tensor, and cannot hold what requires grad: make it one, "
                "lucid.as_tensor(array)"
            )
        check_cast(name, into, arguments[values], arguments.get("casting", "same_kind"))
        arguments[values] = cast_to(operand(arguments[values], into, strong=True), dtype_of(into.array))
        setitem(into, ..., selected(written, arguments, {target, values}))

    enter(name, takes, writing)


enter_writing("copyto", "+dst +src casting where", "dst", "src")
enter_writing("fill_diagonal", "+a +val wrap", "a", "val")
enter_writing("place", "+arr +mask +vals", "arr", "vals")
enter_writing("put", "+a ind +v mode", "a", "v")
enter_writing("put_along_axis", "+arr indices +values axis", "arr", "values")
enter_writing("putmask", "+a +mask +values", "a", "values")


@rule("insert", "*arr obj ?values axis")
def inserted(arr: Tensor, obj: object, values: Operand, axis: int | None = None) -> Any:
    """Return ``numpy.insert``: the inserted values come to the dtype of the array."""
    check_cast("insert", arr, values, "unsafe")
    own = cast_to(operand(values, arr, strong=True), dtype_of(arr.array))
    return selected(np.insert, {"arr": arr, "obj": obj, "values": own, "axis": axis}, {"arr", "values"})
