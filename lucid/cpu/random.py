"""Random draws by ``kernels/cpu/random.cpp``, bit for bit those of `lucid.base.random.draws` on NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.cpu.functions import Function, address
from lucid.cuda.launch.kernels import C_TYPES

if TYPE_CHECKING:
    from lucid.base.arrays import Array

_FLOATS = [("float",), ("double",)]
_FILLS = {
    "uniform": Function("random.cpp", "fill_uniform", _FLOATS),
    "normal": Function("random.cpp", "fill_normal", _FLOATS),
    "exponential": Function("random.cpp", "fill_exponential", _FLOATS),
    "integers": Function(
        "random.cpp",
        "fill_integers",
        [(each,) for each in ("signed char", "unsigned char", "short", "int", "long long")],
    ),
    "bernoulli": Function("random.cpp", "fill_bernoulli"),
}


_ORDER = Function("random.cpp", "order_of_keys")


def order(keys: Array) -> Array | None:
    """Return the indices that sort random keys of 64 bits, equal ones in order; None without a compiled loop."""
    run = _ORDER(keys.size)
    if run is None:
        return None
    indices = np.empty(keys.size, np.int64)
    bits = max(keys.size.bit_length() - 2, 1)
    ends, room = np.empty(1 << bits, np.int64), np.empty_like(keys)
    run(address(indices), address(keys), keys.size, bits, address(ends), address(room))
    return indices


def fill(out: Array, seed: int, offset: int, name: str, *numbers: Any) -> bool:
    """Fill a new array with a draw from the stream of `seed` at `offset`; returns whether a compiled function does."""
    if name == "bernoulli":
        arguments = ()
    elif out.dtype.itemsize == 2 and name != "integers":
        # half types are rounded from float32
        wide = np.empty(out.shape, np.float32)
        if not fill(wide, seed, offset, name, *numbers):
            return False
        with np.errstate(over="ignore"):
            out[...] = wide
        return True
    else:
        arguments = ("long long" if out.dtype == "uint64" else C_TYPES.get(out.dtype, ""),)
    run = _FILLS[name](out.size, *arguments)
    if run is None:
        return False
    if name == "integers":
        low, count = numbers
        # counted modulo 2**64
        numbers = (low + 2**63) % 2**64 - 2**63, count % 2**64
    run(address(out), out.size, seed, offset, *numbers)
    return True
