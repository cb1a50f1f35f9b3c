"""A formula is called once with symbols, and its operations are each there once."""

from __future__ import annotations

import pytest

from lucid.autograd.recording.namespace import PRIMITIVES
from lucid.ops.base.formula.trace import FORMULAS, OPERATIONS, Symbol, Tracer, trace


def test_operators_are_operations():
    """Python's operators give what the namespace does by the names of primitives, numbers on either side."""
    by_name = {
        "add": lambda m, x, y: (x + y, 1 + x),
        "sub": lambda m, x, y: (x - y, 1 - x),
        "mul": lambda m, x, y: (x * y, 1 * x),
        "div": lambda m, x, y: (x / y, 1 / x),
        "lt": lambda m, x, y: (x < y, x < 1),
        "le": lambda m, x, y: (x <= y, x <= 1),
        "gt": lambda m, x, y: (x > y, x > 1),
        "ge": lambda m, x, y: (x >= y, x >= 1),
    }
    for name, formula in by_name.items():
        m = Tracer()
        x, y = Symbol(m, "x"), Symbol(m, "y")
        of_two, of_number = formula(m, x, y)
        assert (of_two.name, of_two.operands) == (name, (x, y))
        assert of_two is getattr(m, name)(x, y)
        on_the_left = name in ("add", "sub", "mul", "div")
        assert (of_number.name, of_number.operands) == (name, (1, x) if on_the_left else (x, 1))
    for name, of_one in {"neg": lambda x: -x, "abs": abs}.items():
        assert of_one(x) is getattr(m, name)(x)
    for name, of_masks in {"logical_and": lambda a, b: a & b, "logical_or": lambda a, b: a | b}.items():
        assert of_masks(x > 0, y > 0) is getattr(m, name)(x > 0, y > 0)


def test_the_same_is_one():
    """The same operation of the same is one symbol; zeros of two signs are two, and 0 and 0.0."""
    m = Tracer()
    x = Symbol(m, "x")
    assert m.exp(x) is m.exp(x)
    assert len({m.add(x, zero) for zero in (0, 0.0, -0.0, False)}) == 4
    assert m.where(x > 0, x, 1) is not m.where(x > 0, x, 1, rare=True)


def test_operations_stand_behind_their_operands():
    """Each operation is told once, behind what it is made of."""
    traced = trace(lambda m, x: m.mul(m.exp(x), m.add(m.exp(x), 1)))
    assert [each.name for each in traced.operations()] == ["exp", "add", "mul"]


def test_formulas_call_each_other(monkeypatch):
    """A formula that calls a primitive which is one itself is made of that one's operations."""
    monkeypatch.setitem(FORMULAS, "thrice", lambda m, x, *, more: x * 3 + more)
    traced = trace(lambda m, x: m.thrice(m.exp(x), more=0.5))
    assert [each.name for each in traced.operations()] == ["exp", "mul", "add"]


def test_rules():
    """A rule is a formula of the gradient and what it saves; shapes, sums over them and zeros are no operations."""
    traced = trace(lambda m, grad, a, b, a_shape: m.sum_to(m.mul(grad, m.real(b)), shape=a_shape))
    assert traced.arrays == ("grad", "a", "b")
    (result,) = traced.results
    assert (result.name, [x.name for x in result.operands]) == ("mul", ["grad", "b"])
    assert trace(lambda m, grad: m.zeros_like(grad)).results == (0,)


def test_what_a_formula_cannot_do():
    """A name that nothing is known of, and a question after a number that is not known yet, say what to do."""
    with pytest.raises(AttributeError, match=r"no formula is known of 'cumsum': write it in OPERATIONS"):
        trace(lambda m, x: m.cumsum(x))
    with pytest.raises(TypeError, match=r"choose by m.where\(condition, a, b\)"):
        trace(lambda m, x: x if x > 0 else -x)
    for compared in (lambda m, x: m.where(x == 0, 1, x), lambda m, x: m.where(x != x, 0, x)):
        with pytest.raises(TypeError, match=r"by == or !=: call m.eq\(a, b\)"):
            trace(compared)


def test_operations_have_the_names_of_primitives():
    """What an operation is called is what rules call it by, but for those that only formulas have."""
    own = {"expm1_below", "float32", "log1p_within", "rint"}
    assert set(OPERATIONS) - own <= set(PRIMITIVES)
