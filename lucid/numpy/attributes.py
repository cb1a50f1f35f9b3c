"""Attributes of a recorded array with a setter, or without a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.errors import DtypeError
from lucid.numpy.border import called, is_operand, plain, ufunc_called
from lucid.numpy.keys import on_host

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
