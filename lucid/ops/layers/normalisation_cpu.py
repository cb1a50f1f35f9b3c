"""Layer norm and its gradient on the CPU by compiled loops, of rows that are worth it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lucid.cpu.functions import address
from lucid.cpu.rows import function

if TYPE_CHECKING:
    from lucid.base.arrays import Array


def _at(array: Array | None) -> int | None:
    return None if array is None else address(array)


def _dense(*arrays: Array | None) -> list[Array | None]:
    return [None if array is None else np.ascontiguousarray(array) for array in arrays]


def normalised(
    x: Array, weight: Array | None, bias: Array | None, eps: float, *, center: bool
) -> tuple[Array, Array, Array] | None:
    """Return rows that are normalised, their means and variances; None if NumPy is to do it."""
    rows, columns = x.shape
    run = function("normalise", x, weight, bias)
    if run is None or any(each is not None and each.size != columns for each in (weight, bias)):
        return None
    out, mean, variance = np.empty_like(x, order="C"), np.empty((rows, 1), x.dtype), np.empty((rows, 1), x.dtype)
    operands = _dense(x, weight, bias)
    run(*map(_at, (*operands, out, mean, variance)), rows, columns, eps, center)
    return out, mean, variance


def normalised_grad(
    grad: Array, x: Array, weight: Array | None, mean: Array, variance: Array, eps: float, *, center: bool,
    wants: tuple[bool, ...],
) -> tuple[Array | None, Array | None, Array | None] | None:  # fmt: skip
    """Return the gradients of rows, weight and bias that are wanted; None if NumPy is to do it."""
    rows, columns = x.shape
    run = function("normalise_grad", x, grad, weight, mean, variance)
    if run is None or (weight is not None and weight.size != columns):
        return None
    to_x = np.empty_like(x, order="C") if wants[0] else None
    to_weight, to_bias = [np.zeros(columns) if wanted else None for wanted in wants[1:]]
    operands = _dense(grad, x, weight, mean, variance)
    room = np.empty(columns, x.dtype)
    run(*map(_at, (*operands, to_x, to_weight, to_bias, room)), rows, columns, eps, center)
    sums = [None if each is None else each.astype(x.dtype) for each in (to_weight, to_bias)]
    return to_x, sums[0], sums[1]
