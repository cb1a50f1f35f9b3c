"""Pseudoinverses, least squares, ranks and conditions. Common rules: `lucid.ops.decomposition`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lucid.arguments import among
from lucid.autograd.base import TensorBase
from lucid.autograd.modes.autocast import casting_on, without_autocast
from lucid.autograd.modes.state import unusual
from lucid.autograd.recording.primitive import primitive
from lucid.errors import SettingError, ShapeError
from lucid.ops.base.scalars import as_bool, as_number, no_number
from lucid.ops.creation.filling import empty, full
from lucid.ops.decomposition.inverses import inverse
from lucid.ops.decomposition.matrix_norms import largest, matrix_norm
from lucid.ops.decomposition.operands import adjoint_in, check_one_dtype, library, matrices_of, numbers_of, square_of
from lucid.ops.decomposition.spectral import eigvalsh, svdvals
from lucid.ops.elementwise.arithmetic import mul, sub
from lucid.ops.elementwise.comparison import gt, maximum, ne
from lucid.ops.elementwise.complex import abs as size_of
from lucid.ops.elementwise.division import div
from lucid.ops.elementwise.power import square
from lucid.ops.elementwise.selection import where
from lucid.ops.index.select import select
from lucid.ops.linalg.matrices import broadcastable
from lucid.ops.linalg.products import matmul
from lucid.ops.reduction.sums import sum
from lucid.ops.shape.reshape import squeeze, unsqueeze

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


class lstsq_result(NamedTuple):
    """The solution, sums of squares of residuals, ranks and singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@primitive(holomorphic=False)
def _pseudoinverse(xp: ModuleType, a: Array, limit: Array, *, hermitian: bool) -> Array:
    if hermitian:
        s, u = library(xp).eigh(a, upper=False)
        vh = xp.conj(u).swapaxes(-1, -2)
    else:
        u, s, vh = library(xp).svd(a, full=False)
    kept = xp.abs(s) > limit[..., None]
    ratios = xp.where(kept, 1 / xp.where(kept, s, s.dtype.type(1)), s.dtype.type(0))
    return xp.matmul(xp.conj(vh).swapaxes(-1, -2) * ratios[..., None, :], xp.conj(u).swapaxes(-1, -2))


@_pseudoinverse.vjp("a")
def _pseudoinverse_vjp(m: Namespace, grad: Array, a: Array, out: Array) -> Any:
    turned, back = adjoint_in(m, out), adjoint_in(m, grad)
    through = m.matmul(m.matmul(turned, grad), turned)
    # what of the gradient leaves the range of a, and of its adjoint
    left = m.sub(back, m.matmul(a, m.matmul(out, back)))
    right = m.sub(back, m.matmul(m.matmul(back, out), a))
    added = m.add(m.matmul(left, m.matmul(out, turned)), m.matmul(m.matmul(turned, out), right))
    return m.sub(added, through)


def _limits(name: str, a: Any, values: Any, atol: Any, rtol: Any) -> Any:
    """Return the bound of the values that count as zeros, for each matrix."""
    values = size_of(values.detach())
    most = largest(values, -1)
    absolute = None if atol is None else _tolerance(name, atol, "atol", most)
    if rtol is None:
        # an absolute limit above zero stands alone
        eps = math.ldexp(1.0, -23 if values.array.dtype.itemsize == 4 else -52)
        relative: Any = max(a.array.shape[-2:]) * eps
        if absolute is not None:
            relative = where(gt(absolute, 0), 0.0, full((), relative, dtype=values.dtype, device=values.device))
    else:
        relative = _tolerance(name, rtol, "rtol", most)
    limit = mul(most, relative)
    return limit if absolute is None else maximum(limit, absolute)


def _tolerance(name: str, value: Any, argument: str, like: Any) -> Any:
    if isinstance(value, TensorBase) and value.array.ndim:
        tensor = cast("Tensor", value)
        if tensor.requires_grad:
            raise no_number(tensor, "a tensor that does not require grad", argument)
        return numbers_of(name, tensor).to(like.dtype)
    return full((), float(as_number(value, argument)), dtype=like.dtype, device=like.device)


