"""The reference of expressions: their values by Python's `math`, and derivatives by differences, without a kernel."""

from __future__ import annotations

import math
import operator

from lucid.autograd.kernels.expressions import Term

OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "<": operator.lt,
    ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
FUNCTIONS = {
    "abs": abs,
    "max": max, "min": min, "fmax": max, "fmin": min,
    "signbit": lambda a: math.copysign(1, a) < 0,
    "rsqrt": lambda a: 1 / math.sqrt(a),
    "round": lambda a: math.floor(a + 0.5),
    "rint": round, "nearbyint": round,
    "fma": lambda a, b, c: a * b + c,
}  # fmt: skip


def value(term, names):
    """Return the value of a term, in the way of C: only the branch that is taken is computed."""
    head, parts = term
    if not parts:
        return names[head] if head in names else float(head)
    if head == "?":
        return value(parts[1 if value(parts[0], names) else 2], names)
    if head == "&&":
        return value(parts[0], names) and value(parts[1], names)
    if head == "||":
        return value(parts[0], names) or value(parts[1], names)
    found = [value(part, names) for part in parts]
    if head == "neg":
        return -found[0]
    if head == "!":
        return not found[0]
    if head[0] == "(":
        return math.trunc(found[0]) if "int" in head else found[0]
    if head in OPERATORS:
        return OPERATORS[head](*found)
    return (FUNCTIONS.get(head) or getattr(math, head))(*found)


def difference(term, names, name, step=1e-6):
    """Return the derivative of a term in one name, by a central difference."""
    above, below = (value(term, {**names, name: names[name] + move}) for move in (step, -step))
    return (above - below) / (2 * step)


def drawn(rng, names, depth):
    """Return a random term of smooth functions that are defined everywhere, of some names."""
    if depth == 0 or rng.random() < 0.1:
        return Term(str(rng.choice(names))) if rng.random() < 0.7 else Term(repr(round(float(rng.uniform(0.1, 2)), 3)))
    kind = rng.choice(["+", "-", "*", "neg", "?", "/", "sin", "cos", "tanh", "exp", "sqrt", "(T)"])
    part = [drawn(rng, names, depth - 1) for _ in range(3)]
    if kind in {"+", "-", "*"}:
        return Term(kind, (part[0], part[1]))
    if kind == "?":
        return Term("?", (Term("<", (Term(names[0]), Term("0.3"))), part[1], part[2]))
    if kind == "/":
        return Term("/", (part[0], Term("+", (Term("*", (part[1], part[1])), Term("1.5")))))
    if kind == "exp":
        return Term("exp", (Term("sin", (part[0],)),))
    if kind == "sqrt":
        return Term("sqrt", (Term("+", (Term("*", (part[0], part[0])), Term("0.5"))),))
    return Term(kind, (part[0],))
