"""Running sums, products and extremes, and elements at indices, by ``kernels/cpu/running.cpp``, as NumPy gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.cpu.functions import Function, address, dense

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lucid.base.arrays import Array

_FLOATS = {"f": "float", "d": "double"}
_ORDERED = {**_FLOATS, "l": "long long", "q": "long long", "i": "int"}
_SUMS, _PRODUCTS, _ADD = [
    Function("running.cpp", name, [(each,) for each in _FLOATS.values()])
    for name in ("running_sums", "running_products", "add_rows")
]
_PLACES = Function("running.cpp", "running_places", [("float",), ("double",), ("long long",), ("int",)])

# a copy of elements asks for no more than their sizes
_SIZES = {4: "int", 8: "long long"}
_TAKE = Function("running.cpp", "take", [(each,) for each in _SIZES.values()])


def running_sums(x: Array, axis: int, *, reverse: bool = False) -> Array | None:
    """Return the result of `lucid.ops.base.rows.running_sums` along the last axis, in reverse too; None for others."""
    return _running(_SUMS, x, axis, reverse=reverse)


def running_products(x: Array, axis: int, *, reverse: bool = False) -> Array | None:
    """Return running products along the last axis, those of float32 computed in float64; None for others."""
    return _running(_PRODUCTS, x, axis, reverse=reverse)


def running_places(x: Array, axis: int, *, largest: bool) -> Array | None:
    """Return the index of the extreme up to each element along the last axis; None for others, and other dtypes."""
    return _along_rows(_PLACES, _ORDERED, x, axis, np.dtype(np.int64), largest)


def _running(function: Function, x: Array, axis: int, *, reverse: bool) -> Array | None:
    return _along_rows(function, _FLOATS, x, axis, x.dtype, -1 if reverse else 1)


def _along_rows(
    function: Function, names: Mapping[str, str], x: Array, axis: int, dtype: np.dtype[Any], setting: int
) -> Array | None:
    """Return the result of a loop over lines along the last axis; None for other axes and dtypes."""
    name = names.get(x.dtype.char)
    if name is None or axis != x.ndim - 1 or not x.dtype.isnative:
        return None
    run = function(x.size, name)
    if run is None:
        return None
    x = dense(x)
    out = np.empty(x.shape, dtype)
    length = x.shape[-1]
    run(address(out), address(x), out.size // max(length, 1), length, setting)
    return out


def take(x: Array, index: Array) -> Array:
    """Return ``x.take(index)`` of a dense array, for indices that are in range and not negative."""
    flags = x.flags
    fits = flags.c_contiguous and flags.aligned and index.dtype.char == "l" and x.dtype.kind != "O"
    name = _SIZES.get(x.itemsize) if fits else None
    run = None if name is None else _TAKE(index.size, name)
    if run is None:
        return x.take(index)
    index = np.require(index, requirements=["C", "A"])
    out = np.empty(index.shape, x.dtype)
    run(address(out), address(x), address(index), out.size)
    return out


def add_rows(out: Array, places: Array, within: Array | None, values: Array) -> bool:
    """Add row k of `values` to the elements `within` behind ``places[k]`` of a dense array; returns whether it did.

    The indices are in range. Without `within` a row's elements follow one another.
    """
    name = _FLOATS.get(out.dtype.char)
    if name is None or values.dtype != out.dtype or not out.dtype.isnative:
        return False
    run = _ADD(values.size, name)
    if run is None:
        return False
    values, places = np.require(values, requirements=["C", "A"]), np.require(places, np.int64, ["C", "A"])
    within = None if within is None else dense(within.astype(np.int64, copy=False))
    rows, width = values.shape
    run(address(out), address(places), 0 if within is None else address(within), address(values), rows, width)
    return True
