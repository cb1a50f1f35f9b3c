"""The functions of the array API that reduce, accumulate, sort and search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

from lucid.array_api.operands import checked_tensor, together
from lucid.base.dtype import int64
from lucid.errors import ShapeError
from lucid.ops.base.promotion import cast_to
from lucid.ops.index.masked_select import nonzero as places
from lucid.ops.reduction import extremes, sorting
from lucid.ops.shape.reshape import clone
from lucid.tensor.numpy_calls.rules import differences, reductions, selection, statistics
from lucid.tensor.numpy_calls.rules.places import plain

if TYPE_CHECKING:
    from lucid.array_api.operands import Axes, Number
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor

__all__ = [
    "all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max",
    "mean", "min", "nonzero", "prod", "searchsorted", "sort", "std", "sum", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "var", "where",
]  # fmt: skip


# ---- over axes ----


def own(result: Tensor) -> Tensor:
    """Return a copy, free to be changed in place, of a result that its own gradient is computed from.

    Code for several libraries writes into what it was given, as NumPy's arrays allow.
    """
    return clone(result) if result.requires_grad else result


def sum(x: Tensor, /, *, axis: Axes = None, dtype: Dtype | None = None, keepdims: bool = False) -> Tensor:
    """Return ``sum`` of the array API."""
    return reductions.total(checked_tensor(x), axis, dtype, keepdims)


def prod(x: Tensor, /, *, axis: Axes = None, dtype: Dtype | None = None, keepdims: bool = False) -> Tensor:
    """Return ``prod`` of the array API."""
    return reductions.product(checked_tensor(x), axis, dtype, keepdims)


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return ``max`` of the array API."""
    return own(reductions.largest(checked_tensor(x), axis, keepdims))


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return ``min`` of the array API."""
    return own(reductions.smallest(checked_tensor(x), axis, keepdims))


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return ``mean`` of the array API."""
    return statistics.mean(checked_tensor(x), axis, None, keepdims)


def std(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return ``std`` of the array API."""
    return own(statistics.deviation(checked_tensor(x), axis, None, correction, keepdims))


def var(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return ``var`` of the array API."""
    return statistics.variance(checked_tensor(x), axis, None, correction, keepdims)


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return ``all`` of the array API."""
    return reductions.all_true(checked_tensor(x), axis, keepdims)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return ``any`` of the array API."""
    return reductions.any_true(checked_tensor(x), axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return ``count_nonzero`` of the array API."""
    return reductions.count_of_nonzero(checked_tensor(x), axis, keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return ``argmax`` of the array API."""
    return extremes.argmax(checked_tensor(x), axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return ``argmin`` of the array API."""
    return extremes.argmin(checked_tensor(x), axis, keepdims)


# ---- along an axis ----


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Return ``cumulative_sum`` of the array API."""
    return reductions.sum_so_far(x, _line(x, axis, "cumulative_sum"), dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Return ``cumulative_prod`` of the array API."""
    return reductions.product_so_far(x, _line(x, axis, "cumulative_prod"), dtype, include_initial)


def _line(x: Tensor, axis: int | None, name: str) -> int:
    """Return the axis to accumulate along; only for a vector it may be left out."""
    if axis is None and checked_tensor(x).array.ndim != 1:
        raise ShapeError(f"{name}: axis: expected one for an array of {x.ndim} dimensions, got None")
    return 0 if axis is None else axis


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return ``diff`` of the array API."""
    tensor, first, last = together((checked_tensor(x), prepend, append))
    return differences.diff(tensor, n, axis, first, last)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return ``sort`` of the array API."""
    return sorting.sort(x, axis, descending, stable).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return ``argsort`` of the array API."""
    return sorting.argsort(x, axis, descending, stable)


# ---- places ----


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return ``nonzero`` of the array API.

    Raises
    ------
    ShapeError
        If the array has no dimension.
    """
    if not checked_tensor(x).array.ndim:
        raise ShapeError("nonzero: expected an array of at least one dimension, got none")
    return cast("tuple[Tensor, ...]", places(x, as_tuple=True))


def searchsorted(
    x1: Tensor, x2: Tensor, /, *, side: Literal["left", "right"] = "left", sorter: Tensor | None = None
) -> Tensor:
    """Return ``searchsorted`` of the array API."""
    row, values = together((checked_tensor(x1), checked_tensor(x2)))
    return sorting.searchsorted(row, values, side=side, sorter=None if sorter is None else cast_to(sorter, int64))


def where(condition: Tensor, x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Return ``where`` of the array API."""
    return selection.where(checked_tensor(condition), *together((x1, x2)))


# ---- sets ----


class UniqueAll(NamedTuple):
    """Distinct elements, their first indices, the index of each element among them, and their counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct elements, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct elements, and the index of each element among them."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """Return ``unique_all`` of the array API: the gradient of each value goes to the first of its kind."""
    unique_of: Any = np.unique
    _, first, inverse, counts = unique_of(plain(checked_tensor(x)), True, True, True, equal_nan=False)
    first, inverse, counts = (
        selection.index_beside(np.asarray(each, np.int64), x) for each in (first, inverse.reshape(x.shape), counts)
    )
    return UniqueAll(x.reshape(-1)[first], first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return ``unique_counts`` of the array API."""
    distinct = unique_all(x)
    return UniqueCounts(distinct.values, distinct.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return ``unique_inverse`` of the array API."""
    distinct = unique_all(x)
    return UniqueInverse(distinct.values, distinct.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """Return ``unique_values`` of the array API."""
    return unique_all(x).values
