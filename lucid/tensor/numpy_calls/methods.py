"""Methods of NumPy's ufuncs: their parameters, and those methods that are no function of NumPy's."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.dtype import as_dtype, dtype_of
from lucid.errors import DtypeError
from lucid.ops.base.promotion import cast_to
from lucid.ops.elementwise import arithmetic
from lucid.ops.index.index_select import index_add
from lucid.ops.index.indexing import getitem, setitem
from lucid.ops.reduction import norms, running
from lucid.ops.shape import axes, broadcasting, joining, reshape, splitting
from lucid.tensor.numpy_calls.operands import (
    NumpyCallError,
    axis_in,
    beside,
    dtype_named,
    is_sequence,
    operand,
    placed,
    tensor_of,
    tensors_in,
    untyped,
)
from lucid.tensor.numpy_calls.rules.places import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor

PARAMETERS = {
    "reduce": ("array", "axis", "dtype", "out", "keepdims", "initial", "where"),
    "accumulate": ("array", "axis", "dtype", "out"),
    "reduceat": ("array", "indices", "axis", "dtype", "out"),
}
"""The parameters of methods, in order."""


def by_name(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the operands and options of a call with each option under its name, as NumPy's protocol has them."""
    if method == "__call__":
        count, most, title = ufunc.nin, ufunc.nargs, ufunc.__name__
        outputs = inputs[count:]
        settings = {} if all(each is None for each in outputs) else {"out": outputs}
    elif method in PARAMETERS:
        names = PARAMETERS[method]
        count, most, title = names.index("axis"), len(names), f"{ufunc.__name__}.{method}"
        settings = dict(zip(names[count:], inputs[count:], strict=False))
    else:
        return inputs, options
    if len(inputs) > most:
        raise NumpyCallError(f"numpy.{title}: expected at most {most} arguments, got {len(inputs)}")
    if twice := settings.keys() & options.keys():
        raise NumpyCallError(f"numpy.{title}: {twice.pop()} is given twice")
    return inputs[:count], {**settings, **options}


LOGARITHMS = {"logaddexp": 1.0, "logaddexp2": math.log(2.0)}
"""Ufuncs that add exponentials, and the factor of the exponents."""


def folded(
    op: Callable[[Any, Any], Any],
    ufunc: np.ufunc,
    method: str,
    inputs: tuple[Any, ...],
    options: dict[str, Any],
    reduce: Callable[..., Any],
) -> Any:
    """Return the result of a method of a ufunc of two operands, by its op on one part after the other.

    Parameters
    ----------
    op, ufunc, method, inputs, options
    reduce : callable
        What reduces the parts of ``reduceat``, a tensor over a dimension.
    """
    x = operand(inputs[0], next(tensors_in(inputs)), strong=True)
    places = [np.asarray(plain(each)) if np.size(plain(each)) else np.zeros(0, int) for each in inputs[1:]]
    options = {key: plain(value) for key, value in options.items()}
    if "dtype" in options:
        options["dtype"] = dtype_named(options["dtype"]).numpy
    # NumPy's own shape, dtype and errors, of as many ones
    ones: Any = np.broadcast_to(np.ones((), x.array.dtype), x.array.shape)
    with np.errstate(all="ignore"):
        wanted = np.asarray(getattr(ufunc, method)(ones, *places, **options))
    x = cast_to(x, as_dtype(wanted.dtype))
    axis = options.get("axis", 0)
    if not x.array.size or not wanted.size:
        return beside(wanted, x)
    if method == "reduce":
        result = reduced(op, ufunc, x, axis, options.get("initial", ufunc.identity))
    else:
        k = axis_in(axis, x.array.ndim)
        result = accumulated(op, ufunc, x, k) if method == "accumulate" else reduced_at(x, k, places[0], reduce)
    return reshape.reshape(result, wanted.shape)


def reduced(op: Callable[[Any, Any], Any], ufunc: np.ufunc, x: Tensor, axis: Any, first: Any) -> Any:
    """Return the reduction over one axis, several or all, without dimensions for these."""
    ndim = x.array.ndim
    every = range(ndim) if axis is None or not ndim else axis if is_sequence(axis) else (axis,)
    over = [axis_in(each, ndim) for each in every]
    rest = [k for k in range(ndim) if k not in over]
    sizes = x.array.shape
    line = reshape.reshape(
        axes.permute(x, over + rest), [math.prod([sizes[k] for k in over]), *[sizes[k] for k in rest]]
    )
    if ufunc.__name__ in LOGARITHMS and (first is None or first == ufunc.identity):
        return of_exponents(line, ufunc, lambda exponents: norms.logsumexp(exponents, 0))
    parts = splitting.unbind(line)
    return functools.reduce(op, parts if first is None else [tensor_of(first, x), *parts])


def accumulated(op: Callable[[Any, Any], Any], ufunc: np.ufunc, x: Tensor, k: int) -> Any:
    """Return the results after each part along a dimension."""
    if ufunc.__name__ in LOGARITHMS:
        return of_exponents(x, ufunc, lambda exponents: running.logcumsumexp(exponents, k))
    return joining.stack([*itertools.accumulate(splitting.unbind(x, k), op)], k)


def of_exponents(x: Tensor, ufunc: np.ufunc, add: Callable[[Tensor], Tensor]) -> Any:
    """Return a sum of powers of the base of a ufunc's logarithm as that logarithm."""
    factor = LOGARITHMS[ufunc.__name__]
    return add(x) if factor == 1 else arithmetic.mul(add(arithmetic.mul(x, factor)), 1 / factor)


def reduced_at(x: Tensor, k: int, places: Any, reduce: Callable[..., Any]) -> Any:
    """Return reductions of the slices between places along a dimension; the part at a place not below the next."""
    ends = [*places[1:].tolist(), x.array.shape[k]]
    before = (slice(None),) * k
    parts = [
        reduce(getitem(x, (*before, slice(start, end))), k) if end > start + 1 else getitem(x, (*before, start))
        for start, end in zip(places.tolist(), ends, strict=True)
    ]
    return joining.stack(parts, k)


def added_at(ufunc: np.ufunc, into: Any, key: Any, values: Any) -> None:
    """Add values to elements in place, or subtract them, each as often as it is named."""
    if not untyped.can_cast(values.array.dtype, into.array.dtype, "same_kind"):
        raise DtypeError(
            f"numpy.{ufunc.__name__}.at: values of {values.array.dtype} cannot be added to elements of "
            f"{into.array.dtype}: use astype()"
        )
    places: Any = np.asarray(untyped.arange(into.array.size).reshape(into.array.shape)[plain(key)])
    # summed in the wider dtype, and rounded when it is written
    wanted = dtype_of(untyped.zeros(0, untyped.result_type(into.array.dtype, values.array.dtype)))
    source = broadcasting.broadcast_to(cast_to(values, wanted), places.shape)
    index = placed(places.ravel(), into)
    made = index_add(
        reshape.ravel(cast_to(into, wanted)), 0, index, reshape.ravel(source), alpha=-1 if ufunc is np.subtract else 1
    )
    setitem(into, ..., reshape.reshape(made, into.array.shape))
