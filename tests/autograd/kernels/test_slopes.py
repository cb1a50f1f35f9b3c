"""Derivatives of expressions against differences of their values, all in Python."""

from __future__ import annotations

import math

import pytest

from lucid.autograd.kernels.expressions import Term, assignments, parse
from lucid.autograd.kernels.slopes import FUNCTIONS, gradients
from lucid.errors import NotDifferentiableError
from tests.autograd.kernels.evaluating import difference, drawn, value

G = {"y": Term("g")}
POINTS = ((0.31, 0.72, 0.43), (0.83, 0.25, 0.6))
# Where functions are defined that are not between 0 and 1.
ELSEWHERE = {"acosh": 1.5}


def slopes(text, *names, types=(), keep=True):
    """Return the gradients of an expression as texts."""
    return {name: str(term) for name, term in gradients({"y": parse(text, types)}, G, names, keep=keep).items()}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.isidentifier() and name != "neg"])
def test_each_function(name):
    """The gradient of each operand of each known function is its slope, by differences, also with what is kept."""
    operands = "abc"[: len(FUNCTIONS[name])]
    if name.startswith("is"):
        assert FUNCTIONS[name] == ("0",)
        return
    term = parse(f"{name}({', '.join(operands)})")
    for keep in (False, True):
        found = gradients({"y": term}, G, operands, keep=keep)
        for point in POINTS:
            names = {letter: number + ELSEWHERE.get(name, 0) for letter, number in zip(operands, point, strict=False)}
            y = value(term, names)
            for operand in operands:
                got = value(found[operand], {**names, "g": 1.7, "y": y})
                assert got == pytest.approx(1.7 * difference(term, names, operand), rel=1e-7, abs=1e-7)


def test_random_expressions(rng):
    """The gradients of random expressions are their slopes; each name gets the sum over all places where it stands."""
    for _ in range(200):
        term = drawn(rng, ("x", "z"), 4)
        names = {"x": float(rng.uniform(-1, 1)), "z": float(rng.uniform(-1, 1))}
        found = gradients({"y": term}, G, ("x", "z"))
        for name in names:
            got = value(found[name], {**names, "g": 1.3, "y": value(term, names)})
            expected = 1.3 * difference(term, names, name)
            assert got == pytest.approx(expected, rel=1e-5, abs=1e-6), (str(term), name, str(found[name]))


@pytest.mark.parametrize(
    ("text", "gradient"),
    [
        ("sin(x)", "g * cos(x)"),
        ("exp(x)", "g * y"),
        ("sqrt(x)", "g / (2 * y)"),
        ("n / x", "-g * y / x"),
        ("x / n", "g / n"),
        ("1 / 2 * x", "g * (1 / 2)"),
        ("pow(x, 3)", "g * 3 * pow(x, 2)"),
        ("pow(x, 2)", "g * 2 * x"),
        ("x > 0 ? x : n * x", "x > 0 ? g : g * n"),
        ("x > 0 ? sqrt(x) : 0", "x > 0 ? g / (2 * sqrt(x)) : 0"),
        ("max(x, 0)", "x < 0 ? 0 : g / (x == 0 ? 2 : 1)"),
        ("f(n) * x", "g * f(n)"),
        ("floor(x) * n", "0"),
        ("(int)x * n", "0"),
        ("(float)x * n", "g * n"),
        ("(x > 0) * n", "0"),
        ("__expf(x) + sinf(x)", "g * exp(x) + g * cos(x)"),
        ("-x", "-g"),
        ("x - n - x", "g - g"),
        ("MASS * x", "g * MASS"),
        ("3", "0"),
    ],
)
def test_text(text, gradient):
    """What is found reads as one would write it; in each branch of a choice stands its own gradient."""
    assert slopes(text, "x")["x"] == gradient


@pytest.mark.parametrize(
    "written",
    ["1.0 * n / 3", "n * 1.0 / 3", "(n + 0.0) / 3", "(n - 0.0) / 3", "pow(n, 1.0) / 3", "n / 1.0 / 3",
     "(1 ? n : 1.0) / 3", "1.0 * 1 / 2", "n * -1.0 / 3", "(n && 1)", "(0 / n + 0.0) / 3", "(n + n) / 4",
     "n * 1.0 * 16777217"],
)  # fmt: skip
def test_what_is_written_is_not_simplified(written):
    """A factor of 1.0 or a sum with 0.0 may make a floating-point number of an integer: it stays, in all orders."""
    assert parse(slopes(f"x * ({written})", "x")["x"]) == parse(f"g * ({written})")
    assert parse(slopes(f"c * x * ({written})", "x")["x"]) == parse(f"g * ({written}) * c")
    assert assignments(f"double s = {written}; y = x * s", ["y"])["y"] == parse(f"x * (double)({written})")


