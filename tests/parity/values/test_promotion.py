"""Dtypes against PyTorch: promotion, casting, limits, and the dtype of tensors made from Python data."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import torch

from lucid.base.arrays import asarray, astype
from lucid.base.dtype import (
    DTYPES,
    can_cast,
    complex64,
    float64,
    get_default_dtype,
    promote_types,
    result_type,
    set_default_dtype,
)
from lucid.base.limits import finfo, iinfo

ALL = list(DTYPES.values())
NUMBERS = [True, 2, 2.5, 2.5j]
PAIRS = list(itertools.product(ALL, ALL))


def theirs(d):
    return getattr(torch, d.name)


def ours(torch_dtype):
    # PyTorch pairs half numbers into complex32, which few operations support; lucid's smallest pair is complex64.
    return complex64 if torch_dtype is torch.complex32 else DTYPES[str(torch_dtype).removeprefix("torch.")]


@pytest.fixture(params=["float32", "float64", "float16"])
def default_dtype(request):
    """One default dtype for both libraries."""
    before, before_torch = get_default_dtype(), torch.get_default_dtype()
    set_default_dtype(request.param)
    torch.set_default_dtype(getattr(torch, request.param))
    yield request.param
    set_default_dtype(before)
    torch.set_default_dtype(before_torch)


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=repr)
def test_promotion_table_is_pytorchs(a, b):
    """Every pair of dtypes promotes as in PyTorch."""
    assert promote_types(a, b) is ours(torch.promote_types(theirs(a), theirs(b)))


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=repr)
def test_casting_rule_is_pytorchs(a, b):
    """Every pair of dtypes may be cast exactly where PyTorch allows it."""
    assert can_cast(a, b) == torch.can_cast(theirs(a), theirs(b))


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=repr)
def test_dimensions_rank_operands_as_in_pytorch(a, b):
    """For every pair of dtypes and each of the four mixtures of 0-dim and dimensioned operands the result agrees."""
    for shape_a, shape_b in itertools.product([(2, 1), ()], repeat=2):
        expected = torch.result_type(torch.zeros(shape_a, dtype=theirs(a)), torch.zeros(shape_b, dtype=theirs(b)))
        assert result_type(np.zeros(shape_a, a.numpy), np.zeros(shape_b, b.numpy)) is ours(expected)


@pytest.mark.parametrize("d", ALL, ids=repr)
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_python_numbers_rank_lowest_as_in_pytorch(d, number, default_dtype):
    """For every dtype, kind of Python number, order, shape and default dtype the result agrees."""
    for shape in [(3,), (0,), ()]:
        x, t = np.zeros(shape, d.numpy), torch.zeros(shape, dtype=theirs(d))
        assert result_type(x, number) is ours(torch.result_type(t, number))
        assert result_type(number, x) is ours(torch.result_type(number, t))


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NUMBERS, NUMBERS)), ids=repr)
def test_two_python_numbers_combine_as_in_pytorch(a, b, default_dtype):
    """Without any tensor the categories of the numbers and the default dtype decide."""
    assert result_type(a, b) is ours(torch.result_type(a, b))


@pytest.mark.parametrize("d", ALL, ids=repr)
def test_limits_are_pytorchs(d):
    """The limits of every dtype are PyTorch's numbers."""
    if d.name == "bool":
        with pytest.raises(TypeError):
            torch.iinfo(torch.bool)
        with pytest.raises(TypeError):
            iinfo(d)
        return
    floating = d.is_floating_point or d.is_complex
    mine, its = (finfo(d), torch.finfo(theirs(d))) if floating else (iinfo(d), torch.iinfo(theirs(d)))
    for field in (
        "bits",
        "min",
        "max",
        "dtype",
        *(("eps", "tiny", "smallest_normal", "resolution") if floating else ()),
    ):
        if field == "bits" and d.is_complex:
            # PyTorch counts the bits of a complex number, its other limits are those of the parts; lucid's all are.
            assert 2 * mine.bits == 8 * d.itemsize
            continue
        assert getattr(mine, field) == getattr(its, field), field


@pytest.mark.parametrize("d", ALL, ids=repr)
def test_default_limits_and_complex_partners_are_pytorchs(d):
    """The complex partner of a floating dtype and the real one of a complex dtype agree; integers have none in both."""
    if d.is_floating_point or d.is_complex:
        assert d.to_complex() is ours(theirs(d).to_complex())
        assert d.to_real() is ours(theirs(d).to_real())
    else:
        with pytest.raises(RuntimeError):
            theirs(d).to_complex()
        with pytest.raises(RuntimeError):
            d.to_complex()
    assert (d.is_floating_point, d.is_complex, d.is_signed, d.itemsize) == (
        theirs(d).is_floating_point,
        theirs(d).is_complex,
        theirs(d).is_signed,
        theirs(d).itemsize,
    )


@pytest.mark.parametrize(
    "data",
    [
        1,
        True,
        0.1,
        [],
        [[], []],
        [1, True],
        [True, False],
        [1, 2.5],
        [[0.1, 2], [3, 4]],
        range(3),
        (1, (2)),
        [np.float64(0.1)],
        [np.int8(3), True],
        [np.int8(3), 2],
        [np.float16(3), 0.1],
        np.float64(0.1),
        np.int16(2),
        np.arange(3, dtype=np.uint8),
        [1e300],
    ],
    ids=repr,
)
def test_tensors_made_of_data_are_pytorchs(data, default_dtype):
    """Dtype, shape and every bit of the values agree with torch.tensor."""
    expected = torch.tensor(data).numpy()
    made = asarray(data)
    assert made.dtype == expected.dtype
    assert made.shape == expected.shape
    assert made.tobytes() == expected.tobytes()


@pytest.mark.parametrize("data", [2j, [1, 2j], [[1.5, 2j]]], ids=repr)
@pytest.mark.parametrize("default_dtype", ["float32", "float64"], indirect=True)
def test_complex_data_follows_the_default_dtype(data, default_dtype):
    """Python complex numbers take the complex type of the default dtype, as in PyTorch."""
    expected = torch.tensor(data).numpy()
    made = asarray(data)
    assert made.dtype == expected.dtype
    assert made.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=repr)
def test_conversions_are_pytorchs(source, target):
    """Random values converted from any dtype to any other have PyTorch's bits, rounding and truncation included."""
    rng = np.random.default_rng([source.itemsize, target.itemsize])
    values = rng.standard_normal(64) * 30
    if not source.is_signed or not target.is_signed:
        values = abs(values)
    if source.is_complex:
        values = values + 1j * rng.standard_normal(64)
    x = astype(values, source)
    with warnings.catch_warnings():
        # PyTorch warns when it drops an imaginary part.
        warnings.simplefilter("ignore", UserWarning)
        expected = torch.tensor(x.view(np.int16)).view(torch.bfloat16) if source.name == "bfloat16" else torch.tensor(x)
        expected = expected.to(theirs(target))
    made = astype(x, target)
    bits = expected.view(torch.int16).numpy() if target.name == "bfloat16" else expected.numpy()
    assert made.tobytes() == bits.tobytes()


def test_python_types_are_pytorchs():
    """Python's types as dtypes mean in PyTorch what they mean here: float is float64, complex is complex128."""
    for kind in (bool, int, float, complex):
        assert asarray([1], dtype=kind).dtype == torch.ones(1, dtype=kind).numpy().dtype
    assert asarray([1], dtype=float).dtype == float64.numpy
