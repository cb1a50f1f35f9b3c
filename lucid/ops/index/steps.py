"""Slices with negative steps, as views like all slices: for NumPy's interfaces, as `getitem` has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.ops.index.indexing import getitem
from lucid.ops.index.select import view_at

if TYPE_CHECKING:
    from collections.abc import Collection

    from lucid.tensor import Tensor


def turned(x: Any, dims: Collection[int]) -> Any:
    """Return a view of a tensor with some dimensions in reverse order."""
    return view_at(x, index=tuple([slice(None, None, -1 if k in dims else None) for k in range(x.array.ndim)]))


def stepped(x: Tensor, index: Any) -> Any:
    """Return the view that an index with a negative step gives; None of any other index, and beside arrays."""
    shape = x.array.shape
    parts = cast("tuple[Any, ...]", index if type(index) is tuple else (index,))
    if not any(map(is_backward, parts)) or not all(map(is_basic, parts)):
        return None
    taken = sum([part is not None and part is not ... for part in parts])
    if taken > len(shape):
        return getitem(x, (slice(None),) * taken)  # which refuses it
    upwards: list[Any] = []
    dims: list[int] = []
    k = dim = 0  # of the tensor, and of the view
    for part in parts:
        count = len(shape) - taken if part is ... else int(part is not None)
        if is_backward(part):
            line = range(*part.indices(shape[k]))[::-1]
            upwards.append(slice(line.start, line.stop, line.step) if line else slice(0, 0))
            dims.append(dim)
        else:
            upwards.append(part)
        k += count
        dim += 0 if isinstance(part, int | np.integer) else 1 if part is None else count
    return turned(getitem(x, tuple(upwards)), dims)


def is_basic(part: object) -> bool:
    """Return whether a part of an index is an integer, a slice, None or an Ellipsis."""
    return part is None or part is ... or (isinstance(part, int | slice | np.integer) and not isinstance(part, bool))


def is_backward(part: object) -> bool:
    """Return whether a part of an index is a slice with a negative step."""
    return isinstance(part, slice) and cast("Any", part).step is not None and cast("Any", part).step < 0
