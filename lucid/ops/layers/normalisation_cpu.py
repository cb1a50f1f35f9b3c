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
    if run is None:
        return None
    out, mean, variance = np.empty_like(x, order="C"), np.empty((rows, 1), x.dtype), np.empty((rows, 1), x.dtype)
    operands = _dense(x, weight, bias)
    run(*map(_at, (*operands, out, mean, variance)), rows, columns, eps, center)
    return out, mean, variance


def normalised_grad(
    grad: Array, x: Array, weight: Array | None, variance: Array, eps: float, *, center: bool, wants: tuple[bool, ...]
) -> tuple[Array, Array, Array] | None:  # fmt: skip
    """Return the gradients of rows, weight and bias, zeros of those that are not wanted; None if NumPy is to do it.

    Those of rows are of no elements then.
    """
    rows, columns = x.shape
    run = function("normalise_grad", x, grad, weight, variance)
    if run is None:
        return None
    to_x: Array = np.empty(x.shape if wants[0] else (0,), x.dtype)
    sums = np.zeros((2, columns))
    operands = _dense(grad, x, weight, variance)
    targets = [array if wanted else None for array, wanted in zip((to_x, *sums), wants, strict=True)]
    room = np.zeros((4, columns), x.dtype)
    run(*map(_at, (*operands, *targets, room)), rows, columns, eps, center)
    to_weight, to_bias = sums.astype(x.dtype)
    return to_x, to_weight, to_bias
