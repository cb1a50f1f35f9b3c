"""Products of stacks of small matrices that cuBLAS could only read after a copy: one launch, no copies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.cuda.launch.kernels import C_TYPES, FLOATS, Kernel
from lucid.cuda.source.signature import constant

if TYPE_CHECKING:
    from lucid.base.arrays import Array


Loop = tuple[int, int, int, int]
"""One loop over a stack: its count, and the steps of both factors and of the product in elements."""

# What this kernel takes: so many multiplications in all, so many for one element. It should need some microseconds for
# them, as the copies do that it saves; beyond, cuBLAS is faster. The numbers are estimates, not measured on a GPU.
MOST_WORK, LONGEST_SUM = 1 << 25, 512

_stacks = Kernel(
    "product",
    "lucid::product_of_stacks",
    (*((name, name) for name in FLOATS), ("__half", "float"), ("__nv_bfloat16", "float")),
)


def multiply(a: Array, b: Array, out: Array, loops: list[Loop], alpha: float, beta: float) -> bool:
    """Write ``alpha * a @ b + beta * out`` to `out`; False if it takes too long here, or has too many loops.

    Parameters
    ----------
    a, b : Array
        Stacks of matrices of one floating dtype, with any steps.
    out : Array
        C-contiguous, of the same dtype, or of float32 for half types.
    loops : list of tuple
        Loops over the stacks, the innermost first.
    alpha, beta : float
        The factors; with a `beta` of 0, `out` is not read.
    """
    (rows, depth), columns = a.shape[-2:], b.shape[-1]
    count = math.prod(loop[0] for loop in loops)
    if len(loops) > 2 or depth > LONGEST_SUM or count * rows * depth * columns > MOST_WORK:
        return False
    inner, outer = (*loops, (1, 0, 0, 0))[:2]
    tile, side = constant("product.cu", "TILE"), constant("product.cu", "SIDE")
    tiles = -(-rows // tile) * -(-columns // tile)
    _stacks[C_TYPES[a.dtype], C_TYPES[out.dtype]](
        count * tiles, (side, side), a.data.ptr, b.data.ptr, out.data.ptr,
        outer[1], inner[1], *_matrix_steps(a), outer[2], inner[2], *_matrix_steps(b), outer[3], inner[3],
        inner[0], rows, depth, columns, alpha, beta,
    )  # fmt: skip
    return True


def _matrix_steps(x: Array) -> tuple[Any, Any]:
    return x.strides[-2] // x.itemsize, x.strides[-1] // x.itemsize
