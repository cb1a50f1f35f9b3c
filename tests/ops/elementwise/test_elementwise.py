"""Elementwise ops where a row of the table cannot say it: errors, edges of the domain, dtypes, views."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.blocks import BLOCK, drop_where, in_blocks, keep_where
from lucid.ops.base.promotion import OperandTypeError
from lucid.ops.elementwise.division import DivisionByZeroError
from tests.gradients import numbers


def leaf(*values, dtype=None):
    """Return a tensor of these numbers that requires grad."""
    return lucid.tensor(list(values), dtype=dtype or lucid.float64, requires_grad=True)


def gradient(result, x, rng):
    """Return the gradient of `x` for a random upstream gradient, divided by that gradient."""
    upstream = rng.uniform(0.5, 2, result.shape)
    (grad,) = lucid.autograd.grad(result, [x], [lucid.tensor(upstream, dtype=result.dtype)])
    return numbers(grad) / upstream


ERRORS = {
    "add: shapes": (lambda: lucid.ones(2, 3) + lucid.ones(2), ShapeError, r"\(2, 3\).*\(2,\)"),
    "add: words": (lambda: lucid.add(lucid.ones(2), "1"), OperandTypeError, "str"),
    "add: a fraction of integers": (
        lambda: lucid.add(lucid.tensor([1]), lucid.tensor([1]), alpha=0.5), DtypeError, "alpha to be an integer"),
    "add: a bool of numbers": (
        lambda: lucid.add(lucid.ones(1), lucid.ones(1), alpha=True), DtypeError, "alpha to be a number"),
    "sub: bools": (lambda: lucid.tensor([True]) - lucid.tensor([True]), DtypeError, "logical_xor"),
    "sub: a mask from a number": (lambda: 1.0 - lucid.tensor([True]), DtypeError, "logical_not"),
    "sub: a number from a mask": (lambda: lucid.tensor([True]) - 1, DtypeError, "logical_not"),
    "sub: a mask from numbers": (lambda: lucid.ones(1) - lucid.tensor([True]), DtypeError, "logical_not"),
    "sub: True": (lambda: lucid.ones(1) - True, DtypeError, "logical_not"),
    "sub: scaled": (lambda: lucid.sub(lucid.ones(1), lucid.tensor([True]), alpha=2), DtypeError, "logical_not"),
    "sub: reflected": (lambda: lucid.rsub(lucid.tensor([True]), 1, alpha=2), DtypeError, "logical_not"),
    "sub: in place": (lambda: lucid.ones(1).sub_(lucid.tensor([True])), DtypeError, "logical_not"),
    "sub: in place, bools": (lambda: lucid.tensor([True]).sub_(lucid.tensor([True])), DtypeError, "logical_xor"),
    "neg: bools": (lambda: -lucid.tensor([True]), DtypeError, "logical_not"),
    "abs: bools": (lambda: lucid.abs(lucid.tensor([True])), DtypeError, "integers"),
    "floor_divide: zero": (lambda: lucid.tensor([1]) // 0, DivisionByZeroError, "floor_divide"),
    "remainder: complex": (lambda: lucid.remainder(lucid.tensor([1j]), 2), DtypeError, "remainder"),
    "div: rounding": (lambda: lucid.div(lucid.ones(1), 2, rounding_mode="up"), ValueError, "'floor' or 'trunc'"),
    "pow: negative": (lambda: lucid.tensor([2]) ** -1, ValueError, "negative power -1"),
    "pow: bools": (lambda: lucid.tensor([True]) ** lucid.tensor([True]), DtypeError, "pow"),
    "lt: complex": (lambda: lucid.tensor([1j]) < 1, DtypeError, "no order"),
    "maximum: complex": (lambda: lucid.maximum(lucid.tensor([1j]), 1), DtypeError, "no order"),
    "where: condition": (lambda: lucid.where(lucid.tensor([1]), 1, 2), DtypeError, "condition of bools"),
    "clamp: no bound": (lambda: lucid.clamp(lucid.ones(1)), ValueError, "at least one of min and max"),
    "isclose: dtypes": (lambda: lucid.isclose(lucid.ones(1), lucid.tensor([1])), DtypeError, "one dtype"),
    "isclose: tolerance": (lambda: lucid.isclose(lucid.ones(1), lucid.ones(1), rtol=-1), ValueError, "at least zero"),
    "bitwise_and: floats": (lambda: lucid.bitwise_and(lucid.ones(1), 1), DtypeError, "integer dtype"),
    "bitwise_and: a fraction": (lambda: lucid.bitwise_and(lucid.tensor([1]), 0.5), DtypeError, "expected integers"),
    "shift: bools": (lambda: lucid.bitwise_left_shift(lucid.tensor([True]), 1), DtypeError, "integer dtype"),
    "floor: bools": (lambda: lucid.floor(lucid.tensor([True])), DtypeError, "floor"),
    "round: integers": (lambda: lucid.round(lucid.tensor([12]), decimals=-1), DtypeError, "decimals=0"),
    "frac: integers": (lambda: lucid.frac(lucid.tensor([1])), DtypeError, "floating-point"),
    "sign: complex": (lambda: lucid.sign(lucid.tensor([1j])), DtypeError, "use sgn"),
    "imag: real": (lambda: lucid.imag(lucid.ones(1)), DtypeError, "imaginary part"),
    "complex: halves": (
        lambda: lucid.complex(lucid.ones(1, dtype=lucid.float16), lucid.ones(1)), DtypeError, "float16 and lucid"),
    "exp: a number": (lambda: lucid.exp(1.0), OperandTypeError, "expected a Tensor"),
    "addcdiv: integers": (lambda: lucid.addcdiv(*[lucid.tensor([1])] * 3), DtypeError, "addcdiv"),
    "lerp: integers": (lambda: lucid.lerp(*[lucid.tensor([1])] * 2, 0.5), DtypeError, "lerp"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_error(case):
    """A wrong argument is refused with the kind of mistake and what to do about it."""
    run, kind, words = ERRORS[case]
    with pytest.raises(kind, match=words):
        run()


@pytest.mark.cpu("a CUDA device does not look at the values of divisors")
def test_division_by_a_tensor_that_holds_zero():
    """Integers have no quotient by zero: the op that was asked for one says so."""
    with pytest.raises(DivisionByZeroError, match="remainder"):
        lucid.tensor([1]) % lucid.tensor([0])


def test_floats_have_a_quotient_by_a_whole_zero():
    """Integers alone are refused by a zero: a float beside it, on either side, gives infinities and NaN."""
    x, zero = lucid.tensor([3.0, -3.0, 0.0]), lucid.tensor([0, 0, 0])
    for divisor in (0, False, zero, zero.bool(), 0.0):
        np.testing.assert_array_equal(numbers(x // divisor), [math.inf, -math.inf, math.nan])
        np.testing.assert_array_equal(numbers(x % divisor), [math.nan] * 3)
        np.testing.assert_array_equal(numbers(lucid.fmod(x, divisor)), [math.nan] * 3)
    np.testing.assert_array_equal(numbers(zero // (x * 0)), [math.nan] * 3)


def test_division_by_zero_is_silent():
    """Infinities and NaN come without NumPy's warnings, for tensors and numbers, recorded or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = leaf(1.0, 0.0)
        np.testing.assert_array_equal(numbers(x / 0), [math.inf, math.nan])
        np.testing.assert_array_equal(numbers(1 / x), [1, math.inf])
        np.testing.assert_array_equal(numbers(x.detach() / x.detach()), [1, math.nan])
        np.testing.assert_array_equal(numbers(lucid.log(x)), [0, -math.inf])
        np.testing.assert_array_equal(numbers(lucid.exp(x * 1e6)), [math.inf, 1])


