"""What Python's and NumPy's conversions make of a recorded array: values without a gradient, where they are asked for.

NumPy writes ``y[0] = x`` by ``float(x)``, so that the gradient would be lost in silence: that is refused, and told from
``float(x)`` of the program's own by the instruction that is running.
"""

from __future__ import annotations

import dis
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.numpy.border import is_recorded
from lucid.tensor import interop
from lucid.tensor.numpy_calls.rule import NumpyCallError

if TYPE_CHECKING:
    from collections.abc import Callable

STORE = dis.opmap["STORE_SUBSCR"]


def number_of(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a conversion to a number that is refused where NumPy makes it to write into a plain array."""

    def converted(self: object) -> Any:
        frame = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if is_recorded(self) and frame.f_code.co_code[frame.f_lasti] == STORE:
            raise NumpyCallError(
                "what requires grad cannot be written into a plain array, which does not record: join the parts, "
                "np.stack([...]), or write into a copy of a Tensor's, np.asarray(tensor) * 1.0"
            )
        return convert(self)

    return converted


def array_of(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    """Return the values as an array of integers or bools, which carry no gradient, ``np.int64(x)``; or refuse."""
    plain = dtype is not None and np.dtype(dtype).kind in "biu"
    return interop.to_array(self.detach() if plain else self, dtype, copy)
