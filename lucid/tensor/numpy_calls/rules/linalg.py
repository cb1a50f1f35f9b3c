"""NumPy's products, and `numpy.linalg`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.decomposition import eigen, inverses, matrix_norms, orthogonal, pseudoinverse, spectral, triangular
from lucid.ops.decomposition.chains import matrix_power, multi_dot
from lucid.ops.decomposition.operands import adjoint
from lucid.ops.elementwise import arithmetic, logic, nonfinite, selection
from lucid.ops.elementwise.complex import conj, real
from lucid.ops.index.indexing import getitem
from lucid.ops.linalg import composed, einsum, products
from lucid.ops.reduction import sums
from lucid.ops.shape import axes, diagonal, joining, reshape
from lucid.tensor.numpy_calls.definition import enter, rule
from lucid.tensor.numpy_calls.operands import (
    NO_VALUE,
    NumpyCallError,
    axis_in,
    dtype_named,
    is_sequence,
    numpy_dtype,
    operand,
    sizes_of,
    strong_operands,
    tensors_in,
    tensors_of,
    to_one_dtype,
)
from lucid.tensor.numpy_calls.rules.places import plain
from lucid.tensor.numpy_calls.rules.reductions import checked, dims_of, in_fractions, over
from lucid.tensor.numpy_calls.ufuncs import check_aligned, outer_operands, vector_products

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.base.dtype import dtype as dtype_
    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Axis, Sizes


# ---- products ----


@rule("dot", "*a *b")
def dot(a: Tensor, b: Tensor) -> Any:
    """Return ``numpy.dot``: over the last axis of the first and the last but one of the second."""
    a, b = tensors_of(a, b)
    if not (a.array.ndim and b.array.ndim):
        return arithmetic.mul(a, b)
    check_aligned("dot", a.array.shape[-1], b.array.shape[-2:][0])
    if max(a.array.ndim, b.array.ndim) <= 2 or b.array.ndim == 1:
        return products.matmul(a, b)
    return einsum.tensordot(a, b, ([a.array.ndim - 1], [b.array.ndim - 2]))


@rule("inner", "*a *b")
def inner(a: Tensor, b: Tensor) -> Any:
    """Return ``numpy.inner``: over the last axes."""
    a, b = tensors_of(a, b)
    if not (a.array.ndim and b.array.ndim):
        return arithmetic.mul(a, b)
    check_aligned("inner", a.array.shape[-1], b.array.shape[-1])
    return einsum.tensordot(a, b, ([a.array.ndim - 1], [b.array.ndim - 1]))


@rule("vdot", "*a *b")
def vdot(a: Tensor, b: Tensor) -> Any:
    """Return ``numpy.vdot``: of all elements, those of the first conjugated."""
    a, b = tensors_of(a, b)
    check_aligned("vdot", a.array.size, b.array.size)
    return sums.sum(arithmetic.mul(conj(reshape.ravel(a)), reshape.ravel(b)))


@rule("outer", "*a *b")
def outer(a: Tensor, b: Tensor) -> Any:
    """Return ``numpy.outer``, of all elements."""
    a, b = tensors_of(a, b)
    return arithmetic.mul(*outer_operands(reshape.ravel(a), reshape.ravel(b)))


@rule("linalg.outer", "*x1 *x2")
def outer_of_vectors(x1: Tensor, x2: Tensor) -> Any:
    """Return ``numpy.linalg.outer``, of vectors alone."""
    x1, x2 = tensors_of(x1, x2)
    if not x1.array.ndim == x2.array.ndim == 1:
        raise ShapeError(
            f"numpy.linalg.outer: expected two vectors, got {x1.array.ndim} and {x2.array.ndim} dimensions: np.outer "
            "takes all elements"
        )
    return outer(x1, x2)


@rule("kron", "*a *b")
def kron(a: Tensor, b: Tensor) -> Any:
    """Return ``numpy.kron``."""
    return composed.kron(*tensors_of(a, b))


@rule("tensordot", "*a *b axes")
def tensordot(a: Tensor, b: Tensor, axes: int | Sequence[Sizes] = 2) -> Any:
    """Return ``numpy.tensordot``."""
    if is_sequence(axes) or np.ndim(axes):
        first, second = (sizes_of(each) for each in cast("Sequence[Sizes]", axes))
        for j, k in zip(first, second, strict=True):
            check_aligned("tensordot", a.array.shape[j], b.array.shape[k])
        return einsum.tensordot(a, b, (first, second))
    count = cast("int", axes)
    last = a.array.shape[max(a.array.ndim - count, 0) :]
    for sizes in zip(last, b.array.shape[:count], strict=False):
        check_aligned("tensordot", *sizes)
    return einsum.tensordot(a, b, count)


def sum_of_products(
    operands: tuple[Any, ...],
    common: Callable[[list[Any]], dtype_],
    optimize: object = None,
    dtype: object = None,
    casting: str = "safe",
) -> Any:
    """Return ``numpy.einsum``, of both forms; `optimize` is left to `lucid.einsum`."""
    del optimize
    like = next(tensors_in(operands))
    at = range(1, len(operands)) if isinstance(operands[0], str) else range(0, len(operands) - len(operands) % 2, 2)
    arguments: list[Any] = [list(cast("Any", each)) if isinstance(each, tuple) else each for each in operands]
    for k in at:
        arguments[k] = operand(operands[k], like, strong=True)
    if isinstance(arguments[0], str):
        arguments[0] = in_full(arguments[0])
    places = [(arguments, k) for k in at]
    if len(at) == 1 and not any_summed(arguments):
        pass  # a view, whose dtype NumPy leaves as it is
    elif dtype is None and casting == "safe":
        to_one_dtype(places, common)
    else:
        wanted = common([arguments[k] for k in at]) if dtype is None else dtype_named(dtype)
        for own in [arguments[k].array.dtype for k in at]:
            if not np.can_cast(own, wanted.numpy, cast("Any", casting)):
                raise DtypeError(
                    f"numpy.einsum: {own} cannot be cast to {wanted} by the rule {casting!r}: use astype()"
                )
        to_one_dtype(places, lambda _: wanted)
    return einsum.einsum(*arguments)


def in_full(subscripts: str) -> str:
    """Return subscripts with those of the result: repeated letters are summed over, others in alphabetical order."""
    if "->" in subscripts:
        return subscripts
    letters = subscripts.replace(",", "").replace("...", "").replace(" ", "")
    rest = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    return f"{subscripts}->{'...' if '...' in subscripts else ''}{rest}"


def any_summed(arguments: list[Any]) -> bool:
    """Return whether `einsum` of one operand sums over one of its axes."""
    if isinstance(arguments[0], str):
        letters, _, kept = arguments[0].partition("->")
        return not set(letters.replace(" ", "")) <= set(kept)
    labels, *rest = arguments[1:]
    return not set(labels) <= set(rest[0]) if rest else len(set(labels)) < len(labels)


enter("einsum", "+operands optimize dtype casting", sum_of_products, finds_common=True)


@rule("cross", "*a *b axisa axisb axisc axis")
def cross(a: Tensor, b: Tensor, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Return ``numpy.cross``, of vectors of two or three components."""
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = (axes.movedim(x, axis_in(k, x.array.ndim), -1) for x, k in ((a, axisa), (b, axisb)))
    sizes = a.array.shape[-1], b.array.shape[-1]
    if not set(sizes) <= {2, 3}:
        raise ShapeError(f"numpy.cross: expected vectors of 2 or 3 components, got {sizes[0]} and {sizes[1]}")

    def component(x: Tensor, k: int) -> Any:
        return getitem(x, (..., k)) if k < x.array.shape[-1] else None

    def product(j: int, k: int) -> Any:
        x, y = component(a, j), component(b, k)
        return None if x is None or y is None else arithmetic.mul(x, y)

    def difference(j: int, k: int) -> Any:
        plus, minus = product(j, k), product(k, j)
        if plus is None or minus is None:
            return plus if minus is None and plus is not None else arithmetic.neg(minus) if minus is not None else None
        return arithmetic.sub(plus, minus)

    last = difference(0, 1)
    if sizes == (2, 2):
        return last
    return axes.movedim(joining.stack([difference(1, 2), difference(2, 0), last], -1), -1, axisc)


