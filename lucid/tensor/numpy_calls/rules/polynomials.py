"""NumPy's older functions of polynomials; coefficients begin with that of the highest power."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.base.arrays import asarray
from lucid.base.device import device_of
from lucid.ops.decomposition import chains
from lucid.ops.elementwise import arithmetic
from lucid.ops.index.indexing import getitem
from lucid.ops.shape import axes, joining, reshape
from lucid.tensor.numpy_calls.definition import beside, is_tensor, operand, rule, tensor_of, tensors_in
from lucid.tensor.numpy_calls.rules.differences import convolve
from lucid.tensor.numpy_calls.rules.reductions import in_fractions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.definition import Operand


@rule("polyval", "*p *x")
def polyval(p: Tensor, x: Tensor) -> Any:
    """Return ``numpy.polyval``, by Horner's rule."""
    like = p if is_tensor(p) else x
    p, x = operand(p, like, strong=True), tensor_of(x, like)
    result = arithmetic.mul(x, 0)
    for k in range(len(p.array)):
        result = arithmetic.add(arithmetic.mul(result, x), getitem(p, k))
    return result


def in_length(p: Tensor, length: int) -> Any:
    """Return coefficients with zeros in front, up to a number of them."""
    missing = length - len(p.array)
    zeros = wrap(asarray(np.zeros(missing, p.array.dtype), device=device_of(p.array)))
    return joining.cat([zeros, p]) if missing else p


def coefficients(*polynomials: Operand) -> list[Any]:
    """Return coefficients as tensors of at least one dimension."""
    like = next(tensors_in(polynomials))
    return [reshape.reshape(tensor_of(each, like), -1) for each in polynomials]


@rule("polyadd", "*a1 *a2")
def polyadd(a1: Tensor, a2: Tensor) -> Any:
    """Return ``numpy.polyadd``."""
    a1, a2 = coefficients(a1, a2)
    length = max(len(a1.array), len(a2.array))
    return arithmetic.add(in_length(a1, length), in_length(a2, length))


@rule("polysub", "*a1 *a2")
def polysub(a1: Tensor, a2: Tensor) -> Any:
    """Return ``numpy.polysub``."""
    a1, a2 = coefficients(a1, a2)
    return polyadd(a1, arithmetic.neg(a2))


@rule("polymul", "*a1 *a2")
def polymul(a1: Tensor, a2: Tensor) -> Any:
    """Return ``numpy.polymul``."""
    return convolve(*coefficients(a1, a2))


@rule("polyder", "*p m")
def polyder(p: Tensor, m: int = 1) -> Any:
    """Return ``numpy.polyder``."""
    for _ in range(m):
        powers = beside(np.arange(len(p.array) - 1, 0, -1), p)
        p = arithmetic.mul(getitem(p, slice(None, -1)), powers)
    return p


@rule("polyint", "*p m k")
def polyint(p: Tensor, m: int = 1, k: float | Sequence[float] | None = None) -> Any:
    """Return ``numpy.polyint``, with the constants `k`."""
    p = in_fractions(p)
    constants = np.broadcast_to(np.zeros(1) if k is None else np.atleast_1d(k), (m,))
    for constant in constants.tolist():
        powers = beside(1 / np.arange(len(p.array), 0, -1), p)
        p = joining.cat([arithmetic.mul(p, powers), reshape.reshape(tensor_of(constant, p), 1)])
    return p


@rule("vander", "*x N increasing")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Any:
    """Return ``numpy.vander``: powers of each number, the highest first unless `increasing`."""
    matrix = chains.vander(x, N=len(x.array) if N is None else N)
    return matrix if increasing else axes.flip(matrix, (1,))
