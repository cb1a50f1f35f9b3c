"""Indices and weights of the elements that make a spline's value at places between them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lucid import numpy as lnp
from lucid.numpy.border import plain
from lucid.scipy.rules.images.filters import check_mode, place_in
from lucid.scipy.rules.rule import Array, put

LIMITS = {"constant": "mirror", "wrap": "mirror", "grid-constant": "constant"}
"""The continuation of coefficients beyond the edges, where it is not that of the places."""

CLAMPED = ("grid-constant", "nearest")
"""Modes of which the value at a place that is NaN is NaN; in the others it is the constant."""

FAR = 10
"""How far beyond the edges no tap of any order meets the array."""


@functools.cache
def polynomials(order: int) -> np.ndarray[Any, Any]:
    """Return the coefficients of the weights, as polynomials of the way past a sample: of each a row."""
    pieces = [np.array([1.0])]
    for p in range(1, order + 1):
        before = [np.zeros(1), *pieces, np.zeros(1)]
        # M_p(t + i) = ((t + i) M_{p-1}(t + i) + (p + 1 - t - i) M_{p-1}(t + i - 1)) / p
        pieces = [
            np.polynomial.polynomial.polyadd(
                np.convolve([i, 1.0], before[i + 1]), np.convolve([p + 1 - i, -1.0], before[i])
            )
            / p
            for i in range(p + 1)
        ]
    rows = np.zeros((order + 1, order + 1))
    for i, piece in enumerate(pieces):
        rows[order - i, : min(len(piece), order + 1)] = piece[: order + 1]
    return rows


def mapped(place: Array, size: int, mode: str) -> tuple[Any, Any, Any]:
    """Return the mapped positions of places beyond the edges, the slopes of that map, and a mask of those outside.

    Of arrays of NumPy's or CuPy's; the slope is that of SciPy's map, and zero where it is constant.
    """
    last = size - 1
    is_beyond = lnp.logical_or(place < 0, place > last)
    is_outside = lnp.zeros_like(place, dtype=bool)
    one = lnp.ones_like(place)
    if mode in CLAMPED:
        # farther away nothing changes any more
        return lnp.clip(place, -FAR, last + FAR), one, is_outside
    if mode == "constant":
        return lnp.clip(place, 0, last), one, lnp.logical_or(is_outside, is_beyond)
    if size == 1:
        return lnp.clip(place, 0, last), lnp.where(is_beyond, 0.0, 1.0), is_outside
    if mode == "wrap":
        turns = lnp.where(place < 0, lnp.trunc(-place / last) + 1, -lnp.trunc(place / last))
        return lnp.where(is_beyond, place + last * turns, place), one, is_outside
    if mode == "grid-wrap":
        return lnp.where(is_beyond, place % size, place), one, is_outside
    period = 2.0 * (last if mode == "mirror" else size)
    position = lnp.where(is_beyond, place % period, place)
    # SciPy turns places just beyond the last element by their taps, which differs in the order 0 half-way between
    is_back = lnp.where(place < 0, position > last, position >= size) if mode == "mirror" else position >= size
    position = lnp.where(is_back, (period if mode == "mirror" else period - 1) - position, position)
    return position, lnp.where(is_back, -1.0, 1.0), is_outside


def taps(place: Array, size: int, order: int, mode: str) -> tuple[Any, Any, Any]:
    """Return indices of elements and their weights, along a first axis, and a mask of the places outside.

    An index of -1 is that of a constant.
    """
    check_mode(mode)
    mode = "reflect" if mode == "grid-mirror" else mode
    values = plain(place)
    with np.errstate(invalid="ignore"):
        position, slope, is_outside = mapped(values, size, mode)
    # of an infinite place the map is NaN
    is_nan = lnp.isnan(position)
    is_outside = lnp.logical_or(is_outside, is_nan) if mode not in CLAMPED else is_outside
    half = 0.0 if order % 2 else 0.5
    shifted = lnp.where(is_outside, 0.0, position) + half
    below = lnp.floor(lnp.where(is_nan, 0.0, position) + half)
    # the value as it is, and the derivative of the way there
    way = (shifted - below) + (slope * (place - values) if place is not values else 0.0)
    start = below.astype(lnp.int64) - order // 2
    index = start + lnp.reshape(put(np.arange(order + 1), values), (-1,) + (1,) * values.ndim)
    limit = LIMITS.get(mode, "wrap" if mode == "grid-wrap" else mode)
    with np.errstate(invalid="ignore"):
        index = place_in(index, size, limit)
    if not order:
        return index, None, is_outside
    powers = [lnp.ones_like(values), way]
    while len(powers) <= order:
        powers.append(powers[-1] * way)
    weights = lnp.tensordot(put(polynomials(order), values), lnp.stack(powers), axes=1)
    return index, weights, is_outside


def at_places(c: Array, places: list[Any], order: int, mode: str, cval: Array) -> Any:
    """Return a spline's values: of coefficients, at places along their first axes."""
    count, shape = len(places), c.shape[: len(places)]
    taps_of_axes = [taps(place, size, order, mode) for place, size in zip(places, shape, strict=True)]
    # the taps of each axis are an axis of their own, in front of the places
    index: Any = 0
    is_constant: Any = False
    is_outside: Any = False
    for k, (line, _, outside) in enumerate(taps_of_axes):
        each = lnp.reshape(line, (*[order + 1 if j == k else 1 for j in range(count)], *line.shape[1:]))
        is_constant = lnp.logical_or(is_constant, each < 0) if mode == "grid-constant" else False
        index = index * shape[k] + each
        is_outside = lnp.logical_or(is_outside, outside)
    lines = lnp.reshape(c, (-1, *c.shape[count:]))
    rest = (1,) * (c.ndim - count)
    values = lnp.take(lines, lnp.where(is_constant, 0, index) if mode == "grid-constant" else index, axis=0)
    if mode == "grid-constant":
        values = lnp.where(lnp.reshape(is_constant, is_constant.shape + rest), cval, values)
    for k, (_, weights, _) in enumerate(taps_of_axes):
        if weights is None:
            values = values[0]
        else:
            trailing = (1,) * (count - k - 1)
            values = lnp.sum(values * lnp.reshape(weights, (order + 1, *trailing, *weights.shape[1:], *rest)), axis=0)
    return lnp.where(lnp.reshape(is_outside, is_outside.shape + rest), cval, values)


def along_axes(c: Array, places: list[Any], order: int, mode: str, cval: Array) -> Any:
    """Return a spline's values on a grid: at all pairs of places along the axes."""
    outside: list[Any] = []
    for k, place in enumerate(places):
        index, weights, is_outside = taps(place, c.shape[k], order, mode)
        is_constant = index < 0
        c = lnp.moveaxis(c, k, 0)
        values = lnp.take(c, lnp.where(is_constant, 0, index) if mode == "grid-constant" else index, axis=0)
        rest = (1,) * (c.ndim - 1)
        if mode == "grid-constant":
            values = lnp.where(lnp.reshape(is_constant, is_constant.shape + rest), cval, values)
        c = values[0] if weights is None else lnp.sum(values * lnp.reshape(weights, weights.shape + rest), axis=0)
        c = lnp.moveaxis(c, 0, k)
        outside.append(lnp.reshape(is_outside, [-1 if j == k else 1 for j in range(c.ndim)]))
    for is_outside in outside:
        c = lnp.where(is_outside, cval, c)
    return c
