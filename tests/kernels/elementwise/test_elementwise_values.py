"""Elementwise kernels give NumPy's values at zeros, infinities, NaN and the ends of the integers, and PyTorch's."""

from __future__ import annotations

import math
import operator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid.cuda.launch.elementwise import KINDS
from lucid.nn import functional
from lucid.ops.elementwise import comparison, power
from lucid.ops.elementwise import complex as parts
from tests.gradients import numbers
from tests.kernels.declared import KERNELS
from tests.kernels.near import on_device

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
# A few units in the last place of the dtype, and of the approximations on either side.
RELATIVE = {"float32": 1e-6, "float64": 1e-14, "float16": 1e-3, "bfloat16": 8e-3}

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0, 20.0, -20.0])
LEFT, RIGHT = (np.ascontiguousarray(x.ravel()) for x in np.meshgrid(SPECIAL, SPECIAL))

# Halves of what is rounded to, of which each has a neighbour that is even.
TIES = np.array([0.25, -0.75, 5.0, 15.0, -25.0, 35.0])

UNARY_NAMES = """
    exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt rsqrt square
    reciprocal abs neg sign floor ceil trunc round frac erf erfc erfinv sigmoid relu isnan isinf isfinite nan_to_num
    logical_not signbit lgamma digamma i0 sinc
"""
ACTIVATIONS = """
    silu gelu leaky_relu elu selu celu hardtanh relu6 hardsigmoid hardswish hardshrink softshrink softplus logsigmoid
    mish softsign tanhshrink
"""
BINARY_NAMES = """
    add sub mul div floor_divide remainder fmod pow maximum minimum atan2 logaddexp eq ne lt le gt ge logical_and
    logical_or logical_xor hypot copysign fmax fmin heaviside logaddexp2
"""
UNARY = [getattr(lucid, name) for name in UNARY_NAMES.split()]
UNARY += [getattr(functional, name) for name in ACTIVATIONS.split()]
UNARY += [power.cbrt, parts.sign_or_nan]  # NumPy's, without a name in lucid
BINARY = [*[getattr(lucid, name) for name in BINARY_NAMES.split()], comparison.steps]
# Zeros carry signs that both sides keep, but for functions in which the CPU takes another way to zero.
UNSIGNED_ZEROS = {"maximum", "minimum", "relu", "relu6", "hardtanh", "gelu", "frac", "softplus", "leaky_relu", "elu"}


def name_of(op):
    """Return a function's name, for test ids."""
    return op.__name__


def both(op, *arrays, dtype):
    """Return what an op gives on the CPU and on the device, as float64 unless they are bools."""
    results = []
    for device in ("cpu", "cuda"):
        out = numbers(op(*[lucid.tensor(a, dtype=getattr(lucid, dtype), device=device) for a in arrays]))
        results.append((out.dtype, out if out.dtype.kind == "b" else out.astype(np.float64)))
    (here_dtype, here), (there_dtype, there) = results
    assert there_dtype == here_dtype
    return here, there


def check(op, *arrays, dtype):
    """Fail unless both devices give the same, signs of zeros included."""
    here, there = both(op, *arrays, dtype=dtype)
    np.testing.assert_allclose(there, here, rtol=RELATIVE[dtype], atol=0)
    if op.__name__ not in UNSIGNED_ZEROS and here.dtype.kind != "b":
        zeros = here == 0
        np.testing.assert_array_equal(np.signbit(there[zeros]), np.signbit(here[zeros]))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", UNARY, ids=name_of)
