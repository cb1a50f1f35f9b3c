"""The chain of a formula writes what its operations give one after another, bit by bit, wherever that lies."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.ops.base.blocks import BLOCK, in_blocks
from lucid.ops.base.formula.chain import chain, chain_in_place, conditions
from lucid.ops.base.formula.formulas import Formula
from lucid.ops.base.formula.trace import FORMULAS, trace
from tests.ops.base.formula.drawn import Plain, drawn

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan, 30.0, -30.0, 1e-20, -1e-20])


def assert_same(got, expected):
    """Fail unless two arrays have the same numbers, signs of zeros included."""
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got) | np.isnan(got), np.signbit(expected) | np.isnan(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_drawn_formulas(dtype, rng):
    """Of any formula, whose rooms are used again and again, and of any numbers."""
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(SPECIAL, SPECIAL))
    x, y = np.append(x, rng.standard_normal(500).astype(dtype)), np.append(y, rng.standard_normal(500).astype(dtype))
    kept = x.copy(), y.copy()
    for length in range(1, 60):
        formula = drawn(rng, length)
        with np.errstate(all="ignore"):
            assert_same(in_blocks(np, *Formula(formula).chain, x, y, alpha=0.7), formula(Plain(), x, y, alpha=0.7))
    assert_same(x, kept[0])
    assert_same(y, kept[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_drawn_formulas_in_place(dtype, rng):
    """Several results come to lie in arguments that others need; the first argument stays as it is."""
    for length in range(1, 40):
        one, two, three = (drawn(rng, length) for _ in range(3))

        def together(m, g, x, y, z, *, alpha, one=one, two=two, three=three):
            first = one(m, g, y, alpha=alpha)
            return first, two(m, first, x, alpha=alpha), three(m, z, y, alpha=alpha)

        traced = trace(together, one=one, two=two, three=three)
        write, temporaries = chain_in_place("", traced, ("x", "y", "z"))
        arrays = [rng.permutation(np.append(SPECIAL, rng.standard_normal(50))).astype(dtype) for _ in range(4)]
        kept, spare = arrays[0].copy(), [np.empty(62, dtype) for _ in range(temporaries)]
        with np.errstate(all="ignore"):
            expected = together(Plain(), *[array.copy() for array in arrays], alpha=0.7)
            write(np, *arrays, *spare, alpha=0.7)
        assert_same(arrays[0], kept)
        for got, wanted in zip(arrays[1:], expected, strict=True):
            assert_same(got, np.broadcast_to(wanted, got.shape))


def test_results_in_place_of_each_other(rng):
    """A result that is an argument is copied before it is written over; the same result may lie in two."""
    x, y, z = arrays = rng.standard_normal((3, 5))
    expected = [y.copy(), y * 2, y * 2]
    traced = trace(lambda m, x, y, z: (y, y * 2, y * 2))
    write, temporaries = chain_in_place("", traced, ("x", "y", "z"))
    write(np, x, y, z, *rng.standard_normal((temporaries, 5)))
    assert_same(arrays, np.array(expected))


def test_choices_by_settings():
    """Conditions on settings alone are told before, and a chain computes one side of the choices by them."""

    def formula(m, x, *, alpha, flag):
        return m.where(m.gt(alpha * 2, 1), m.where(flag, x + alpha, x - alpha), x * alpha)

    texts, hold = conditions("", trace(formula))
    told = dict(zip(texts, hold(None, alpha=3.0, flag=False), strict=True))
    assert told == {"((alpha * 2) > 1)": True, "(flag != 0)": False}
    for alpha, flag, names in [(3.0, True, ["add"]), (3.0, False, ["sub"]), (0.1, True, ["mul"])]:
        truths = dict(zip(texts, hold(None, alpha=alpha, flag=flag), strict=True))
        assert [each.name for each in trace(formula, truths).operations() if not each.number] == names


def test_shapes(rng):
    """Of several blocks, of rows beside a matrix, of one number and of none."""
    formula = drawn(rng, 25)
    twice = Formula(formula).chain
    for x, y in [((5,), (3, 5)), ((7,), (BLOCK // 7 + 5, 7)), ((BLOCK + 3,),) * 2, ((), ()), ((0,), (0,))]:
        x, y = rng.standard_normal(x), rng.standard_normal(y)
        with np.errstate(all="ignore"):
            got, expected = in_blocks(np, *twice, x, y, alpha=2.0), formula(Plain(), x, y, alpha=2.0)
        # which may have been drawn without one of the two
        assert_same(got, np.broadcast_to(expected, np.broadcast_shapes(x.shape, y.shape)))


def test_an_argument_or_a_number():
    """A formula may give back what it gets."""
    x = np.array([1.0, 2.0])
    assert in_blocks(np, *Formula(lambda m, x: x).chain, x).tolist() == [1.0, 2.0]
    assert in_blocks(np, *Formula(lambda m, x, *, alpha: -alpha * 2).chain, x, alpha=3.0).tolist() == [-6.0, -6.0]


def test_choices_of_numbers(rng):
    """Either side of a choice may be a number, zero of either sign, or a setting; so may both."""
    x = rng.standard_normal(3000)
    for a in (0, -0.0, 2, 0.0):
        for b in (0, 1.5, -0.0):
            for rare in (False, True):
                chosen = Formula(lambda m, x, a=a, b=b, rare=rare: m.where(x > 0, a, b, rare=rare), a=a, b=b, rare=rare)
                assert_same(in_blocks(np, *chosen.chain, x), np.where(x > 0, a, b))
                beside = Formula(lambda m, x, b=b, rare=rare: m.where(x > 0, x, b, rare=rare), b=b, rare=rare)
                assert_same(in_blocks(np, *beside.chain, x), np.where(x > 0, x, b))
    of_setting = Formula(lambda m, x, *, alpha: m.where(x > 0, -alpha, alpha / 2))
    assert_same(in_blocks(np, *of_setting.chain, x, alpha=3.0), np.where(x > 0, -3.0, 1.5))


def test_rooms_are_few():
    """What nobody needs any more is written over: the derivative of silu takes one temporary."""
    _, temporaries = chain("silu_grad", trace(FORMULAS["silu_grad"]))
    assert temporaries == 1


def test_an_operation_without_a_ufunc():
    """What NumPy has no ufunc for is named, with what to do."""
    with pytest.raises(NotImplementedError, match="erfc has no ufunc in OPERATIONS: name it there, or write the chain"):
        chain("", trace(lambda m, x: m.erfc(x)))
    with pytest.raises(NotImplementedError, match="exp of settings alone: a chain adds, multiplies, divides and"):
        chain("", trace(lambda m, x, *, alpha: x * m.exp(alpha)))


@pytest.mark.parametrize(("dtype", "units"), [(np.float32, 4), (np.float64, 2)])
def test_operations_of_several_ufuncs(dtype, units, rng):
    """What is quicker than NumPy's expm1 below zero, and log1p from 0 to 1, is as exact, of tiny numbers too."""
    x = np.append(-np.exp(rng.uniform(-80, 5, 5000)), [0.0, -np.inf, -1e-30]).astype(dtype)
    below, within = Formula(lambda m, x: m.expm1_below(x)), Formula(lambda m, x: m.log1p_within(x))
    for given, formula, true in ((x, below, np.expm1), (np.exp(x), within, np.log1p)):
        got = in_blocks(np, *formula.chain, given)
        np.testing.assert_allclose(got, true(given.astype(np.longdouble)), rtol=units * np.finfo(dtype).eps, atol=0)