def test_power_at_zero(rng):
    """The slope of x**n at zero is that of the polynomial, whatever form n has; of a constant it is zero."""
    for exponent, slope in ((0, 0), (1, 1), (2, 0), (3, 0), (0.5, math.inf)):
        x = leaf(0.0)
        np.testing.assert_array_equal(gradient(x**exponent, x, rng), [slope])
        np.testing.assert_array_equal(gradient(x ** leaf(float(exponent)), x, rng), [slope])


@pytest.mark.parametrize("base", [-math.inf, -0.0])
def test_the_slope_of_a_root_of_one_element_is_that_of_a_power(base):
    """Of x**y for y = 0.5 without dimensions the slope is y * x**(y - 1), 0 at -inf and infinite at -0."""
    x = lucid.tensor(base, dtype=lucid.float64, requires_grad=True)
    (x ** lucid.tensor(0.5, dtype=lucid.float64)).backward()
    assert x.grad.item() == (0 if math.isinf(base) else math.inf)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_power_of_a_half_is_the_same_however_it_is_repeated(dtype):
    """-inf gives inf and -0.0 gives 0.0, as C's pow does: NumPy alone takes roots where the exponent is one number."""
    kind = getattr(lucid, dtype)
    x = lucid.tensor([-math.inf, -0.0, 4.0, 0.25, math.inf, -1.0], dtype=kind)
    one = lucid.tensor([0.5], dtype=kind)
    for half in (one[0], one, one.expand(6), one.repeat(6), one.repeat(12)[::2], lucid.tensor(0.5)):
        got = numbers(x**half)
        np.testing.assert_array_equal(got, [math.inf, 0.0, 2.0, 0.5, math.inf, math.nan])
        assert not np.signbit(got[1])


