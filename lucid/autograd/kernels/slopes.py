"""Derivatives of expressions: the gradients that each operator and function passes to its operands."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from lucid.autograd.kernels.expressions import FLOATING, INTEGERS, ZERO, Term, Written, made, parse, put, replaced
from lucid.errors import NotDifferentiableError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["FUNCTIONS", "gradients"]

# By operator or function the gradient of each operand `a`, `b`, `c`, where `g` is that of the result; "0" where it is
# flat. `g`, a floating-point number, comes first, so that no division is one of integers; and it comes once, or texts
# would grow by a factor with each function inside of another.
_SHARE = "g / (a == b ? 2 : 1)"
_LARGER, _SMALLER = f"a < b ? 0 : {_SHARE}", f"b < a ? 0 : {_SHARE}"
FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "neg": ("-g",),
    "+": ("g", "g"),
    "-": ("g", "-g"),
    "*": ("g * b", "g * a"),
    "/": ("g / b", "-g * (a / b) / b"),
    **dict.fromkeys(("<", ">", "<=", ">=", "==", "!=", "&&", "||"), ("0", "0")),
    "!": ("0",),
    **dict.fromkeys(("floor", "ceil", "round", "rint", "nearbyint", "trunc", "isnan", "isinf", "isfinite"), ("0",)),
    "signbit": ("0",),
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
    "max": (_LARGER, _SMALLER),
    "min": (_SMALLER, _LARGER),
    # of a number and NaN the number
    "fmax": (f"a >= b || b != b ? {_SHARE} : 0", f"a > b || b != b ? 0 : {_SHARE}"),
    "fmin": (f"a <= b || b != b ? {_SHARE} : 0", f"a < b || b != b ? 0 : {_SHARE}"),
    "pow": ("b == 0 ? 0 : g * b * pow(a, b - 1)", "a == 0 && b >= 0 ? 0 : g * pow(a, b) * log(a)"),
    "atan2": ("g * b / (a * a + b * b)", "-g * a / (a * a + b * b)"),
    "hypot": ("g * a / hypot(a, b)", "g * b / hypot(a, b)"),
    "fma": ("g * b", "g * a", "g"),
}


def _rules(term: Term, floats: Collection[str]) -> tuple[str, ...] | None:
    """Return the rules of an operator or function; ``sinf`` and ``__sinf`` have those of ``sin``."""
    if term.head[0] == "(":
        words = term.head[1:-1].split()
        if INTEGERS.issuperset(words):
            return ("0",)
        # a letter may stand for integers, for which the two numbers are the same
        known = not {*FLOATING, *floats}.isdisjoint(words)
        return ("g" if known else f"{term.head}0.5 == {term.head}0.25 ? 0 : g",)
    plain = term.head.removeprefix("__")
    for name in (term.head, plain, plain.removesuffix("f")):
        rules = FUNCTIONS.get(name)
        if rules is not None and len(rules) == len(term.parts):
            return rules
    return None


@cache
def _rule(text: str, head: str) -> Term:
    return parse(text, (head[1:-1],) if head[0] == "(" else ())


def gradients(
    results: Mapping[str, Term],
    seeds: Mapping[str, Term],
    wanted: Collection[str],
    *,
    keep: bool = True,
    floats: Collection[str] = (),
) -> dict[str, Term]:
    """Return the gradients of some names, for expressions with the gradients `seeds`.

    With `keep` the name of a result stands where its whole expression would: what has been computed is kept. `floats`
    are letters that stand for floating-point types in each call with a gradient.

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
            _hand_on(term, seeds[name], depends, own, floats)
        kept = {term: Term(name)} if keep and term.parts and term.head not in {"neg", "?"} else {}
        for each, gradient in own.items():
            collected[each] = made("+", collected[each], replaced(gradient, kept))
    return collected


def _depending(term: Term, wanted: Collection[str], depending: set[int]) -> set[int]:
    """Return the identities of the terms that contain a name with a gradient: to compare terms takes longer."""
    for part in term.parts:
        _depending(part, wanted, depending)
    if any(id(part) in depending for part in term.parts) or (not term.parts and term.head in wanted):
        depending.add(id(term))
    return depending


def _hand_on(term: Term, grad: Term, depends: set[int], collected: dict[str, Term], floats: Collection[str]) -> None:
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
                _hand_on(branch, grad, depends, side, floats)
        for name in sides[0] | sides[1]:
            chosen = made("?", condition, sides[0].get(name, ZERO), sides[1].get(name, ZERO))
            collected[name] = made("+", collected[name], chosen) if name in collected else chosen
        return
    rules = _rules(term, floats)
    if rules is None:
        raise NotDifferentiableError(
            f"the derivative of '{term.head}' with {len(term.parts)} operands is not known, in {str(term)!r}"
        )
    values: dict[Term, Term] = {Term(letter): Written(*part) for letter, part in zip("abc", term.parts, strict=False)}
    for rule, part in zip(rules, term.parts, strict=True):
        if rule != "0" and id(part) in depends:
            _hand_on(part, put(_rule(rule, term.head), {**values, Term("g"): grad}), depends, collected, floats)
