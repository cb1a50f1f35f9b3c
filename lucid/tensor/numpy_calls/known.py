"""Functions of real numbers, written in ops, with their slopes beside them.

The slopes that follow from a formula's ops multiply what may be infinite with what is then zero, and take the
difference of near numbers, where the slope itself is a number that can be written down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.function import Function
from lucid.ops.base.promotion import promote_to_tensors
from lucid.ops.elementwise import arithmetic
from lucid.ops.shape.broadcasting import broadcast_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.by_scipy import Slope


class Known(Function):
    """A function of operands of one shape, and for each of them the slope: a recorded function of all."""

    @staticmethod
    def forward(ctx: Any, value: Callable[..., Any], slopes: Sequence[Callable[..., Any]], *operands: Tensor) -> Any:
        """Return the value."""
        ctx.slopes = slopes
        ctx.save_for_backward(*operands)
        return value(*operands)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients by those operands that need one."""
        operands = ctx.saved_tensors
        wanted = zip(ctx.slopes, ctx.needs_input_grad[2:], strict=True)
        return None, None, *[arithmetic.mul(grads[0], slope(*operands)) if one else None for slope, one in wanted]


def with_slopes(value: Slope, *slopes: Slope) -> Callable[..., Any]:
    """Return the function of a value and of its slopes, of numbers that promote to floats of one shape."""

    def function(*operands: Tensor | float) -> Any:
        tensors = promote_to_tensors(*operands, at_least_float=True)
        return Known.apply(value, slopes, *broadcast_tensors(*tensors))

    function.__doc__ = value.__doc__
    return function


def series(x: Tensor, terms: Sequence[float]) -> Any:
    """Return the sum of ``terms[k] * x ** k``."""
    total: Any = terms[-1]
    for term in terms[-2::-1]:
        total = arithmetic.add(arithmetic.mul(x, total), term)
    return total
