"""Elementwise arithmetic, powers, exponentials, gammas, trigonometry, comparison, choice, rounding, logic, complex."""

from __future__ import annotations

import math

import numpy as np

import lucid
from tests.samples import Sample, kinks

SHAPE = (3, 4)


def between(*bounds, shape=SHAPE):
    """Return what draws one array for each pair of bounds."""
    return lambda rng: tuple(rng.uniform(low, high, shape) for low, high in bounds)


def outside(*gaps, shape=SHAPE):
    """Return what draws one array of either sign for each gap around zero, which the sizes stay clear of."""
    return lambda rng: tuple(rng.choice([-1.0, 1.0], shape) * rng.uniform(gap, 2.0, shape) for gap in gaps)


def differences(a, b):
    """Return the gaps of what compares two arrays."""
    return (a - b,)


def no_rows(count):
    """Return what draws arrays without elements."""
    return lambda rng: (np.zeros((0, 4)),) * count


def complex_numbers(count):
    """Return what draws complex arrays, clear of the axes, on which functions have their poles and branch cuts."""
    draw = outside(*(0.3,) * (2 * count))

    def inputs(rng):
        parts = draw(rng)
        return tuple(real + 1j * imag for real, imag in zip(parts[::2], parts[1::2], strict=True))

    return inputs


def integers(count, low=1, high=8):
    """Return what draws arrays of integers."""
    return lambda rng: tuple(rng.integers(low, high, SHAPE) for _ in range(count))


def bools(count):
    """Return what draws arrays of bools."""
    return lambda rng: tuple(rng.random(SHAPE) < 0.5 for _ in range(count))


def one(name, inputs, reference, **more):
    """Return the row of a function of one tensor, which PyTorch has under the same name."""
    return Sample(
        name,
        getattr(lucid, name),
        inputs,
        reference,
        lambda torch, x: getattr(torch, name)(x),
        empty=no_rows(1),
        **more,
    )


def two(name, inputs, reference, **more):
    """Return the row of a function of two tensors, which PyTorch has under the same name."""
    return Sample(
        name, getattr(lucid, name), inputs, reference, lambda torch, a, b: getattr(torch, name)(a, b), empty=no_rows(2),
        broadcasts=True, **more,
    )  # fmt: skip


def of_integers(name, count, reference):
    """Return the row of a function of tensors of integers, which PyTorch has under the same name."""
    return Sample(
        name,
        getattr(lucid, name),
        integers(count),
        reference,
        lambda torch, *tensors: getattr(torch, name)(*tensors),
        differentiable=False,
        broadcasts=count == 2,
    )


def with_settings(name, variant, inputs, reference, *args, twice=True, gaps=None, **settings):
    """Return the row of a function with settings, which PyTorch has under the same name."""
    return Sample(
        f"{name}:{variant}",
        lambda *tensors: getattr(lucid, name)(*tensors, *args, **settings),
        inputs,
        reference,
        lambda torch, *tensors: getattr(torch, name)(*tensors, *args, **settings),
        twice=twice,
        gaps=gaps,
    )


def of_operator(name, inputs, function, **more):
    """Return the row of an expression, the same for tensors of lucid and PyTorch and for arrays."""
    return Sample(name, function, inputs, function, lambda torch, *tensors: function(*tensors), **more)


REAL = between((-2, 2))
POSITIVE = between((0.2, 3))
LARGE_ENOUGH = outside(0.3)
erf, erfc = np.vectorize(math.erf, otypes=[float]), np.vectorize(math.erfc, otypes=[float])

