"""NumPy's older functions of polynomials; coefficients begin with that of the highest power."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.errors import SettingError, ShapeError
from lucid.ops.base.promotion import cast_to
from lucid.ops.decomposition import chains
from lucid.ops.elementwise import arithmetic
from lucid.ops.index.indexing import getitem
from lucid.ops.shape import axes, broadcasting, joining, reshape
from lucid.tensor.numpy_calls.definition import rule
from lucid.tensor.numpy_calls.operands import beside, is_tensor, numpy_dtype, operand, tensor_of, zeros_for
from lucid.tensor.numpy_calls.rules.differences import convolve, lines_of
from lucid.tensor.numpy_calls.rules.places import plain
from lucid.tensor.numpy_calls.rules.reductions import in_fractions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Operand


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
    if not missing:
        return p
    return joining.cat([zeros_for(p, (missing,)), check_line("polyadd", p)])


def check_line(name: str, p: Tensor) -> Any:
    """Return coefficients of one dimension; refuse others."""
    if p.array.ndim != 1:
        raise ShapeError(f"numpy.{name}: expected coefficients of one dimension, got shape {p.array.shape}")
    return p


@rule("polyadd", "*a1 *a2")
def polyadd(a1: Tensor, a2: Tensor) -> Any:
    """Return ``numpy.polyadd``."""
    a1, a2 = lines_of(a1, a2)
    length = max(len(a1.array), len(a2.array))
    return arithmetic.add(in_length(a1, length), in_length(a2, length))


@rule("polysub", "*a1 *a2")
def polysub(a1: Tensor, a2: Tensor) -> Any:
    """Return ``numpy.polysub``."""
    a1, a2 = lines_of(a1, a2)
    return polyadd(a1, arithmetic.neg(a2))


@rule("polymul", "*a1 *a2")
def polymul(a1: Tensor, a2: Tensor) -> Any:
    """Return ``numpy.polymul``, without the zeros in front of either factor."""
    factors: list[Any] = []
    for p in lines_of(a1, a2):
        values: Any = plain(check_line("polymul", p))
        first = np.flatnonzero(values)[:1].tolist() or [-1]
        factors.append(getitem(p, slice(first[0], None)) if values.size else zeros_for(p, (1,)))
    return convolve(*factors)


@rule("polyder", "*p m")
def polyder(p: Tensor, m: int = 1) -> Any:
    """Return ``numpy.polyder``."""
    if m < 0:
        raise SettingError(f"numpy.polyder: expected m, how often, of at least 0, got {m}: use polyint()")
    check_line("polyder", p)
    for _ in range(m):
        powers = beside(np.arange(len(p.array) - 1, 0, -1), p)
        p = arithmetic.mul(getitem(p, slice(None, -1)), powers)
    return p


@rule("polyint", "*p m +k")
def polyint(p: Tensor, m: int = 1, k: Operand | Sequence[Operand] | None = None) -> Any:
    """Return ``numpy.polyint``, with the first `m` of the constants `k`, or one for each time."""
    if m < 0:
        raise SettingError(f"numpy.polyint: expected m, how often, of at least 0, got {m}: use polyder()")
    if m == 0:
        return p
    p = in_fractions(check_line("polyint", p))
    constants = operand(0.0 if k is None else k, p, strong=True)
    constants = check_line("polyint", lines_of(constants)[0])
    if len(constants.array) == 1:
        constants = broadcasting.broadcast_to(constants, (m,))
    if len(constants.array) < m:
        raise ShapeError(f"numpy.polyint: expected k of one constant or of {m}, got {len(constants.array)}")
    wanted = numpy_dtype([p, constants])
    constants = cast_to(constants, wanted)
    for j in range(m):
        p = arithmetic.mul(p, beside(1 / np.arange(len(p.array), 0, -1), p))
        p = joining.cat([cast_to(p, wanted), getitem(constants, slice(j, j + 1))])
    return p


@rule("vander", "*x N increasing")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Any:
    """Return ``numpy.vander``: powers of each number, the highest first unless `increasing`."""
    if x.array.ndim != 1:
        raise ShapeError(f"numpy.vander: x must be a one-dimensional array or sequence, got shape {x.array.shape}")
    count = len(x.array) if N is None else operator.index(N)
    if count == 0:
        return getitem(reshape.unsqueeze(x, -1), (slice(None), slice(0)))
    matrix = chains.vander(x, N=count)
    return matrix if increasing else axes.flip(matrix, (1,))
