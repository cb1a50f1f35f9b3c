"""NumPy's functions of shapes: the same elements under another shape, and views of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from lucid.errors import SettingError, ShapeError
from lucid.ops.index.indexing import getitem
from lucid.ops.index.select import unfold
from lucid.ops.index.steps import turned
from lucid.ops.shape import axes, broadcasting, diagonal, repeating, reshape
from lucid.tensor.numpy_calls.definition import enter, rule
from lucid.tensor.numpy_calls.operands import axis_in, is_sequence, is_tensor, sizes_of, strong_operands, untyped
from lucid.tensor.numpy_calls.rules.reductions import along, axes_in, dims_of, trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Axis, Indices, Sizes


@rule("reshape", "*a shape order copy")
def reshaped(a: Tensor, shape: Sizes, order: Any = "C", copy: object = None) -> Any:
    """Return ``numpy.reshape``; of the order "F" by transposing twice."""
    if order != "C":
        np.reshape(0, (), order)  # refuses what NumPy refuses
        order = (order or "C").upper()
    flags = a.array.flags
    if order == "A":
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    if copy is False:
        # NumPy's own error where there is no view, of the same strides
        np.reshape(as_strided(np.empty((), a.array.dtype), a.array.shape, a.array.strides), shape, order, copy=False)
    if order == "C":
        result = reshape.reshape(a, shape)
    else:
        sizes = np.reshape(np.broadcast_to(True, a.array.shape), shape).shape
        result = transposed(reshape.reshape(transposed(a), sizes[::-1]))
    return in_layout(result, order) if copy else result


@rule("ravel", "*a order")
def raveled(a: Tensor, order: Any = "C") -> Any:
    """Return ``numpy.ravel``; the orders "A" and "K" are those of the memory."""
    if order != "C":
        np.ravel(0, order)  # refuses what NumPy refuses
        order = (order or "C").upper()
    flags = a.array.flags
    if order == "F" or (order == "A" and flags.f_contiguous and not flags.c_contiguous):
        a = transposed(a)
    elif order == "K" and not flags.c_contiguous:
        a = transposed(a, in_memory(a.array.shape, a.array.strides))
    return reshape.ravel(a)


def in_memory(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the axes from the longest stride to the shortest, as NumPy's iterator sorts them.

    An axis of size 1, or of a broadcast array, has none, and stays where it is.
    """
    strides = [0 if size == 1 else stride for size, stride in zip(shape, strides, strict=True)]
    order: list[int] = []
    for axis in reversed(range(len(strides))):
        place = len(order)
        for k, before in reversed(list(enumerate(order))):
            if strides[before] and strides[axis]:
                if abs(strides[before]) <= abs(strides[axis]):
                    break
                place = k
        order.insert(place, axis)
    return order[::-1]


def in_layout(a: Tensor, order: str) -> Any:
    """Return a copy with its elements in the memory in one of NumPy's orders."""
    flags, ndim = a.array.flags, a.array.ndim
    if flags.c_contiguous and order != "F":
        order = "C"
    if order == "F" or (order == "A" and flags.f_contiguous):
        dims = list(range(ndim))[::-1]
    elif order == "K":
        # axes of stride 0 come last in copies, other than in a row
        dims = sorted(range(ndim), key=lambda k: -abs(a.array.strides[k]))
    else:
        return reshape.clone(a)
    return transposed(reshape.clone(transposed(a, dims)), np.argsort(dims).tolist())


@rule("transpose permute_dims", "*a axes")
def transposed(a: Tensor, axes: Sequence[int] | None = None) -> Any:
    """Return ``numpy.transpose``: without axes, all of them in reverse order."""
    return _permuted(a, *(reversed(range(a.array.ndim)) if axes is None else axes))


_permuted = axes.permute


@rule("matrix_transpose linalg.matrix_transpose", "*x")
def matrix_transposed(x: Tensor) -> Any:
    """Return ``numpy.matrix_transpose``."""
    return axes.transpose(x, -2, -1)


@rule("rollaxis", "*a axis start")
def axis_rolled(a: Tensor, axis: int, start: int = 0) -> Any:
    """Return ``numpy.rollaxis``."""
    ndim = a.array.ndim
    before, to = axis_in(axis, ndim), start + ndim if start < 0 else start
    if not 0 <= to <= ndim:
        raise np.exceptions.AxisError(f"numpy.rollaxis: expected start of {-ndim} to {ndim}, got {start}")
    return axes.movedim(a, before, to - (before < to))


