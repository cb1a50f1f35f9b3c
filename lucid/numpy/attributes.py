"""Attributes of a recorded array with a setter, or without a gradient, and its conversions to numbers and text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.errors import DtypeError
from lucid.numpy.border import called, is_operand, plain, ufunc_called
from lucid.numpy.keys import is_scalar, on_host
from lucid.numpy.results import hand_over
from lucid.tensor import interop
from lucid.tensor.numpy_calls.operands import NumpyCallError, is_recorded

if TYPE_CHECKING:
    from collections.abc import Callable


def part_of(name: str, words: str) -> Any:
    """Return the property of a part of complex numbers, ``real`` or ``imag``, with a setter."""
    function = getattr(np, name)

    def read(self: Any) -> Any:
        return called(name, function, (self,), {})

    def write(self: Any, value: object) -> None:
        if name == "imag" and self.array.dtype.kind != "c":
            raise DtypeError(
                f"imag: expected complex numbers, got {self.array.dtype}, which have no imaginary part to set: use "
                "astype(complex)"
            )
        (self if self.array.dtype.kind != "c" else read(self))[...] = value

    return property(read, write, doc=words)


COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip


def comparison_of(symbol: str, name: str) -> Callable[[Any, Any], Any]:
    """Return an operator with NumPy's own results, of plain values."""
    ufunc = getattr(np, name)

    def operator(self: Any, other: object) -> Any:
        if is_operand(other):
            return ufunc_called(ufunc, "__call__", (self, other), {})
        # to NumPy None and strings are elements, equal to none of these, and to CuPy they are not
        is_element = (other is None or isinstance(other, str | bytes)) and type(self.array) is np.ndarray
        return getattr(self.array, f"__{symbol}__")(other) if is_element else NotImplemented

    return operator


def contains(self: Any, element: object) -> bool:
    """Return whether an element is equal to a value, or to those that it broadcasts to."""
    return bool(np.any(plain(self == cast("Any", element))))


def bytes_of(self: Any, order: str | None = "C") -> bytes:
    """Return the bytes of the elements, without gradient."""
    return on_host(self.detach().array).tobytes(order)


def flags_of(self: Any) -> Any:
    """Return the layout in memory, as NumPy's ``flags``."""
    return self.array.flags


# ---- conversions of Python's and NumPy's: any that would lose a gradient in silence is refused ----


def number_of(name: str, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a conversion to a number, refused for one with a gradient: NumPy makes it to write ``y[0] = x``."""

    def converted(self: object) -> Any:
        if is_recorded(self):
            raise NumpyCallError(
                f"{name}(x): x requires grad, which a number or an element of a plain array does not record: np.sin(x) "
                f"does, for math.sin(x), and x.item() is its number; {interop.TO_FILL}"
            )
        return convert(self)

    return converted


def integer_of(convert: Callable[[Any], int]) -> Callable[[Any], int]:
    """Return a conversion to an integer of Python's, without a gradient, as its slope is 0: ``math.floor(x)``."""
    return lambda self: convert(self.item())


def array_of(self: Any, dtype: object = None, copy: bool | None = None) -> Any:
    """Return the values as an array of integers or bools, without a gradient, ``np.int64(x)``; or refuse."""
    if interop.defers_to_tensor(sys._getframe(1)):  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - who asks
        return interop.NO_ARRAY
    plain = dtype is not None and np.dtype(cast("Any", dtype)).kind in "biu"
    if not copy and (dtype is None or dtype == self.array.dtype):
        hand_over([self])
    return interop.to_array(self.detach() if plain else self, dtype, copy)


def rounded(self: Any, digits: int | None = None) -> Any:
    """Return ``round(x)``, a number of Python's without a gradient, as its slope is 0, or ``numpy.round`` to digits."""
    if not is_scalar(self) or self.array.dtype.kind == "c":
        raise NumpyCallError(f"round: {self.array.dtype}{self.array.shape} is no real number: use np.round(x)")
    return round(self.item()) if digits is None else called("round", np.round, (self, digits), {})


def words_of(self: Any) -> str:
    """Return NumPy's words for the elements."""
    return str(on_host(self.detach().array))