def test_power_of_zero(rng):
    """The slope of 0**y is zero for y of at least zero, and not NaN."""
    y = leaf(0.0, 1.0, 2.5)
    np.testing.assert_array_equal(gradient(lucid.tensor([0.0], dtype=lucid.float64) ** y, y, rng), [0, 0, 0])
    np.testing.assert_array_equal(gradient(0**y, y, rng), [0, 0, 0])


def test_kinks(rng):
    """At a kink or jump the slope is PyTorch's choice: 0 at zero, 1 on a bound of clamp, half of it at a tie."""
    for zero in (0.0, -0.0):
        x = leaf(zero)
        for op in (lucid.abs, lucid.sgn, lucid.sign, lambda x: lucid.atan2(x, 0 * x)):
            assert gradient(op(x), x, rng) == 0
        for sign in (1.0, -1.0, 0.0, -0.0):
            assert gradient(lucid.copysign(x, sign), x, rng) == 0
    bounds = leaf(-1.0, 2.0)
    np.testing.assert_array_equal(gradient(lucid.clamp(bounds, -1, 2), bounds, rng), [1, 1])
    a, b = leaf(1.0), leaf(1.0)
    for op in (lucid.maximum, lucid.minimum):
        assert gradient(op(a, b), a, rng) == 0.5
        assert gradient(op(a, b), b, rng) == 0.5


def test_clamp_bounds_the_wrong_way_round(rng):
    """Where min is above max the result is max, and max takes the gradient."""
    x, low, high = leaf(0.0, 5.0), leaf(2.0, 2.0), leaf(1.0, 1.0)
    out = lucid.clamp(x, low, high)
    np.testing.assert_array_equal(numbers(out), [1, 1])
    np.testing.assert_array_equal(gradient(out, high, rng), [1, 1])
    np.testing.assert_array_equal(gradient(lucid.clamp(x, low, high), low, rng), [0, 0])