# ---- numpy.linalg ----


@rule("linalg.cross", "*x1 *x2 axis")
def cross_of_three(x1: Tensor, x2: Tensor, axis: int = -1) -> Any:
    """Return ``numpy.linalg.cross``, of vectors of three components alone."""
    sizes = [x.array.shape[axis_in(axis, x.array.ndim)] for x in (x1, x2)]
    if sizes != [3, 3]:
        raise ShapeError(f"numpy.linalg.cross: expected vectors of 3 components, got {sizes[0]} and {sizes[1]}")
    return cross(x1, x2, axis=axis)


@rule("linalg.vecdot", "*x1 *x2 axis")
def dot_of_vectors(x1: Tensor, x2: Tensor, axis: int = -1) -> Any:
    """Return ``numpy.linalg.vecdot``."""
    return vector_products(*(axes.movedim(x, axis_in(axis, x.array.ndim), -1) for x in (x1, x2)))


@rule("linalg.norm", "*x ord axis keepdims")
def norm(x: Tensor, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return ``numpy.linalg.norm``."""
    ndim = x.array.ndim
    if ord is None and axis is None:
        return matrix_norms.vector_norm(x, 2, tuple(range(ndim)) or None, keepdims)
    dims = dims_of(x, checked(x, axis))
    if len(dims) == 1:
        # it refuses a name
        return _vector_norm(x, 2 if ord is None else cast("float", ord), dims, keepdims)
    if len(dims) != 2:
        raise ShapeError(
            "numpy.linalg.norm: expected an order for one or two axes: improper number of dimensions to norm"
        )
    return matrix_norms.matrix_norm(x, "fro" if ord is None else ord, dims, keepdims)


def _vector_norm(x: Tensor, ord: float, dims: Any, keepdims: bool) -> Any:
    """Return norms of vectors; NumPy's largest size of no elements is 0, as their sum."""
    shape = x.array.shape
    if ord == math.inf and any(shape[d] == 0 for d in dims if -len(shape) <= d < len(shape)):
        ord = 1
    return matrix_norms.vector_norm(x, ord, dims, keepdims)


@rule("linalg.vector_norm", "*x axis keepdims ord")
def vector_norm(x: Tensor, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Any:
    """Return ``numpy.linalg.vector_norm``."""
    a, dims, keep = over(x, checked(x, axis), keepdims)
    return _vector_norm(a, ord, dims, keep)


@rule("linalg.matrix_norm", "*x keepdims ord")
def matrix_norm(x: Tensor, keepdims: bool = False, ord: float | str = "fro") -> Any:
    """Return ``numpy.linalg.matrix_norm``."""
    return matrix_norms.matrix_norm(x, ord, (-2, -1), keepdims)


def _enter_of_two(name: str, takes: str, function: Callable[..., Any]) -> None:
    """Enter a function of a matrix and right sides, refused of half precision beside any other dtype, as by NumPy."""

    def of_two(a: Tensor, b: Tensor, common: Callable[[list[Any]], dtype_], **options: object) -> Any:
        both = strong_operands((a, b))
        if any(each.array.dtype.char == "e" for each in both):
            raise DtypeError(f"numpy.{name}: array type float16 is unsupported: use astype(np.float32)")
        if common is numpy_dtype:
            both = [in_fractions(each) for each in both]
        to_one_dtype([(both, 0), (both, 1)], common)
        return function(*both, **options)

    enter(name, takes, of_two, finds_common=True)


def solve(a: Tensor, b: Tensor) -> Any:
    """Return ``numpy.linalg.solve``: a right side of one axis is a vector, any other one matrices."""
    if b.array.ndim == 1:
        return reshape.squeeze(inverses.solve(a, reshape.unsqueeze(b, -1)), -1)
    # lucid's takes one of the shape of `a` without its last axis as vectors
    return inverses.solve(a, reshape.unsqueeze(b, 0) if b.array.ndim == a.array.ndim - 1 else b)


def lstsq(a: Tensor, b: Tensor, rcond: float | None = None) -> Any:
    """Return ``numpy.linalg.lstsq``: but for the rank, all results have gradients."""
    columns = reshape.unsqueeze(b, -1) if b.array.ndim == 1 else b
    if rcond is not None and not 0 < rcond < 1:
        rcond = float(np.finfo(a.array.dtype).eps)  # LAPACK's, which takes no others
    solution = pseudoinverse.lstsq(a, columns, rcond)[0]
    least: Any = np.linalg.lstsq
    residuals, rank, _ = least(plain(a), plain(b), rcond)[1:]
    if residuals.size:
        away = arithmetic.sub(columns, products.matmul(a, solution))
        residuals = sums.sum(real(arithmetic.mul(away, conj(away))), 0)
    solution = reshape.squeeze(solution, -1) if b.array.ndim == 1 else solution
    return solution, residuals, rank, spectral.svdvals(a)


@rule("linalg.qr", "*a mode")
def qr(a: Tensor, mode: str = "reduced") -> Any:
    """Return ``numpy.linalg.qr``; the mode "raw" has no gradient."""
    if mode not in {"reduced", "complete", "r"}:
        kind = NumpyCallError if mode == "raw" else SettingError
        raise kind(f"numpy.linalg.qr: expected mode 'reduced', 'complete' or 'r' with a Tensor, got {mode!r}")
    result = orthogonal.qr(a, "reduced" if mode == "r" else mode)
    return result[1] if mode == "r" else result


def hermitian_of(a: Tensor, *, upper: bool = False) -> Any:
    """Return the Hermitian matrix of one triangle; the other one has no influence, and no gradient."""
    if a.array.ndim < 2:
        return a
    below = adjoint(diagonal.triu(a, 1)) if upper else diagonal.tril(a, -1)
    return arithmetic.add(arithmetic.add(below, adjoint(below)), real(diagonal.tril(diagonal.triu(a))))


@rule("linalg.svd", "*a full_matrices compute_uv hermitian")
def svd(a: Tensor, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Return ``numpy.linalg.svd``."""
    a = hermitian_of(a) if hermitian else a
    return spectral.svd(a, full_matrices) if compute_uv else spectral.svdvals(a)


@rule("linalg.eigh", "*a UPLO")
def eigh(a: Tensor, UPLO: str = "L") -> Any:
    """Return ``numpy.linalg.eigh``."""
    return spectral.eigh(hermitian_of(a, upper=UPLO.upper() == "U"), UPLO)


@rule("linalg.eigvalsh", "*a UPLO")
def eigvalsh(a: Tensor, UPLO: str = "L") -> Any:
    """Return ``numpy.linalg.eigvalsh``."""
    return spectral.eigvalsh(hermitian_of(a, upper=UPLO.upper() == "U"), UPLO)


@rule("linalg.cholesky", "*a upper")
def cholesky(a: Tensor, upper: bool = False) -> Any:
    """Return ``numpy.linalg.cholesky``."""
    return triangular.cholesky(hermitian_of(a, upper=bool(upper)), upper)


ALWAYS_COMPLEX = np.linalg.eigvals(np.eye(1)).dtype.kind == "c"
"""Whether eigenvalues are complex numbers also where all are real, as they are since NumPy 2.5."""


@rule("linalg.eig", "*a")
def eig(a: Tensor) -> Any:
    """Return ``numpy.linalg.eig``: before NumPy 2.5, real numbers for a real matrix with only real eigenvalues."""
    result = eigen.eig(a)
    if ALWAYS_COMPLEX or a.array.dtype.kind == "c" or bool((result.eigenvalues.array.imag != 0).any()):
        return result
    return eigen.eig_result(*[real(part) for part in result])


@rule("linalg.eigvals", "*a")
def eigvals(a: Tensor) -> Any:
    """Return ``numpy.linalg.eigvals``, in the dtype of `eig`."""
    return eig(a).eigenvalues


@rule("linalg.pinv", "*a rcond hermitian rtol")
def pinv(a: Tensor, rcond: object = None, hermitian: bool = False, rtol: object = NO_VALUE) -> Any:
    """Return ``numpy.linalg.pinv``: its default cutoff is 1e-15, that of an `rtol` of None by the dtype."""
    if rcond is None:
        rcond = 1e-15 if rtol is NO_VALUE else rtol
    elif rtol is not NO_VALUE:
        raise SettingError("numpy.linalg.pinv: rtol and rcond can't be both set: leave one of them out")
    a = hermitian_of(a) if hermitian else a
    return pseudoinverse.pinv(a, rtol=operand(rcond, a), hermitian=hermitian)


@rule("linalg.cond", "*x p")
def cond(x: Tensor, p: float | str | None = None) -> Any:
    """Return ``numpy.linalg.cond``; NumPy has none of matrices without elements."""
    if not x.array.size:
        raise ShapeError(f"numpy.linalg.cond: not defined on empty arrays, got shape {x.array.shape}")
    result = pseudoinverse.cond(x, p)
    # that of zeros alone is a quotient of zeros
    unknown = logic.logical_and(nonfinite.isnan(result), logic.logical_not(sums.any(nonfinite.isnan(x), (-2, -1))))
    return selection.where(unknown, np.inf, result)


@rule("linalg.tensorinv", "*a ind")
def tensorinv(a: Tensor, ind: int = 2) -> Any:
    """Return ``numpy.linalg.tensorinv``."""
    if ind <= 0:
        raise SettingError(f"numpy.linalg.tensorinv: expected ind, a number of axes, above 0, got {ind}")
    rows, columns = a.array.shape[:ind], a.array.shape[ind:]
    return reshape.reshape(inverses.inv(reshape.reshape(a, math.prod(rows), -1)), (*columns, *rows))


def tensorsolve(a: Tensor, b: Tensor, axes: Sequence[int] | None = None) -> Any:
    """Return ``numpy.linalg.tensorsolve``."""
    ndim = a.array.ndim
    if axes is not None:
        last = [axis_in(k, ndim) for k in axes]
        a = _permuted(a, *[k for k in range(ndim) if k not in last], *last)
    sizes = a.array.shape[b.array.ndim :]
    return reshape.reshape(solve(reshape.reshape(a, b.array.size, -1), reshape.ravel(b)), sizes)


_permuted = axes.permute

_enter_of_two("linalg.solve", "?a ?b", solve)
_enter_of_two("linalg.lstsq", "?a ?b rcond", lstsq)
_enter_of_two("linalg.tensorsolve", "?a ?b axes", tensorsolve)
enter("linalg.tensordot", "*x1:a *x2:b axes", tensordot)
enter("linalg.det", "*a:A", inverses.det)
enter("linalg.slogdet", "*a:A", inverses.slogdet)
enter("linalg.inv", "*a:A", inverses.inv)
enter("linalg.svdvals", "*x:A", spectral.svdvals)
enter("linalg.matrix_power", "*a:input n", matrix_power)
enter("linalg.multi_dot", "**arrays:tensors", multi_dot)
enter("linalg.matmul", "*x1:input *x2:other", products.matmul)
