"""Inverses, equations and determinants of square matrices. Common rules: `lucid.ops.decomposition`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.errors import ShapeError
from lucid.ops.base.dims import dims_in
from lucid.ops.base.scalars import as_bool, as_int
from lucid.ops.decomposition.operands import (
    SINGULAR,
    adjoint_in,
    check_one_dtype,
    diagonal_in,
    library,
    matrices_of,
    numbers_of,
    of_library,
    raise_where,
    square_of,
)
from lucid.ops.decomposition.triangular import fitting
from lucid.ops.elementwise.complex import holds_complex
from lucid.ops.linalg.products import swap_last
from lucid.ops.shape.axes import movedim
from lucid.ops.shape.reshape import reshape, squeeze, unsqueeze

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


class inv_ex_result(NamedTuple):
    """Inverses, and the number of the first zero on the diagonal of U, or 0."""

    inverse: Tensor
    info: Tensor


class solve_ex_result(NamedTuple):
    """Solutions, and the number of the first zero on the diagonal of U, or 0."""

    result: Tensor
    info: Tensor


class slogdet_result(NamedTuple):
    """Determinants as their signs, of size 1, and the logarithms of their sizes."""

    sign: Tensor
    logabsdet: Tensor


inverse = of_library("inverse", outputs=("inverse", "info"), holomorphic=False)


@inverse.vjp
def _inverse_vjp(m: Namespace, grad: list[Array | None], inverse: Array) -> Any:
    turned = adjoint_in(m, inverse)
    return m.neg(m.matmul(m.matmul(turned, grad[0]), turned))


_solve = of_library("solve", ("a", "b"), outputs=("x", "info"), holomorphic=False)


@_solve.vjp("a", "b")
def _solve_vjp(
    m: Namespace, grad: list[Array | None], a: Array, x: Array, a_shape: Ints, b_shape: Ints, needs: tuple[bool, ...]
) -> Any:
    back = m.solve(adjoint_in(m, a), grad[0])[0]
    full = m.sum_to(m.neg(m.matmul(back, adjoint_in(m, x))), shape=a_shape) if needs[0] else None
    return full, m.sum_to(back, shape=b_shape)


_det = of_library("det")


def _for_matrices(m: Namespace, x: Any) -> Any:
    return m.reshape(x, shape=(*x.shape, 1, 1))


@_det.vjp
def _det_vjp(m: Namespace, grad: Array, a: Array) -> Any:
    return m.mul(_for_matrices(m, grad), m.swap_last(m.adjugate(a)))


def _factors(xp: ModuleType, a: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return U, the singular values, V adjoint, the product of both determinants, and a mask of finite matrices."""
    finite = xp.isfinite(a).all((-2, -1), keepdims=True)
    u, s, vh = library(xp).svd(xp.where(finite, a, a.dtype.type(0)), full=True)
    return u, s, vh, (library(xp).det(u) * library(xp).det(vh))[..., None, None], finite


@primitive
def _adjugate(xp: ModuleType, a: Array) -> Array:
    """Return the matrices of cofactors, transposed; also of singular matrices, for lack of an inverse."""
    u, s, vh, turn, finite = _factors(xp, a)
    # the product of all singular values but one, without a division
    ones = xp.eye(a.shape[-1], dtype=bool)
    others = xp.prod(xp.where(ones, s.dtype.type(1), s[..., None, :]), -1)
    inner = xp.conj(vh).swapaxes(-1, -2) * others[..., None, :]
    return xp.where(finite, turn * xp.matmul(inner, xp.conj(u).swapaxes(-1, -2)), a.dtype.type(np.nan))


@_adjugate.vjp
def _adjugate_vjp(m: Namespace, grad: Array, a: Array) -> Any:
    return m.cofactor_slope(a, m.swap_last(grad))


def _without_two(xp: ModuleType, s: Array) -> Array:
    """Return the products of all singular values but two, without a division; zeros on the diagonal."""
    k = xp.arange(s.shape[-1])
    row, one = s[..., None, :], s.dtype.type(1)
    before = xp.prod(xp.where(k < k[:, None], row, one), -1)
    # from the one behind the first of the two on, up to each
    behind = xp.cumprod(xp.where(k > k[:, None], row, one), -1)
    between = xp.concatenate([xp.ones_like(behind[..., :1]), behind[..., :-1]], -1)
    upper = xp.triu(before[..., None] * between * behind[..., -1][..., None, :], 1)
    return upper + upper.swapaxes(-1, -2)


