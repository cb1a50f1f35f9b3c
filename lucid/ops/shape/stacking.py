"""Tensors given the dimensions that joining needs, and joined. Common rules: `lucid.ops.shape`.

Of joined tensors the result has the promoted dtype.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.base.arrays import asarray
from lucid.base.device import device_of
from lucid.base.memory import check_size
from lucid.errors import ShapeError
from lucid.ops.base.dims import tensors_in
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_bool, as_int
from lucid.ops.index.index_select import index_select
from lucid.ops.shape.broadcasting import meshgrid
from lucid.ops.shape.joining import cat, stack, together
from lucid.ops.shape.padding import pad
from lucid.ops.shape.reshape import reshape, unsqueeze

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor


def _of_each(tensors: tuple[Any, ...], form: Callable[[Any], Any]) -> Any:
    """Return the form of one tensor, or of several that were written as ``f(a, b)`` or ``f((a, b))``."""
    if len(tensors) == 1 and isinstance(tensors[0], TensorBase):
        return form(tensors[0])
    return tuple([form(tensor) for tensor in tensors_in(tensors)])


def _as_vector(tensor: Tensor) -> Any:
    return tensor if array_of(tensor).ndim else reshape(tensor, 1)


def _as_row(tensor: Tensor) -> Any:
    return tensor if array_of(tensor).ndim > 1 else reshape(tensor, 1, tensor.array.size)


def _as_layer(tensor: Tensor) -> Any:
    tensor = _as_row(tensor)
    return tensor if tensor.array.ndim > 2 else unsqueeze(tensor, 2)


def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Return a view of one dimension of a tensor of none, and others as they are; of several `tensors` a tuple.

    >>> import lucid
    >>> lucid.atleast_1d(lucid.tensor(2.0))
    tensor([2.])
    """
    return _of_each(tensors, _as_vector)


def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Return a view of a tensor of fewer than two dimensions as a row, others as they are; of `tensors` a tuple.

    >>> import lucid
    >>> lucid.atleast_2d(lucid.tensor([1.0, 2.0])).shape
    lucid.Size([1, 2])
    """
    return _of_each(tensors, _as_row)


def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Return a view of the shape (1, n, 1) of a vector, (n, m, 1) of a matrix, and others as they are.

    Of several `tensors` it is a tuple.

    >>> import lucid
    >>> lucid.atleast_3d(lucid.tensor([1.0, 2.0])).shape
    lucid.Size([1, 2, 1])
    """
    return _of_each(tensors, _as_layer)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Return a copy of `tensors` side by side, along dimension 1, each of one dimension or none being a column.

    >>> import lucid
    >>> lucid.column_stack([lucid.tensor([1, 2]), lucid.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    return cat([t if t.array.ndim > 1 else reshape(t, t.array.size, 1) for t in together(tensors, "column_stack")], 1)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return a copy of `tensors` one behind the other, along dimension 2, with the dimensions of `atleast_3d`.

    >>> import lucid
    >>> lucid.dstack([lucid.tensor([1, 2]), lucid.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return cat([_as_layer(t) for t in together(tensors, "dstack")], 2)


def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix of zeros with `tensors` along its diagonal: matrices, vectors as rows, and single numbers.

    >>> import lucid
    >>> lucid.block_diag(lucid.tensor([[1, 2]]), lucid.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    parts = [_as_row(t) for t in together(tensors, "block_diag")]
    for position, part in enumerate(parts):
        if part.array.ndim > 2:
            raise ShapeError(
                f"block_diag: expected tensors of at most 2 dimensions, got shape {list(part.array.shape)} at entry "
                f"{position}"
            )
    width, before = sum(part.array.shape[1] for part in parts), 0
    rows: list[Any] = []
    for part in parts:
        rows.append(pad(part, (before, width - before - part.array.shape[1])))
        before += part.array.shape[1]
    return cat(rows, 0)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of an element of each of `tensors`, all vectors, a row for each.

    The last one's elements change first. Of one vector the result is the vector.

    >>> import lucid
    >>> lucid.cartesian_prod(lucid.tensor([1, 2]), lucid.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    parts = together(tensors, "cartesian_prod")
    for part in parts:
        if part.array.ndim != 1:
            raise ShapeError(f"cartesian_prod: expected vectors, got shape {list(part.array.shape)}")
    if len(parts) == 1:
        return parts[0]
    return stack([reshape(grid, grid.array.size) for grid in meshgrid(*parts, indexing="ij")], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return the sets of `r` elements of a vector, a row for each, in the order of their places.

    With `with_replacement` an element may stand in a row several times.

    >>> import lucid
    >>> lucid.combinations(lucid.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    array, count = array_of(input), as_int(r, "r")
    repeated = as_bool(with_replacement, "with_replacement")
    if array.ndim != 1:
        raise ShapeError(f"combinations: expected a vector, got shape {list(array.shape)}")
    if count < 0:
        raise ShapeError(f"combinations: expected r of zero or more, got {count}")
    if not count:
        return reshape(input[:0], 0)
    sets = itertools.combinations_with_replacement if repeated else itertools.combinations
    total = math.comb(array.size + count - 1 if repeated and array.size else array.size, count)
    check_size("combinations", (total, count), 8)
    places = np.fromiter(itertools.chain.from_iterable(sets(range(array.size), count)), np.int64, total * count)
    return reshape(index_select(input, 0, wrap(asarray(places, device=device_of(array)))), total, count)
