"""Construction of sparse matrices from SciPy's arguments, and conversion between formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid import numpy as lnp
from lucid.autograd.base import TensorBase
from lucid.base import gpu
from lucid.base.arrays import asarray, namespace, on
from lucid.base.device import device_of
from lucid.base.dtype import as_dtype, dtype
from lucid.errors import ArgumentError
from lucid.numpy.border import plain
from lucid.numpy.promotion import is_array
from lucid.numpy.results import settled
from lucid.ops.base.promotion import cast_to
from lucid.scipy.sparse.operands import MatrixSizeError, array_like, no_rule, sums_at, taken
from lucid.scipy.sparse.pattern import Pattern, library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.scipy.sparse.operands import Dense


class Elements(NamedTuple):
    """Places and values, as sparse matrices have them too."""

    pattern: Pattern
    data: Dense


def is_scipys(value: object) -> bool:
    """Return whether a value is a sparse matrix of SciPy's or CuPy's."""
    return type(value).__module__.startswith(("scipy.sparse", "cupyx.scipy.sparse")) and hasattr(value, "tocsr")


def is_scalar(value: object) -> bool:
    """Return whether a value is a number, or an array or a tensor of no dimension."""
    return np.isscalar(value) or (is_array(value) and not plain(value).ndim)


def in_dtype(values: Dense, wanted: Any) -> Dense:
    """Return values in a dtype, of NumPy's or lucid's."""
    wanted = wanted if isinstance(wanted, dtype) else as_dtype(np.dtype(wanted))
    if isinstance(values, TensorBase):
        if as_dtype(values.array.dtype) == wanted:
            return values
        return settled(cast_to(values, wanted), (values,))
    return values.astype(wanted.numpy, copy=False)


def of_scipy(matrix: Any) -> Elements:
    """Return the elements of a matrix of SciPy's or CuPy's; formats other than COO and in columns become CSR."""
    if len(matrix.shape) != 2:
        raise MatrixSizeError(
            f"expected a sparse matrix of two dimensions, got {tuple(matrix.shape)}: A[[i]] and A[:, [j]] "
            "keep a row and a column as one, and an array of one dimension is made by A.reshape((1, -1))"
        )
    matrix = matrix if matrix.format in {"coo", "csr", "csc"} else matrix.tocsr()
    return Elements(Pattern.of(matrix), matrix.data)


def summed(source: Any, format: str) -> Elements:
    """Return elements in rows or in columns, sorted, repeated ones added."""
    order, groups, pattern = source.pattern.arranged(format)
    values = source.data if order is None else taken(source.data, order)
    return Elements(pattern, values if groups is None else sums_at(values, groups, pattern.count))


def canonical(source: Any) -> Elements:
    """Return elements without duplicates, in rows or in columns."""
    return summed(source, "csc" if source.pattern.format == "csc" else "csr")


def converted(source: Any, format: str) -> Elements:
    """Return the elements of a sparse matrix in another format, as SciPy does it.

    Raises
    ------
    SparseCallError
        If it is none of ``coo``, ``csr`` and ``csc``.
    """
    if format not in {"coo", "csr", "csc"}:
        raise no_rule(f"to{format}")
    if is_scipys(source):
        source = of_scipy(source.asformat(format))
    pattern: Pattern = source.pattern
    if pattern.format == format:
        return Elements(pattern, source.data)
    if format == "coo":
        return Elements(Pattern("coo", pattern.places, pattern.shape), source.data)
    pattern, values = summed(source, format)
    # new memory, as SciPy's: the array of the values may be filled again for the next matrix
    return Elements(pattern, lnp.copy(values) if values is source.data else values)


def of_elements(format: str, data: Dense, parts: Sequence[Any], shape: tuple[int, ...] | None) -> Elements:
    """Return elements of ``(data, (rows, columns))`` or ``(data, indices, indptr)``."""
    if len(parts) != 1 and (format == "coo" or len(parts) != 2):
        raise ArgumentError(
            f"a {format} matrix: expected (data, (rows, columns)){' or (data, indices, indptr)' * (format != 'coo')}, "
            f"got a tuple of {len(parts) + 1}"
        )
    like = next((array for part in (data, *parts) if gpu.is_gpu_array(array := plain(part))), None)
    if not is_array(data):
        data = lnp.asarray(data) if like is None else array_like(data, like)
    values = plain(data)
    if values.ndim != 1:
        raise MatrixSizeError(f"expected values of one dimension, got shape {tuple(values.shape)}")
    if len(parts) == 1:
        format, parts = "coo", parts[0]
    index = [array_like(plain(part), values) for part in parts]
    if gpu.is_gpu_array(values):
        index = [asarray(part, device=device_of(values)) for part in index]
    with on(values):
        zeros = namespace(values).zeros(values.size)
        arguments = (zeros, tuple(index)) if format == "coo" else (zeros, *index)
        # a pattern is never changed: index arrays that somebody else holds may be
        made = getattr(library(values), f"{format}_matrix")(arguments, shape=shape, copy=True)
    pattern = Pattern.of(made)
    # rows and columns may have room to spare, which is no part of the matrix
    return Elements(pattern, data if pattern.count == values.size else data[: pattern.count])


def of_dense(matrix: object, *, is_array: bool, is_full: bool = False) -> Elements:
    """Return the elements of a dense matrix that are not zeros; all of them if `is_full`."""
    matrix = array_like(matrix, None)
    matrix = matrix if is_array or plain(matrix).ndim > 1 else lnp.atleast_2d(matrix)
    values = plain(matrix)
    if values.ndim != 2:
        raise MatrixSizeError(f"expected a matrix, got shape {tuple(values.shape)}")
    with on(values):
        xp = namespace(values)
        places = xp.nonzero(xp.ones(values.shape, bool) if is_full else values)
        index = places[0] * values.shape[1] + places[1]
    return of_elements("coo", taken(lnp.reshape(matrix, -1), index), [places], values.shape)


def of_argument(format: str, argument: Any, shape: tuple[int, int] | None, dtype: Any, *, is_array: bool) -> Elements:
    """Return the elements of a constructor's argument."""
    if is_scipys(argument):
        # SciPy sorts a matrix in place, its values along with its indices
        return converted(argument.copy(), format)
    if hasattr(argument, "pattern"):
        return converted(argument, format)
    parts: Any = argument
    if not isinstance(argument, tuple):
        return converted(of_dense(argument, is_array=is_array), format)
    if all(isinstance(size, int | np.integer) for size in parts):
        none = np.zeros(0, np.int32)
        return converted(of_elements("coo", np.zeros(0, dtype or np.float64), [(none, none)], parts), format)
    return converted(of_elements(format, parts[0], parts[1:], shape), format)
