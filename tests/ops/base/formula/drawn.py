"""Formulas that are drawn, and what they are on NumPy's arrays, operation by operation."""

from __future__ import annotations

import numpy as np

from lucid.ops.base.formula.trace import OPERATIONS

ONE = ("neg", "abs", "square", "exp", "tanh", "sqrt", "log", "sin")
TWO = ("add", "sub", "mul", "div", "maximum", "minimum")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LOGIC = ("logical_and", "logical_or", "logical_xor")


class Plain:
    """The namespace of a formula that is called with arrays: one operation of NumPy after another."""

    def __getattr__(self, name):
        return {"maximum": first(np.maximum), "minimum": first(np.minimum)}.get(
            name, getattr(np, OPERATIONS[name].numpy or "none", None)
        )

    def where(self, condition, a, b, rare=False):
        return np.where(condition, a, b)


def first(choose):
    """Return maximum or minimum with the first of equal numbers, which may be zeros of two signs."""

    def chosen(a, b):
        out = choose(a, b)
        return np.where(np.equal(a, b), a, out)

    return chosen


def drawn(rng, length):
    """Return a formula of two arrays and a setting of so many operations, which uses its steps more than once."""
    steps, masks = [], 0
    for k in range(length):
        kind = rng.choice(["one", "two", "where", "compare", "logic"], p=[0.25, 0.35, 0.2, 0.15, 0.05])
        if kind == "logic" and masks < 2:
            kind = "compare"
        if kind == "where" and not masks:
            kind = "two"
        names = {"one": ONE, "two": TWO, "compare": COMPARISONS, "logic": LOGIC, "where": ("where",)}[kind]
        numbers = [0, 1.5, -0.0, -2, np.inf]
        picked = [int(n) for n in rng.integers(0, 3 + k, 3)]
        constant = numbers[rng.integers(len(numbers))] if rng.random() < 0.3 else None
        steps.append((kind, str(rng.choice(names)), picked, constant, bool(rng.random() < 0.3)))
        masks += kind in ("compare", "logic")

    def formula(m, x, y, *, alpha):
        values, masks = [x, y, x * alpha], []
        for kind, name, picked, constant, rare in steps:
            a, b, _ = (values[n % len(values)] for n in picked)
            b = b if constant is None else constant
            if kind == "one":
                values.append(getattr(m, name)(a))
            elif kind == "two":
                values.append(getattr(m, name)(*((a, b) if rare else (b, a))))
            elif kind == "where":
                values.append(m.where(masks[picked[2] % len(masks)], *((a, b) if rare else (b, a)), rare=rare))
            else:
                over = masks if kind == "logic" else values
                one, two = over[picked[0] % len(over)], over[picked[1] % len(over)]
                masks.append(getattr(m, name)(one, two))
        return values[-1] + values[-2]

    return formula
