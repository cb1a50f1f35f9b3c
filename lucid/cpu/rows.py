"""Softmax, layer norm and their gradients by ``kernels/cpu/rows.cpp``, from a size on that decides alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lucid.cpu.functions import BUILD, Function, address

if TYPE_CHECKING:
    from lucid.base.arrays import Array
    from lucid.cpu.functions import Call

FEWEST = 1 << 13
"""Elements from which on rows are compiled: results differ in the last bits from those of NumPy's path."""

_NAMES = "softmax", "log_softmax", "softmax_grad", "log_softmax_grad", "normalise", "normalise_grad", "exponentials"
_FUNCTIONS = {name: Function("rows.cpp", name) for name in _NAMES}


def function(name: str, *arrays: Array | None) -> Call | None:
    """Return the function of ``rows.cpp`` for arrays, the first the largest of them; None if NumPy is to do it."""
    first = arrays[0]
    if first is None or first.size < FEWEST:
        return None
    if any(array is not None and array.dtype.char != "f" for array in arrays):
        return None
    # at once, as which of both does it hangs on the size alone
    return _FUNCTIONS[name](max(first.size, BUILD))


def along_rows(name: str, *arrays: Array) -> Array | None:
    """Return softmax of the last dimension, its logarithm or the gradient of one; None if NumPy is to do it."""
    run = function(name, *arrays)
    if run is None:
        return None
    shape = arrays[0].shape
    out: Array = np.empty(shape, np.float32)
    whole = [np.ascontiguousarray(array) for array in arrays]
    run(*map(address, (*whole, out)), out.size // shape[-1], shape[-1])
    return out
