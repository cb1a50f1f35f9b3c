"""The one function for matrix products of CUDA arrays.

Two matrices go to CuPy, whose two-dimensional product is one cuBLAS call for every floating-point dtype, with sums in
float32 for the half types and transposed operands read in place. CuPy's product of stacks of matrices does neither:
it fails on bfloat16, and copies transposed operands. A stack times one matrix is therefore folded into two matrices,
and stacks of a half type are multiplied in float32 and rounded once at the end.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.backend import gpu

Array = Any


def matmul(a: Array, b: Array) -> Array:
    """Return the matrix product ``a @ b`` of CuPy arrays, by the rules of ``numpy.matmul``.

    Parameters
    ----------
    a, b : Array
        Of one dtype and on the current device, of one or more dimensions; leading dimensions broadcast.

    Returns
    -------
    Array
        Of the common dtype.
    """
    cupy = gpu.cupy()
    if a.ndim == 1 or b.ndim == 1:
        left, right = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
        product = matmul(left, right)
        if b.ndim == 1:
            product = product[..., 0]
        return product[..., 0] if a.ndim == 1 and b.ndim == 1 else product[..., 0, :] if a.ndim == 1 else product
    if a.ndim == 2 and b.ndim == 2:
        return cupy.matmul(a, b)
    if b.ndim == 2:
        rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        return cupy.matmul(rows, b).reshape(*a.shape[:-1], b.shape[-1])
    if a.dtype.itemsize == 2 and a.dtype.kind in "fV":
        return cupy.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    return cupy.matmul(a, b)