@primitive
def _cofactor_slope(xp: ModuleType, a: Array, along: Array) -> Array:
    """Return the slopes of the matrices of cofactors in a direction; also of singular matrices."""
    u, s, vh, turn, finite = _factors(xp, a)
    products = _without_two(xp, s)
    moved = xp.matmul(xp.matmul(xp.conj(u).swapaxes(-1, -2), along), xp.conj(vh).swapaxes(-1, -2))
    on_diagonal = xp.matmul(products, xp.diagonal(moved, axis1=-2, axis2=-1)[..., None])
    inner = xp.eye(a.shape[-1], dtype=s.dtype) * on_diagonal - products * moved.swapaxes(-1, -2)
    return xp.where(finite, turn * xp.matmul(xp.matmul(xp.conj(u), inner), xp.conj(vh)), a.dtype.type(np.nan))


@_cofactor_slope.vjp("a", "along")
def _cofactor_slope_vjp(m: Namespace, grad: Array, a: Array, along: Array, needs: tuple[bool, ...]) -> Any:
    return (
        _third_slope(m, a, along, grad) if needs[0] else None,
        m.cofactor_slope(a, grad) if needs[1] else None,
    )


def _third_slope(m: Namespace, a: Array, first: Array, second: Array) -> Any:
    """Return the derivative by `a` of the second slope of determinants in two directions; not of singular matrices."""
    inverse = m.inverse(a)[0]
    one, other = m.matmul(inverse, first), m.matmul(inverse, second)
    both = m.add(m.matmul(one, other), m.matmul(other, one))
    parts = _trace(m, one), _trace(m, other), _trace(m, both)
    middle = m.sub(both, m.add(m.mul(parts[1], one), m.mul(parts[0], other)))
    rest = m.sub(m.mul(parts[0], parts[1]), m.mul(parts[2], 0.5))
    whole = m.add(m.mul(rest, inverse), m.matmul(middle, inverse))
    return m.mul(_for_matrices(m, m.det(a)), m.swap_last(whole))


def _trace(m: Namespace, a: Array) -> Any:
    return _for_matrices(m, m.sum(diagonal_in(m, a), dim=(len(a.shape) - 2,), keepdim=False, dtype=a.dtype))


@primitive(outputs=("sign", "logarithm"), differentiable=(0, 1), holomorphic=False)
def _slogdet(xp: ModuleType, a: Array) -> tuple[Array, Array]:
    sign, logarithm = library(xp).slogdet(a)
    # what is no number has no sign
    unknown = sign.dtype.type(np.nan if sign.dtype.kind == "c" else 0)
    return xp.where(xp.isnan(logarithm), unknown, sign), logarithm


@_slogdet.vjp
def _slogdet_vjp(m: Namespace, grad: list[Array | None], a: Array, sign: Array) -> Any:
    turning, growing = grad
    factor = growing
    if holds_complex(a) and turning is not None:
        # the sign moves at right angles to itself
        aside = m.mul(m.imag(m.mul(turning, m.conj(sign))), 1j)
        factor = aside if growing is None else m.add(growing, aside)
    if factor is None:
        return m.zeros_like(a)
    return m.mul(_for_matrices(m, factor), adjoint_in(m, m.inverse(a)[0]))


def inv_ex(A: Tensor, *, check_errors: bool = False) -> inv_ex_result:
    """Return inverses, and ``info``, the number of the first zero on the diagonal of U.

    >>> import lucid
    >>> lucid.linalg.inv_ex(lucid.zeros(2, 2)).info
    tensor(1, dtype=lucid.int32)
    """
    result, info = inverse(square_of("linalg.inv_ex", A))
    if as_bool(check_errors, "check_errors"):
        raise_where("linalg.inv_ex", info, SINGULAR)
    return inv_ex_result(result, info)


