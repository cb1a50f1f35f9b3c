"""Matrix equations of `scipy.linalg`, functions of matrices, and banded equations: SciPy solves them, on the host.

A derivative of either is an equation, or a function, of the same kind. The derivative of a function f of a matrix A in
a direction E is the upper right block of f of ``[[A, E], [0, A]]``, and the gradient what its adjoint makes of the one
above: the conjugate transpose of the derivative in the direction of the conjugate transpose (Higham, Functions of
Matrices, 2008, chapter 3).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.autograd.base import wrap
from lucid.autograd.function import Function
from lucid.ops.base.promotion import promote_to_tensors
from lucid.ops.decomposition.operands import adjoint
from lucid.ops.elementwise import arithmetic
from lucid.ops.elementwise.complex import conj
from lucid.ops.index.indexing import getitem
from lucid.ops.linalg.products import matmul
from lucid.ops.reduction import sums
from lucid.ops.shape.joining import cat, stack
from lucid.ops.shape.padding import pad
from lucid.scipy.rules.products import like_operand
from lucid.scipy.rules.rule import Array, host, host_library, in_double, in_one_dtype, put, recorded, rule
from lucid.tensor.numpy_calls.protocols import REMEDIES

if TYPE_CHECKING:
    from lucid.tensor import Tensor

for _kind in ("continuous", "discrete"):
    REMEDIES[f"scipy.linalg.solve_{_kind}_are"] = (
        f"solve it of values without a gradient, and take a step of Newton's from there by solve_{_kind}_lyapunov, "
        "which has the gradient of the solution"
    )


class SylvesterSolution(Function):
    """The solution X of ``a X + X b = q``."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, q: Tensor) -> Any:
        """Return SciPy's solution, beside the operands."""
        solved = host_library("linalg").solve_sylvester(host(a), host(b), host(q))
        solution = wrap(put(solved, q.array))
        ctx.save_for_backward(a, b, solution)
        return solution

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Return the gradients by the two matrices, and by the right side, the solution of the adjoint equation."""
        a, b, solution = ctx.saved_tensors
        back = SylvesterSolution.apply(adjoint(a), adjoint(b), grads[0])
        slopes = arithmetic.neg(matmul(back, adjoint(solution))), arithmetic.neg(matmul(adjoint(solution), back))
        return like_operand(slopes[0], a), like_operand(slopes[1], b), back


class MatrixRoot(Function):
    """The principal square root: complex of real matrices too, as they can have negative eigenvalues."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return SciPy's root, beside the matrix."""
        root = wrap(put(host_library("linalg").sqrtm(host(x)), x.array))
        ctx.save_for_backward(x, root)
        return root

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Return the solution of the equation for a change of the root, ``root X + X root``, of adjoints."""
        x, root = ctx.saved_tensors
        return like_operand(SylvesterSolution.apply(adjoint(root), adjoint(root), grads[0]), x)


class MatrixFunction(Function):
    """The function of matrices of a name."""

    @staticmethod
    def forward(ctx: Any, name: str, x: Tensor) -> Any:
        """Return SciPy's value, beside the matrix."""
        ctx.name = name
        ctx.save_for_backward(x)
        return wrap(put(getattr(host_library("linalg"), name)(host(x)), x.array))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Return the adjoint of the derivative, a block of SciPy's value for a matrix of twice the size."""
        (x,) = ctx.saved_tensors
        size = x.array.shape[-1]
        same, direction = promote_to_tensors(x, adjoint(grads[0]))
        # the block is linear in the direction, and exact where that is no larger than the matrix
        scale = float(np.abs(host(direction)).max(initial=0.0) / (np.abs(host(x)).max(initial=0.0) or 1.0)) or 1.0
        upper = cat([same, arithmetic.mul(direction, 1 / scale)], -1)
        lower = cat([arithmetic.mul(direction, 0), same], -1)
        whole = MatrixFunction.apply(ctx.name, cat([upper, lower], -2))
        corner = getitem(whole, (..., slice(None, size), slice(size, None)))
        return None, like_operand(adjoint(arithmetic.mul(corner, scale)), x)


# ---- rules ----


def turned(a: Array) -> Any:
    """Return the conjugate transpose of matrices."""
    return lnp.swapaxes(lnp.conj(a) if a.dtype.kind == "c" else a, -1, -2)


@rule("linalg.solve_sylvester")
def solve_sylvester(a: Array, b: Array, q: Array) -> Any:
    """Return ``scipy.linalg.solve_sylvester``."""
    return recorded(SylvesterSolution, *in_one_dtype(a, b, q))


