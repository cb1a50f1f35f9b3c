"""Derivatives of expressions: the gradients that each operator and function passes to its operands."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from lucid.autograd.kernels.expressions import INTEGERS, ZERO, Term, made, parse, put
from lucid.errors import NotDifferentiableError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["FUNCTIONS", "gradients"]

# By operator or function the gradient of each operand `a`, `b`, `c`, where `g` is that of the result; "0" where it is
# flat. `g`, a floating-point number, comes first, so that no division is one of integers; and it comes once, or texts
# would grow by a factor with each function inside of another.
_LARGER, _SMALLER = "a < b ? 0 : g / (a == b ? 2 : 1)", "b < a ? 0 : g / (a == b ? 2 : 1)"
FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "neg": ("-g",),
    "+": ("g", "g"),
    "-": ("g", "-g"),
    "*": ("g * b", "g * a"),
    "/": ("g / b", "-g * (a / b) / b"),
    **dict.fromkeys(("<", ">", "<=", ">=", "==", "!=", "&&", "||"), ("0", "0")),
    "!": ("0",),
    **dict.fromkeys(("floor", "ceil", "round", "rint", "nearbyint", "trunc", "isnan", "isinf", "isfinite"), ("0",)),
    "exp": ("g * exp(a)",),
    "exp2": ("g * exp2(a) * 0.6931471805599453",),
    "expm1": ("g * (expm1(a) + 1)",),
    "log": ("g / a",),
    "log2": ("g / (a * 0.6931471805599453)",),
    "log10": ("g / (a * 2.302585092994046)",),
    "log1p": ("g / (a + 1)",),
    "sin": ("g * cos(a)",),
    "cos": ("-g * sin(a)",),
    "tan": ("g * (1 + tan(a) * tan(a))",),
    "asin": ("g / sqrt(1 - a * a)",),
    "acos": ("-g / sqrt(1 - a * a)",),
    "atan": ("g / (1 + a * a)",),
    "sinh": ("g * cosh(a)",),
    "cosh": ("g * sinh(a)",),
    "tanh": ("g * (1 - tanh(a) * tanh(a))",),
    "asinh": ("g / sqrt(a * a + 1)",),
    "acosh": ("g / sqrt(a * a - 1)",),
    "atanh": ("g / (1 - a * a)",),
    "erf": ("g * 1.1283791670955126 * exp(-a * a)",),
    "erfc": ("-g * 1.1283791670955126 * exp(-a * a)",),
    "sqrt": ("g / (2 * sqrt(a))",),
    "rsqrt": ("-g * rsqrt(a) / (2 * a)",),
    "cbrt": ("g / (3 * cbrt(a) * cbrt(a))",),
    **dict.fromkeys(("abs", "fabs"), ("g * (a < 0 ? -1 : a == 0 ? 0 : 1)",)),
    **dict.fromkeys(("max", "fmax"), (_LARGER, _SMALLER)),
    **dict.fromkeys(("min", "fmin"), (_SMALLER, _LARGER)),
    "pow": ("b == 0 ? 0 : g * b * pow(a, b - 1)", "a == 0 && b >= 0 ? 0 : g * pow(a, b) * log(a)"),
    "atan2": ("g * b / (a * a + b * b)", "-g * a / (a * a + b * b)"),
    "hypot": ("g * a / hypot(a, b)", "g * b / hypot(a, b)"),
    "fma": ("g * b", "g * a", "g"),
}


def _rules(term: Term) -> tuple[str, ...] | None:
    """Return the rules of an operator or function; ``sinf`` and ``__sinf`` have those of ``sin``."""
    if term.head[0] == "(":
        words = term.head[1:-1].split()
        return ("0" if INTEGERS.issuperset(words) else "g",)
    plain = term.head.removeprefix("__")
    for name in (term.head, plain, plain.removesuffix("f")):
        rules = FUNCTIONS.get(name)
        if rules is not None and len(rules) == len(term.parts):
            return rules
    return None


@cache
def _rule(text: str) -> Term:
    return parse(text)


def gradients(
    results: Mapping[str, Term], seeds: Mapping[str, Term], wanted: Collection[str], *, keep: bool = True
) -> dict[str, Term]:
    """Return the gradients of some names, for expressions with the gradients `seeds`.

    With `keep` the name of a result stands where its whole expression would: what has been computed is kept.

    Raises
    ------
    NotDifferentiableError
        If a name stands inside of a function that is not known.
    """
    collected: dict[str, Term] = dict.fromkeys(wanted, ZERO)
    for name, term in results.items():
        depends = _depending(term, wanted, set())
        own: dict[str, Term] = {}
        if id(term) in depends:
            _hand_on(term, seeds[name], depends, own)
        kept = {term: Term(name)} if keep and term.parts and term.head not in {"neg", "?"} else {}
        for each, gradient in own.items():
            collected[each] = made("+", collected[each], put(gradient, kept))
    return collected


def _depending(term: Term, wanted: Collection[str], depending: set[int]) -> set[int]:
    """Return the identities of the terms that contain a name with a gradient: to compare terms takes longer."""
    for part in term.parts:
        _depending(part, wanted, depending)
    if any(id(part) in depending for part in term.parts) or (not term.parts and term.head in wanted):
        depending.add(id(term))
    return depending


def _hand_on(term: Term, grad: Term, depends: set[int], collected: dict[str, Term]) -> None:
    """Add to the gradients of names those that a term passes on."""
    if not term.parts:
        collected[term.head] = made("+", collected[term.head], grad) if term.head in collected else grad
        return
    if term.head == "?":
        # in each branch by itself: what is not taken may be infinite, and 0 times that would be NaN
        condition, *branches = term.parts
        sides: list[dict[str, Term]] = [{}, {}]
        for branch, side in zip(branches, sides, strict=True):
            if id(branch) in depends:
                _hand_on(branch, grad, depends, side)
        for name in sides[0] | sides[1]:
            chosen = made("?", condition, sides[0].get(name, ZERO), sides[1].get(name, ZERO))
            collected[name] = made("+", collected[name], chosen) if name in collected else chosen
        return
    rules = _rules(term)
    if rules is None:
        raise NotDifferentiableError(
            f"the derivative of '{term.head}' with {len(term.parts)} operands is not known, in {str(term)!r}"
        )
    values = {Term(letter): part for letter, part in zip("abc", term.parts, strict=False)}
    for rule, part in zip(rules, term.parts, strict=True):
        if rule != "0" and id(part) in depends:
            _hand_on(part, put(_rule(rule), {**values, Term("g"): grad}), depends, collected)
