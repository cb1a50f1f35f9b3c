"""A formula in CUDA C++: a functor for the kernels of ``kernels/elementwise/elementwise.cuh``."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from lucid.ops.base.formula.trace import OPERATIONS, Symbol

if TYPE_CHECKING:
    from lucid.ops.base.formula.trace import Node, Traced

__all__ = ["functor"]

_CALL = re.compile(r"\w+\(.*\)")
_OPERATOR = re.compile(r"[^\w(){}, ]")


def functor(name: str, traced: Traced) -> str:
    """Return a struct of this name that computes in the type A of its arguments.

    What is used twice is computed once; a choice computes both of its sides, as CUDA's threads do anyway.
    """
    operations = list(traced.operations())
    uses: Counter[Symbol] = Counter()
    for each in operations:
        cuda = OPERATIONS[each.name].cuda
        for place, operand in enumerate(each.operands):
            if isinstance(operand, Symbol):
                uses[operand] += cuda.count(f"{{{place}}}")
    lines: list[str] = []
    # the expression of each, and whether it needs no brackets
    known: dict[Symbol, tuple[str, bool]] = {}

    def text(node: Node) -> tuple[str, bool]:
        if not isinstance(node, Symbol):
            return f"A({_number(node)})", True
        return known[node] if node.operands else (node.name, True)

    for each in operations:
        cuda = OPERATIONS[each.name].cuda
        apart = _OPERATOR.search(cuda) is None
        parts = [written if apart or alone else f"({written})" for written, alone in map(text, each.operands)]
        known[each] = cuda.format(*parts), _CALL.fullmatch(cuda) is not None
        if uses[each] > 1:
            temporary = f"t{len(lines)}"
            lines.append(f"const {'bool' if each.mask else 'A'} {temporary} = {known[each][0]};")
            known[each] = temporary, True
    parameters = ", ".join([f"A {each}" for each in (*traced.arrays, *traced.settings)])
    kind = "bool" if isinstance(traced.result, Symbol) and traced.result.mask else "A"
    body = "".join([f"        {line}\n" for line in (*lines, f"return {text(traced.result)[0]};")])
    head = f"template <class A> __device__ {kind} operator()({parameters}) const"
    return f"struct {name} {{\n    {head} {{\n{body}    }}\n}};\n"


def _number(number: float) -> str:
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    return "NAN" if math.isnan(number) else repr(number)
