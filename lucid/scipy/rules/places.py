"""Which elements of an array, with which weights, make a spline's value at places between them."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from lucid import numpy as np
from lucid.numpy.border import plain
from lucid.scipy.rules.borders import MODES, place_in
from lucid.scipy.rules.rule import put

LIMITS = {"constant": "mirror", "wrap": "mirror", "grid-constant": "constant"}
"""The continuation of coefficients beyond the edges, where it is not that of the places."""

FAR = 10
"""How far beyond the edges no tap of any order meets the array."""


@functools.cache
def polynomials(order: int) -> numpy.ndarray[Any, Any]:
    """Return the coefficients of the weights, as polynomials of the way past a sample: of each a row."""
    pieces = [numpy.array([1.0])]
    for p in range(1, order + 1):
        before = [numpy.zeros(1), *pieces, numpy.zeros(1)]
        # M_p(t + i) = ((t + i) M_{p-1}(t + i) + (p + 1 - t - i) M_{p-1}(t + i - 1)) / p
        pieces = [
            numpy.polynomial.polynomial.polyadd(
                numpy.convolve([i, 1.0], before[i + 1]), numpy.convolve([p + 1 - i, -1.0], before[i])
            )
            / p
            for i in range(p + 1)
        ]
    rows = numpy.zeros((order + 1, order + 1))
    for i, piece in enumerate(pieces):
        rows[order - i, : min(len(piece), order + 1)] = piece[: order + 1]
    return rows


def mapped(place: Any, size: int, mode: str) -> tuple[Any, Any, Any]:
    """Return where places beyond the edges come to lie, with which slope, and which of them are outside.

    Of arrays of NumPy's or CuPy's; the slope is that of SciPy's map, and zero where it is constant.
    """
    last = size - 1
    is_beyond = np.logical_or(place < 0, place > last)
    is_outside = np.isnan(place)
    one = np.ones_like(place)
    if mode in {"grid-constant", "nearest"}:
        # farther away nothing changes any more
        return np.clip(place, -FAR, last + FAR), one, is_outside
    if mode == "constant":
        return np.clip(place, 0, last), one, np.logical_or(is_outside, is_beyond)
    if size == 1:
        return np.clip(place, 0, last), np.where(is_beyond, 0.0, 1.0), is_outside
    if mode == "wrap":
        turns = np.where(place < 0, np.trunc(-place / last) + 1, -np.trunc(place / last))
        return np.where(is_beyond, place + last * turns, place), one, is_outside
    if mode == "grid-wrap":
        return np.where(is_beyond, place % size, place), one, is_outside
    period = 2.0 * (last if mode == "mirror" else size)
    found = np.where(is_beyond, place % period, place)
    is_back = found > last if mode == "mirror" else found >= size
    found = np.where(is_back, (period if mode == "mirror" else period - 1) - found, found)
    return found, np.where(is_back, -1.0, 1.0), is_outside


def taps(place: Any, size: int, order: int, mode: str) -> tuple[Any, Any, Any]:
    """Return indices of elements and their weights, along a first axis, and which places are outside.

    An index of -1 is that of a constant.
    """
    if mode not in {*MODES, "wrap"}:
        raise RuntimeError(f"boundary mode not supported: expected one of {', '.join(MODES)}, got {mode!r}")
    mode = "reflect" if mode == "grid-mirror" else mode
    values = plain(place)
    found, slope, is_outside = mapped(values, size, mode)
    found = np.where(is_outside, 0.0, found)
    shifted = found + (0.0 if order % 2 else 0.5)
    below = np.floor(shifted)
    # the value as it is, and the derivative of the way there
    way = (shifted - below) + (slope * (place - values) if place is not values else 0.0)
    start = below.astype(np.int64) - order // 2
    index = start + np.reshape(put(numpy.arange(order + 1), values), (-1,) + (1,) * values.ndim)
    limit = LIMITS.get(mode, "wrap" if mode == "grid-wrap" else mode)
    with numpy.errstate(invalid="ignore"):
        index = place_in(index, size, limit)
    if not order:
        return index, None, is_outside
    powers = [np.ones_like(values), way]
    while len(powers) <= order:
        powers.append(powers[-1] * way)
    weights = np.tensordot(put(polynomials(order), values), np.stack(powers), axes=1)
    return index, weights, is_outside


def at_places(c: Any, places: list[Any], order: int, mode: str, cval: Any) -> Any:
    """Return a spline's values: of coefficients, at places along their first axes."""
    count, shape = len(places), c.shape[: len(places)]
    found = [taps(place, size, order, mode) for place, size in zip(places, shape, strict=True)]
    # the taps of each axis are an axis of their own, in front of the places
    index, is_constant, is_outside = 0, False, False
    for k, (each, _, outside) in enumerate(found):
        each = np.reshape(each, (*[order + 1 if j == k else 1 for j in range(count)], *each.shape[1:]))
        is_constant = np.logical_or(is_constant, each < 0) if mode == "grid-constant" else False
        index = index * shape[k] + each
        is_outside = np.logical_or(is_outside, outside)
    lines = np.reshape(c, (-1, *c.shape[count:]))
    rest = (1,) * (c.ndim - count)
    values = np.take(lines, np.where(is_constant, 0, index) if mode == "grid-constant" else index, axis=0)
    if mode == "grid-constant":
        values = np.where(np.reshape(is_constant, is_constant.shape + rest), cval, values)
    for k, (_, weights, _) in enumerate(found):
        if weights is None:
            values = values[0]
        else:
            left = (1,) * (count - k - 1)
            values = np.sum(values * np.reshape(weights, (order + 1, *left, *weights.shape[1:], *rest)), axis=0)
    return np.where(np.reshape(is_outside, is_outside.shape + rest), cval, values)


def along_axes(c: Any, places: list[Any], order: int, mode: str, cval: Any) -> Any:
    """Return a spline's values on a grid: at all pairs of places along the axes."""
    outside: list[Any] = []
    for k, place in enumerate(places):
        index, weights, is_outside = taps(place, c.shape[k], order, mode)
        is_constant = index < 0
        c = np.moveaxis(c, k, 0)
        values = np.take(c, np.where(is_constant, 0, index) if mode == "grid-constant" else index, axis=0)
        rest = (1,) * (c.ndim - 1)
        if mode == "grid-constant":
            values = np.where(np.reshape(is_constant, is_constant.shape + rest), cval, values)
        c = values[0] if weights is None else np.sum(values * np.reshape(weights, weights.shape + rest), axis=0)
        c = np.moveaxis(c, 0, k)
        outside.append(np.reshape(is_outside, [-1 if j == k else 1 for j in range(c.ndim)]))
    for is_outside in outside:
        c = np.where(is_outside, cval, c)
    return c