def test_of_one_special_number(op, dtype):
    """Functions of one number agree with the CPU at special numbers."""
    check(op, SPECIAL, dtype=dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", BINARY, ids=name_of)
def test_of_two_special_numbers(op, dtype):
    """Functions of two numbers agree with the CPU at all pairs of special numbers."""
    check(op, LEFT, RIGHT, dtype=dtype)


WITH_SETTINGS = {
    **{f"power {n}": (lambda x, n=n: x**n) for n in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5, -1.5)},
    **{f"{n} to a power": (lambda x, n=n: n**x) for n in (0.0, 1.0, 2.0, -2.0)},
    "round to tenths": lambda x: lucid.round(x, decimals=1),
    "round to tens": lambda x: lucid.round(x, decimals=-1),
    "clamp": lambda x: lucid.clamp(x, -1, 1.5),
    "clamp below": lambda x: lucid.clamp(x, min=0.5),
    "clamp above": lambda x: lucid.clamp(x, max=0.5),
    "clamp to nothing": lambda x: lucid.clamp(x, 2, 1),
    "numbers for others": lambda x: lucid.nan_to_num(x, 1.0, 2.0, -3.0),
    "steep leaky relu": lambda x: functional.leaky_relu(x, 1.5),
    "low elu": lambda x: functional.elu(x, 0.3),
    "narrow celu": lambda x: functional.celu(x, 0.3),
    "threshold": lambda x: functional.threshold(x, -0.5, 2.0),
    "glu": lambda x: functional.glu(x),
    "softplus below a threshold": lambda x: functional.softplus(x, 2.0, 1.0),
    "gelu by tanh": lambda x: functional.gelu(x, "tanh"),
    "trigamma": lambda x: lucid.polygamma(1, x),
    "the fourth derivative of digamma": lambda x: lucid.polygamma(4, x),
    "where": lambda x: lucid.where(x > 0, x, 2.0),
    "masked_fill": lambda x: x.masked_fill(x > 0, 2.0),
    "lerp": lambda x: lucid.lerp(x, x * 2 + 1, 0.75),
}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_of_settings_at_special_numbers(name, dtype):
    """Functions with settings agree with the CPU at special numbers, and at ties."""
    numbers = np.append(SPECIAL, TIES)
    here, there = both(WITH_SETTINGS[name], numbers, dtype=dtype)
    if dtype == "bfloat16":
        # there the CPU takes powers of arrays, in which the root of -inf is inf
        here, _ = both(WITH_SETTINGS[name], numbers, dtype="float32")
    np.testing.assert_allclose(there, here, rtol=RELATIVE[dtype], atol=0)


def gradients(op, arrays, upstream, dtype):
    """Return for each device the gradients of an op at `arrays`."""
    found = []
    for device in ("cpu", "cuda"):
        tensors = [lucid.tensor(a, dtype=getattr(lucid, dtype), device=device, requires_grad=True) for a in arrays]
        out = op(*tensors)
        grad = lucid.tensor(upstream, dtype=out.dtype, device=device)
        found.append([numbers(g).astype(np.float64) for g in lucid.autograd.grad(out, tensors, grad)])
    return found


CONSTANT = {"sign", "floor", "ceil", "trunc", "round", "floor_divide", "isnan", "isinf", "isfinite", "logical_not"}
CONSTANT |= {"signbit", "heaviside"}
CONSTANT |= {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "op", [op for op in (*UNARY, *WITH_SETTINGS.values()) if getattr(op, "__name__", "") not in CONSTANT]
)
def test_gradients_of_one_special_number(op, dtype, rng):
    """Slopes at zeros, kinks, infinities and NaN are those of the CPU."""
    upstream = rng.standard_normal(op(lucid.tensor(SPECIAL)).shape)  # glu's output has half of the elements
    here, there = gradients(op, [SPECIAL], upstream, dtype)
    np.testing.assert_allclose(there[0], here[0], rtol=20 * RELATIVE[dtype], atol=1e-30)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", [op for op in BINARY if op.__name__ not in CONSTANT], ids=name_of)
def test_gradients_of_two_special_numbers(op, dtype, rng):
    """So are the slopes along either operand, at ties too."""
    here, there = gradients(op, [LEFT, RIGHT], rng.standard_normal(LEFT.shape), dtype)
    for got, expected in zip(there, here, strict=True):
        np.testing.assert_allclose(got, expected, rtol=20 * RELATIVE[dtype], atol=1e-30)


@pytest.mark.gpu
def test_clamp_between_tensors_at_ties(rng):
    """The gradient of a clamp goes to the element or to the bound that it is at, as on the CPU."""
    x, low, high = (a.ravel() for a in np.meshgrid(*[np.array([-1.0, 0.0, 1.0, np.inf, np.nan])] * 3))
    upstream = rng.standard_normal(x.shape)
    for op, arrays in (
        (lucid.clamp, [x, low, high]),
        (lambda x, low: lucid.clamp(x, low, 1.0), [x, low]),
        (lambda x, high: lucid.clamp(x, max=high), [x, high]),
        (lambda x, low: lucid.clamp(x, min=low), [x, low]),
    ):
        here, there = gradients(op, arrays, upstream, "float32")
        for got, expected in zip(there, here, strict=True):
            np.testing.assert_array_equal(got, expected)


