"""Layouts of a kernel over operands of any shapes and strides: in as few loops as possible, by packs if aligned."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np

from lucid.cuda.launch.plans import REMEMBERED
from lucid.cuda.source.signature import constant, packer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


Dim = TypeVar("Dim", bound="tuple[int, ...]")
THREADS = 256

# Shape, strides in bytes and bytes of an element of an operand; None for a number.
Form = tuple[tuple[int, ...], tuple[int, ...], int]


class Layout(NamedTuple):
    """How a kernel walks through operands of given shapes and strides.

    Attributes
    ----------
    grid, block : int
        The launch shape.
    packed : bool
        Whether it goes by packs of 16 bytes.
    parameter : bytes
        The struct that the kernel takes.
    """

    grid: int
    block: int
    packed: bool
    parameter: bytes


def layouts_of(
    operands: Sequence[Form | None], out: Form | None, out_bytes: int, width: int
) -> tuple[tuple[int, ...], Layout, Layout] | None:
    """Return the shape of the output, and the layouts for data aligned to 16 bytes and for others.

    None if no kernel goes through so many dimensions.

    Parameters
    ----------
    operands : sequence of (shape, strides in bytes, bytes of an element), or None for a number
        They broadcast against each other.
    out : such a form, optional
        None for an output in C order.
    out_bytes : int
        Bytes of an element of the output.
    width : int
        Elements of a pack.

    Raises
    ------
    ValueError
        If the shapes do not fit each other.
    """
    shapes = [operand[0] for operand in operands if operand is not None]
    shape = np.broadcast_shapes(*shapes) if out is None else out[0]
    if out is not None and np.broadcast_shapes(shape, *shapes) != shape:
        raise ValueError(f"an output of shape {shape} takes no operands of shapes {shapes}")
    if out is None:
        out = shape, dense_strides(shape, out_bytes), out_bytes
    steps_of_all = [strides_in(shape, form) for form in (out, *operands)]
    dims = merged(zip(shape, *steps_of_all, strict=True))[::-1] or [(1, 1, *[0] * len(operands))]
    sizes, strides = [size for size, *_ in dims], [steps for _, *steps in dims]
    if len(sizes) > constant("elementwise.cuh", "MAX_DIMS"):
        return None
    count = math.prod(sizes)
    general = layout_of(sizes, strides, count, 0, packed=False)
    inner, *outer = strides
    packs, tail = divmod(sizes[0], width)
    even = all(step % width == 0 for row in outer for step, first in zip(row, inner, strict=True) if first)
    if packs and inner[0] == 1 and all(step in (0, 1) for step in inner) and (not outer or (even and not tail)):
        return shape, layout_of([packs, *sizes[1:]], strides, count // width, tail, packed=True), general
    return shape, general, general


def strides_in(shape: tuple[int, ...], form: Form | None) -> list[int]:
    """Return the steps of an operand, in elements, along the dimensions of `shape`; zero for a broadcast one."""
    if form is None:
        return [0] * len(shape)
    sizes, strides, itemsize = form
    own = [0 if size == 1 else stride // itemsize for size, stride in zip(sizes, strides, strict=True)]
    return [0] * (len(shape) - len(own)) + own


@lru_cache(REMEMBERED)
def dense_strides(shape: tuple[int, ...], innermost: int = 1) -> tuple[int, ...]:
    """Return the strides of elements in C order, `innermost` apart."""
    return tuple([innermost * math.prod(shape[d + 1 :]) for d in range(len(shape))])


def merged(dims: Iterable[Dim]) -> list[Dim]:
    """Return the same walk through memory in as few dimensions as can be; each is a size, and steps of any number."""
    out: list[tuple[int, ...]] = []
    for size, *steps in dims:
        if size == 1:
            continue
        if out and out[-1][1:] == tuple([step * size for step in steps]):
            out[-1] = (out[-1][0] * size, *steps)
        else:
            out.append((size, *steps))
    return cast("list[Dim]", out)


def layout_of(sizes: Sequence[int], strides: Sequence[Sequence[int]], packs: int, tail: int, *, packed: bool) -> Layout:
    """Return the layout of so many packs and single elements, with sizes in packs along the innermost dimension."""
    threads = max(packs, tail)
    block = min(THREADS, threads) or 1
    missing = constant("elementwise.cuh", "MAX_DIMS") - len(sizes)
    by_operand = [[*steps, *[0] * missing] for steps in zip(*strides, strict=True)]
    words = [packs, tail, len(sizes), *sizes, *[1] * missing, *[step for steps in by_operand for step in steps]]
    return Layout(
        -(-threads // block), block, packed, packer("elementwise.cuh", f"Layout<{len(by_operand)}>").pack(*words)
    )
