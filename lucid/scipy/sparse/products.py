"""The products of sparse matrices as they are recorded: each is the derivative of the other, to any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import wrap
from lucid.autograd.function import Function
from lucid.ops.elementwise.arithmetic import neg
from lucid.ops.elementwise.complex import conj

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.arrays import Array
    from lucid.scipy.sparse.pattern import Pattern
    from lucid.tensor import Tensor


class Product(Function):
    """A sparse matrix, as its values, times a vector or a matrix."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
        """Return SciPy's product, or CuPy's."""
        ctx.save_for_backward(values, dense)
        ctx.pattern = pattern
        return wrap(pattern.product(values.array, dense.array))

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        """Return the gradients of the values and of the dense factor."""
        (grad,) = grad_outputs
        values, dense = ctx.saved_tensors
        of_values, of_dense, _ = ctx.needs_input_grad
        return (
            Sampled.apply(grad, conj(dense), ctx.pattern) if of_values else None,
            Product.apply(conj(values), grad, ctx.pattern.transposed) if of_dense else None,
            None,
        )


class Sampled(Function):
    """``left @ right.T`` at the places of a sparse matrix: as many values as that has."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
        """Return the sums over columns of the products of a row of one and a row of the other."""
        ctx.save_for_backward(left, right)
        ctx.pattern = pattern
        return wrap(pattern.sampled(left.array, right.array))

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        """Return the gradients of both matrices."""
        (grad,) = grad_outputs
        left, right = ctx.saved_tensors
        needs_left, needs_right, _ = ctx.needs_input_grad
        return (
            Product.apply(grad, conj(right), ctx.pattern) if needs_left else None,
            Product.apply(grad, conj(left), ctx.pattern.transposed) if needs_right else None,
            None,
        )


class Solution(Function):
    """The solution of a sparse system: `solve` makes it of a pattern, plain values and a right side."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, right: Tensor, pattern: Pattern, solve: Callable[[Pattern, Array, Array], Array]
    ) -> Tensor:
        """Return the solution."""
        ctx.pattern, ctx.solve = pattern, solve
        solution = wrap(solve(pattern, values.array, right.array))
        ctx.save_for_backward(values, solution)
        return solution

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        """Return the gradients of the values and of the right side, by the adjoint system."""
        (grad,) = grad_outputs
        values, solution = ctx.saved_tensors
        adjoint = Solution.apply(conj(values), grad, ctx.pattern.transposed, ctx.solve)
        of_values = neg(Sampled.apply(adjoint, conj(solution), ctx.pattern)) if ctx.needs_input_grad[0] else None
        return of_values, adjoint, None, None