@rule("expand_dims", "*a axis")
def expanded(a: Tensor, axis: int | tuple[int, ...]) -> Any:
    """Return ``numpy.expand_dims``: axes are those of the result."""
    new: Any = axis if is_sequence(axis) else (axis,)
    ndim = a.array.ndim + len(new)
    places = {axis_in(k, ndim) for k in new}
    if len(places) < len(new):
        raise ShapeError(f"numpy.expand_dims: axis {axis} is repeated")
    sizes = iter(a.array.shape)
    return reshape.reshape(a, tuple([1 if k in places else next(sizes) for k in range(ndim)]))


@rule("squeeze", "*a axis")
def squeezed(a: Tensor, axis: Axis = None) -> Any:
    """Return ``numpy.squeeze``: an axis that is named must be of size 1."""
    if axis is None:
        return reshape.squeeze(a)
    dims = dims_of(a, axis)
    if any(a.array.shape[k] != 1 for k in dims):
        raise ShapeError(
            f"numpy.squeeze: cannot select an axis which has size not equal to one: {axis} of {a.array.shape}"
        )
    return reshape.squeeze(a, dims)


@rule("swapaxes", "*a axis1 axis2")
def exchanged(a: Tensor, axis1: int, axis2: int) -> Any:
    """Return ``numpy.swapaxes``."""
    ndim = a.array.ndim
    return axes.transpose(a, axis_in(axis1, ndim), axis_in(axis2, ndim))


@rule("moveaxis", "*a source destination")
def moved(a: Tensor, source: Sizes, destination: Sizes) -> Any:
    """Return ``numpy.moveaxis``."""
    ends = [[axis_in(k, a.array.ndim) for k in np.atleast_1d(each).tolist()] for each in (source, destination)]
    return axes.movedim(a, *ends)


@rule("flip", "*m axis")
def flipped(m: Tensor, axis: Axis = None) -> Any:
    """Return ``numpy.flip``: a view, without an axis along all."""
    ndim = m.array.ndim
    return turned(m, range(ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, ndim))


@rule("fliplr", "*m")
def flipped_columns(m: Tensor) -> Any:
    """Return ``numpy.fliplr``, a view."""
    np.fliplr(np.broadcast_to(False, m.array.shape))  # refuses what NumPy refuses
    return turned(m, (1,))


@rule("flipud", "*m")
def flipped_rows(m: Tensor) -> Any:
    """Return ``numpy.flipud``, a view."""
    np.flipud(np.broadcast_to(False, m.array.shape))
    return turned(m, (0,))


