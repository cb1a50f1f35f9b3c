"""`Array`: a Tensor with the standard's operators and indices, and the class of the namespace's results."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from lucid.array_api.elementwise import whole_quotient
from lucid.array_api.operands import together
from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.structure import rebuilt
from lucid.autograd.recording.views import change_in_place
from lucid.ops.base.promotion import OperandTypeError
from lucid.ops.index import indexing
from lucid.ops.index.steps import stepped
from lucid.tensor import operators
from lucid.tensor.numpy_calls.operands import is_sequence
from lucid.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from lucid.ops.index.indexing import Index

OPERATORS = (
    "add sub mul truediv mod pow matmul and or xor lshift rshift radd rsub rmul rtruediv rmod rpow rmatmul rand ror "
    "rxor rlshift rrshift lt le gt ge eq ne"
)
"""Those of two operands that are the Tensor's own, of operands of one dtype."""


class Array(Tensor):
    """A Tensor as the standard has it.

    A tensor without dimensions promotes as any other, ``//`` of an infinity is an infinity, steps of slices may be
    negative, and masks of no element select none. All else is the Tensor's, and so is what methods give that the
    standard does not have.

    >>> import lucid
    >>> from lucid import array_api as xp
    >>> x = xp.asarray([1, 2, 3], dtype=xp.int8)
    >>> (x[::-1] + xp.asarray(1, dtype=xp.int16)).dtype
    lucid.int16
    """

    __slots__ = ()

    @property
    def T(self) -> Array:
        """A view with both dimensions exchanged."""
        return made(super().T)

    @property
    def mT(self) -> Array:
        """A view with the last two dimensions exchanged."""
        return made(super().mT)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride] - bound in Tensor as an attribute
        """Return the array on a device, as `Tensor.to_device` does."""
        return made(super().to_device(device, stream=stream))

    def __floordiv__(self, other: Any) -> Any:
        return quotient(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return quotient(other, self)

    def __ifloordiv__(self, other: Any) -> Any:
        return change_in_place(self, self // other)

    def __iter__(self) -> Iterator[Any]:
        """Return the parts along the first dimension."""
        return map(made, super().__iter__())

    def __getitem__(self, index: Index) -> Any:
        """Return a part: a view, or a copy if arrays select."""
        if (count := dims_of_none(index, self.array.shape)) is not None:
            none = indexing.getitem(self, (slice(0, 0),) * count)
            return made(none.reshape(0, *self.array.shape[count:]))
        view = stepped(self, index)
        return made(indexing.getitem(self, index) if view is None else view)

    def __setitem__(self, index: Index, value: Any) -> None:
        """Write into a part."""
        view = stepped(self, index)
        indexing.setitem(*((self, index) if view is None else (view, ...)), value)


def operator_of(symbol: str) -> Callable[[Any, Any], Any]:
    """Return an operator of the Tensor's, of operands that have come to one dtype."""
    own = getattr(Tensor, f"__{symbol}__")

    def operator(self: Array, other: Any) -> Any:
        if isinstance(other, TensorBase):
            self, other = together((self, other))
        return made(own(self, other))

    return operator


def sign_of(symbol: str) -> Callable[[Any], Any]:
    """Return an operator of one operand."""
    own = getattr(Tensor, f"__{symbol}__")

    def operator(self: Array) -> Any:
        result = own(self)
        return self if result is self else made(result)

    return operator


def quotient(a: Any, b: Any) -> Any:
    """Return ``a // b``; one of them is an array."""
    try:
        return made(whole_quotient(*together((a, b))))
    except OperandTypeError:
        return operators.beside_sparse("floor_divide", a, b)


for _symbol in OPERATORS.split():
    setattr(Array, f"__{_symbol}__", operator_of(_symbol))
for _symbol in ("neg", "pos", "abs", "invert"):
    setattr(Array, f"__{_symbol}__", sign_of(_symbol))
Array.__hash__ = Tensor.__hash__


# ---- indices ----


def dims_of_none(index: object, shape: tuple[int, ...]) -> int | None:
    """Return the number of dimensions of an empty mask of an array with elements; None for any other index."""
    if not isinstance(index, TensorBase) or index.array.dtype.kind != "b" or index.array.size:
        return None
    sizes = index.array.shape
    fits = len(sizes) <= len(shape) and all(n in {0, m} for n, m in zip(sizes, shape, strict=False))
    return len(sizes) if fits else None


# ---- results ----


def made(result: Any) -> Any:
    """Return the new result of an op, held by nobody else, as an `Array`; anything else as it is."""
    if type(result) is Tensor:
        result.__class__ = Array
    return result


def settled(result: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the results of a function as Arrays: views of those that are among its arguments."""
    if isinstance(result, TensorBase):
        if type(result) is Array:
            return result
        return made(indexing.getitem(result, ...) if any(result is each for each in arguments) else result)  # pyright: ignore[reportArgumentType] - a Tensor
    return rebuilt(result, [settled(each, arguments) for each in result]) if is_sequence(result) else result


def give_arrays(module: ModuleType) -> None:
    """Let the public functions of a module give Arrays."""
    for name in module.__all__:
        if inspect.isfunction(function := getattr(module, name)):
            setattr(module, name, giving(function))


def giving(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives Arrays for Tensors."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return settled(function(*args, **kwargs), args)

    return call
