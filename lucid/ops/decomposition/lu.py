"""Factors by elimination with exchanges of rows, and solving by them. The rest says `lucid.ops.decomposition`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.recording.primitive import primitive
from lucid.base.arrays import Array, namespace
from lucid.errors import DtypeError, SettingError
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.promotion import array_of, tensor_dtype
from lucid.ops.base.scalars import as_bool
from lucid.ops.creation.filling import empty
from lucid.ops.creation.ranges import eye
from lucid.ops.decomposition import host
from lucid.ops.decomposition.operands import (
    SINGULAR,
    adjoint_in,
    check_one_dtype,
    library,
    matrices_of,
    raise_where,
    square_of,
)
from lucid.ops.decomposition.operands import adjoint as adjoint_of
from lucid.ops.decomposition.triangular import fitting, solve_triangular
from lucid.ops.elementwise.arithmetic import add
from lucid.ops.index.gather import take_along_dim
from lucid.ops.index.select import narrow
from lucid.ops.shape.broadcasting import broadcast_to
from lucid.ops.shape.diagonal import tril, triu
from lucid.ops.shape.reshape import unsqueeze

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.tensor import Tensor


class lu_factor_result(NamedTuple):
    """L and U in one matrix, and the row, counted from 1, that each was exchanged with."""

    LU: Tensor
    pivots: Tensor


class lu_factor_ex_result(NamedTuple):
    """L and U in one matrix, exchanges of rows, and the number of the first zero on the diagonal of U, or 0."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class lu_result(NamedTuple):
    """The permutation, the lower and the upper triangle."""

    P: Tensor
    L: Tensor
    U: Tensor


@primitive(outputs=("packed", "pivots", "info", "places"), holomorphic=False)
def _lu(xp: ModuleType, a: Array) -> tuple[Array, Array, Array, Array]:
    packed, pivots, info = library(xp).lu(a)
    order = host.permutation(pivots if xp is np else pivots.get(), a.shape[-2])
    # the gradient needs the way back
    return packed, pivots, info, xp.asarray(np.argsort(order, -1))


@_lu.vjp
def _lu_vjp(m: Namespace, grad: list[Array | None], packed: Array, places: Array) -> Any:
    rows, columns = packed.shape[-2:]
    k, last = min(rows, columns), len(packed.shape) - 1
    # rows below the square part depend on L and U of it alone, and so do columns right of it
    square, below, right = _parts(m, packed, k)
    g_square, g_below, g_right = _parts(m, grad[0], k)
    lower, g_lower = m.tril(square, diagonal=-1), m.tril(g_square, diagonal=-1)
    upper, g_upper = m.triu(square, diagonal=0), m.triu(g_square, diagonal=0)
    if rows > k:
        g_below = _over_upper(m, g_below, square)
        g_upper = m.sub(g_upper, m.matmul(adjoint_in(m, below), g_below))
    if columns > k:
        g_right = _over_lower(m, g_right, square)
        g_lower = m.sub(g_lower, m.matmul(g_right, adjoint_in(m, right)))
    of_lower = m.tril(m.add(m.matmul(adjoint_in(m, lower), g_lower), g_lower), diagonal=-1)
    of_upper = m.triu(m.matmul(g_upper, adjoint_in(m, upper)), diagonal=0)
    out = _over_upper(m, _over_lower(m, m.add(of_lower, of_upper), square), square)
    if rows > k:
        out = m.cat(out, g_below, dim=last - 1)
    if columns > k:
        out = m.cat(out, g_right, dim=last)
    index = m.expand(m.unsqueeze(places, dim=last), shape=tuple(out.shape))
    return m.gather(out, index, dim=last - 1)


def _parts(m: Namespace, x: Any, k: int) -> tuple[Any, Any, Any]:
    """Return the square part of size `k`, the rows below it and the columns right of it."""
    first, rest = slice(k), slice(k, None)
    return (
        m.getitem(x, index=(..., first, first)),
        m.getitem(x, index=(..., rest, first)),
        m.getitem(x, index=(..., first, rest)),
    )


def _over_upper(m: Namespace, x: Any, square: Any) -> Any:
    """Return ``x @ inverse(U).mH``."""
    return adjoint_in(m, m.triangular(square, adjoint_in(m, x), upper=True, unitriangular=False))


def _over_lower(m: Namespace, x: Any, square: Any) -> Any:
    """Return ``inverse(L).mH @ x``."""
    return m.triangular(adjoint_in(m, square), x, upper=True, unitriangular=True)


def _factored(name: str, A: Tensor, pivot: bool) -> tuple[Tensor, ...]:
    if not as_bool(pivot, "pivot"):
        raise SettingError(f"{name}: expected pivot=True, got False: rows are always exchanged")
    return _lu(matrices_of(name, A))


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> lu_factor_ex_result:
    """Return the factors of `linalg.lu_factor`, and ``info``, the number of the first zero on the diagonal of U.

    `pivot` is True: rows are exchanged.

    >>> import lucid
    >>> lucid.linalg.lu_factor_ex(lucid.zeros(1, 1)).info
    tensor(1, dtype=lucid.int32)
    """
    packed, pivots, info, _ = _factored("linalg.lu_factor_ex", A, pivot)
    if as_bool(check_errors, "check_errors"):
        raise_where("linalg.lu_factor_ex", info, SINGULAR)
    return lu_factor_ex_result(packed, pivots, info)