def test_clamp_between_equal_bounds():
    """What is below both has no gradient, what is above has that of max; on the bounds it is the input's."""
    x, low, high = leaf(0.0, 1.0, 5.0), leaf(1.0, 1.0, 1.0), leaf(1.0, 1.0, 1.0)
    grads = lucid.autograd.grad(lucid.clamp(x, low, high).sum(), (x, low, high))
    assert [grad.tolist() for grad in grads] == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_masks_stop_infinite_gradients(rng):
    """An infinite gradient of what where() leaves out becomes zero, not NaN."""
    x = leaf(0.0, 4.0)
    out = lucid.where(x > 1, lucid.sqrt(x), x)
    upstream = lucid.tensor([math.inf, 1.0], dtype=lucid.float64)
    (grad,) = lucid.autograd.grad(out, [x], [upstream])
    assert numbers(grad)[1] == 0.25
    masked = lucid.where(lucid.tensor([False, True]), x, 0.0)
    (grad,) = lucid.autograd.grad(masked, [x], [upstream])
    np.testing.assert_array_equal(numbers(grad), [0, 1])


def test_real_tensors_are_their_own_parts():
    """Of a real tensor, real() and conj() give the tensor itself."""
    x = lucid.ones(2)
    assert lucid.real(x) is x
    assert lucid.conj(x) is x


def test_parts_are_views():
    """Parts made by real() and imag() share memory: a change of a part changes the whole."""
    z = lucid.tensor([1 + 2j, 3 + 4j])
    lucid.imag(z).mul_(10)
    np.testing.assert_array_equal(numbers(z), [1 + 20j, 3 + 40j])


def test_integers_wrap():
    """Integers beyond the dtype of the tensor beside them wrap around."""
    x = lucid.tensor([5], dtype=lucid.uint8)
    np.testing.assert_array_equal(numbers(x + 300), [49])
    np.testing.assert_array_equal(numbers(x * -1), [251])
    np.testing.assert_array_equal(numbers(True + lucid.tensor([3])), [4])


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_at_the_ends_of_a_dtype(name):
    """The least and the largest number of a dtype stay what they are beside its tensors, and the next ones wrap."""
    info = np.iinfo(name)
    x = lucid.tensor([0], dtype=getattr(lucid, name))
    for number in (info.min, info.max, info.min - 1, info.max + 1):
        expected = (number - info.min) % 2**info.bits + info.min
        assert (x + number).tolist() == [expected]
        assert (x | number).dtype is x.dtype


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "float32", "float64"])
def test_quotients_that_are_rounded(dtype):
    """`trunc` rounds towards zero, as C does, and `floor` down: of integers and floats, of each pair of signs."""
    a, b = (each.ravel() for each in np.meshgrid([-9, -8, -7, -1, 0, 1, 7, 8, 9], [-4, -3, -2, -1, 1, 2, 3, 4]))
    if dtype == "uint8":
        a, b = abs(a), abs(b)
    x, y = (lucid.tensor(each.astype(dtype)) for each in (a, b))
    for mode, rounded in (("trunc", np.trunc), ("floor", np.floor)):
        got = lucid.div(x, y, rounding_mode=mode)
        assert got.dtype is x.dtype
        np.testing.assert_array_equal(numbers(got), rounded(a / b))


def test_integers_to_negative_powers_of_tensors():
    """Integers to tensors of negative integers give the fraction without its digits: 0, and 1 or -1 for those."""
    out = lucid.tensor([2, 1, -1, -1, 3]) ** lucid.tensor([-1, -3, -3, -2, 2])
    np.testing.assert_array_equal(numbers(out), [0, 1, -1, 1, 9])


def test_whole_numbers_to_powers_of_tensors_of_integers():
    """A number to a tensor's powers is what a tensor of it is, of one power and of several, also of negative ones."""
    for dtype in (lucid.int8, lucid.int32, lucid.int64, lucid.uint8):
        powers = [0, 1, 3] if dtype is lucid.uint8 else [-3, -2, -1, 0, 1, 3]
        for number in (2, 1, 3) if dtype is lucid.uint8 else (2, 1, -1, -2, 0):
            expected = [
                0 if n < 0 and abs(number) != 1 else int(float(number) ** n) for n in powers if number or n >= 0
            ]
            kept = [n for n in powers if number or n >= 0]
            out = number ** lucid.tensor(kept, dtype=dtype)
            assert out.dtype is dtype
            assert out.tolist() == expected == [(number ** lucid.tensor(n, dtype=dtype)).item() for n in kept]


