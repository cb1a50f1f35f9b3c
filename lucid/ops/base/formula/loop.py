"""A formula in C++ for the CPU: one pass over arrays of float32, for `lucid.ops.base.blocks.in_blocks`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.backends import cpu
from lucid.cpu.functions import BUILD, Function, Unit, address, dense
from lucid.ops.base.formula.functor import expressions
from lucid.ops.base.formula.trace import Symbol, Traced
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from lucid.base.arrays import Array

_FLOAT32 = np.dtype(np.float32)

# What `mathematics.h` has for vectors, and what is no function.
_KNOWN = r"(exp|expm1|log|log1p|tanh|erf|erfc|sqrt|fabs|floor|ceil|trunc|rint|copysign|larger|smaller|A)"
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
        self._function = Function(Unit(f"{stem}.cpp", self._text), "loop")
        self._written: str | None = None
        self._results = 0
        self._settings: tuple[str, ...] = ()

    def _text(self) -> str:
        """Return the file; "" if the formula calls a function that is not in `mathematics.h`, or a result is a mask."""
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
        self._written = "" if masked or not all(re.fullmatch(_KNOWN, call) for call in calls) else _LOOP.format(
            parameters=", ".join(parameters),
            settings="".join([f"    const A {name} = (A){name}_;\n" for name in traced.settings]),
            body="".join([f"        {line}\n" for line in body]),
        )  # fmt: skip
        return self._written

    def of(self, arrays: Sequence[Array]) -> Callable[..., None] | None:
        """Return ``run(xp, *results, *arrays, **settings)`` for arrays like these; None for arrays of other dtypes."""
        if not cpu.compiled or self._written == "" or accumulation_dtype(arrays[-1].dtype) is not _FLOAT32:
            return None
        for array in arrays:
            if array.dtype.kind == "b":
                return None
        return self._run if self._text() and self._function(BUILD) is not None else None

    def _run(self, xp: ModuleType, *arrays: Array, **settings: Any) -> None:
        run: Any = self._function(BUILD)
        out = arrays[0]
        # copies are held until the call
        whole = [dense(a if a.shape == out.shape else np.broadcast_to(a, out.shape)) for a in arrays]
        addresses = list(map(address, whole))
        numbers = [settings[name] for name in self._settings] if self._settings else ()
        run(*addresses[: self._results], out.size, *addresses[self._results :], *numbers)
