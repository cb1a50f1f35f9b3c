"""Where an op takes a number, a tensor of no dimension counts as its element; anything else is refused by name."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, DtypeError, LucidError
from lucid.nn import functional
from lucid.ops.base.scalars import as_number, as_scalar, is_single
from lucid.public import written_in
from tests.calls import OPERANDS, UNTOLD, number_rows, numbers_of

ROWS = number_rows()
# A device or its number, and numbers that no op sees.
NO_ROW = {
    "set_default_device.spec",
    *(f"set_printoptions.{p}" for p in ("precision", "threshold", "edgeitems", "linewidth")),
}


def leaves(result):
    """Return the arrays and numbers of a result."""
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in leaves(part)]
    if result is None:
        return []
    if isinstance(result, lucid.Generator):
        result = result.initial_seed()
    return [np.asarray(result.cpu().numpy(force=True) if isinstance(result, lucid.Tensor) else result)]


def called(row, number):
    """Return what a row gives where `number` makes what stands for the number."""
    lucid.manual_seed(0)
    return leaves(ROWS[row](lucid, number))


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
            # LAPACK's last digits hang on where its operands lie
            np.testing.assert_allclose(got, wanted, rtol=1e-13)


def exact(value):
    """Return the dtype of the tensor that stands for a number: the default one for floats that are exact in it."""
    if isinstance(value, int):
        return lucid.int64
    return lucid.float32 if value == float(np.float32(value)) else lucid.float64


@pytest.mark.filterwarnings("ignore:.*eps. parameter is deprecated")
@pytest.mark.parametrize("row", ROWS)
def test_what_is_no_such_number(row):
    """A tensor of floats is no int, and one that requires grad no number, as its gradient would be lost."""
    with pytest.raises(TypeError, match=r"expected|only integer tensors"):
        called(row, lambda value: lucid.tensor(float(value), requires_grad=True))
    if ROWS[row].is_integral:
        with pytest.raises(TypeError, match=r"expected|only integer tensors"):
            called(row, lambda value: lucid.tensor(float(value)))


@pytest.mark.filterwarnings("ignore")
def test_a_whole_number_may_be_an_int():
    """In the place of a number 1, 2 and 3 give what 1.0, 2.0 and 3.0 give, or are refused as they are."""

    def outcome(row, value):
        try:
            return [each.astype(np.complex128) for each in called(row, lambda _: value)]
        except (LucidError, OverflowError) as error:
            return type(error)

    for row in ROWS:
        if not ROWS[row].is_integral and "several" not in row:
            for value in (1, 2, 3):
                found, expected = outcome(row, value), outcome(row, float(value))
                if isinstance(expected, type) or isinstance(found, type):
                    assert found == expected, (row, value)
                else:
                    for got, wanted in zip(found, expected, strict=True):
                        np.testing.assert_allclose(got, wanted, rtol=1e-5, err_msg=f"{row} {value}")


def test_every_number_has_a_row():
    """Each parameter of a public function that is annotated as a number, or as several, is tried."""
    numbers = set()
    for place, holder in {"": lucid, "nn.functional.": functional, "linalg.": lucid.linalg}.items():
        for name, function in vars(holder).items():
            function = inspect.unwrap(function) if inspect.isfunction(function) else function
            ours = inspect.isfunction(function) and written_in(function).startswith("lucid.ops")
            if ours and not name.startswith("_"):
                numbers |= {f"{place}{name}.{parameter}" for parameter in numbers_of(f"{place}{name}", function)}
    tried = {row.rpartition(", several")[0] or row for row in ROWS}
    # of a function that two of them have, one is tried
    names = {tuple(each.split(".")[-2:]) for each in tried}
    missing = {each for each in numbers - NO_ROW if tuple(each.split(".")[-2:]) not in names}
    assert not missing, f"{sorted(missing)}: give each a number in a row of tests/sample_rows, or in tests/calls.py"


def test_what_is_no_number_exists():
    """Each parameter that is told apart by its name is one of a public function's."""
    for key in OPERANDS | UNTOLD | NO_ROW:
        path, _, parameter = key.rpartition(".")
        function = inspect.unwrap(functools.reduce(getattr, path.split("."), lucid))
        assert parameter in inspect.signature(function).parameters, key


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
        number = as_scalar(value, "p")
        assert type(number) in {bool, int, float, complex}
        assert number == 1
        if isinstance(number, complex):
            with pytest.raises(DtypeError, match="expected a real number, got"):
                as_number(value, "p")
        else:
            assert type(as_number(value, "p")) is type(number)
            assert as_number(value, "p") == 1