def test_dtypes_that_are_not_mixed():
    """A step takes values of the dtype of its input alone; a quotient that is added divides integers by a fraction."""
    kinds = [lucid.float32, lucid.float64, lucid.float16, lucid.int32, lucid.int64]
    for first, second in itertools.permutations(kinds, 2):
        with pytest.raises(RuntimeError, match="heaviside: expected input and values of one dtype"):
            lucid.heaviside(lucid.ones(1, dtype=first), lucid.ones(1, dtype=second))
    x, half = lucid.tensor([3]), lucid.tensor([0.5])
    for a, b, expected in ((x, half, 6.0), (half, x, 0.5 / 3)):
        np.testing.assert_allclose(numbers(lucid.addcdiv(lucid.zeros(1), a, b)), [expected], rtol=1e-6)
    with pytest.raises(RuntimeError, match="addcdiv"):
        lucid.addcdiv(lucid.zeros(1), x, x)


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.bfloat16, lucid.float32, lucid.float64])
def test_questions_about_nan(dtype):
    """NaN is a real number, has an angle that is none, and is greater than nothing."""
    x = lucid.tensor([math.nan, 1.0, -1.0], dtype=dtype)
    assert lucid.isreal(x).tolist() == [True, True, True]
    np.testing.assert_allclose(numbers(lucid.angle(x)).astype(float), [math.nan, 0.0, math.pi], rtol=1e-2)
    assert lucid.signbit(x)[1:].tolist() == [False, True]
    for op in (lucid.isposinf, lucid.isneginf, lucid.isinf, lucid.isfinite):
        assert op(x).tolist()[0] is False


def test_equal():
    """Whether tensors are equal depends on shapes and values, not on dtypes; NaN equals nothing."""
    assert lucid.equal(lucid.tensor([1, 2]), lucid.tensor([1.0, 2.0]))
    assert not lucid.equal(lucid.ones(2), lucid.ones(1))
    assert not lucid.equal(lucid.tensor([math.nan]), lucid.tensor([math.nan]))
    assert lucid.allclose(lucid.tensor([math.nan, math.inf]), lucid.tensor([math.nan, math.inf]), equal_nan=True)
    assert not lucid.allclose(lucid.tensor([math.inf]), lucid.tensor([-math.inf]))
    assert lucid.allclose(lucid.tensor([1, 2]), lucid.tensor([1, 2]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_blocks_cover_everything(dtype, rng):
    """A kernel in blocks gives what it gives in one piece: at the edges of blocks, of any layout, of one number."""

    def difference(xp, out, a, b, spare):
        xp.multiply(b, 2, out=spare)
        xp.subtract(a, spare, out=out)

    n = 2 * BLOCK + 7
    a, b = rng.integers(-9, 9, n).astype(dtype), rng.integers(-9, 9, n).astype(dtype)
    np.testing.assert_array_equal(in_blocks(np, difference, 1, a, b), a - 2 * b)
    wide = np.stack([a, b], 1)
    np.testing.assert_array_equal(in_blocks(np, difference, 1, wide[:, 0], wide[:, 1]), a - 2 * b)
    one = np.broadcast_to(dtype(3), n)
    out = in_blocks(np, difference, 1, one, b)
    np.testing.assert_array_equal(out, 3 - 2 * b)
    assert out.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(BLOCK + 7, 1), (3, 1800, 7), (700, 64), (3, BLOCK + 5), (1, 3 * BLOCK), (2, 3)])