@pytest.mark.parametrize("text", ["x - -n * x", "erf(-n * x)", "asin(-n * x)", "acosh(-n * x)", "atan(-n * x)"])
def test_a_sign_that_is_written_stays(text):
    """The minus of an unsigned number is a large one, which a rule of differences and squares does not take away."""
    found = str(gradients({"y": parse(text)}, G, ("x",), keep=False)["x"])
    assert "n" in found
    assert "n" not in found.replace("-n", "")


def test_a_cast_to_a_letter():
    """It hands the gradient on where the letter stands for a floating-point type, and of one input's own it does."""
    assert slopes("x - (U)x", "x", types=("U",))["x"] == "g + ((U)0.5 == (U)0.25 ? 0 : -g)"
    found = gradients({"y": parse("x * (T)(x * 2)", ("T",))}, G, ("x",), floats={"T"})
    assert str(found["x"]) == "g * (T)(x * 2) + g * x * 2"


def test_texts_stay_short():
    """A chain of functions has a gradient whose text is about as long as the chain is, squared."""
    for name in FUNCTIONS:
        if name.isidentifier() and name != "neg" and not name.startswith("is"):
            operands = len(FUNCTIONS[name])
            text = "x"
            for _ in range(12):
                text = f"{name}({', '.join([text, '3.5', '2.5'][:operands])})"
            assert len(slopes(text, "x")["x"]) < 40 * len(text)


def test_a_constant_may_have_the_name_of_a_parameter():
    """A parameter in capitals is one: its gradient is not lost because constants are written so."""
    assert slopes("MASS * x", "x", "MASS") == {"x": "g * MASS", "MASS": "g * x"}


def test_several_results():
    """A name that stands in several results gets the sum of what each hands on."""
    results = {"y": parse("x * x"), "z": parse("x + n")}
    found = gradients(results, {"y": Term("g_y"), "z": Term("g_z")}, ("x", "n"))
    assert {name: str(term) for name, term in found.items()} == {"x": "g_y * x * 2 + g_z", "n": "g_z"}


def test_what_is_not_known_is_named():
    """A function without a known slope is named where a gradient would go through it; others are left alone."""
    with pytest.raises(
        NotDifferentiableError, match=r"the derivative of 'j0' with 1 operands is not known, in 'j0\(x\)'"
    ):
        slopes("2 * j0(x)", "x")
    with pytest.raises(NotDifferentiableError, match="'%' with 2 operands"):
        slopes("x % 2", "x")
    with pytest.raises(NotDifferentiableError, match="'sin' with 2 operands"):
        slopes("sin(x, x)", "x")


@pytest.mark.parametrize(
    ("text", "at", "slopes_there"),
    [
        ("pow(a, b)", (0, 0), (0, 0)),
        ("pow(a, b)", (0, 1), (1, 0)),
        ("pow(a, b)", (0, 2), (0, 0)),
        ("pow(a, b)", (-2, 0), (0, None)),
        ("pow(a, b)", (-2, 3), (12, None)),
        ("max(a, b)", (1, 1), (0.5, 0.5)),
        ("fmax(a, b)", (1, 1), (0.5, 0.5)),
        ("fmax(a, b)", (1, math.nan), (1, 0)),
        ("fmax(a, b)", (math.nan, 1), (0, 1)),
        ("fmin(a, b)", (1, math.nan), (1, 0)),
        ("fmin(a, b)", (math.nan, 1), (0, 1)),
        ("min(a, b)", (1, 1), (0.5, 0.5)),
        ("fmin(a, b)", (1, 1), (0.5, 0.5)),
        ("abs(a) * b", (0, 2), (0, 0)),
        ("fabs(a) * b", (-1, 2), (-2, 1)),
        ("atan2(a, b)", (0, -1), (-1, 0)),
        ("hypot(a, b)", (0, -2), (0, -1)),
        ("cbrt(a) + b", (1, 0), (1 / 3, 1)),
    ],
)
def test_corners(text, at, slopes_there):
    """Where a slope jumps, or one formula of it is not a number, it is the one that lucid's own functions have."""
    names = dict(zip("ab", map(float, at), strict=True))
    for keep in (False, True):
        found = gradients({"y": parse(text)}, G, ("a", "b"), keep=keep)
        kept = {**names, "g": 1.0, **({"y": value(parse(text), names)} if keep else {})}
        for name, slope in zip("ab", slopes_there, strict=True):
            if slope is not None:  # of a power of a negative number there is none
                assert value(found[name], kept) == pytest.approx(slope, abs=1e-12)