def pinv(
    A: Tensor,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:
    """Return pseudoinverses. Singular values up to ``max(atol, rtol * largest)`` count as zeros.

    `rtol` is the larger size of a matrix times the dtype's eps, unless it or an `atol` above 0 is given; `rcond` is
    NumPy's name for it. With `hermitian` only the lower triangle is read.

    >>> import lucid
    >>> lucid.linalg.pinv(lucid.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    name = "linalg.pinv"
    hermitian = as_bool(hermitian, "hermitian")
    if rcond is not None:
        if atol is not None or rtol is not None:
            raise SettingError(f"{name}: rcond stands for rtol without atol: give rcond or these")
        rtol = rcond if isinstance(rcond, TensorBase) and rcond.array.ndim else as_number(rcond, "rcond")
    a = square_of(name, A) if hermitian else matrices_of(name, A)
    limits = _limits(name, a, eigvalsh(a.detach()) if hermitian else svdvals(a.detach()), atol, rtol)
    stack = a.array.shape[:-2]
    return _pseudoinverse(a, limits.expand(stack) if limits.array.shape != stack else limits, hermitian=hermitian)


def matrix_rank(
    A: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:
    """Return how many singular values are greater than ``max(atol, rtol * largest)``.

    `atol`, `rtol` and `hermitian` are as of `linalg.pinv`; `tol` stands for an `atol` beside an `rtol` of 0.

    >>> import lucid
    >>> lucid.linalg.matrix_rank(lucid.ones(3, 3))
    tensor(1)
    """
    name = "linalg.matrix_rank"
    hermitian = as_bool(hermitian, "hermitian")
    a = (square_of(name, A) if hermitian else matrices_of(name, A)).detach()
    if tol is not None:
        if atol is not None or rtol is not None:
            raise SettingError(f"{name}: tol stands for atol with rtol=0: give tol or these")
        atol, rtol = tol if isinstance(tol, TensorBase) and tol.array.ndim else as_number(tol, "tol"), 0.0
    values = size_of(eigvalsh(a)) if hermitian else svdvals(a)
    limits = _limits(name, a, values, atol, rtol)
    return sum(gt(values, unsqueeze(limits, -1)), -1)


def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """Return conditions: ``norm(A) * norm(inv(A))`` of the order `p` of `linalg.matrix_norm`.

    With None and 2 it is the largest by the smallest singular value, with -2 the other way round. It is infinite for a
    matrix that has no inverse, and 0 for an empty one.

    >>> import lucid
    >>> lucid.linalg.cond(lucid.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(2.)
    """
    name = "linalg.cond"
    a = matrices_of(name, A)
    if 0 in a.array.shape[-2:]:
        return sum(size_of(a), (-2, -1))
    if p is None or among(p, {2, -2}):
        values = svdvals(a)
        first, last = select(values, -1, 0), select(values, -1, -1)
        return div(last, first) if p == -2 else div(first, last)
    square_of(name, a)
    turned, info = inverse(a)
    singular = ne(info, 0)
    # infinities have no singular values
    turned = where(unsqueeze(unsqueeze(singular, -1), -1), 0.0, turned)
    return where(singular, float("inf"), mul(matrix_norm(a, p), matrix_norm(turned, p)))


DRIVERS = {"gels", "gelsy", "gelsd", "gelss"}


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> lstsq_result:
    """Return ``X`` of the least ``norm(A @ X - B)``, and of these that of the least norm.

    Singular values up to `rcond` times the largest count as zeros, except with the driver "gels". `driver` is LAPACK's
    in PyTorch: here all compute the same, and give the parts that they give there. ``residuals``, squares of these
    norms, are given where `A` has more rows than columns and full rank.

    >>> import lucid
    >>> lucid.linalg.lstsq(lucid.tensor([[2.0], [0.0]]), lucid.tensor([[1.0], [3.0]])).solution
    tensor([[0.5000]])
    """
    name = "linalg.lstsq"
    a, b = matrices_of(name, A), numbers_of(name, B)
    if unusual and casting_on():
        with without_autocast():
            return lstsq(a, b, rcond, driver=driver)
    check_one_dtype(name, a, b)
    driver = ("gelsy" if a.device.type == "cpu" else "gels") if driver is None else driver
    if not among(driver, DRIVERS):
        raise SettingError(f"{name}: expected driver to be one of {', '.join(sorted(DRIVERS))}, got {driver!r}")
    one = b.array.ndim == a.array.ndim - 1
    wide = unsqueeze(b, -1) if one else matrices_of(name, b, "B")
    rows, columns = a.array.shape[-2:]
    if wide.array.shape[-2] != rows:
        raise ShapeError(
            f"{name}: expected as many rows, got A of shape {list(a.array.shape)} and B of shape {list(b.array.shape)}"
        )
    broadcastable(name, a.array.shape, wide.array.shape)
    limits = None if rcond is None else as_number(rcond, "rcond")
    limits = None if driver == "gels" else limits
    values = svdvals(a.detach())
    rank = sum(gt(values, unsqueeze(_limits(name, a, values, None, limits), -1)), -1)
    x = matmul(pinv(a, rtol=limits), wide)
    nothing = empty(0, dtype=values.dtype, device=a.device)
    residuals = nothing
    if rows > columns and driver != "gelsy" and bool((rank.array == columns).all()):
        residuals = sum(square(size_of(sub(matmul(a, x), wide))), -2)
        residuals = squeeze(residuals, -1) if one else residuals
    return lstsq_result(
        squeeze(x, -1) if one else x,
        residuals,
        empty(0, dtype=rank.dtype, device=a.device) if driver == "gels" else rank,
        values if driver in {"gelsd", "gelss"} else nothing,
    )
