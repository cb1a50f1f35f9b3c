"""Python's and NumPy's conversions of a recorded array: any that would lose a gradient in silence is refused."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.numpy.border import called
from lucid.numpy.keys import is_scalar, on_host
from lucid.tensor import interop
from lucid.tensor.numpy_calls.operands import NumpyCallError, is_recorded

if TYPE_CHECKING:
    from collections.abc import Callable


def number_of(name: str, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a conversion to a number, refused for one with a gradient: NumPy makes it to write ``y[0] = x``."""

    def converted(self: object) -> Any:
        if is_recorded(self):
            raise NumpyCallError(
                f"{name}(x): x requires grad, which a number or an element of a plain array does not record: np.sin(x) "
                "does, for math.sin(x), and x.item() is its number; join parts by np.stack([...]), or write into an "
                "array that is recorded, y = np.zeros(n) + 0 * np.sum(x)"
            )
        return convert(self)

    return converted


def array_of(self: Any, dtype: object = None, copy: bool | None = None) -> Any:
    """Return the values as an array of integers or bools, without a gradient, ``np.int64(x)``; or refuse."""
    if interop.defers_to_tensor(sys._getframe(1)):  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - who asks
        return interop.NO_ARRAY
    plain = dtype is not None and np.dtype(cast("Any", dtype)).kind in "biu"
    return interop.to_array(self.detach() if plain else self, dtype, copy)


def rounded(self: Any, digits: int | None = None) -> Any:
    """Return ``round(x)``, a number of Python's without a gradient, as its slope is 0, or ``numpy.round`` to digits."""
    if not is_scalar(self) or self.array.dtype.kind == "c":
        raise NumpyCallError(f"round: {self.array.dtype}{self.array.shape} is no real number: use np.round(x)")
    return round(self.item()) if digits is None else called("round", np.round, (self, digits), {})


def words_of(self: Any) -> str:
    """Return NumPy's words for the elements."""
    return str(on_host(self.detach().array))