@rule("rot90", "*m k axes")
def rotated(m: Tensor, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """Return ``numpy.rot90``, a view."""
    ndim = m.array.ndim
    np.rot90(np.broadcast_to(False, m.array.shape), k, axes)
    first, second = (axis_in(axis, ndim) for axis in axes)
    order = [second if d == first else first if d == second else d for d in range(ndim)]
    k %= 4
    m = turned(m, {1: (second,), 2: (first, second)}.get(k, ()))
    m = transposed(m, order) if k % 2 else m
    return turned(m, (second,)) if k == 3 else m


@rule("roll", "*a shift axis")
def rolled(a: Tensor, shift: Sizes, axis: Axis = None) -> Any:
    """Return ``numpy.roll``: shifts and axes broadcast, and those of one axis add up."""
    if axis is None:
        return axes.roll(a, int(np.sum(shift)))
    if not a.array.ndim:
        raise ShapeError(f"numpy.roll: an array of no dimension has no axis to roll along, got {axis}")
    if type(shift) is int and type(axis) is int:
        return axes.roll(a, shift, axis_in(axis, a.array.ndim))
    moves: dict[int, int] = {}
    for step, moved_axis in np.broadcast(shift, axes_in(a, axis)):
        place = int(moved_axis)
        moves[place] = moves.get(place, 0) + int(step)
    return axes.roll(a, tuple(moves.values()), tuple(moves)) if moves else reshape.clone(a)


@rule("broadcast_to", "*array shape")
def broadcasted(array: Tensor, shape: Sizes) -> Any:
    """Return ``numpy.broadcast_to``."""
    sizes = sizes_of(shape)
    if min(sizes, default=0) < 0:  # -1 is no size of its own, as it is to `lucid.broadcast_to`
        raise ShapeError(f"numpy.broadcast_to: all elements of broadcast shape must be non-negative, got {sizes}")
    return broadcasting.broadcast_to(array, sizes)


@rule("broadcast_arrays", "+args")
def broadcast_together(args: tuple[Any, ...]) -> Any:
    """Return ``numpy.broadcast_arrays``."""
    return tuple(broadcasting.broadcast_tensors(*strong_operands(args)))


@rule("lib.stride_tricks.sliding_window_view", "*x window_shape axis subok writeable")
def windows(x: Tensor, window_shape: Sizes, axis: Axis = None, subok: bool = False, writeable: bool = False) -> Any:
    """Return ``numpy.lib.stride_tricks.sliding_window_view``, a view: its windows share their elements."""
    del subok, writeable
    sizes = sizes_of(window_shape)
    dims = axes_in(x, axis)
    dims = tuple(range(x.array.ndim)) if dims is None else dims
    if len(sizes) != len(dims):
        raise ShapeError(
            f"numpy.lib.stride_tricks.sliding_window_view: expected a size for each of {len(dims)} axes, got {sizes}"
        )
    view = getitem(x, ...)
    for k, size in zip(dims, sizes, strict=True):
        if not 0 <= size <= view.array.shape[k]:
            raise ShapeError(
                f"numpy.lib.stride_tricks.sliding_window_view: a window of {size} does not fit into axis {k} of "
                f"{view.array.shape}"
            )
        view = unfold(view, k, size, 1)
    return view


@rule("tile", "*A reps")
def tiled(A: Tensor, reps: Sizes) -> Any:
    """Return ``numpy.tile``."""
    return repeating.tile(A, tuple(np.atleast_1d(reps).tolist()))


@rule("repeat", "*a repeats axis")
def repeated(a: Tensor, repeats: Indices, axis: int | None = None) -> Any:
    """Return ``numpy.repeat``."""
    axis = None if axis is None else axis_in(axis, max(a.array.ndim, 1))
    if is_tensor(repeats) or type(repeats) is int:
        return repeating.repeat_interleave(a, repeats, axis)
    line, k = along(a, axis)
    order = untyped.repeat(np.arange(line.array.shape[k]), repeats)
    return getitem(line, (*(slice(None),) * k, order))


@rule("tril", "*m k")
def lower(m: Tensor, k: int = 0) -> Any:
    """Return ``numpy.tril``: of a vector, the matrix with it as each row."""
    return diagonal.tril(_matrix(m), k)


@rule("triu", "*m k")
def upper(m: Tensor, k: int = 0) -> Any:
    """Return ``numpy.triu``."""
    return diagonal.triu(_matrix(m), k)


def _matrix(m: Tensor) -> Any:
    return broadcasting.broadcast_to(m, (m.array.shape[0],) * 2) if m.array.ndim == 1 else m


@rule("linalg.diagonal", "*x offset")
def matrix_diagonal(x: Tensor, offset: int = 0) -> Any:
    """Return ``numpy.linalg.diagonal``: of the last two axes."""
    return diagonal.diagonal(x, offset, -2, -1)


@rule("linalg.trace", "*x offset dtype")
def matrix_trace(x: Tensor, offset: int = 0, dtype: object = None) -> Any:
    """Return ``numpy.linalg.trace``: of the last two axes."""
    return trace(x, offset, -2, -1, dtype)


@rule("trim_zeros", "*filt trim axis")
def trimmed(filt: Tensor, trim: str = "fb", axis: Axis = None) -> Any:
    """Return ``numpy.trim_zeros``: the part between the first and the last number that is not zero."""
    if trim.lower() not in {"fb", "bf", "f", "b"}:
        raise SettingError(f"numpy.trim_zeros: expected trim 'f', 'b' or 'fb', got unexpected character(s): {trim!r}")
    values = filt.numpy(force=True)
    dims = range(values.ndim) if axis is None else axes_in(filt, axis)
    if len({*dims}) < len(dims):
        raise SettingError(f"numpy.trim_zeros: expected each axis once, got {axis}")
    where = [np.flatnonzero(values.any(tuple([j for j in range(values.ndim) if j != k]))) for k in range(values.ndim)]
    key = [slice(None)] * values.ndim
    for k in dims:
        first, last = (int(where[k][0]), int(where[k][-1]) + 1) if len(where[k]) else (0, 0)
        # of zeros alone nothing is left, whatever is trimmed
        stays = last if "b" in trim.lower() or not last else values.shape[k]
        key[k] = slice(first if "f" in trim.lower() else 0, stays)
    return getitem(filt, tuple(key))


@rule("copy", "*a order subok")
def copied(a: Tensor, order: Any = "K", subok: bool = False) -> Any:
    """Return ``numpy.copy``."""
    del subok
    np.copy(0, order)  # refuses what NumPy refuses
    return in_layout(a, (order or "K").upper())


enter("diagonal", "*a:input offset axis1:dim1 axis2:dim2", diagonal.diagonal)
