"""Expressions are read as C reads them, written so that they mean the same, and simplified without another value."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lucid.autograd.kernels import fused
from lucid.autograd.kernels.expressions import assignments, names_in, parse, put, unknown_names, write
from lucid.autograd.kernels.formulas import seeds_of
from lucid.errors import KernelError
from tests.autograd.kernels.evaluating import drawn, value

NAMES = {"x": 0.7, "y": -1.3, "n": 3.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x - y - n", (0.7 + 1.3) - 3.0),
        ("x - (y - n)", 0.7 - (-1.3 - 3.0)),
        ("(x)==(y)?2:(x)>(y)&&(n)!=(x)?(n):(y)", 3.0),
        ("x + y * n", 0.7 - 1.3 * 3.0),
        ("x / n / y", 0.7 / 3.0 / -1.3),
        ("x / (n / y)", 0.7 / (3.0 / -1.3)),
        ("-x * y", 0.7 * 1.3),
        ("- -x", 0.7),
        ("+x", 0.7),
        ("x < y ? 1 : n > 2 ? 2. : .5e1", 2.0),
        ("x > 0 && !(y > 0) || n == 1 ? 1e-1 : 2", 0.1),
        ("(x > y) * 2 + 1", 3.0),
        ("std::sin(x) + ::cos(y)", math.sin(0.7) + math.cos(-1.3)),
        ("(T)x + T(y) + static_cast<T>(n) + (double)(x)", 0.7 - 1.3 + 3.0 + 0.7),
        ("(int)n + (unsigned int)(x)", 3),
        ("pow(x,\n n)", 0.7**3),
        ("fma(x, y, n)", 0.7 * -1.3 + 3.0),
    ],
)
def test_read_as_in_c(text, expected):
    """Operators bind as in C, from the left, and what is written again has the same value."""
    term = parse(text, ("T",))
    assert value(term, NAMES) == pytest.approx(expected, rel=1e-15)
    assert parse(write(term), ("T",)) == term


def test_random_terms_are_written_as_they_are(rng):
    """Reading what was written gives the same term, whatever it is made of, and simplifying keeps its value."""
    for _ in range(300):
        term = drawn(rng, ("x", "y"), 4)
        assert parse(write(term), ("T",)) == term
        assert value(put(term, {}), NAMES) == pytest.approx(value(term, NAMES), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("0 + x", "x"), ("x - 0", "x"), ("0 - x", "-x"), ("1 * x", "x"), ("x * 1", "x"), ("x * 0", "0"),
        ("0 / x", "0"), ("x / 1", "x"), ("- -x", "x"), ("x + x", "x * 2"), ("x + -y * n", "x - y * n"),
        ("2 * 3 + 1", "7"), ("1 / 2 * x", "1 / 2 * x"), ("pow(x, 2 - 1)", "x"), ("2 == 0 ? 0 : x", "x"),
        ("x == 0 && 2 >= 0 ? 0 : y", "x == 0 ? 0 : y"), ("x < 0 ? y : y", "y"), ("010 + 1", "010 + 1"),
        ("2.0f * 1.0f * x", "2.0f * x"), ("0.5f + 1.5 + x", "2.0 + x"),
        ("x * -1", "-x"), ("x && 0", "0"), ("0 && x", "0"), ("x && 2", "x"),
        ("2 && x", "x"), ("-0", "0"), ("x + 0", "x"), ("0 * x", "0"), ("3 - 5", "-2"), ("x + -2", "x - 2"),
        ("0 / 0", "0 / 0"), ("2 != 2 ? y : x", "x"), ("2 == 2 ? x : y", "x"),
    ],
)  # fmt: skip
def test_simplified(text, simple):
    """What does nothing goes; arithmetic of whole numbers that C rounds, and of numbers with a suffix but f, stays."""
    assert write(put(parse(text), {})) == simple


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x[i]", r"'\[i\]' is not understood in 'x\[i\]'"),
        ("x & 1", "'& 1' is not understood"),
        ("x << 1", "'<< 1' is not understood"),
        ("x.y", r"'\.y' is not understood"),
        ("x y", "'y' is not understood"),
        ("x = 2", "'= 2' is not understood"),
        ("x++", "is not understood"),
        ("*x", r"'\*x' is not understood"),
        ("", "the end is not understood"),
        ("(x", "the end is not understood"),
        ("x)", r"'\)' is not understood"),
        ("f()", r"'\)' is not understood"),
        ("T(x, y)", r"'\)' is not understood"),
        ("float(x, y)", r"'\)' is not understood"),
        ("static_cast<double>(x, y)", r"'\)' is not understood"),
        ("static_cast<double>()", r"'\)' is not understood"),
        ("x >> 1", "'>> 1' is not understood"),
        ("x += 1", "is not understood"),
        ("x ? y", "the end is not understood"),
        ('"x"', "is not understood"),
        ("lucid::f(x)", "is not understood"),
        ("1x", "'1x' is not understood"),
        ("(" * 100_000, "nested too deep"),
    ],
)
def test_what_is_not_understood_is_said(text, said):
    """A text that is no expression, or more than is read, is refused with the place."""
    with pytest.raises(KernelError, match=said):
        parse(text, ("T",))


def test_assignments():
    """Each output is assigned to once; anything else is named."""
    found = assignments("y = x * x;\n z = 2 * x;", ["y", "z"])
    assert {name: write(term) for name, term in found.items()} == {"y": "x * x", "z": "2 * x"}
    for text, said in (
        ("y += x", r"'y \+= x' is no assignment to y or z"),
        ("if (x > 0) y = x", "is no assignment"),
        ("S t = x; y = t; z = t", "'S t = x' is no assignment"),
        ("T y = x; z = x", "'T y = x' is no assignment"),
        ("T t = x; T t = 2; y = t; z = t", "t is declared twice"),
        ("t = x; y = t; z = t", "'t = x' is no assignment"),
        ("".join([f"T t{k} = t{k - 1} * t{k - 1};" for k in range(1, 14)]) + "y = t13", "t10 stands for is too long"),
        ("x = 2", "'x = 2' is no assignment to y or z"),
        ("y == x", "'y == x' is no assignment"),
        ("y = x; y = 2", "y is assigned to twice"),
        ("y = x", "nothing is assigned to z"),
        ("", "nothing is assigned to y, z"),
    ):
        with pytest.raises(KernelError, match=said):
            assignments(text, ["y", "z"], ("T",))


def test_variables():
    """Where the name of a variable stands, its value of then does, in its type."""
    text = "const T t = x * x; auto s = t + 1; unsigned int n = x; s *= t; y = s; s = 2; z = s * n"
    found = assignments(text, ["y", "z"], ("T",))
    wanted = {"y": "((T)(x * x) + 1) * (T)(x * x)", "z": "2 * (unsigned int)x"}
    assert {name: write(term) for name, term in found.items()} == wanted


def test_names():
    """Names are variables: no functions, numbers, types, members or constants of the preprocessor."""
    assert names_in(parse("a * sin(b) + 1.5e3 + (T)MASS", ("T",))) == {"a", "b", "MASS"}
    assert unknown_names("g * my(x) + s.member + M_PI + 2e5f + (float)w + k", {"g", "x"}) == ["k", "s", "w"]


@pytest.mark.parametrize(
    ("number", "dtype", "text"),
    [(True, "?", "1"), (np.False_, "f8", "0.0"), (np.int8(-3), "f8", "-3.0"), (0.1, "f4", "0.1f"), (-3, "f2", "-3.0f"),
     (0.1, "f8", "0.1"), (10**20, "f8", "1e+20"), (1e-9, "f4", "1e-09f"), (float("inf"), "f4", "1.0f / 0.0f"),
     (-float("inf"), "f8", "-(1.0 / 0.0)"), (float("nan"), "f8", "0.0 / 0.0"), (2**62, "i8", f"(long long){2**62}"),
     (-(2**63), "i8", "(long long)(-9.223372036854776e+18)"), (-1, "u4", "(unsigned int)4294967295u"),
     (300, "i1", "(signed char)44")],
)  # fmt: skip
def test_numbers_of_a_function(number, dtype, text):
    """They are written in the dtype that is computed with, as C has it: what does not fit is cast."""
    assert write(fused._written(number, np.dtype(dtype))) == text
    assert write(parse(text)) == text


UFUNCS = [name for name in fused._UFUNCS if hasattr(np, name)]


@pytest.mark.parametrize("name", UFUNCS)
def test_what_stands_for_a_ufunc(name):
    """The expression of a ufunc has NumPy's values, also of operands that are equal, or nothing."""
    term, ufunc = parse(fused._UFUNCS[name]), getattr(np, name)
    logical = name in fused._LOGICAL
    truth = logical or name == "where"
    for a in (0.0, 0.5) if truth else (0.3, 0.5, 0.7):
        for b in (0.0, 0.5):
            if not b and not truth:
                continue
            a_there = a + 1 if name == "arccosh" else a
            names = {"a": a_there, "b": b, "c": 2.0}
            operands = (a_there, b, 2.0)[: getattr(ufunc, "nin", 3)]
            operands = tuple(map(bool, operands)) if logical else operands
            found, wanted = value(term, names), ufunc(*operands)
            assert bool(found) == bool(wanted) if logical else found == pytest.approx(wanted)
    assert {*fused._UFUNCS} - {*UFUNCS} <= {"true_divide", "rsqrt"}


@pytest.mark.parametrize(
    ("results", "taken", "alone", "seeds"),
    [
        (["y"], ["x", "y"], True, {"y": "g"}),
        (["y"], ["g", "y"], True, {"y": "g_y"}),
        (["y"], ["x", "y"], False, {"y": "g_y"}),
        (["y", "z"], ["x"], True, {"y": "g_y", "z": "g_z"}),
        (["y", "z"], ["g_y", "g"], True, {"y": "gg_y", "z": "gg_z"}),
    ],
)
def test_what_a_gradient_is_called(results, taken, alone, seeds):
    """It has a name that no parameter has: g of one result alone, or one made of that of the result."""
    assert seeds_of(results, taken, alone=alone) == seeds
