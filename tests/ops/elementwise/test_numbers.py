"""A number in the place of an operand, in every function that takes one there."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, LucidError
from lucid.ops.base.promotion import OperandTypeError
from tests.device import DEVICE
from tests.gradients import numbers

# Which have rules of their own for a number.
OTHERS = {"bucketize", "isin", "searchsorted", "where"}
OF_INTEGERS = ("bitwise", "gcd", "lcm")


def operands():
    """Yield the functions of two operands and the places of those that may be numbers."""
    for name in lucid.__all__:
        function = getattr(lucid, name)
        if hasattr(function, "__code__") and name not in OTHERS:
            parameters = [*inspect.signature(function).parameters.values()][:2]
            for place, parameter in enumerate(parameters):
                if parameter.annotation == "Tensor | Number":
                    yield name, place


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.bfloat16])
@pytest.mark.parametrize(("name", "place"), [*operands()])
def test_a_number_is_as_good_as_a_tensor_of_it(name, place, dtype):
    """It lies where the other operand does, and changes neither the dtype of the result nor its values."""
    function, integral = getattr(lucid, name), name.startswith(OF_INTEGERS)
    x = lucid.tensor([1, 2, 3] if integral else [0.5, 1.0, 3.0], device=DEVICE)
    x, number = (x, 2) if integral else (x.to(lucid.float32 if name == "nextafter" else dtype), 1.5)
    given, wanted = [x, x], [x, x]
    given[place], wanted[place] = number, lucid.full((), number, dtype=x.dtype, device=DEVICE)
    got, wanted = function(*given), function(*wanted)
    assert got.device == wanted.device
    assert got.dtype is wanted.dtype
    np.testing.assert_allclose(numbers(got).astype(float), numbers(wanted).astype(float), rtol=1e-2, atol=1e-6)


def outcome(function, *operands):
    """Return values and dtype of what a function gives, or the type and the words of the error that it raises."""
    try:
        out = function(*operands)
    except LucidError as error:
        return type(error), str(error)
    return numbers(out).astype(complex).round(12).tolist(), out.dtype


def test_an_array_is_as_good_as_a_tensor_of_it():
    """Beside a tensor, of any dtype, in either place, it gives the same or is refused in the same words."""
    refused, arrays = 0, [np.array(values) for values in ([True, True], [2, 3], [0.5, 2.0], [1.5 + 1j, 2.0])]
    names = sorted({name for name, _ in operands()})
    for name in names:
        function = getattr(lucid, name)
        for one, other in itertools.product(arrays, arrays):
            x, y = (lucid.tensor(array, device=DEVICE) for array in (one, other))
            expected = outcome(function, x, y)
            beside = outcome(function, x, y.array), outcome(function, x.array, y)
            assert beside == (expected, expected), (name, one.dtype, other.dtype)
            refused += isinstance(expected[0], type)
    assert refused > len(names)


@pytest.mark.parametrize("op", [lucid.addcmul, lucid.addcdiv])
def test_factors_are_tensors(op):
    """Where PyTorch takes tensors only, a number is refused, and widens nothing."""
    x = lucid.ones(2, device=DEVICE)
    for given in ((x, 1.0, x), (x, x, 2.0), (1.0, x, x)):
        with pytest.raises(OperandTypeError):
            op(*given)


@pytest.mark.parametrize("value", [1, 2])
def test_products_of_bools_are_not_added(value):
    """Bools alone are no numbers, whatever they are multiplied by; beside a number they count as 0 and 1."""
    mask = lucid.tensor([True, False], device=DEVICE)
    with pytest.raises(DtypeError, match="combine bools by"):
        lucid.addcmul(mask, mask, mask, value=value)
    with pytest.raises(DtypeError, match="combine bools by"):
        mask.addcmul_(mask, mask, value=value)
    assert lucid.addcmul(lucid.tensor([5, 5], device=DEVICE), mask, mask, value=value).tolist() == [5 + value, 5]


@pytest.mark.parametrize("op", [lucid.floor_divide, lucid.remainder, lucid.fmod])
def test_nothing_is_divided_by_zero(op):
    """Where there are no quotients no integer is divided by 0, whichever operand has no elements."""
    for a, b, shape in (((0,), (), (0,)), ((0, 1), (3,), (0, 3)), ((), (0,), (0,)), ((2, 0), (1,), (2, 0))):
        got = op(lucid.ones(a, dtype=lucid.int32), lucid.zeros(b, dtype=lucid.int32))
        assert (got.shape, got.dtype) == (shape, lucid.int32)
    assert op(lucid.ones(0, dtype=lucid.int64), 0).shape == (0,)


def test_more_decimals_than_a_float_has():
    """Powers of ten beyond the largest float are infinite, and the quotient of infinities NaN."""
    x = lucid.tensor([1.5, -0.25], dtype=lucid.float64)
    for decimals in (309, 400, -400, 10**6):
        assert lucid.round(x, decimals=decimals).isnan().all()
    assert lucid.round(x, decimals=300).tolist() == x.tolist()


def test_the_slope_of_logit_is_nan_with_it():
    """Outside of [0, 1] both are NaN, at its ends infinite, and inside 1 / (x * (1 - x))."""
    inside = np.array([1e-30, 0.25, 0.5, 1 - 2**-20])
    x = lucid.tensor([-3.5, -1e-30, 1 + 2**-52, 2.0, 0.0, 1.0, *inside], dtype=lucid.float64, requires_grad=True)
    y = lucid.logit(x)
    y.sum().backward()
    values, slopes = numbers(y), numbers(x.grad)
    assert np.isnan(values[:4]).all()
    assert np.isnan(slopes[:4]).all()
    assert values[4:6].tolist() == [-np.inf, np.inf]
    assert slopes[4:6].tolist() == [np.inf, np.inf]
    np.testing.assert_allclose(slopes[6:], 1 / (inside * (1 - inside)), rtol=1e-12)