def of_two(reduce):
    """Return the function of two numbers that a reduction of them is."""
    return lambda a, b: reduce(lucid.stack([a, b]))


def loss(name, **settings):
    """Return an elementwise loss of two numbers."""
    return partial(getattr(functional, name), reduction="none", **settings)


def slope(op):
    """Return the gradient of a function of two numbers along the first, as a function to differentiate again."""
    return lambda a, b: lucid.autograd.grad(op(a.requires_grad_(), b).sum(), a, create_graph=True)[0]


def in_unit(x):
    """Return numbers between 0 and 1, both included."""
    return x.sigmoid().nan_to_num(0.5)


TWO_WITH_SETTINGS = {
    "prelu": lambda a, b: functional.prelu(a.unsqueeze(0), b)[0],
    "div, truncated": lambda a, b: lucid.div(a, b, rounding_mode="trunc"),
    "addcmul": lambda a, b: lucid.addcmul(a, b, a + 1, value=0.5),
    "addcdiv": lambda a, b: lucid.addcdiv(a, a + 1, b, value=0.5),
    "lerp by numbers": lambda a, b: lucid.lerp(a, b, a * 0.5),
    "clamp between numbers": lambda a, b: lucid.clamp(a, b, b + 1),
    "mse_loss": loss("mse_loss"),
    "smooth_l1_loss": loss("smooth_l1_loss", beta=0.5),
    "huber_loss": loss("huber_loss", delta=0.5),
    "kl_div": loss("kl_div"),
    "kl_div of logarithms": loss("kl_div", log_target=True),
    "binary_cross_entropy": lambda a, b: loss("binary_cross_entropy")(in_unit(a), in_unit(b)),
    "binary_cross_entropy_with_logits": loss("binary_cross_entropy_with_logits"),
    "the same, weighed": lambda a, b: loss("binary_cross_entropy_with_logits", pos_weight=b + 1)(a, b),
    **{f"{name} of two": of_two(partial(getattr(lucid, name), dim=0)) for name in ("amax", "std", "var", "logsumexp")},
    **{f"norm {p} of two": of_two(partial(lucid.norm, p=p, dim=0)) for p in (1, 2, 3, math.inf)},
    "nextafter": lambda a, b: lucid.nextafter(a.detach(), b.detach()) + 0 * a * b,
    "slope of huber_loss": slope(loss("huber_loss", delta=0.5)),
    "slope of the norm of two": slope(of_two(partial(lucid.norm, dim=0))),
}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TWO_WITH_SETTINGS)
def test_two_special_numbers_with_settings(name, dtype, rng):
    """Functions of two numbers with settings, losses and reductions of two agree with the CPU, slopes too."""
    # terms of second derivatives cancel
    tolerance = {"rtol": 20 * RELATIVE[dtype], "atol": RELATIVE[dtype] if name.startswith("slope") else 1e-30}
    op = TWO_WITH_SETTINGS[name]
    here, there = both(op, LEFT, RIGHT, dtype=dtype)
    np.testing.assert_allclose(there, here, **tolerance)
    here, there = gradients(op, [LEFT, RIGHT], rng.standard_normal(LEFT.shape), dtype)
    for got, expected in zip(there, here, strict=True):
        np.testing.assert_allclose(got, expected, **tolerance)


@pytest.mark.gpu
@pytest.mark.parametrize("shapes", [((3, 1), (1, 4)), ((2, 3, 4), (4,)), ((), (3,)), ((2, 3), (2, 3))], ids=str)
@pytest.mark.parametrize("op", [op for op in BINARY if op.__name__ not in CONSTANT], ids=name_of)
def test_gradients_of_broadcast_operands(op, shapes, rng):
    """A fused gradient is summed over what its operand was broadcast along."""
    arrays = [rng.uniform(0.5, 2, shape) for shape in shapes]
    upstream = rng.standard_normal(np.broadcast_shapes(*shapes))
    here, there = gradients(op, arrays, upstream, "float64")
    for got, expected, array in zip(there, here, arrays, strict=True):
        assert got.shape == array.shape
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


# ---- integers ----

INTEGERS = ("int8", "uint8", "int16", "int32", "int64")


