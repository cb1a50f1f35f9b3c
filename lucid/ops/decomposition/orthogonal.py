"""Factors with orthonormal columns, and products of reflections. The rest says `lucid.ops.decomposition`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.arguments import among
from lucid.autograd.recording.primitive import primitive
from lucid.errors import NotDifferentiableError, SettingError, ShapeError
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.scalars import as_bool
from lucid.ops.creation.filling import empty
from lucid.ops.creation.ranges import eye
from lucid.ops.decomposition.operands import (
    adjoint,
    adjoint_in,
    check_one_dtype,
    hermitian_in,
    library,
    matrices_of,
    numbers_of,
    of_library,
)
from lucid.ops.elementwise.arithmetic import add, mul, sub
from lucid.ops.elementwise.complex import conj
from lucid.ops.index.select import narrow, select
from lucid.ops.linalg.products import matmul
from lucid.ops.shape.broadcasting import broadcast_to
from lucid.ops.shape.diagonal import tril
from lucid.ops.shape.joining import cat
from lucid.ops.shape.reshape import unsqueeze

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


class qr_result(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Tensor
    R: Tensor


class geqrf_result(NamedTuple):
    """R with the vectors of reflections below its diagonal, and their factors."""

    a: Tensor
    tau: Tensor


_qr = of_library("qr", settings=("complete",), outputs=("q", "r"), differentiable=(0, 1), holomorphic=False)


@_qr.vjp
def _qr_vjp(m: Namespace, grad: list[Array | None], q: Array, r: Array, complete: bool) -> Any:
    if complete:
        raise NotDifferentiableError(
            "linalg.qr: mode='complete' has no derivative where A has more rows than columns: the added columns of Q "
            "are not determined; use mode='reduced'"
        )
    g_q, g_r = grad
    inner = None if g_r is None else m.matmul(g_r, adjoint_in(m, r))
    if g_q is not None:
        turning = m.matmul(adjoint_in(m, q), g_q)
        inner = m.neg(turning) if inner is None else m.sub(inner, turning)
    inner = m.triu(inner, diagonal=0)
    out = m.matmul(q, hermitian_in(m, inner))
    if g_q is not None:
        out = m.add(out, g_q)
    return adjoint_in(m, m.triangular(r, adjoint_in(m, out), upper=True, unitriangular=False))


_reflectors = of_library("reflectors", outputs=("packed", "tau"))


@_reflectors.vjp
def _reflectors_vjp(m: Namespace, grad: list[Array | None]) -> Any:
    raise NotDifferentiableError("geqrf has no derivative; use linalg.qr")


def qr(A: Tensor, mode: str = "reduced") -> qr_result:
    """Return ``A = Q @ R``, of orthonormal columns and an upper triangle.

    With the `mode` ``"reduced"`` Q has as many columns as `A` has rows or columns, whatever is less; with
    ``"complete"`` it is square, and has no derivative where it has columns more; with ``"r"`` it is left empty, and
    there is no derivative.

    >>> import lucid
    >>> lucid.linalg.qr(lucid.tensor([[0.0, 2.0], [-1.0, 0.0]])).R.abs()
    tensor([[1., 0.],
            [0., 2.]])
    """
    a = matrices_of("linalg.qr", A)
    if not among(mode, {"reduced", "complete", "r"}):
        raise SettingError(f"linalg.qr: expected mode 'reduced', 'complete' or 'r', got {mode!r}")
    rows, columns = a.array.shape[-2:]
    if mode == "r":
        return qr_result(empty(0, dtype=a.dtype, device=a.device), _triangle(a))
    complete = mode == "complete" and rows > columns
    if rows >= columns:
        return qr_result(*_qr(a, complete=complete))
    q, r = _qr(narrow(a, -1, 0, rows), complete=False)
    rest = matmul(adjoint(q), narrow(a, -1, rows, columns - rows))
    return qr_result(q, cat([r, rest], -1))


@primitive(holomorphic=False)
def _triangle(xp: ModuleType, a: Array) -> Array:
    return library(xp).qr(a, complete=False)[1]


@_triangle.vjp
def _triangle_vjp(m: Namespace, grad: Array, a: Array) -> Any:
    raise NotDifferentiableError("linalg.qr: mode='r' has no derivative, as it needs Q; use mode='reduced'")


@on_one_device
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """Return the first columns of a product of reflections, as many as `input` has.

    They are ``1 - tau[k] * v_k @ v_k.mH``, with one factor of `tau` for each: ``v_k`` is 0 above row k, 1 there, and
    column k of `input` below, of which the rest is not read.

    >>> import lucid
    >>> lucid.linalg.householder_product(lucid.zeros(2, 1), lucid.tensor([2.0]))
    tensor([[-1.],
            [ 0.]])
    """
    name = "linalg.householder_product"
    a, factors = matrices_of(name, input, "input"), numbers_of(name, tau)
    check_one_dtype(name, a, factors)
    *stack, rows, columns = a.array.shape
    count = factors.array.shape[-1] if factors.array.ndim else -1
    if rows < columns or not 0 <= count <= columns or list(factors.array.shape[:-1]) != stack:
        raise ShapeError(
            f"{name}: expected input of at least as many rows as columns, and for each of the matrices at most as many "
            f"factors as columns, got shapes {list(a.array.shape)} and {list(factors.array.shape)}"
        )
    q: Any = broadcast_to(eye(rows, columns, dtype=a.dtype, device=a.device), tuple(a.array.shape))
    for k in reversed(range(count)):
        q = sub(q, _reflected(a, factors, k, q))
    return q.clone() if not count else q


def _reflected(a: Any, factors: Any, k: int, x: Any) -> Any:
    """Return the part that reflection `k` takes from `x`."""
    rows = a.array.shape[-2]
    unit = narrow(eye(rows, dtype=a.dtype, device=a.device), 1, k, 1)
    vector = add(tril(narrow(a, -1, k, 1), -k - 1), unit)
    factor = unsqueeze(unsqueeze(select(factors, -1, k), -1), -1)
    return mul(vector, mul(matmul(adjoint(vector), x), factor))


@on_one_device
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Return the product of all reflections with the matrices `other`.

    The reflections are those of `linalg.householder_product`, with the factors `tau`. With `transpose`
    it is the adjoint of the product that is multiplied; without `left` it stands on the right.

    >>> import lucid
    >>> lucid.ormqr(lucid.zeros(2, 1), lucid.tensor([2.0]), lucid.ones(2, 1))
    tensor([[-1.],
            [ 1.]])
    """
    a, factors, x = matrices_of("ormqr", input, "input"), numbers_of("ormqr", tau), matrices_of("ormqr", other, "other")
    check_one_dtype("ormqr", a, factors, x)
    left, turned = as_bool(left, "left"), as_bool(transpose, "transpose")
    if x.array.shape[-2 if left else -1] != a.array.shape[-2] or factors.array.ndim != a.array.ndim - 1:
        raise ShapeError(
            f"ormqr: expected other of as many {'rows' if left else 'columns'} as input has rows, got shapes "
            f"{list(a.array.shape)}, {list(factors.array.shape)} and {list(x.array.shape)}"
        )
    if not left:
        return adjoint(ormqr(a, factors, adjoint(x), transpose=not turned))
    count = range(factors.array.shape[-1])
    for k in count if turned else reversed(count):
        x = sub(x, _reflected(a, conj(factors) if turned else factors, k, x))
    return x


def geqrf(input: Tensor) -> geqrf_result:
    """Return R with the vectors of reflections below its diagonal, and their factors ``tau``; there is no derivative.

    `linalg.householder_product` makes Q of them.

    >>> import lucid
    >>> lucid.geqrf(lucid.tensor([[3.0], [4.0]])).a[0].abs()
    tensor([5.])
    """
    return geqrf_result(*_reflectors(matrices_of("geqrf", input, "input")))
