"""Linear equations with a banded matrix, solved by SciPy on the host: those of splines.

Row ``u + i - j`` of the diagonals holds in column j what the matrix has at (i, j), with u diagonals above the main one.
The adjoint of a solution is a solution with the transposed matrix, and the gradient by the matrix has its diagonals.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import wrap
from lucid.autograd.function import Function
from lucid.ops.elementwise import arithmetic
from lucid.ops.elementwise.complex import conj
from lucid.ops.index.indexing import getitem
from lucid.ops.reduction import sums
from lucid.ops.shape.joining import stack
from lucid.ops.shape.padding import pad
from lucid.scipy.rules.products import like_operand
from lucid.scipy.rules.rule import Array, host, host_library, put, recorded

if TYPE_CHECKING:
    from lucid.tensor import Tensor


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
