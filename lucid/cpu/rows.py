"""Softmax, its logarithm and their gradients by ``kernels/cpu/rows.cpp``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lucid.cpu.functions import BUILD, Function, address, dense

if TYPE_CHECKING:
    from lucid.base.arrays import Array

_NAMES = "softmax", "log_softmax", "softmax_grad", "log_softmax_grad"
_FUNCTIONS = {name: Function("rows.cpp", name) for name in _NAMES}
_FLOAT32 = np.dtype(np.float32)


def along_rows(name: str, *arrays: Array) -> Array | None:
    """Return softmax of the last dimension, its logarithm or the gradient of one; None if NumPy is to do it."""
    for array in arrays:
        if array.dtype != _FLOAT32:
            return None
    # at once: results differ in the last bits from those of NumPy's path
    run = _FUNCTIONS[name](BUILD)
    if run is None:
        return None
    shape = arrays[0].shape
    out = np.empty(shape, _FLOAT32)
    # copies are held until the call
    whole = [dense(array) for array in arrays]
    run(*map(address, whole), address(out), out.size // shape[-1], shape[-1])
    return out
