"""Running sums, products and extremes, and elements at indices, by ``kernels/cpu/running.cpp``, as NumPy gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lucid.cpu.functions import Function, address

if TYPE_CHECKING:
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


def _running(function: Function, x: Array, axis: int, *, reverse: bool) -> Array | None:
    name = _FLOATS.get(x.dtype.char)
    if name is None or axis != x.ndim - 1 or not x.dtype.isnative:
        return None
    run = function(x.size, name)
    if run is None:
        return None
    x = np.require(x, requirements=["C", "A"])
    out = np.empty(x.shape, x.dtype)
    length = x.shape[-1]
    run(address(out), address(x), out.size // max(length, 1), length, -1 if reverse else 1)
    return out


def running_places(x: Array, axis: int, *, largest: bool) -> Array | None:
    """Return the index of the extreme up to each element along the last axis; None for others, and other dtypes."""
    name = _ORDERED.get(x.dtype.char)
    if name is None or axis != x.ndim - 1 or not x.dtype.isnative:
        return None
    run = _PLACES(x.size, name)
    if run is None:
        return None
    x = np.require(x, requirements=["C", "A"])
    out = np.empty(x.shape, np.int64)
    length = x.shape[-1]
    run(address(out), address(x), out.size // max(length, 1), length, largest)
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
    within = None if within is None else np.require(within, np.int64, ["C", "A"])
    rows, width = values.shape
    run(address(out), address(places), 0 if within is None else address(within), address(values), rows, width)
    return True
