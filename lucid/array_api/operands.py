"""Helpers of the array API's functions: operands in one dtype, axes, devices, functions of one form."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from lucid.autograd.base import TensorBase
from lucid.base.dtype import promote_types
from lucid.ops.base.promotion import cast_to, no_tensor, tensor_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor

    T = TypeVar("T", bound=Callable[..., object])

Number: TypeAlias = "bool | int | float | complex"
"""What stands beside a tensor without a dtype of its own."""

Axes: TypeAlias = "int | tuple[int, ...] | None"
"""What is reduced over: a dimension, several, or all."""


def together(operands: Sequence[Any]) -> list[Any]:
    """Return operands, with tensors in the common dtype of all tensors.

    A tensor without dimensions counts as any other, unlike in `lucid`'s own functions; numbers of Python's are left as
    they are.
    """
    tensors = [each for each in operands if isinstance(each, TensorBase)]
    if len({each.array.dtype for each in tensors}) <= 1:
        return list(operands)
    wanted = functools.reduce(promote_types, map(tensor_dtype, tensors))
    return [cast_to(each, wanted) if isinstance(each, TensorBase) else each for each in operands]


def checked_tensor(x: object) -> Any:
    """Return an operand that has to be a tensor.

    Raises
    ------
    OperandTypeError
        If it is none: the standard's functions convert nothing, which `asarray` does.
    """
    if not isinstance(x, TensorBase):
        raise no_tensor(x)
    return x


def named(name: str, function: T, doc: str) -> T:
    """Return a function that was made by a form, under its own name."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def of_one(name: str, op: Callable[[Any], Any]) -> Callable[[Tensor], Tensor]:
    """Return a function of one tensor, elementwise."""

    def function(x: Tensor, /) -> Tensor:
        return op(checked_tensor(x))

    return named(name, function, f"Return ``{name}`` of the array API, elementwise.")


def of_two(name: str, op: Callable[[Any, Any], Any]) -> Callable[[Tensor | Number, Tensor | Number], Tensor]:
    """Return an elementwise function of two operands; one of them may be a number."""

    def function(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
        if not isinstance(x1, TensorBase):
            checked_tensor(x2)
        return op(*together((x1, x2)))

    return named(name, function, f"Return ``{name}`` of the array API, elementwise.")
