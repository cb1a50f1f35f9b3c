"""Rearrangement of elements by SciPy's functions, applied to the elements' numbers in place of their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.base.arrays import namespace, on
from lucid.numpy.border import plain
from lucid.scipy.sparse.building import Elements, canonical, converted, is_scipys, of_scipy, summed
from lucid.scipy.sparse.operands import MatrixSizeError, on_one_device, sums_at, taken
from lucid.scipy.sparse.pattern import Pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.scipy.sparse.operands import Dense


def numbered(values: Sequence[Dense]) -> tuple[list[Any], Any]:
    """Return numbers from 1 on for the values of several arrays, and these values one after the other.

    The numbers are floats, as CuPy's sparse matrices hold no integers.
    """
    numbers: list[Any] = []
    begin = 1
    for value in values:
        array = plain(value)
        with on(array):
            count = namespace(array).arange(begin, begin + array.size, dtype=np.float64)
        numbers.append(count.reshape(array.shape))
        begin += array.size
    flat = [lnp.reshape(value, -1) for value in values]
    return numbers, flat[0] if len(flat) == 1 else lnp.concatenate(flat)


def rearranged(
    function: Callable[..., Any], matrices: Sequence[Any], *, array: bool = False, keeps_coo: bool = False
) -> Elements | Any:
    """Return the result for sparse matrices of a function that only moves elements, and leaves zeros.

    Parameters
    ----------
    function : callable
        Of as many matrices of SciPy's, or CuPy's.
    matrices : sequence
        What has places and values.
    array : bool
        Whether the function gets matrices in the sense of SciPy's ``csr_array``.
    keeps_coo : bool
        Whether it gets those of COO in COO, and not in rows.

    Returns
    -------
    Elements, or a dense array or a number
    """
    for other in matrices[1:]:
        on_one_device(matrices[0].data, other.data)
    sources = [canonical(matrix) for matrix in matrices]
    if keeps_coo:
        sources = [
            converted(one, "coo") if matrix.pattern.format == "coo" else one
            for one, matrix in zip(sources, matrices, strict=True)
        ]
    numbers, values = numbered([source.data for source in sources])
    with on(numbers[0]):
        result = function(
            *[one.pattern.matrix(number, array=array) for one, number in zip(sources, numbers, strict=True)]
        )
    return chosen(result, values)


def chosen(result: object, values: Dense) -> Elements | Any:
    """Return values in the places of their numbers; zeros elsewhere."""
    if is_scipys(result):
        pattern, numbers = of_scipy(result)
        return Elements(pattern, taken(values, numbers.astype(np.int64) - 1))
    like = plain(values)
    with on(like):
        numbers = namespace(like).asarray(result).astype(np.int64)
        zero = namespace(like).zeros(1, like.dtype)
    elements = taken(lnp.concatenate([zero, values]), numbers.reshape(-1))
    result = lnp.reshape(elements, numbers.shape)
    return result[()] if type(result) is np.ndarray else result


def added(one: Any, other: Any) -> Elements:
    """Return the sum of two sparse matrices, in the format of the first."""
    on_one_device(one.data, other.data)
    if one.pattern.shape != other.pattern.shape:
        raise MatrixSizeError(f"a sum of sparse matrices of shapes {one.pattern.shape} and {other.pattern.shape}")
    if one.pattern is other.pattern:
        return Elements(one.pattern, lnp.add(one.data, other.data))
    if one.data.dtype != other.data.dtype:
        # repeated elements are added in their own dtype
        one, other = canonical(one), canonical(other)
    with on(one.pattern.parts[0]):
        xp = namespace(one.pattern.parts[0])
        parts = [xp.concatenate(pair) for pair in zip(one.pattern.places, other.pattern.places, strict=True)]
    return Elements(Pattern("coo", parts, one.pattern.shape), lnp.concatenate([one.data, other.data]))


def in_both(one: Any, other: Any) -> Elements:
    """Return the elementwise product of two sparse matrices that broadcast: its elements are those that both have."""
    on_one_device(one.data, other.data)
    if one.pattern.shape != other.pattern.shape:
        product = broadcast_product(one, other) or broadcast_product(other, one)
        if product is None:
            raise MatrixSizeError(
                f"a product of sparse matrices of shapes {one.pattern.shape} and {other.pattern.shape}"
            )
        return product
    one, other = canonical(one), canonical(other)
    with on(one.pattern.parts[0]):
        xp = namespace(one.pattern.parts[0])
        keys = [
            source.pattern.places[0].astype(np.int64) * source.pattern.shape[1] + source.pattern.places[1]
            for source in (one, other)
        ]
        order = xp.argsort(keys[1])
        match = xp.searchsorted(keys[1][order], keys[0])
        match = order[xp.minimum(match, max(0, order.size - 1))] if order.size else match
        (mine,) = xp.nonzero(keys[1][match] == keys[0]) if order.size else (match[:0],)
        theirs = match[mine]
        parts = [part[mine] for part in one.pattern.places]
    product = lnp.multiply(taken(one.data, mine), taken(other.data, theirs))
    return Elements(Pattern("coo", parts, one.pattern.shape), product)


def broadcast_product(one: Any, other: Any) -> Elements | None:
    """Return a matrix times a row, a column or an element, or a column times a row; None for other shapes.

    They are products by a diagonal matrix, so that no element is repeated.
    """
    (height, width), shape = one.pattern.shape, other.pattern.shape
    if shape == (1, 1):
        pattern, values = canonical(one)
        return Elements(pattern, lnp.multiply(values, sums_at(other.data, other.pattern.places[0], 1)[0]))
    if width == 1 and shape[0] == 1:
        return multiplied(one, other)
    places = other.pattern.places
    if shape == (1, width):
        return multiplied(one, Elements(Pattern("coo", (places[1], places[1]), (width, width)), other.data))
    if shape == (height, 1):
        return multiplied(Elements(Pattern("coo", (places[0], places[0]), (height, height)), other.data), one)
    return None


def repeated(source: Any, shape: tuple[int, int]) -> Elements:
    """Return elements of a row, a column or an element again along the dimensions that it is broadcast to."""
    rows, columns = source.pattern.places
    with on(rows):
        xp = namespace(rows)
        copies = [whole if size == 1 else 1 for size, whole in zip(source.pattern.shape, shape, strict=True)]
        down, along = (part.reshape(-1) for part in xp.indices(copies))
        numbers = xp.tile(xp.arange(rows.size), down.size)
        parts = [
            (part + shift.repeat(rows.size)).astype(part.dtype)
            for part, shift in ((xp.tile(rows, down.size), down), (xp.tile(columns, down.size), along))
        ]
    return Elements(Pattern("coo", parts, shape), taken(source.data, numbers))


def multiplied(one: Any, other: Any) -> Elements:
    """Return the matrix product of two sparse matrices: each pair of elements that meet, not yet added up."""
    on_one_device(one.data, other.data)
    if one.pattern.shape[1] != other.pattern.shape[0]:
        raise MatrixSizeError(
            f"matmul: dimension mismatch: a sparse matrix of shape {one.pattern.shape} and one of {other.pattern.shape}"
        )
    one, other = canonical(one), summed(other, "csr")
    with on(one.pattern.parts[0]):
        xp = namespace(one.pattern.parts[0])
        rows, meets = (part.astype(np.int64) for part in one.pattern.places)
        columns, begins = other.pattern.parts
        counts = (begins[1:] - begins[:-1])[meets].astype(np.int64)
        ends = xp.cumsum(counts)
        numbers = xp.arange(int(ends[-1]) if ends.size else 0)
        mine = xp.searchsorted(ends, numbers, side="right")
        theirs = numbers - (ends - counts)[mine] + begins[:-1][meets][mine]
        parts = rows[mine], columns[theirs].astype(np.int64)
    product = lnp.multiply(taken(one.data, mine), taken(other.data, theirs))
    return Elements(Pattern("coo", parts, (one.pattern.shape[0], other.pattern.shape[1])), product)
