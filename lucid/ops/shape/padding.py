"""Tensors made larger at their edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launchers import copying as kernels
from lucid.errors import SettingError, ShapeError
from lucid.ops.base.core import clone
from lucid.ops.base.dims import sizes_in
from lucid.ops.base.promotion import accumulation_dtype, array_of
from lucid.ops.base.scalars import as_number
from lucid.ops.index.select import view_at

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor

MODES = ("constant", "reflect", "replicate", "circular")


@primitive
def _pad(xp: Any, x: Array, *, pads: tuple[tuple[int, int], ...], value: Any) -> Array:
    shape = tuple([a + size + b for size, (a, b) in zip(x.shape, pads, strict=True)])
    out = xp.full(shape, value, x.dtype) if value else xp.zeros(shape, x.dtype)
    out[tuple([slice(a, a + size) for size, (a, _) in zip(x.shape, pads, strict=True)])] = x
    return out


@_pad.vjp
def _pad_vjp(m: Any, grad: Any, x_shape: tuple[int, ...], pads: tuple[tuple[int, int], ...]) -> Any:
    inside = [slice(a, a + size) for size, (a, _) in zip(x_shape, pads, strict=True)]
    return m.getitem(grad, index=(*inside, ...))


def mirrored(xp: Any, size: int, before: int, after: int, mode: str) -> tuple[Array, Array]:
    """Return which places of a dimension the edges before and behind it repeat."""
    head, tail = xp.arange(-before, 0), xp.arange(after)
    if mode == "reflect":
        return -head, size - 2 - tail
    if mode == "circular":
        return head + size, tail
    return xp.zeros_like(head), xp.full_like(tail, size - 1)


@primitive
def _pad_edges(xp: Any, x: Array, *, dim: int, before: int, after: int, mode: str) -> Array:
    head, tail = mirrored(xp, x.shape[dim], before, after, mode)
    return x.take(xp.concatenate((head, xp.arange(x.shape[dim]), tail)), axis=dim)


@_pad_edges.vjp
def _pad_edges_vjp(m: Any, grad: Any, dim: int, before: int, after: int, mode: str) -> Any:
    return m.pad_edges_grad(grad, dim=dim, before=before, after=after, mode=mode)


@primitive
def _pad_edges_grad(xp: Any, grad: Array, *, dim: int, before: int, after: int, mode: str) -> Array:
    ahead = (slice(None),) * dim
    size = grad.shape[dim] - before - after
    out = grad[(*ahead, slice(before, before + size))].copy()
    edges = (grad[(*ahead, slice(before))], grad[(*ahead, slice(before + size, None))])
    for edge, places in zip(edges, mirrored(xp, size, before, after, mode), strict=True):
        if not edge.shape[dim]:
            continue
        if mode == "replicate":
            out[(*ahead, places[:1])] += edge.sum(axis=dim, keepdims=True, dtype=accumulation_dtype(edge.dtype)).astype(
                edge.dtype
            )
        else:
            # no edge names a place twice
            out[(*ahead, places)] += edge
    return out


_pad.cuda(kernels.pad)
_pad_edges.cuda(kernels.pad_edges)
_pad_edges_grad.cuda(kernels.pad_edges_grad)


@_pad_edges_grad.vjp
def _pad_edges_grad_vjp(m: Any, grad: Any, dim: int, before: int, after: int, mode: str) -> Any:
    return m.pad_edges(grad, dim=dim, before=before, after=after, mode=mode)


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Return `input` with elements added at the edges of its last dimensions.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    pad : tuple of int
        How many elements before and behind the last dimension, then before and behind the one before it, and so on.
        Negative numbers cut elements off, in mode ``"constant"``.
    mode : str
        ``"constant"``: `value`. ``"reflect"``: the elements next to the edge in reverse order, without the one at the
        edge. ``"replicate"``: the element at the edge. ``"circular"``: the elements from the other end.
    value : number, optional
        For mode ``"constant"``; 0 if None.

    Returns
    -------
    Tensor
        A copy, of the dtype of `input`.

    Raises
    ------
    ShapeError
        If the numbers do not come in pairs, there are more pairs than dimensions, or an edge is longer than what the
        mode repeats.
    ValueError
        If there is no such mode, or a value is given that it does not use.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.pad(lucid.tensor([1, 2, 3]), (1, 2))
    tensor([0, 1, 2, 3, 0, 0])
    >>> lucid.nn.functional.pad(lucid.tensor([1, 2, 3]), (2, 1), mode="reflect")
    tensor([3, 2, 1, 2, 3, 2])
    """
    counts = sizes_in((pad,))
    shape = array_of(input).shape
    if mode not in MODES:
        raise SettingError(f"pad: expected a mode of {', '.join(MODES)}, got {mode!r}")
    if len(counts) % 2 or len(counts) // 2 > len(shape):
        raise ShapeError(
            f"pad: expected a pair of numbers for each of the last dimensions, at most {len(shape)} pairs, got {counts}"
        )
    pads = [(0, 0)] * len(shape)
    for pair in range(len(counts) // 2):
        pads[len(shape) - 1 - pair] = (counts[2 * pair], counts[2 * pair + 1])
    for dim, (size, (before, after)) in enumerate(zip(shape, pads, strict=True)):
        if before + size + after < 0 or before < -size or after < -size:
            raise ShapeError(f"pad: ({before}, {after}) cuts off more than the size {size} of dimension {dim}")
    value = None if value is None else as_number(value, "value")
    if mode == "constant":
        if any(edge < 0 for pair in pads for edge in pair):
            kept = [
                slice(max(0, -before), size - max(0, -after)) for size, (before, after) in zip(shape, pads, strict=True)
            ]
            input = view_at(input, index=(*kept, ...))
            pads = [(max(0, before), max(0, after)) for before, after in pads]
        return _pad(input, pads=tuple(pads), value=0 if value is None else value)
    if value:
        raise SettingError(f"pad: mode {mode!r} does not take a value, got {value}")
    out: Any = input
    for dim, (before, after) in enumerate(pads):
        check_edge(shape[dim], before, after, mode, dim)
        if before or after:
            out = _pad_edges(out, dim=dim, before=before, after=after, mode=mode)
    return clone(input) if out is input else out


def check_edge(size: int, before: int, after: int, mode: str, dim: int) -> None:
    """Raise unless a dimension has enough elements for its edges."""
    most = {"reflect": size - 1, "circular": size, "replicate": before + after if size else 0}[mode]
    if max(before, after) > max(most, 0):
        raise ShapeError(
            f"pad: mode {mode!r} can add at most {max(most, 0)} elements to dimension {dim} of size {size}, got "
            f"({before}, {after})"
        )
    if min(before, after) < 0:
        raise ShapeError(f"pad: mode {mode!r} cannot cut off elements, got ({before}, {after}) for dimension {dim}")