def test_blocks_repeat_rows(shape, dtype, rng):
    """An array of the last dimension alone stands beside every row, whether blocks hold many rows or less than one."""

    def difference(xp, out, row, x, spare):
        xp.multiply(x, 2, out=spare)
        xp.subtract(row, spare, out=out)

    x, row = rng.integers(-9, 9, shape).astype(dtype), rng.integers(-9, 9, shape[-1]).astype(dtype)
    out = in_blocks(np, difference, 1, row, x)
    np.testing.assert_array_equal(out, row - 2 * x)
    assert out.dtype == dtype
    np.testing.assert_array_equal(in_blocks(np, difference, 1, row[::-1], x[::-1]), row[::-1] - 2 * x[::-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_masks_are_exact(dtype, rng):
    """Masks keep every bit of what they keep, and make zero of infinities and NaN that they drop."""
    values = rng.choice([1.5, -0.0, math.inf, math.nan], 50).astype(dtype)
    claim = rng.random(50) < 0.5
    out = np.empty_like(values)
    keep_where(np, out, values, claim)
    np.testing.assert_array_equal(out, np.where(claim, values, 0))
    assert not np.signbit(out[~claim]).any()
    drop_where(np, out, values, claim)
    np.testing.assert_array_equal(out, np.where(claim, 0, values))


ERROR_FUNCTIONS = {"erf": math.erf, "erfc": math.erfc}


@pytest.mark.parametrize(("dtype", "units"), [(np.float64, 8), (np.float32, 7)])
@pytest.mark.parametrize("name", ERROR_FUNCTIONS)
def test_error_functions_are_exact(name, dtype, units):
    """The error functions err by a few units in the last place, also where they are small, and not at infinity."""
    x = np.concatenate([np.linspace(-6, 9, 20011), np.geomspace(1e-30, 1e-2, 301)]).astype(dtype)
    expected = np.array([ERROR_FUNCTIONS[name](float(value)) for value in x])
    got = numbers(getattr(lucid, name)(lucid.tensor(x))).astype(np.float64)
    unit = np.spacing(np.abs(expected.astype(dtype))).astype(np.float64)
    assert np.max(np.abs(got - expected) / unit) <= units
    edges = numbers(getattr(lucid, name)(lucid.tensor([-math.inf, math.inf, 0.0, math.nan])))
    np.testing.assert_array_equal(edges, [*map(ERROR_FUNCTIONS[name], (-math.inf, math.inf, 0.0, math.nan))])


def test_erfinv_inverts_erf(rng):
    """Erfinv undoes erf up to the slope of erf; at the ends of its domain it is infinite, beyond NaN."""
    x = rng.uniform(-3, 3, 1000)
    back = numbers(lucid.erfinv(lucid.erf(lucid.tensor(x))))
    np.testing.assert_allclose(back, x, rtol=1e-14, atol=1e-16 / np.exp(-9.0))
    edges = numbers(lucid.erfinv(lucid.tensor([-1.0, 0.0, 1.0, 1.5])))
    np.testing.assert_array_equal(edges, [-math.inf, 0, math.inf, math.nan])


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.bfloat16])
def test_sums_of_powers_of_two_that_cancel_keep_the_digits_of_halves(dtype):
    """log2(2**-1 + 2**-1) is 0 also in a half type, to the rounding of float32, with a number as with a tensor."""
    x = lucid.full((3,), -1.0, dtype=dtype)
    for other in (x, -1, lucid.tensor(-1.0, dtype=dtype)):
        assert lucid.logaddexp2(x, other).dtype is dtype
        assert abs(numbers(lucid.logaddexp2(x, other)).astype(float)).max() < 1e-6


@pytest.mark.parametrize("op", [lucid.logaddexp, lucid.logaddexp2])
def test_complex_numbers_have_no_logarithms_of_sums(op):
    """Complex operands are refused by name."""
    x = lucid.ones(2, dtype=lucid.complex64)
    with pytest.raises(DtypeError, match=f"{op.__name__}.*complex64"):
        op(x, x)


