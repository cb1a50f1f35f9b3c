"""Triangular systems, Cholesky's factors, and equations solved by them. Common rules: `lucid.ops.decomposition`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.autograd.recording.primitive import primitive
from lucid.errors import ShapeError
from lucid.ops.base.scalars import as_bool
from lucid.ops.creation.ranges import eye
from lucid.ops.decomposition.operands import (
    NOT_POSITIVE,
    adjoint,
    adjoint_in,
    check_one_dtype,
    hermitian_in,
    library,
    matrices_of,
    of_library,
    raise_where,
    square_of,
)
from lucid.ops.linalg.matrices import broadcastable
from lucid.ops.linalg.products import swap_last
from lucid.ops.shape.diagonal import tril, triu

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


class cholesky_ex_result(NamedTuple):
    """Cholesky's factors, and the order of the first minor that is not positive, or 0."""

    L: Tensor
    info: Tensor


_triangular = of_library("triangular", ("a", "b"), settings=("upper", "unitriangular"))


@_triangular.vjp("a", "b")
def _triangular_vjp(
    m: Namespace,
    grad: Array,
    a: Array,
    out: Array,
    a_shape: Ints,
    b_shape: Ints,
    upper: bool,
    unitriangular: bool,
    needs: tuple[bool, ...],
) -> Any:
    back = m.triangular(m.swap_last(a), grad, upper=not upper, unitriangular=unitriangular)
    right = m.sum_to(back, shape=b_shape)
    if not needs[0]:
        return None, right
    full = m.neg(m.matmul(back, m.swap_last(out)))
    part = m.triu(full, diagonal=int(unitriangular)) if upper else m.tril(full, diagonal=-int(unitriangular))
    return m.sum_to(part, shape=a_shape), right


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Return the solutions of triangular systems; with `unitriangular` the diagonal counts as ones and is not read.

    A zero on the diagonal gives infinity or NaN.

    >>> import lucid
    >>> lucid.linalg.solve_triangular(lucid.tensor([[1.0, 9.0], [1.0, 2.0]]), lucid.ones(2, 1), upper=False)
    tensor([[1.],
            [0.]])
    """
    name = "linalg.solve_triangular"
    a, b = square_of(name, A), matrices_of(name, B, "B")
    check_one_dtype(name, a, b)
    upper, left = as_bool(upper, "upper"), as_bool(left, "left")
    fitting(name, a, b, left=left)
    unit = as_bool(unitriangular, "unitriangular")
    if left:
        return _triangular(a, b, upper=upper, unitriangular=unit)
    return swap_last(_triangular(swap_last(a), swap_last(b), upper=not upper, unitriangular=unit))


def fitting(name: str, a: Tensor, b: Tensor, *, left: bool) -> None:
    """Refuse right-hand sides that do not fit their matrices."""
    size, shape = a.array.shape[-1], b.array.shape
    if shape[-2 if left else -1] != size:
        equation = "A @ X = B" if left else "X @ A = B"
        raise ShapeError(
            f"{name}: {equation} does not fit: A has shape {list(a.array.shape)}, B has shape {list(shape)}"
        )
    broadcastable(name, a.array.shape, shape)


@primitive(outputs=("factor", "info"), holomorphic=False)
def _cholesky(xp: ModuleType, a: Array) -> tuple[Array, Array]:
    factor, info = library(xp).cholesky(a)
    if not a.size:
        return factor, info
    # a library may say nothing of NaN
    unknown = xp.isnan(xp.diagonal(factor, 0, -2, -1))
    first = xp.argmax(unknown, -1) + 1
    return factor, xp.where((info == 0) & unknown.any(-1), first, info).astype(info.dtype)


@_cholesky.vjp
def _cholesky_vjp(m: Namespace, grad: list[Array | None], factor: Array) -> Any:
    turned = adjoint_in(m, factor)
    inner = m.tril(m.matmul(turned, grad[0]), diagonal=0)
    right = m.triangular(turned, m.mul(hermitian_in(m, inner), 0.5), upper=True, unitriangular=False)
    return adjoint_in(m, m.triangular(turned, adjoint_in(m, right), upper=True, unitriangular=False))


def _factored(name: str, A: Tensor, upper: bool) -> tuple[Any, Any]:
    a = square_of(name, A)
    if not as_bool(upper, "upper"):
        return _cholesky(a)
    factor, info = _cholesky(adjoint(a))
    return adjoint(factor), info


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> cholesky_ex_result:
    """Return Cholesky's factors as `linalg.cholesky` does, and ``info``, the order of a minor that is not positive.

    >>> import lucid
    >>> lucid.linalg.cholesky_ex(lucid.tensor([[1.0, 0.0], [0.0, -1.0]])).info
    tensor(2, dtype=lucid.int32)
    """
    factor, info = _factored("linalg.cholesky_ex", A, upper)
    if as_bool(check_errors, "check_errors"):
        raise_where("linalg.cholesky_ex", info, NOT_POSITIVE)
    return cholesky_ex_result(factor, info)


def cholesky(A: Tensor, upper: bool = False) -> Tensor:
    """Return ``L`` of ``A = L @ L.mH``, or ``U`` of ``A = U.mH @ U``, of Hermitian positive-definite matrices.

    >>> import lucid
    >>> lucid.linalg.cholesky(lucid.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    factor, info = _factored("linalg.cholesky", A, upper)
    raise_where("linalg.cholesky", info, NOT_POSITIVE)
    return factor


def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Return ``X`` of ``A @ X = input``, for Cholesky's factors `L` of ``A``.

    >>> import lucid
    >>> lucid.cholesky_solve(lucid.tensor([[8.0]]), lucid.tensor([[2.0]]))
    tensor([[2.]])
    """
    name = "cholesky_solve"
    b, factor = matrices_of(name, input, "input"), square_of(name, L, "L")
    check_one_dtype(name, b, factor)
    fitting(name, factor, b, left=True)
    lower = adjoint(triu(factor)) if as_bool(upper, "upper") else tril(factor)
    half = _triangular(lower, b, upper=False, unitriangular=False)
    return _triangular(adjoint(lower), half, upper=True, unitriangular=False)


def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of ``A``, for Cholesky's factors of ``A``.

    >>> import lucid
    >>> lucid.cholesky_inverse(lucid.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    factor = square_of("cholesky_inverse", input, "input")
    return cholesky_solve(eye(factor.array.shape[-1], dtype=factor.dtype, device=factor.device), factor, upper)
