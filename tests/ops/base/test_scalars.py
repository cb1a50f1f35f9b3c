"""Where an op takes a number, a tensor of no dimension counts as its element; anything else is refused by name."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError
from lucid.nn import functional
from lucid.ops.base.scalars import as_number, is_single
from tests.number_rows import ROWS, Inputs

# A device or its number, and numbers that no op sees.
NO_ROW = {
    "set_default_device.spec",
    *(f"set_printoptions.{p}" for p in ("precision", "threshold", "edgeitems", "linewidth")),
}
# A tensor in the place of the dimension is the other operand.
NO_ROW |= {"max.dim", "min.dim"}
# A tensor is one number for each result, and may require grad.
NO_ROW |= {"normal.mean", "normal.std", "quantile.q", "nanquantile.q", "gaussian_nll_loss.var"}
# A tensor is one number for each example.
NO_ROW |= {"ctc_loss.input_lengths", "ctc_loss.target_lengths"}


def leaves(result):
    """Return the arrays and numbers of a result."""
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result.cpu().numpy(force=True) if isinstance(result, lucid.Tensor) else result)]


def called(row, number):
    """Return what a row gives where `number` makes what stands for the number."""
    lucid.manual_seed(0)
    return leaves(ROWS[row](lucid, functional, Inputs(lucid), number))


def kind_of(row):
    """Return the type of the number in a row."""
    kinds = []
    called(row, lambda value: kinds.append(type(value)) or value)
    return kinds[0]


@pytest.mark.filterwarnings("ignore:.*eps. parameter is deprecated")
@pytest.mark.parametrize("row", ROWS)
def test_a_tensor_counts_as_its_element(row):
    """With a 0-dim tensor in the place of a number the result is that of the number, dtype and all."""
    expected = called(row, lambda value: value)
    for place in ("cpu", None):  # None is the device of the other tensors
        found = called(row, lambda value, place=place: lucid.tensor(value, dtype=exact(value), device=place))
        assert len(found) == len(expected)
        for got, wanted in zip(found, expected, strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)


def exact(value):
    """Return the dtype of the tensor that stands for a number; the table's are exact in it."""
    return lucid.float32 if isinstance(value, float) else lucid.int64


@pytest.mark.filterwarnings("ignore:.*eps. parameter is deprecated")
@pytest.mark.parametrize("row", ROWS)
def test_what_is_no_such_number(row):
    """A tensor of floats is no int, and one that requires grad no number, as its gradient would be lost."""
    with pytest.raises(TypeError, match=r"expected|only integer tensors"):
        called(row, lambda value: lucid.tensor(float(value), requires_grad=True))
    if kind_of(row) is int:
        with pytest.raises(TypeError, match=r"expected|only integer tensors"):
            called(row, lambda value: lucid.tensor(float(value)))


def test_every_number_has_a_row():
    """Each parameter of a public function that is annotated as an int or a float, or as several, is in the table."""
    numbers = set()
    for name, function in [*vars(lucid).items(), *vars(functional).items(), *vars(lucid.linalg).items()]:
        function = inspect.unwrap(function) if inspect.isfunction(function) else function
        if name.startswith("_") or not inspect.isfunction(function) or not function.__module__.startswith("lucid.ops"):
            continue
        numbers |= {
            f"{name}.{parameter.name}"
            for parameter in inspect.signature(function).parameters.values()
            if re.search(r"\b(int|float|Dims|Sizes)\b", str(parameter.annotation))
            and parameter.kind is not parameter.VAR_POSITIONAL
        }
    missing = sorted(numbers - set(ROWS) - NO_ROW)
    assert not missing, f"{missing}: add a row for each to ROWS in tests/number_rows.py"


@pytest.mark.parametrize("wrong", [1.5, "1", None, [1], np.zeros(1, int), lucid.tensor([1]), lucid.tensor(True)])
def test_no_int(wrong):
    """The message has the op, the parameter and what came."""
    with pytest.raises(ArgumentError, match=r"^tril: diagonal: expected an int or a 0-dim tensor of integers, got \S"):
        lucid.tril(lucid.ones(2, 2), wrong)


@pytest.mark.parametrize("wrong", ["1", None, [1.0], np.zeros(1), lucid.tensor([1.0])])
def test_no_number(wrong):
    """The message has the op, the parameter and what came."""
    with pytest.raises(ArgumentError, match=r"^dropout: p: expected a number or a 0-dim tensor .*, got \S"):
        lucid.dropout(lucid.ones(2), wrong)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"])
def test_numbers_of_every_dtype(dtype):
    """The element is a Python number of its kind, from tensors as from NumPy's arrays and scalars."""
    tensor = lucid.tensor(1, dtype=getattr(lucid, dtype))
    array = tensor.cpu().numpy()
    for value in (tensor, array, array[()]):
        number = as_number(value, "p")
        assert type(number) in {bool, int, float, complex}
        assert number == 1


def test_single_or_several():
    """Arrays of no dimension have no length, though they have the method."""
    assert all(map(is_single, (1, 2.0, None, np.int64(3), np.asarray(1), lucid.tensor(1))))
    assert not any(map(is_single, ((1,), [1, 2], np.ones(1), lucid.tensor([1]))))