def test_the_next_number_goes_along(rng):
    """`nextafter` has slope 1 where it moves its input, 0 where there is nowhere to go, and none by the direction."""
    x = lucid.tensor([1.0, 2.0, -3.0], requires_grad=True)
    y = lucid.tensor([2.0, 2.0, -5.0], requires_grad=True)
    upstream = rng.standard_normal(3).astype("f")
    lucid.nextafter(x, y).backward(lucid.tensor(upstream))
    np.testing.assert_array_equal(numbers(x.grad), upstream * [1, 0, 1])
    assert not numbers(y.grad).any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_gradient_of_a_mantissa_at_the_ends_of_a_dtype(dtype, rng):
    """It is divided by a power of two that may be greater than all numbers of the dtype, as of 40000 in float16."""
    exponents = np.array([16, 15, -13, 0])
    x = leaf(*(0.75 * 2.0**exponents), dtype=getattr(lucid, dtype))
    upstream = lucid.tensor(rng.uniform(1, 7, 4), dtype=x.dtype)
    mantissa, found = lucid.frexp(x)
    assert found.tolist() == exponents.tolist()
    mantissa.backward(upstream)
    assert numbers(x.grad).tolist() == (numbers(upstream) / 2.0**exponents).astype(dtype).tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_what_is_not_finite_becomes_a_number(dtype):
    """Without settings NaN is 0 and infinities are the ends of the dtype; what is given goes before."""
    x, ends = (
        lucid.tensor([math.nan, math.inf, -math.inf, 2.0], dtype=getattr(lucid, dtype)),
        lucid.finfo(getattr(lucid, dtype)),
    )
    assert lucid.nan_to_num(x).tolist() == [0.0, ends.max, ends.min, 2.0]
    assert lucid.nan_to_num(x, 1.0, neginf=-3.0).tolist() == [1.0, ends.max, -3.0, 2.0]


@pytest.mark.parametrize("decimals", range(-3, 4))
def test_rounded_to_decimals_and_to_tens(decimals, rng):
    """To digits behind the point, or before it, the nearest is taken, of two the even one, as NumPy's."""
    values = np.concatenate([rng.uniform(-2000, 2000, 20), [1250, 1350, -1250, 15, 25, 500, 1500, 0.125, 0.375]])
    found = lucid.round(lucid.tensor(values), decimals=decimals)
    np.testing.assert_allclose(numbers(found), np.round(values, decimals), rtol=1e-15)


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.bfloat16])
@pytest.mark.parametrize(
    "op",
    [
        lucid.lerp,
        lambda a, b, c: lucid.addcmul(a, b, c, value=0.75),
        lambda a, b, c: lucid.addcdiv(a, b, c, value=0.75),
        lambda a, b, c: lucid.prelu(-a, c[0]),
        lambda a, b, c: lucid.round(a, decimals=1),
    ],
    ids=["lerp", "addcmul", "addcdiv", "prelu", "round"],
)
def test_halves_are_rounded_once(op, dtype, rng):
    """What takes several steps is computed in float32 and rounded at the end, not after every step."""
    halves = [lucid.tensor(rng.uniform(0.5, 2, 500), dtype=dtype) for _ in range(3)]
    expected = op(*[x.float() for x in halves]).to(dtype)
    assert lucid.equal(op(*halves), expected)


# Functions whose values lie between two numbers.
BOUNDED = {
    "erf": (-1, 1), "erfc": (0, 2), "tanh": (-1, 1), "sigmoid": (0, 1), "sin": (-1, 1), "cos": (-1, 1),
    "atan": (-math.pi / 2, math.pi / 2), "sinc": (-0.22, 1), "nn.functional.softsign": (-1, 1),
    "nn.functional.hardsigmoid": (0, 1), "special.ndtr": (0, 1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", BOUNDED)
def test_no_value_is_beyond_its_bounds(name, dtype):
    """No rounding leads out of the range of a function, near its end or far away, of which logarithms are taken."""
    low, high = BOUNDED[name]
    near = np.linspace(-7, 7, 60_001)
    x = lucid.tensor(np.concatenate([near, near**5]), dtype=getattr(lucid, dtype))
    function = lucid
    for part in name.split("."):
        function = getattr(function, part)
    values = numbers(function(x)).astype(np.float64)
    end = lucid.tensor([low, high], dtype=x.dtype)
    assert numbers(end)[0] <= values.min() <= values.max() <= numbers(end)[1]