def inv(A: Tensor) -> Tensor:
    """Return inverses.

    >>> import lucid
    >>> lucid.linalg.inv(lucid.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    result, info = inverse(square_of("linalg.inv", A))
    raise_where("linalg.inv", info, SINGULAR)
    return result


def _solved(name: str, A: Tensor, B: Tensor, left: bool) -> tuple[Any, Any]:
    a, b = square_of(name, A), numbers_of(name, B)
    check_one_dtype(name, a, b)
    left = as_bool(left, "left")
    one = b.array.ndim == 1 or (b.array.ndim == a.array.ndim - 1 and b.array.shape == a.array.shape[:-1])
    if one and not left:
        raise ShapeError(f"{name}: with left=False B must be matrices, got vectors of shape {list(b.array.shape)}")
    wide = unsqueeze(b, -1) if one else matrices_of(name, b, "B")
    fitting(name, a, wide, left=left)
    if not left:
        x, info = _solve(swap_last(a), swap_last(wide))
        return swap_last(x), info
    x, info = _solve(a, wide)
    return (squeeze(x, -1) if one else x), info


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> solve_ex_result:
    """Return the solutions of `linalg.solve`, and ``info``, the number of the first zero on the diagonal of U.

    >>> import lucid
    >>> lucid.linalg.solve_ex(lucid.zeros(1, 1), lucid.ones(1)).info
    tensor(1, dtype=lucid.int32)
    """
    x, info = _solved("linalg.solve_ex", A, B, left)
    if as_bool(check_errors, "check_errors"):
        raise_where("linalg.solve_ex", info, SINGULAR)
    return solve_ex_result(x, info)


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return ``X`` of ``A @ X = B``, for right-hand sides that are matrices, or vectors.

    They are vectors where `B` has one dimension, or the shape of `A` without its last one.

    >>> import lucid
    >>> lucid.linalg.solve(lucid.tensor([[2.0, 0.0], [0.0, 4.0]]), lucid.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    x, info = _solved("linalg.solve", A, B, left)
    raise_where("linalg.solve", info, SINGULAR)
    return x


def det(A: Tensor) -> Tensor:
    """Return determinants; the gradient of that of a singular matrix is right too.

    >>> import lucid
    >>> lucid.linalg.det(lucid.tensor([[2.0, 0.0], [1.0, 4.0]]))
    tensor(8.)
    """
    return _det(square_of("linalg.det", A))


def slogdet(A: Tensor) -> slogdet_result:
    """Return the signs of determinants, and the logarithms of their sizes; of a singular matrix 0 and minus infinity.

    >>> import lucid
    >>> lucid.linalg.slogdet(lucid.tensor([[-1.0]]))
    slogdet_result(sign=tensor(-1.), logabsdet=tensor(0.))
    """
    return slogdet_result(*_slogdet(square_of("linalg.slogdet", A)))


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of `A` as a matrix with its first `ind` dimensions as rows, and the others as columns.

    Its own rows and columns have these dimensions the other way round.

    >>> import lucid
    >>> lucid.linalg.tensorinv(lucid.eye(6).reshape(2, 3, 6), ind=2).shape
    lucid.Size([6, 2, 3])
    """
    a, ind = numbers_of("linalg.tensorinv", A), as_int(ind, "ind")
    shape = a.array.shape
    if ind < 1:
        raise ShapeError(f"linalg.tensorinv: expected ind of 1 or more, got {ind}")
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise ShapeError(
            f"linalg.tensorinv: expected as many elements in the first {ind} dimensions as in the others, got shape "
            f"{list(shape)}"
        )
    result, info = inverse(reshape(a, (rows, columns)))
    raise_where("linalg.tensorinv", info, SINGULAR)
    return reshape(result, (*shape[ind:], *shape[:ind]))


def tensorsolve(A: Tensor, B: Tensor, dims: tuple[int, ...] | None = None) -> Tensor:
    """Return ``X`` of ``tensordot(A, X, X.ndim) = B``; the dimensions `dims` of `A` are moved behind the others before.

    >>> import lucid
    >>> lucid.linalg.tensorsolve(lucid.eye(6).reshape(2, 3, 6), lucid.ones(2, 3)).shape
    lucid.Size([6])
    """
    name = "linalg.tensorsolve"
    a, b = numbers_of(name, A), numbers_of(name, B)
    check_one_dtype(name, a, b)
    if dims is not None:
        moved = dims_in(dims, a.array.ndim)
        a = movedim(a, moved, tuple(range(-len(moved), 0)))
    rest = a.array.shape[b.array.ndim :]
    if math.prod(rest) != b.array.size or a.array.size != b.array.size**2:
        raise ShapeError(
            f"{name}: expected A that is square as a matrix of the dimensions of B by the others, got shapes "
            f"{list(a.array.shape)} and {list(b.array.shape)}"
        )
    size = b.array.size
    x, info = _solve(reshape(a, (size, size)), reshape(b, (size, 1)))
    raise_where(name, info, SINGULAR)
    return reshape(x, rest)