@rule("linalg.solve_continuous_lyapunov linalg.solve_lyapunov")
def solve_continuous_lyapunov(a: Array, q: Array) -> Any:
    """Return ``scipy.linalg.solve_continuous_lyapunov``."""
    a, q = in_one_dtype(a, q)
    return recorded(SylvesterSolution, a, turned(a), q)


@rule("linalg.solve_discrete_lyapunov")
def solve_discrete_lyapunov(a: Array, q: Array, method: str | None = None) -> Any:
    """Return ``scipy.linalg.solve_discrete_lyapunov``."""
    a, q = in_double(a, q)
    size = a.shape[-1]
    unit = put(np.eye(size), a)
    if method == "direct" or (method is None and size < 10):
        products = a[..., :, None, :, None] * lnp.conj(a)[..., None, :, None, :]
        count = size * size
        whole = put(np.eye(count), a) - lnp.reshape(products, (*a.shape[:-2], count, count))
        solution = lnp.linalg.solve(whole, lnp.reshape(q, (*q.shape[:-2], count, 1)))
        return lnp.reshape(solution, (*solution.shape[:-2], size, size))
    if method not in {None, "bilinear"}:
        raise ValueError(
            f"scipy.linalg.solve_discrete_lyapunov: expected method 'direct' or 'bilinear', got {method!r}"
        )
    adjoined = turned(a)
    inverse = lnp.linalg.inv(adjoined + unit)
    b = (adjoined - unit) @ inverse
    c = 2 * (lnp.linalg.inv(a + unit) @ q @ inverse)
    return solve_continuous_lyapunov(turned(b), -c)


@rule("linalg.sqrtm")
def sqrtm(A: Array) -> Any:
    """Return ``scipy.linalg.sqrtm``."""
    return recorded(MatrixRoot, *in_one_dtype(A))


@rule("linalg.logm")
def logm(A: Array) -> Any:
    """Return ``scipy.linalg.logm``, in double precision."""
    return recorded(MatrixFunction, "logm", *in_double(A))


def _enter_function(name: str) -> None:
    def function(A: Array) -> Any:
        return recorded(MatrixFunction, name, *in_one_dtype(A))

    rule(f"linalg.{name}")(function)


for _name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"):
    _enter_function(_name)


# ---- equations with a banded matrix ----

# Row u + i - j of the diagonals holds in column j what the matrix has at (i, j), with u diagonals above the main one.
# The adjoint of a solution is a solution with the transposed matrix, and the gradient by the matrix has its diagonals.


class BandedSolution(Function):
    """The solution for a banded matrix, given by its diagonals, and a right side of shape (rows, columns)."""

    @staticmethod
    def forward(ctx: Any, diagonals: Tensor, right: Tensor, below: int, above: int) -> Any:
        """Return SciPy's solution, beside the operands."""
        ctx.sizes = below, above
        solved = host_library("linalg").solve_banded((below, above), host(diagonals), host(right), check_finite=False)
        solution = wrap(put(solved, right.array))
        ctx.save_for_backward(diagonals, solution)
        return solution

    @staticmethod
    def backward(ctx: Any, *grads: Array) -> Any:
        """Return the gradients by the diagonals and by the right side."""
        below, above = ctx.sizes
        diagonals, solution = ctx.saved_tensors
        size = solution.array.shape[0]
        # row r of the transposed matrix's diagonals has what lies on the other side of the main one, moved along it
        rows = [_moved(getitem(diagonals, above + below - r), below - r, size) for r in range(below + above + 1)]
        back = BandedSolution.apply(conj(stack(rows)), grads[0], above, below)
        if not ctx.needs_input_grad[0]:
            return None, like_operand(back, solution), None, None
        slopes = [
            sums.sum(arithmetic.mul(_moved(back, above - r, size), conj(solution)), 1) for r in range(below + above + 1)
        ]
        return like_operand(arithmetic.neg(stack(slopes)), diagonals), like_operand(back, solution), None, None


def _moved(x: Tensor, steps: int, size: int) -> Any:
    """Return an array with its rows shifted down, or up, by `steps`, and zeros for the missing ones."""
    steps = max(-size, min(size, steps))
    rest = (0, 0) * (x.array.ndim - 1)
    if steps >= 0:
        return pad(getitem(x, slice(0, size - steps)), (*rest, steps, 0))
    return pad(getitem(x, slice(-steps, None)), (*rest, 0, -steps))


def banded_solution(diagonals: Array, right: Array, below: int, above: int) -> Any:
    """Return the solution, along the first axis of any right side."""
    columns = right.reshape(right.shape[0], math.prod(right.shape[1:]))
    return recorded(BandedSolution, diagonals, columns, below, above).reshape(right.shape)