def pairs_of(dtype):
    """Return pairs of small and extreme integers of a dtype."""
    info = np.iinfo(dtype)
    values = sorted({0, 1, 2, 3, 7, info.max, info.max - 1, info.min, max(info.min, -1), max(info.min, -7)})
    left, right = np.meshgrid(np.array(values, dtype), np.array(values, dtype))
    return np.ascontiguousarray(left.ravel()), np.ascontiguousarray(right.ravel())


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", INTEGERS)
def test_whole_quotients_and_remainders(dtype):
    """They are NumPy's, also by zero (zero) and of the lowest integer by -1 (which wraps around)."""
    a, b = pairs_of(dtype)
    x, y = on_device(a), on_device(b)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(numbers(x // y), a // b)
        np.testing.assert_array_equal(numbers(x % y), a % b)
        np.testing.assert_array_equal(numbers(lucid.fmod(x, y)), np.fmod(a, b))
        towards_zero = a // b + ((a % b != 0) & ((a < 0) != (b < 0)) & (b != 0))
        np.testing.assert_array_equal(numbers(lucid.div(x, y, rounding_mode="trunc")), towards_zero)


DIVISORS = ("gcd", "lcm")
BITWISE = (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_and_shifts(dtype):
    """Bitwise operations, shifts, divisors and multiples are NumPy's, also by too many bits and of negative numbers."""
    a, b = pairs_of(dtype)
    x, y = on_device(a), on_device(b)
    for op in BITWISE:
        np.testing.assert_array_equal(numbers(op(x, y)), op(a, b))
    np.testing.assert_array_equal(numbers(~x), ~a)
    for op in DIVISORS:
        np.testing.assert_array_equal(numbers(getattr(lucid, op)(x, y)), getattr(np, op)(a, b))
    np.testing.assert_array_equal(numbers(lucid.signbit(x)), a < 0)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", INTEGERS)
def test_comparisons_and_choices_of_integers(dtype):
    """Comparisons, the larger, the smaller, signs and choices keep every bit of an integer."""
    a, b = pairs_of(dtype)
    x, y = on_device(a), on_device(b)
    for op in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        np.testing.assert_array_equal(numbers(op(x, y)), op(a, b))
    np.testing.assert_array_equal(numbers(lucid.maximum(x, y)), np.maximum(a, b))
    np.testing.assert_array_equal(numbers(lucid.minimum(x, y)), np.minimum(a, b))
    np.testing.assert_array_equal(numbers(lucid.where(x > y, x, y)), np.maximum(a, b))
    np.testing.assert_array_equal(numbers(lucid.clamp(x, 1, 5)), np.clip(a, 1, 5))
    np.testing.assert_array_equal(numbers(lucid.sign(x)), np.sign(a))
    np.testing.assert_array_equal(numbers(lucid.relu(x)), np.maximum(a, 0))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_of_integers(dtype):
    """They wrap around; fractions, from negative powers, are zero."""
    a, b = pairs_of(dtype)
    small = np.abs(b) < 64
    a, b = a[small], b[small]
    got = numbers(on_device(a) ** on_device(b))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got[b >= 0], a[b >= 0] ** b[b >= 0])
    np.testing.assert_array_equal(got[b < 0], numbers(lucid.tensor(a) ** lucid.tensor(b))[b < 0])


@pytest.mark.gpu
def test_bools():
    """Sums of bools are disjunctions, products conjunctions; the inverse of a bool is a bool."""
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    x, y = on_device(a), on_device(b)
    for op in (operator.add, operator.mul, operator.and_, operator.or_, operator.xor, operator.eq, operator.lt):
        got = numbers(op(x, y))
        assert got.dtype == np.bool_
        np.testing.assert_array_equal(got, op(a, b))
    np.testing.assert_array_equal(numbers(~x), ~a)
    np.testing.assert_array_equal(numbers(lucid.signbit(x)), a < 0)
    np.testing.assert_array_equal(numbers(lucid.where(x, y, True)), np.where(a, b, True))


CHOICES = {
    **{name: getattr(lucid, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum")},
    **{name: getattr(lucid, name) for name in ("logical_and", "logical_or", "logical_xor")},
    "logical_not": lambda a, b: lucid.logical_not(a),
    "isclose": lambda a, b: lucid.isclose(a, b, rtol=0.1),
    "isclose, NaN": lambda a, b: lucid.isclose(a, b, equal_nan=True),
    "where": lambda a, b: lucid.where(a != b, a, b),
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "isnan": lambda a, b: lucid.isnan(a),
    "isinf": lambda a, b: lucid.isinf(a),
    "isfinite": lambda a, b: lucid.isfinite(a),
}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("name", CHOICES)
def test_choices(name, dtype, rng):
    """Comparisons and logic give in every dtype what they give on the CPU, of dense numbers and of reversed ones."""
    values = np.array([0.0, 1.0, 2.0, 100.0, *([np.nan, np.inf, -np.inf, -0.0] if dtype in FLOATS else [])])
    a, b = rng.choice(values, (2, 5, 16)).astype(getattr(lucid, dtype).numpy)
    for step in (1, -1):
        here, there = (
            CHOICES[name](*[lucid.as_tensor(lucid.tensor(x, device=d).array[::step, ::step]) for x in (a, b)])
            for d in ("cpu", "cuda")
        )
        assert here.dtype is there.dtype
        np.testing.assert_array_equal(numbers(there).astype(np.float64), numbers(here).astype(np.float64))


WRAPPING = {
    "sum": lambda x: x.sum(),
    "prod": lambda x: x.prod(),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "scatter_add": lambda x: lucid.zeros_like(x).scatter_add(0, lucid.zeros_like(x), x),
}


@pytest.mark.gpu
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("name", WRAPPING)
def test_sums_beyond_int64(name, deterministic, rng):
    """Sums and products of integers wrap around, as on the CPU, where C++ would leave them undefined."""
    values = rng.integers(2**61, 2**63 - 1, 100) * rng.choice([-1, 1], 100)
    lucid.use_deterministic_algorithms(deterministic)
    try:
        here, there = (WRAPPING[name](lucid.tensor(values, device=d)).tolist() for d in ("cpu", "cuda"))
    finally:
        lucid.use_deterministic_algorithms(False)
    assert here == there


# ---- the tables above are complete ----

# Functors whose special values another file tests, and how these are named there.
ELSEWHERE = {
    "activation_bias_activation.cu: OfSum": "test_bias_activation.py",
    "activation_bias_activation.cu: SumGrad": "test_bias_activation.py",
    **dict.fromkeys(
        [
            "power.cu: Exponent",
            "power.cu: FloatPow",
            "power.cu: Ldexp",
            "power.cu: Mantissa",
            "elementwise_rounding.cu: Fraction",
        ],
        "tests/tensor/numpy_calls/test_special_values.py",
    ),
}


def functors():
    """Return for each instance of an elementwise kernel, by its C++ name: its file and functor."""
    found = {}
    for kernel in KERNELS:
        if kernel.name.removeprefix("lucid::") in KINDS.values():
            for instance in kernel.instances:
                functor = instance[1].removeprefix("lucid::").replace(f"<{instance[0]}>", "")
                found[kernel.expression(instance)] = f"{kernel.stem}.cu: {functor}"
    return found


@pytest.mark.gpu
def test_every_functor_is_tried(launched):
    """The functions in the tables of this file, with their gradients, launch every elementwise functor there is."""
    of_two_numbers = [*BINARY, *TWO_WITH_SETTINGS.values(), *CHOICES.values()]
    tables = [([*UNARY, *WITH_SETTINGS.values()], (SPECIAL,)), (of_two_numbers, (LEFT, RIGHT))]
    for ops, arrays in tables:
        for op in ops:
            tensors = [lucid.tensor(a, dtype=lucid.float32, device="cuda", requires_grad=True) for a in arrays]
            out = op(*tensors)
            if out.requires_grad:
                lucid.autograd.grad(out, tensors, lucid.ones_like(out), allow_unused=True)
    integers = [on_device(array) for array in pairs_of("int32")]
    for op in BITWISE:
        op(*integers)
    for op in DIVISORS:
        getattr(lucid, op)(*integers)
    operator.invert(integers[0])
    integers[0].to(lucid.float32)
    of_instance = functors()
    tried = {of_instance[name] for name in launched if name in of_instance}
    missing = [f for f in sorted(set(of_instance.values()) - tried) if not f.startswith(tuple(ELSEWHERE))]
    assert not missing, (
        f"no special values are tried of {missing}: add a function that launches it to UNARY_NAMES, BINARY_NAMES, "
        f"WITH_SETTINGS or TWO_WITH_SETTINGS in {Path(__file__).name}, or the file that tries them to ELSEWHERE"
    )
