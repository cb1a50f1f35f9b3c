"""A formula in CUDA C++: a functor for the kernels of ``kernels/elementwise/elementwise.cuh``."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from lucid.ops.base.formula.trace import OPERATIONS, Node, Symbol, Traced, behind_operands

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_CALL = re.compile(r"\w+\(.*\)")
_OPERATOR = re.compile(r"[^\w(){}, ]")


def expressions(
    results: Sequence[Node], leaves: Mapping[Symbol, str], kind: str = "A", name: str = "t{}"
) -> tuple[list[str], list[str]]:
    """Return the lines of repeated operations, each with a name, and the expression of each result.

    Parameters
    ----------
    results : sequence of Symbol or number
    leaves : dict
        What is known by a name: operations among them are not written.
    kind : str
        The type that is computed in.
    name : str
        What is used twice is called, with its number for ``{}``.
    """
    operations = list(behind_operands(results, leaves))
    uses: Counter[Node] = Counter(results)
    for each in operations:
        cuda = OPERATIONS[each.name].cuda
        for place, operand in enumerate(each.operands):
            if isinstance(operand, Symbol):
                uses[operand] += cuda.count(f"{{{place}}}")
    lines: list[str] = []
    # the expression of each, and whether it needs no brackets
    known: dict[Symbol, tuple[str, bool]] = {symbol: (text, True) for symbol, text in leaves.items()}

    def written(node: Node) -> tuple[str, bool]:
        if not isinstance(node, Symbol):
            return f"{kind}({_number(node)})", True
        return known.get(node, (node.name, True))

    for each in operations:
        cuda = OPERATIONS[each.name].cuda
        apart = _OPERATOR.search(cuda) is None
        parts = [text if apart or alone else f"({text})" for text, alone in map(written, each.operands)]
        known[each] = cuda.format(*parts), _CALL.fullmatch(cuda) is not None
        if uses[each] > 1:
            temporary = name.format(len(lines))
            lines.append(f"const {'bool' if each.mask else kind} {temporary} = {known[each][0]};")
            known[each] = temporary, True
    return lines, [written(result)[0] for result in results]


def functor(name: str, traced: Traced) -> str:
    """Return a struct of this name that computes in the type A of its arguments.

    What is used twice is computed once; a choice computes both of its sides, as CUDA's threads do anyway.
    """
    (result,) = traced.results
    lines, (value,) = expressions(traced.results, {})
    parameters = ", ".join([f"A {each}" for each in (*traced.arrays, *traced.settings)])
    kind = "bool" if isinstance(result, Symbol) and result.mask else "A"
    body = "".join([f"        {line}\n" for line in (*lines, f"return {value};")])
    head = f"template <class A> __device__ {kind} operator()({parameters}) const"
    return f"struct {name} {{\n    {head} {{\n{body}    }}\n}};\n"


def _number(number: float) -> str:
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    return "NAN" if math.isnan(number) else repr(number)
