"""Sparse systems, with the gradient of the matrix's values and of the right side: ``scipy.sparse.linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid import numpy as lnp
from lucid.base import gpu
from lucid.base.arrays import namespace, on
from lucid.errors import warn
from lucid.numpy.border import plain
from lucid.numpy.results import settled
from lucid.scipy.sparse.base import issparse, plain_matrix, recorded_in, wrapped
from lucid.scipy.sparse.building import canonical, converted, of_dense
from lucid.scipy.sparse.functions import called
from lucid.scipy.sparse.matrices import csc_array
from lucid.scipy.sparse.operands import MatrixSizeError, array_like, in_one_dtype, no_rule, on_one_device
from lucid.scipy.sparse.pattern import Solution, library
from lucid.tensor.numpy_calls.operands import is_recorded

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.arrays import Array
    from lucid.scipy.sparse.operands import Dense
    from lucid.scipy.sparse.pattern import Pattern

__all__ = ["cg", "norm", "spsolve"]


def _system(name: str, A: Any, b: Any) -> tuple[Any, Any]:
    # all elements of a dense matrix have a gradient, those that are zeros too
    elements = A if issparse(A) else of_dense(array_like(A, plain(b)), is_array=True, is_full=recorded_in([A]))
    matrix = wrapped(A) if elements is A else csc_array.made(*converted(elements, "csc"))
    right = array_like(b, plain(matrix.data))
    sizes = tuple(plain(right).shape)
    if matrix.shape[0] != matrix.shape[1] or len(sizes) not in {1, 2} or sizes[0] != matrix.shape[0]:
        raise MatrixSizeError(
            f"{name}: expected a square matrix and a right side that fits, got {matrix.shape}, {sizes}"
        )
    on_one_device(matrix.data, right)
    return matrix, right


def _solved(name: str, matrix: Any, right: Dense, solve: Callable[[Pattern, Array, Array], Array]) -> Any:
    if tuple(plain(right).shape[1:]) == (1,):
        # of one column SciPy's solution has one dimension
        right = right.reshape(-1)
    if not is_recorded(matrix.data) and not is_recorded(right):
        return solve(matrix.pattern, plain(matrix.data), plain(right))
    values, operand = in_one_dtype(name, matrix.data, right)
    return settled(Solution.apply(values, operand, matrix.pattern, solve), ())


def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """Return the solution of ``A x = b``, for a vector or the columns of a matrix.

    Its gradients are those of an adjoint system with the same matrix. On a CUDA device it is CuPy's, which takes no
    options.
    """
    if issparse(b):
        return called("spsolve", "linalg")(A, b, permc_spec, use_umfpack)
    matrix, right = _system("spsolve", A, b)
    options = {} if gpu.is_gpu_array(plain(right)) else {"permc_spec": permc_spec, "use_umfpack": use_umfpack}

    def solve(pattern: Pattern, values: Array, right: Array) -> Array:
        with on(right):
            # CuPy solves in rows, SciPy in columns
            converted = pattern.matrix(values).copy().asformat("csr" if gpu.is_gpu_array(right) else "csc")
            solution = library(right, "linalg").spsolve(converted, right, **options)
        return solution.reshape(right.shape)

    return _solved("spsolve", matrix, right, solve)


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], Any] | None = None,
) -> tuple[Any, int]:
    """Return the solution of ``A x = b`` by conjugate gradients, and 0, or SciPy's code of one that is not reached.

    `A` is symmetric, or Hermitian. The gradients are those of the solution, by a system with the same matrix, whatever
    way it was found: to `rtol`, or the part of `b` that `atol` is, in no less than SciPy's default number of steps. Of
    one that needs more there is a warning.
    """
    if not issparse(A) and hasattr(A, "matvec"):
        return called("cg", "linalg")(A, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback)
    matrix, right = _system("cg", A, b)
    if recorded_in([x0, M]):
        raise no_rule("cg with x0 or M that requires grad")
    preconditioner = plain_matrix(M)
    told: list[float] = []

    def solve(pattern: Pattern, values: Array, right: Array) -> Array:
        limits: dict[str, Any] = {"x0": plain(x0), "rtol": rtol, "atol": atol, "maxiter": maxiter, "callback": callback}
        if told:
            # a gradient may be much smaller than `b`, and farther from where its steps begin
            limits = {"rtol": told[1], "maxiter": maxiter and max(maxiter, 10 * right.shape[0])}
        with on(right):
            a = pattern.matrix(values).copy().asformat("csr")
            columns = right.reshape(right.shape[0], -1)
            solutions = [
                library(right, "linalg").cg(a, columns[:, j], M=preconditioner, **limits)
                for j in range(columns.shape[1])
            ]
            code = max((int(info) for _, info in solutions), default=0)
            if not told:
                size = float(namespace(right).linalg.norm(right))
                told[:] = code, max(rtol, min(1e-5, atol / size if size else atol))
            elif code:
                warn(f"cg: a gradient has not converged to rtol={told[1]:.1g} in {code} steps: use spsolve, or give M")
            return namespace(right).stack([x for x, _ in solutions], axis=1).reshape(right.shape)

    solution = _solved("cg", matrix, right, solve)
    return solution, int(told[0])


def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """Return the norm of a sparse matrix: Frobenius if it is recorded, else any of SciPy's."""
    if not issparse(x):
        return called("norm", "linalg")(x, ord, axis)
    matrix = wrapped(x)
    if not is_recorded(matrix.data):
        # CuPy squares repeated elements one by one
        return library(plain(matrix.data), "linalg").norm(matrix.made(*canonical(matrix)).to_scipy(), ord, axis)
    if ord not in {None, "fro"} or axis is not None:
        raise no_rule(f"norm(ord={ord!r}, axis={axis!r})")
    return lnp.linalg.norm(canonical(matrix).data)


def __getattr__(name: str) -> Any:
    try:
        value = getattr(library(None, "linalg"), name)
    except AttributeError:
        raise AttributeError(f"module 'lucid.scipy.sparse.linalg' has no attribute {name!r}, nor has SciPy's") from None
    return called(name, "linalg") if callable(value) and not isinstance(value, type) else value


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(library(None, "linalg"))})