def lu_factor(A: Tensor, *, pivot: bool = True) -> lu_factor_result:
    """Return L, without its diagonal of ones, and U in one matrix, and ``pivots``: row k was exchanged with them.

    They count from 1. `pivot` is True: rows are exchanged.

    >>> import lucid
    >>> lucid.linalg.lu_factor(lucid.tensor([[1.0, 2.0], [4.0, 4.0]]))
    lu_factor_result(LU=tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]]), pivots=tensor([2, 2], dtype=lucid.int32))
    """
    packed, pivots, info, _ = _factored("linalg.lu_factor", A, pivot)
    raise_where("linalg.lu_factor", info, SINGULAR)
    return lu_factor_result(packed, pivots)


def lu(A: Tensor, *, pivot: bool = True) -> lu_result:
    """Return ``A = P @ L @ U`` as a permutation, a lower triangle with a diagonal of ones, and an upper one.

    `pivot` is True: rows are exchanged.

    >>> import lucid
    >>> lucid.linalg.lu(lucid.tensor([[1.0, 2.0], [4.0, 4.0]])).L
    tensor([[1.0000, 0.0000],
            [0.2500, 1.0000]])
    """
    packed, pivots, _, _ = _factored("linalg.lu", A, pivot)
    return lu_unpack(packed, pivots)


@on_one_device
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> lu_result:
    """Return the permutation and triangles that `linalg.lu_factor` packed into `LU_data` and `LU_pivots`.

    Without `unpack_data`, or `unpack_pivots`, the parts that are not asked for have no elements.

    >>> import lucid
    >>> lucid.lu_unpack(*lucid.linalg.lu_factor(lucid.tensor([[1.0, 2.0], [4.0, 4.0]]))).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    packed = matrices_of("lu_unpack", LU_data, "LU_data")
    rows, columns = packed.array.shape[-2:]
    k = min(rows, columns)
    lower = upper = permutation = empty(0, dtype=packed.dtype, device=packed.device)
    if as_bool(unpack_data, "unpack_data"):
        ones = eye(rows, k, dtype=packed.dtype, device=packed.device)
        lower = add(tril(narrow(packed, -1, 0, k), -1), ones)
        upper = triu(narrow(packed, -2, 0, k))
    if as_bool(unpack_pivots, "unpack_pivots"):
        xp = namespace(packed.array)
        order = _order(LU_pivots, rows)
        permutation = wrap((xp.arange(rows)[:, None] == order[..., None, :]).astype(packed.array.dtype))
    return lu_result(permutation, lower, upper)


def _order(pivots: Tensor, rows: int) -> Array:
    """Return the source of each row of ``P.T @ A``."""
    array = array_of(pivots)
    if array.dtype != np.int32 or not array.ndim:
        raise DtypeError(f"expected pivots of int32, as linalg.lu_factor gives them, got {tensor_dtype(pivots)}")
    return namespace(array).asarray(host.permutation(array if isinstance(array, np.ndarray) else array.get(), rows))


@on_one_device
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Return ``X`` of ``A @ X = B``, of ``A`` as `linalg.lu_factor` gives it in `LU` and `pivots`.

    With `adjoint` the equation is ``A.mH @ X = B``.

    >>> import lucid
    >>> packed, pivots = lucid.linalg.lu_factor(lucid.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> lucid.linalg.lu_solve(packed, pivots, lucid.tensor([[3.0], [8.0]]))
    tensor([[1.],
            [1.]])
    """
    name = "linalg.lu_solve"
    packed, b = square_of(name, LU, "LU"), matrices_of(name, B, "B")
    check_one_dtype(name, packed, b)
    left, turned = as_bool(left, "left"), as_bool(adjoint, "adjoint")
    fitting(name, packed, b, left=left)
    if not left:
        return adjoint_of(lu_solve(packed, pivots, adjoint_of(b), adjoint=not turned))
    order = _order(pivots, packed.array.shape[-1])
    if not turned:
        x = solve_triangular(packed, _rows(b, order), upper=False, unitriangular=True)
        return solve_triangular(packed, x, upper=True)
    back = adjoint_of(packed)
    x = solve_triangular(back, b, upper=False)
    x = solve_triangular(back, x, upper=True, unitriangular=True)
    return _rows(x, namespace(order).argsort(order, -1))


def _rows(x: Tensor, order: Array) -> Any:
    stack = np.broadcast_shapes(x.array.shape[:-2], order.shape[:-1])
    wide = broadcast_to(x, (*stack, *x.array.shape[-2:]))
    return take_along_dim(wide, unsqueeze(wrap(namespace(order).broadcast_to(order, wide.array.shape[:-1])), -1), -2)
