"""Distances of all rows with all, and their derivatives, on a CUDA device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import CUDA
from lucid.base import gpu
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, Kernel
from lucid.cuda.launch.plans import empty
from lucid.cuda.source.signature import constant

if TYPE_CHECKING:
    from lucid.base.arrays import Array


_DISTANCES = Kernel("distances", "lucid::distances", EACH_FLOAT)
_GRAD = Kernel("distances", "lucid::distances_grad", EACH_FLOAT)
# The orders that need no powers, by the kernels' numbers.
_ORDERS = {0.0: 0, 1.0: 1, 2.0: 2, math.inf: 3}
_POWER = 4
_BLOCK, _MOST_BLOCKS = 256, 1 << 16


def cdist(a: Array, b: Array, *, p: float, product: bool) -> Any:
    """Return the distances of stacks (n, i, k) and (n, j, k); `product`: of order 2, by a product of matrices."""
    if product:
        return _by_product(a, b)
    out = empty((*a.shape[:2], b.shape[1]), a.dtype)
    if not out.size:
        return out
    tile = constant("distances.cu", "DISTANCE_TILE")
    a, b = (gpu.cupy().ascontiguousarray(x) for x in (a, b))
    tiles = -(-a.shape[1] // tile) * -(-b.shape[1] // tile)
    _DISTANCES[C_TYPES[a.dtype]](
        len(a) * tiles, (tile, tile), a.data.ptr, b.data.ptr, out.data.ptr, a.shape[1], b.shape[1], a.shape[2],
        0.0 if math.isinf(p) else p, _ORDERS.get(p, _POWER),
    )  # fmt: skip
    return out


def _by_product(a: Array, b: Array) -> Any:
    squares = [CUDA.sum(CUDA.square(x), dim=(2,), keepdim=True, dtype=x.dtype) for x in (a, b)]
    both = CUDA.add(squares[0], CUDA.swap_last(squares[1]))
    rest = CUDA.sub(both, CUDA.mul(CUDA.matmul(a, CUDA.swap_last(b)), 2.0))
    return CUDA.sqrt(CUDA.maximum(rest, 0.0))


def cdist_a(grad: Array, a: Array, b: Array, out: Array, p: float) -> Any:
    """Return the gradient of the first stack."""
    return _grad(grad, a, b, out, p, (b.shape[1], 1))


def cdist_b(grad: Array, a: Array, b: Array, out: Array, p: float) -> Any:
    """Return the gradient of the second stack."""
    return _grad(grad, b, a, out, p, (1, b.shape[1]))


def _grad(grad: Array, a: Array, b: Array, distances: Array, p: float, steps: tuple[int, int]) -> Any:
    out = empty(a.shape, a.dtype)
    if out.size:
        arrays = [gpu.cupy().ascontiguousarray(x) for x in (grad, distances, a, b)]
        _GRAD[C_TYPES[a.dtype]](
            min(-(-out.size // _BLOCK), _MOST_BLOCKS), _BLOCK, *[x.data.ptr for x in arrays], out.data.ptr, out.size,
            a.shape[1], b.shape[1], a.shape[2], *steps, 0.0 if math.isinf(p) else p, _ORDERS.get(p, _POWER),
        )  # fmt: skip
    return out
