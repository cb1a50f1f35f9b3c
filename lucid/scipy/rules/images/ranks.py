"""Filters of `scipy.ndimage` that pick an element of each window: the largest, the smallest, the one of a rank."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.scipy.rules.images.filters import Number, axes_of, extended, for_each, in_order
from lucid.scipy.rules.rule import Array, PerAxis, arrays, check_precision, host, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def windows_of(
    x: Array,
    along: Sequence[int],
    size: PerAxis = None,
    footprint: Array = None,
    mode: PerAxis = "reflect",
    cval: Number = 0.0,
    origin: PerAxis = 0,
    *,
    is_box: bool = False,
) -> Any:
    """Return the elements around each element that a footprint covers, along a last axis.

    `is_box` says that SciPy filters along one axis after another where the footprint has no holes: sizes then come in
    the order of the axes that are given, and else in that of the array's axes.
    """
    if x.dtype.kind == "c":
        raise TypeError(f"Complex type not supported: expected real numbers, got {x.dtype}; filter x.real and x.imag")
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        footprint = np.ones(for_each(size, len(along)), bool)
    mask = host(footprint).astype(bool)
    if not mask.any():
        raise ValueError("All-zero footprint is not supported.")
    if mask.ndim != len(along):
        raise RuntimeError(f"footprint.ndim ({mask.ndim}) must match len(axes) ({len(along)})")
    origins, modes = for_each(origin, len(along)), for_each(mode, len(along))
    if not is_box or not mask.all():
        (origins,) = in_order(along, x.ndim, origin)
        along = sorted(along)
    inner = x.shape
    for k, n, m, o in zip(along, mask.shape, modes, origins, strict=True):
        if n == 1 and is_box:
            continue
        before = n // 2 + o
        if not 0 <= before < n:
            raise ValueError(f"invalid origin: expected {-(n // 2)} to {(n - 1) // 2} for {n} elements, got {o}")
        x = extended(x, k, before, n - 1 - before, m, cval) if x.size else x
    if 0 in inner:
        return lnp.stack([x], -1)
    parts: list[Any] = []
    for place in np.argwhere(mask):
        key = [slice(None)] * x.ndim
        for k, start in zip(along, place.tolist(), strict=True):
            key[k] = slice(start, start + inner[k])
        parts.append(x[tuple(key)])
    return lnp.stack(parts, -1)


WINDOW = "size footprint mode cval origin axes"
"""The parameters of filters by windows."""


def _enter_extreme(name: str, taken: Callable[..., Any]) -> None:
    def function(input: Array, axes: PerAxis = None, **window: PerAxis) -> Any:
        (x,) = arrays(input)
        check_precision(x)
        return taken(windows_of(x, axes_of(axes, x.ndim), **window, is_box=True), -1)

    def along_one(input: Array, size: int, axis: int = -1, **window: PerAxis) -> Any:
        (x,) = arrays(input)
        check_precision(x)
        if size < 1:
            raise RuntimeError("incorrect filter size")
        return taken(windows_of(x, axes_of(axis, x.ndim), size, **window), -1)

    rule(f"ndimage.{name}", f"input {WINDOW}")(function)
    rule(f"ndimage.{name}1d", "input size axis mode cval origin")(along_one)


_enter_extreme("maximum_filter", lnp.max)
_enter_extreme("minimum_filter", lnp.min)


@rule("ndimage.rank_filter", f"input rank {WINDOW}")
def rank_filter(input: Array, rank: int, **window: PerAxis) -> Any:
    """Return ``scipy.ndimage.rank_filter``."""
    return ranked(lambda _: rank, input, **window)


@rule("ndimage.percentile_filter", f"input percentile {WINDOW}")
def percentile_filter(input: Array, percentile: float, **window: PerAxis) -> Any:
    """Return ``scipy.ndimage.percentile_filter``."""
    share = percentile + 100.0 if percentile < 0 else percentile
    if not 0 <= share <= 100:
        raise RuntimeError(f"invalid percentile: expected -100 to 100, got {percentile}")

    def rank(count: int) -> int:
        return count - 1 if share == 100 else int(count * share / 100.0)

    return ranked(rank, input, **window)


def ranked(rank: Callable[[int], int], input: Array, axes: PerAxis = None, **window: PerAxis) -> Any:
    """Return the elements of a rank, a function of the windows' size, in windows."""
    (x,) = arrays(input)
    parts = windows_of(x, axes_of(axes, x.ndim), **window)
    count = parts.shape[-1]
    chosen = rank(count) if x.size else 0
    if not -count <= chosen < count:
        raise RuntimeError(f"rank not within filter footprint size: expected {-count} to {count - 1}, got {chosen}")
    if x.ndim != 1 or chosen % count in {0, count - 1}:
        check_precision(x)
    return lnp.sort(parts, axis=-1)[..., chosen]


rule("ndimage.median_filter", f"input {WINDOW}")(functools.partial(ranked, lambda count: count // 2))


def median_of_parts(x: Array, sizes: Sequence[int]) -> Any:
    """Return the medians of windows of some sizes, with zeros beyond the edges."""
    parts = windows_of(x, range(x.ndim), list(sizes), mode="constant")
    return lnp.sort(parts, axis=-1)[..., parts.shape[-1] // 2]
