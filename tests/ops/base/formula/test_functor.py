"""A functor is the text of a formula in CUDA C++."""

from __future__ import annotations

import math

from lucid.ops.base.formula.functor import functor
from lucid.ops.base.formula.trace import trace


def body(formula):
    """Return the lines of a functor's body, and the line that declares it."""
    _, head, *lines, _, _ = functor("F", trace(formula)).splitlines()
    return [line.strip() for line in lines], head.strip()


def test_what_is_used_twice_is_computed_once():
    """It gets a name; what is used once stands where it is used."""
    lines, head = body(lambda m, x, *, a: m.exp(x) * (m.exp(x) + a))
    assert head == "template <class A> __device__ A operator()(A x, A a) const {"
    assert lines == ["const A t0 = exp(x);", "return t0 * (t0 + a);"]


def test_what_an_expression_has_twice():
    """An operand that the text of its operation has twice is named, too; an argument has a name."""
    assert body(lambda m, x: m.square(x + 1))[0] == ["const A t0 = x + A(1);", "return t0 * t0;"]
    assert body(lambda m, x: m.square(x))[0] == ["return x * x;"]


def test_numbers():
    """Numbers are of the type that is computed in."""
    assert body(lambda m, x: x * 0.1)[0] == ["return x * A(0.1);"]
    assert body(lambda m, x: m.maximum(x, -math.inf))[0] == ["return larger(x, A(-INFINITY));"]
    assert body(lambda m, x: m.minimum(x, math.nan))[0] == ["return smaller(x, A(NAN));"]
    assert body(lambda m, x: x + -0.0)[0] == ["return x + A(-0.0);"]
    assert body(lambda m, x: 2)[0] == ["return A(2);"]


def test_bools():
    """What compares gives bools, and what is no comparison is compared with zero where one is meant."""
    lines, head = body(lambda m, a, b: m.logical_and(a, b))
    assert (lines, head) == (
        ["return (a != A(0)) && (b != A(0));"],
        "template <class A> __device__ bool operator()(A a, A b) const {",
    )
    assert body(lambda m, x: m.where(x > 0, x, 0))[0] == ["return (x > A(0)) ? x : A(0);"]


def test_the_text_is_the_same_each_time():
    """It is in the key of what is compiled and kept."""
    one, two = (functor("F", trace(lambda m, x: m.where(x > 0, m.exp(x), m.exp(x) * m.exp(-x)))) for _ in "ab")
    assert one == two
