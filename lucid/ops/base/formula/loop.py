"""A formula in C++ for the CPU: one pass over arrays of float32, for `lucid.ops.base.blocks.in_blocks`."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.backends import cpu
from lucid.cpu.functions import BUILD, Function, address
from lucid.ops.base.formula.functor import expressions
from lucid.ops.base.formula.trace import Symbol, Traced
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from lucid.base.arrays import Array

MANY = 1 << 13
"""Elements from which on a formula is compiled: nothing but their number says so, as last digits differ from NumPy's."""

# What `mathematics.h` has for vectors, and what is no function.
_KNOWN = frozenset("exp expm1 log log1p tanh erf erfc sqrt fabs floor ceil trunc rint copysign larger smaller A".split())
_LOOP = """\
#include "mathematics.h"

namespace lucid {{

typedef float A;

__global__ void loop({parameters}) {{
{settings}    for (long long lucid_i = 0; lucid_i < lucid_n; ++lucid_i) {{
{body}    }}
}}

}}  // namespace lucid
"""
_numbers = itertools.count()


class Loop:
    """The loop of a traced formula, of one result or several.

    Parameters
    ----------
    stem : str
        What its library is called.
    traced : callable
        Gives the formula's operations.
    """

    def __init__(self, stem: str, traced: Callable[[], Traced]) -> None:
        self._traced = traced
        self._function = Function(f"{stem}-{next(_numbers)}.cpp", "loop", text=self._text)
        self._written: str | None = None
        self._results = 0
        self._settings: tuple[str, ...] = ()

    def _text(self) -> str:
        """Return the file; "" if the formula calls what no vectors have, or a result is a mask."""
        if self._written is not None:
            return self._written
        traced = self._traced()
        self._results, self._settings = len(traced.results), traced.settings
        lines, values = expressions(traced.results, {})
        calls = set(re.findall(r"\b([A-Za-z_]\w*)\(", " ".join([*lines, *values])))
        masked = any(isinstance(result, Symbol) and result.mask for result in traced.results)
        parameters = [f"float* __restrict__ lucid_out{k}" for k in range(self._results)]
        parameters += ["long long lucid_n", *[f"const float* {name}_n" for name in traced.arrays]]
        parameters += [f"double {name}_" for name in traced.settings]
        body = [f"const A {name} = {name}_n[lucid_i];" for name in traced.arrays]
        body += [*lines, *[f"lucid_out{k}[lucid_i] = {value};" for k, value in enumerate(values)]]
        self._written = "" if masked or not calls <= _KNOWN else _LOOP.format(
            parameters=", ".join(parameters),
            settings="".join([f"    const A {name} = (A){name}_;\n" for name in traced.settings]),
            body="".join([f"        {line}\n" for line in body]),
        )  # fmt: skip
        return self._written

    def of(self, arrays: Sequence[Array]) -> Callable[..., None] | None:
        """Return ``run(xp, *results, *arrays, **settings)`` for arrays like these; None where NumPy is to do it."""
        last = arrays[-1]
        if not cpu.compiled or last.size < MANY or accumulation_dtype(last.dtype) != np.float32:
            return None
        if any(array.dtype.kind == "b" for array in arrays) or not self._text() or self._function(BUILD) is None:
            return None
        return self._run

    def _run(self, xp: ModuleType, *arrays: Array, **settings: Any) -> None:
        run: Any = self._function(BUILD)
        results, operands = arrays[: self._results], arrays[self._results :]
        # copies are held until the call
        dense = [np.ascontiguousarray(np.broadcast_to(array, results[0].shape)) for array in operands]
        numbers = [settings[name] for name in self._settings]
        run(*map(address, results), results[0].size, *map(address, dense), *numbers)