# Calls that mix real tensors with complex numbers, or give several numbers where one is meant.
MISFITS = {
    "addmm alpha": (lambda x: lucid.addmm(x, x, x, alpha=1j), "alpha: expected a real number"),
    "addmm beta": (lambda x: lucid.addmm(x, x, x, beta=np.complex64(1j)), "beta: expected a real number"),
    "addmv alpha": (lambda x: lucid.addmv(x[0], x, x[0], alpha=1j), "alpha: expected a real number"),
    "addr beta": (lambda x: lucid.addr(x, x[0], x[0], beta=1j), "beta: expected a real number"),
    "arange": (lambda _: lucid.arange(0, 1j), "end: expected a real number"),
    "copysign": (lambda x: lucid.copysign(x, 1j), "other: expected a real number"),
    "fmod": (lambda x: lucid.fmod(x, 1j), "other: expected a real number"),
    "remainder": (lambda x: x % 1j, "expected a real number"),
    "remainder of a number": (lambda x: lucid.remainder(1j, x), "input: expected a real number"),
    "floor_divide": (lambda x: x // np.complex64(1j), "expected a real number"),
    "hypot": (lambda x: lucid.hypot(x, 1j), "other: expected a real number"),
    "logaddexp": (lambda x: lucid.logaddexp(x, 1j), "other: expected a real number"),
    "index_fill": (lambda x: x.index_fill(0, lucid.tensor([0]), 1j), "value: complex numbers do not fit"),
    "masked_fill": (lambda x: x.masked_fill(x > 0, [1.0, 2.0]), "value: expected a number"),
    "masked_fill_": (lambda x: x.masked_fill_(x > 0, []), "value: expected a number"),
    "masked_fill complex": (lambda x: x.masked_fill(x > 0, 1j), "value: complex numbers do not fit"),
    "scatter": (lambda x: x.scatter(0, lucid.tensor([[0, 1]]), value=(1, 2)), "value: expected a number"),
    "full": (lambda _: lucid.full((2,), [1.0, 2.0]), "fill_value: expected a number"),
    "full_like": (lambda x: lucid.full_like(x, []), "fill_value: expected a number"),
    "new_full": (lambda x: x.new_full((2,), [1.0, 2.0]), "fill_value: expected a number"),
    "new_full complex": (lambda x: x.new_full((2,), 1j), "complex numbers do not fit"),
    "vecdot": (lambda x: lucid.linalg.vecdot(3, x), "x: expected a Tensor"),
    "tensordot": (lambda x: lucid.tensordot(x, x, dims=[]), "dims: expected those of a and those of b"),
    "tensordot of three": (lambda x: lucid.tensordot(x, x, dims=[[0], [0], [0]]), "got 3 entries"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_number_that_does_not_fit(misfit):
    """It is refused by lucid, as every error class that PyTorch has for it, and changes nothing."""
    call, message = MISFITS[misfit]
    x = lucid.eye(2) + 1
    with pytest.raises(LucidError, match=message) as error:
        call(x)
    assert isinstance(error.value, TypeError)
    assert isinstance(error.value, RuntimeError)
    assert x.tolist() == [[2.0, 1.0], [1.0, 2.0]]


def test_complex_numbers_where_tensors_are_complex():
    """What takes complex tensors takes such numbers."""
    x = lucid.eye(2) + 0j
    assert lucid.addmm(x, x, x, alpha=2j)[0, 0].item() == 1 + 2j
    assert x.masked_fill(lucid.tensor(True), 2j)[0, 1].item() == 2j
    assert x.new_full((), 2j).item() == lucid.full((), 2j).item() == 2j
    assert lucid.nn.functional.pad(x, (1, 0), value=2j)[0, 0].item() == 2j
    assert x.index_fill(0, lucid.tensor([0]), 2j)[0, 0].item() == 2j


def test_single_or_several():
    """Arrays of no dimension have no length, though they have the method."""
    assert all(map(is_single, (1, 2.0, None, np.int64(3), np.asarray(1), lucid.tensor(1))))
    assert not any(map(is_single, ((1,), [1, 2], np.ones(1), lucid.tensor([1]))))
