"""`numpy.emath`: functions with complex results outside of their real domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.dtype import as_dtype, complex64, complex128
from lucid.ops.base.promotion import cast_to
from lucid.ops.elementwise import division
from lucid.tensor.numpy_calls.definition import enter, rule
from lucid.tensor.numpy_calls.operands import is_tensor, numpy_dtype, to_one_dtype
from lucid.tensor.numpy_calls.rules.places import plain
from lucid.tensor.numpy_calls.rules.reductions import in_fractions
from lucid.tensor.numpy_calls.ufuncs import UFUNCS, is_complex

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.dtype import dtype
    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Operand


def above_zero(x: Operand) -> Any:
    """Return an operand, as complex numbers if one of its numbers is negative."""
    return widened(x, lambda values: values < 0)


def widened(x: Operand, is_outside: Callable[[Any], Any]) -> Any:
    """Return an operand, as complex numbers if one of its real numbers is outside of a domain."""
    if is_complex(x) or not np.any(is_outside(plain(x))):
        return x
    if not is_tensor(x):
        return complex(x)
    # of half precision, too, NumPy makes complex128
    return cast_to(x, complex64 if x.array.dtype.char == "f" else complex128)


def enter_by_domain(name: str, is_outside: Callable[[Any], Any]) -> None:
    """Enter the function of the name of a ufunc."""
    op = UFUNCS[name]

    def within(x: Operand) -> Any:
        return op(widened(x, is_outside))

    enter(f"lib.scimath.{name}", "*x", within)


for _name in ("sqrt", "log", "log2", "log10"):
    enter_by_domain(_name, lambda values: values < 0)
for _name in ("arccos", "arcsin", "arctanh"):
    enter_by_domain(_name, lambda values: np.abs(values) > 1)


def in_loop(x: Tensor) -> Any:
    """Return integers in the dtype of their logarithms: float16 of those of 8 bits; anything else as it is."""
    if x.array.dtype.kind not in "biu":
        return x
    log: Any = np.log
    return cast_to(x, as_dtype(log.resolve_dtypes((x.array.dtype, None))[0]))


@rule("lib.scimath.logn", "?n ?x")
def log_to_base(n: Operand, x: Operand) -> Any:
    """Return ``numpy.emath.logn``: the logarithm to the base `n`."""
    both = map(above_zero, (x, n))
    logs = [UFUNCS["log"](in_loop(each)) if is_tensor(each) else np.log(each).item() for each in both]
    wanted = numpy_dtype(logs)
    return division.div(*[cast_to(each, wanted) if is_tensor(each) else each for each in logs])


def power(x: Operand, p: Operand, common: Callable[[list[Any]], dtype]) -> Any:
    """Return ``numpy.emath.power``: integers to powers below zero are fractions."""
    factors = [above_zero(x), in_fractions(p) if is_tensor(p) and np.any(plain(p) < 0) else p]
    to_one_dtype([(factors, 0), (factors, 1)], common)
    return UFUNCS["power"](*factors)


enter("lib.scimath.power", "?x ?p", power, finds_common=True)
