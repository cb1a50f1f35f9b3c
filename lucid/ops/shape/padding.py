"""Tensors made larger at their edges. Common rules: `lucid.ops.shape`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.primitive import primitive
from lucid.base.memory import check_size
from lucid.cuda.launch import copying as kernels
from lucid.errors import SettingError, ShapeError
from lucid.ops.base.core import clone
from lucid.ops.base.dims import along, sizes_in
from lucid.ops.base.promotion import accumulation_dtype, array_of, tensor_dtype
from lucid.ops.base.scalars import as_element, as_scalar
from lucid.ops.elementwise.arithmetic import neg
from lucid.ops.index.select import view_at
from lucid.ops.shape.splitting import spans

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor


class ModeError(SettingError, NotImplementedError):
    """A way of padding or resizing is unknown: PyTorch says that it is not implemented."""


MODES = ("constant", "reflect", "replicate", "circular")
# Where an edge is cut off, these modes fill the other one from what is left, the others from all that was there.
CUT_FIRST = ("constant", "circular")


@primitive
def _pad(xp: ModuleType, x: Array, *, pads: tuple[tuple[int, int], ...], value: Number) -> Array:
    shape = tuple([a + size + b for size, (a, b) in zip(x.shape, pads, strict=True)])
    out = xp.full(shape, value, x.dtype) if value else xp.zeros(shape, x.dtype)
    out[tuple([slice(a, a + size) for size, (a, _) in zip(x.shape, pads, strict=True)])] = x
    return out


@_pad.vjp
def _pad_vjp(m: Namespace, grad: Array, x_shape: Ints, pads: tuple[tuple[int, int], ...]) -> Any:
    inside = [slice(a, a + size) for size, (a, _) in zip(x_shape, pads, strict=True)]
    return m.getitem(grad, index=(*inside, ...))


def mirrored(xp: ModuleType, size: int, before: int, after: int, mode: str) -> tuple[Array, Array]:
    """Return the indices of a dimension that the edges before and behind it repeat."""
    head, tail = xp.arange(-before, 0), xp.arange(after)
    if mode == "reflect":
        return -head, size - 2 - tail
    if mode == "circular":
        return head + size, tail
    return xp.zeros_like(head), xp.full_like(tail, size - 1)


@primitive
def _pad_edges(xp: ModuleType, x: Array, *, dim: int, before: int, after: int, mode: str) -> Array:
    head, tail = mirrored(xp, x.shape[dim], before, after, mode)
    return x.take(xp.concatenate((head, xp.arange(x.shape[dim]), tail)), axis=dim)


@_pad_edges.vjp
def _pad_edges_vjp(m: Namespace, grad: Array, dim: int, before: int, after: int, mode: str) -> Any:
    return m.pad_edges_grad(grad, dim=dim, before=before, after=after, mode=mode)


@primitive
def _pad_edges_grad(xp: ModuleType, grad: Array, *, dim: int, before: int, after: int, mode: str) -> Array:
    size = grad.shape[dim] - before - after
    head, inside, tail = [grad[along(dim, span)] for span in spans((before, size, after))]
    out = inside.copy()
    for edge, indices in zip((head, tail), mirrored(xp, size, before, after, mode), strict=True):
        if not edge.shape[dim]:
            continue
        if mode == "replicate":
            total = edge.sum(axis=dim, keepdims=True, dtype=accumulation_dtype(edge.dtype))
            out[along(dim, indices[:1])] += total.astype(edge.dtype)
        else:
            # no edge names an index twice
            out[along(dim, indices)] += edge
    return out


_pad.cuda(kernels.pad)
_pad_edges.cuda(kernels.pad_edges)
_pad_edges_grad.cuda(kernels.pad_edges_grad)


@_pad_edges_grad.vjp
def _pad_edges_grad_vjp(m: Namespace, grad: Array, dim: int, before: int, after: int, mode: str) -> Any:
    return m.pad_edges(grad, dim=dim, before=before, after=after, mode=mode)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Return a copy of `input` with elements added at the edges of its last dimensions: two numbers in `pad` for each.

    The last dimension comes first; numbers below zero cut elements off. In `mode` ``"constant"`` `value` is added, 0 if
    it is None; in ``"reflect"`` the elements next to the edge in reverse order, without the one at the edge; in
    ``"replicate"`` that one; in ``"circular"`` those from the other end. A ShapeError says that an edge is longer than
    what is there to be repeated, a ValueError that there is no such mode, or that it takes no value.

    >>> import lucid
    >>> lucid.nn.functional.pad(lucid.tensor([1, 2, 3]), (2, 1), mode="reflect")
    tensor([3, 2, 1, 2, 3, 2])
    """
    counts = sizes_in((pad,))
    shape = array_of(input).shape
    if not among(mode, MODES):
        raise ModeError(f"pad: expected a mode of {', '.join(MODES)}, got {mode!r}")
    if len(counts) % 2 or len(counts) // 2 > len(shape):
        raise ShapeError(
            f"pad: expected a pair of numbers for each of the last dimensions, at most {len(shape)} pairs, got {counts}"
        )
    last_first = list(zip(counts[::2], counts[1::2], strict=True))
    pads = [(0, 0)] * (len(shape) - len(last_first)) + last_first[::-1]
    for dim, (size, (before, after)) in enumerate(zip(shape, pads, strict=True)):
        if before + size + after < 0 or (mode in CUT_FIRST and min(before, after) < -size):
            raise ShapeError(f"pad: ({before}, {after}) cuts off more than the size {size} of dimension {dim}")
    whole = [size + max(0, before) + max(0, after) for size, (before, after) in zip(shape, pads, strict=True)]
    check_size("pad", whole, input.array.itemsize)
    value = 0 if value is None else as_scalar(value, "value")
    minus = isinstance(value, float) and not value and math.copysign(1, value) < 0
    added = tuple([(max(0, before), max(0, after)) for before, after in pads])
    if mode == "constant":
        # what does not fit is refused as where a tensor is made of it
        value = as_element(value, tensor_dtype(input), "value") if value else 0
        if minus and input.array.dtype.kind in "fV":
            # launches are remembered by their settings, of which both zeros are the same
            return neg(_pad(cut(neg(input), pads), pads=added, value=0))
        return _pad(cut(input, pads), pads=added, value=value)
    if value:
        raise SettingError(f"pad: mode {mode!r} does not take a value, got {value}")
    if mode == "replicate" or (mode == "reflect" and len(counts) < 6):
        # as PyTorch's lists, which leave out the others
        input = wide_in_autocast(input, cpu=True, cuda=False)
    out = cut(input, pads) if mode in CUT_FIRST else input
    for dim, (size, (before, after)) in enumerate(zip(out.array.shape, added, strict=True)):
        most = max({"reflect": size - 1, "circular": size, "replicate": before + after if size else 0}[mode], 0)
        if max(before, after) > most:
            raise ShapeError(
                f"pad: mode {mode!r} can add at most {most} elements to dimension {dim} of size {size}, got "
                f"({before}, {after})"
            )
        if before or after:
            out = _pad_edges(out, dim=dim, before=before, after=after, mode=mode)
    if mode not in CUT_FIRST:
        out = cut(out, pads)
    return out if any(before or after for before, after in added) else clone(out)


def cut(x: Tensor, pads: Sequence[tuple[int, int]]) -> Any:
    """Return `x` without the elements that numbers below zero cut off."""
    if all(edge >= 0 for pair in pads for edge in pair):
        return x
    sizes = zip(x.array.shape, pads, strict=True)
    return view_at(x, index=(*[slice(max(0, -before), size - max(0, -after)) for size, (before, after) in sizes], ...))