ARITHMETIC = [
    two("add", between((-2, 2), (-2, 2)), np.add),
    with_settings("add", "alpha", between((-2, 2), (-2, 2)), lambda a, b: a + 2.5 * b, alpha=2.5),
    two("sub", between((-2, 2), (-2, 2)), np.subtract),
    with_settings("sub", "alpha", between((-2, 2), (-2, 2)), lambda a, b: a - 3 * b, alpha=3),
    two("rsub", between((-2, 2), (-2, 2)), lambda a, b: b - a),
    two("mul", between((-2, 2), (-2, 2)), np.multiply),
    two("div", lambda rng: (*REAL(rng), *LARGE_ENOUGH(rng)), np.divide),
    with_settings("div", "number", REAL, lambda x: x / 3, 3),
    of_operator("div:of a number", LARGE_ENOUGH, lambda x: 3 / x),
    with_settings(
        "div",
        "floor",
        between((2.1, 2.6), (0.9, 0.95)),
        lambda a, b: np.floor(a / b),
        twice=False,
        rounding_mode="floor",
    ),
    with_settings(
        "div",
        "trunc",
        between((-2.6, -2.1), (0.9, 0.95)),
        lambda a, b: np.trunc(a / b),
        twice=False,
        rounding_mode="trunc",
    ),
    Sample(
        "floor_divide",
        lucid.floor_divide,
        between((2.1, 2.6), (0.9, 0.95)),
        np.floor_divide,
        twice=False,
        broadcasts=True,
    ),
    two("remainder", between((-2.6, -2.4), (0.9, 1.1)), lambda a, b: a - b * np.floor(a / b)),
    two("fmod", between((-2.6, -2.4), (0.9, 1.1)), lambda a, b: a - b * np.trunc(a / b)),
    one("neg", REAL, np.negative),
    one("reciprocal", LARGE_ENOUGH, lambda x: 1 / x),
    one("abs", LARGE_ENOUGH, np.abs),
    one("sign", LARGE_ENOUGH, np.sign, twice=False),
    Sample("sgn", lucid.sgn, LARGE_ENOUGH, np.sign, twice=False),
    with_settings("addcmul", "value", between((-2, 2), (-2, 2), (-2, 2)), lambda a, b, c: a + 0.5 * b * c, value=0.5),
    Sample(
        "addcdiv",
        lucid.addcdiv,
        lambda rng: (*between((-2, 2), (-2, 2))(rng), *LARGE_ENOUGH(rng)),
        lambda a, b, c: a + b / c,
        lambda torch, *tensors: torch.addcdiv(*tensors),
        broadcasts=True,
    ),
    Sample(
        "lerp",
        lucid.lerp,
        between((-2, 2), (-2, 2), (0, 1)),
        lambda a, b, w: (1 - w) * a + w * b,
        lambda torch, *tensors: torch.lerp(*tensors),
        broadcasts=True,
    ),
    with_settings("lerp", "number", between((-2, 2), (-2, 2)), lambda a, b: 0.3 * a + 0.7 * b, 0.7),
    of_operator("integers", integers(2), lambda a, b: (a + b) * a - b, differentiable=False),
    of_operator("integers:quotients", integers(2, -8, -1), lambda a, b: a // b, differentiable=False),
]

POWERS = [
    two("pow", between((0.2, 2), (-2, 2)), np.power),
    *(of_operator(f"pow:{n}", LARGE_ENOUGH, lambda x, n=n: x**n, twice=n != 0) for n in (0, 1, 2, 3, -1, -2)),
    *(of_operator(f"pow:{n}", POSITIVE, lambda x, n=n: x**n) for n in (0.5, -0.5, 1.7)),
    of_operator("pow:of a number", REAL, lambda x: 2.5**x),
    of_operator("pow:of integers", integers(2, 0, 5), lambda a, b: a**b, differentiable=False),
    one("square", REAL, np.square),
    one("sqrt", POSITIVE, np.sqrt),
    one("rsqrt", POSITIVE, lambda x: x**-0.5),
    one("exp", REAL, np.exp),
    one("exp2", REAL, lambda x: 2.0**x),
    one("expm1", REAL, lambda x: np.exp(x) - 1),
    one("log", POSITIVE, np.log),
    one("log2", POSITIVE, lambda x: np.log(x) / np.log(2)),
    one("log10", POSITIVE, lambda x: np.log(x) / np.log(10)),
    one("log1p", between((-0.6, 2)), lambda x: np.log(1 + x)),
    two("logaddexp", between((-2, 2), (-2, 2)), lambda a, b: np.log(np.exp(a) + np.exp(b))),
    one("erf", REAL, erf),
    one("erfc", REAL, erfc),
    Sample("erfinv", lucid.erfinv, between((-0.8, 0.8)), None, lambda torch, x: torch.erfinv(x)),
]

lgamma = np.vectorize(math.lgamma, otypes=[float])


def digamma(x):
    """Return the slope of the logarithm of the gamma function: a sum, and what an integral has of the rest."""
    k = np.arange(20000.0).reshape(-1, *(1,) * x.ndim)
    rest = np.log((20000 - 0.5 + x) / (20000 + 0.5))
    return (1 / (k + 1) - 1 / (k + x)).sum(0) + rest - np.euler_gamma


def polygamma(n, **more):
    """Return a row of `polygamma`, with a model of the same kind."""

    def reference(x):
        k = np.arange(20000.0).reshape(-1, *(1,) * x.ndim)
        rest = (x + 20000 - 0.5) ** -n / n
        return (-1) ** (n + 1) * math.factorial(n) * (((x + k) ** -(n + 1.0)).sum(0) + rest)

    return Sample(
        f"polygamma:{n}", lambda x: lucid.polygamma(n, x), between((1.2, 3)), reference, empty=no_rows(1), **more
    )


SPECIAL = [
    one("lgamma", between((0.2, 6)), lgamma),
    Sample("lgamma:negative", lucid.lgamma, between((-2.8, -2.2)), lgamma, lambda torch, x: torch.lgamma(x)),
    # PyTorch's function of order 1, and so the slope of this one, has ten digits
    Sample("digamma", lucid.digamma, between((2, 6)), digamma, empty=no_rows(1)),
    polygamma(1),
    polygamma(2, torch=lambda torch, x: torch.polygamma(2, x)),
    Sample(
        "mvlgamma",
        lambda x: lucid.mvlgamma(x, 3),
        between((1.3, 5)),
        lambda x: lgamma(x) + lgamma(x - 0.5) + lgamma(x - 1) + 1.5 * math.log(math.pi),
        lambda torch, x: torch.mvlgamma(x, 3),
    ),
    one("i0", between((0.5, 4)), np.i0),
]

TRIGONOMETRY = [
    one("sin", REAL, np.sin),
    one("cos", REAL, np.cos),
    one("tan", between((-1.2, 1.2)), lambda x: np.sin(x) / np.cos(x)),
    one("asin", between((-0.8, 0.8)), lambda x: np.arctan2(x, np.sqrt(1 - x * x))),
    one("acos", between((-0.8, 0.8)), lambda x: np.arctan2(np.sqrt(1 - x * x), x)),
    one("atan", REAL, np.arctan),
    two("atan2", outside(0.3, 0.3), lambda a, b: np.angle(b + 1j * a)),
    one("sinh", REAL, lambda x: (np.exp(x) - np.exp(-x)) / 2),
    one("cosh", REAL, lambda x: (np.exp(x) + np.exp(-x)) / 2),
    one("tanh", REAL, lambda x: 1 - 2 / (np.exp(2 * x) + 1)),
    one("asinh", REAL, lambda x: np.log(x + np.sqrt(x * x + 1))),
    one("acosh", between((1.3, 3)), lambda x: np.log(x + np.sqrt(x * x - 1))),
    one("atanh", between((-0.8, 0.8)), lambda x: np.log((1 + x) / (1 - x)) / 2),
]

COMPARISON = [
    *(two(n, between((-2, 2), (-2, 2)), r, gaps=differences, differentiable=False) for n, r in [
        ("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal),
    ]),
    *(two(n, integers(2, 0, 2), r, differentiable=False) for n, r in [("eq", np.equal), ("ne", np.not_equal)]),
    two("maximum", between((-2, 2), (-2, 2)), lambda a, b: np.where(a > b, a, b), gaps=differences),
    two("minimum", between((-2, 2), (-2, 2)), lambda a, b: np.where(a > b, b, a), gaps=differences),
    two("isclose", integers(2, 0, 2), np.isclose, differentiable=False),
    *(one(n, lambda rng: (rng.choice([1.0, np.nan, np.inf, -np.inf], SHAPE),), getattr(np, n), differentiable=False)
      for n in ("isnan", "isinf", "isfinite")),
    with_settings("nan_to_num", "finite", REAL, lambda x: x),
    with_settings("clamp", "both", REAL, lambda x: np.clip(x, -0.5, 1.0), -0.5, 1.0, gaps=kinks(-0.5, 1.0)),
    with_settings("clamp", "below", REAL, lambda x: np.maximum(x, 0.5), min=0.5, gaps=kinks(0.5)),
    Sample(
        "clamp_min", lambda x: lucid.clamp_min(x, 0.5), REAL, lambda x: np.maximum(x, 0.5),
        lambda torch, x: torch.clamp_min(x, 0.5), gaps=kinks(0.5),
    ),
    Sample(
        "clamp_max", lambda x: lucid.clamp_max(x, 0.5), REAL, lambda x: np.minimum(x, 0.5),
        lambda torch, x: torch.clamp_max(x, 0.5), gaps=kinks(0.5),
    ),
    with_settings("clip", "above", REAL, lambda x: np.minimum(x, 0.5), max=0.5, gaps=kinks(0.5)),
    Sample(
        "clamp:tensors",
        lucid.clamp,
        between((-2, 2), (-0.5, -0.4), (0.2, 0.5)),
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
        lambda torch, x, low, high: torch.clamp(x, low, high),
        broadcasts=True,
        gaps=lambda x, low, high: (x - low, x - high),
    ),
    Sample(
        "where",
        lucid.where,
        lambda rng: (*bools(1)(rng), *between((-2, 2), (-2, 2))(rng)),
        np.where,
        lambda torch, c, a, b: torch.where(c, a, b),
        broadcasts=True,
    ),
    Sample(
        "where:number",
        lambda c, x: lucid.where(c, x, 0.5),
        lambda rng: (*bools(1)(rng), *REAL(rng)),
        lambda c, x: np.where(c, x, 0.5),
        lambda torch, c, x: torch.where(c, x, 0.5),
    ),
]  # fmt: skip

ROUNDING = [
    *(one(n, between((0.2, 0.4)), getattr(np, n), twice=False) for n in ("floor", "ceil", "trunc")),
    one("round", REAL, np.round, twice=False, gaps=kinks(-1.5, -0.5, 0.5, 1.5)),
    with_settings("round", "decimals", between((1.21, 1.24)), lambda x: np.round(x, 1), decimals=1, twice=False),
    with_settings("round", "tens", between((21, 24)), lambda x: np.round(x, -1), decimals=-1, twice=False),
    one("frac", between((1.2, 1.8)), lambda x: x - 1),
]

LOGIC = [
    *(two(f"logical_{n}", bools(2), getattr(np, f"logical_{n}"), differentiable=False) for n in ("and", "or", "xor")),
    one("logical_not", lambda rng: (rng.integers(0, 2, SHAPE),), np.logical_not, differentiable=False),
    *(of_integers(f"bitwise_{n}", 2, getattr(np, f"bitwise_{n}")) for n in ("and", "or", "xor")),
    of_integers("bitwise_not", 1, np.invert),
    of_integers("bitwise_left_shift", 2, np.left_shift),
    of_integers("bitwise_right_shift", 2, np.right_shift),
]


def real_and_complex(rng):
    """Draw a real array and a complex one."""
    return (*REAL(rng), *complex_numbers(1)(rng))


COMPLEX_UNARY = [
    "exp", "log", "sqrt", "rsqrt", "square", "reciprocal", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "atan",
    "sigmoid", "neg", "abs", "angle", "sgn", "conj", "real", "imag", "log2", "log10", "expm1",
]  # fmt: skip


def of_complex(name):
    """Return the row of a function of one complex tensor."""
    return Sample(f"{name}:complex", getattr(lucid, name), complex_numbers(1), None,
                  lambda torch, x: getattr(torch, name)(x), dtypes=())  # fmt: skip


COMPLEX = [
    *map(of_complex, COMPLEX_UNARY),
    *(of_operator(f"{name}:complex", complex_numbers(2), function, dtypes=()) for name, function in [
        ("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b),
        ("div", lambda a, b: a / b), ("pow", lambda a, b: a**b),
    ]),
    of_operator("pow:complex and number", complex_numbers(1), lambda a: a**3, dtypes=()),
    of_operator("mul:real and complex", real_and_complex, lambda a, b: a * b, dtypes=()),
    of_operator("mul:real and complex number", REAL, lambda a: a * (2 + 1j), dtypes=("float64",)),
    two("complex", between((-2, 2), (-2, 2)), lambda a, b: a + 1j * b, dtypes=("float32", "float64")),
    one("angle", LARGE_ENOUGH, np.angle, twice=False),
    two("polar", between((0.3, 2), (-2, 2)), lambda a, b: a * np.exp(1j * b), dtypes=("float32", "float64")),
    Sample(
        "view_as_real", lambda x: lucid.view_as_real(x.T), complex_numbers(1),
        lambda x: np.stack((x.T.real, x.T.imag), -1), lambda torch, x: torch.view_as_real(x.T), dtypes=(),
    ),
    Sample(
        "view_as_complex", lambda x: lucid.view_as_complex(x.contiguous()), between((-2, 2), shape=(3, 2)),
        lambda x: x[:, 0] + 1j * x[:, 1], lambda torch, x: torch.view_as_complex(x.contiguous()),
        dtypes=("float32", "float64"), empty=lambda rng: (np.zeros((0, 2)),),
    ),
]  # fmt: skip

ROWS = [*ARITHMETIC, *POWERS, *SPECIAL, *TRIGONOMETRY, *COMPARISON, *ROUNDING, *LOGIC, *COMPLEX]
