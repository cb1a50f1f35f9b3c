"""Tensors are shown as PyTorch shows them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lucid

on_the_cpu = pytest.mark.cpu("tensors on another device print it")
RNG = np.random.default_rng(0)
ARRAYS = {
    "whole numbers": np.array([1.0, 2.0, -3.0], np.float32),
    "fractions": RNG.standard_normal((3, 4)).astype(np.float32),
    "range of sizes": np.array([1e-6, 1.0, 3.5], np.float32),
    "large whole": np.array([1e9, 1.0], np.float32),
    "whole with range": np.array([1.0, 5000.0], np.float32),
    "tiny": np.array([1e-5, 2e-5], np.float32),
    "nan and inf": np.array([np.nan, np.inf, -np.inf, 1.0, 2.5], np.float32),
    "nan with whole": np.array([np.nan, 0.0, -2.0], np.float32),
    "only nan": np.array([np.nan, np.nan], np.float32),
    "zeros": np.zeros((2, 3), np.float32),
    "minus zero": np.array([-0.0, 0.5], np.float32),
    "no dimension": np.array(3.14159, np.float32),
    "no dimension, tiny": np.array(1e-7, np.float32),
    "no dimension, whole": np.array(7, np.int64),
    "no dimension, bool": np.array(True),
    "empty": np.zeros((0,), np.float32),
    "empty with shape": np.zeros((0, 3), np.float32),
    "empty of integers": np.zeros((2, 0), np.int64),
    "empty of doubles": np.zeros((0,), np.float64),
    "integers": np.array([[1, -20], [300, 4]], np.int64),
    "small integers": np.array([[1, 2], [3, 4]], np.int8),
    "unsigned": np.arange(3, dtype=np.uint8),
    "bools": np.array([True, False, True]),
    "doubles": RNG.standard_normal(5),
    "halves": RNG.standard_normal(5).astype(np.float16),
    "complex": (RNG.standard_normal(4) + 1j * RNG.standard_normal(4)).astype(np.complex64),
    "complex doubles": np.array([[1 + 2j, -3.5 - 1e-3j]]),
    "complex whole": np.array([1 + 2j, -3 - 10j], np.complex64),
    "complex without dimension": np.array(1.5 - 2j, np.complex64),
    "cube": RNG.standard_normal((2, 3, 4)).astype(np.float32),
    "four dimensions": RNG.standard_normal((2, 1, 2, 2)).astype(np.float32),
    "lines wrap": RNG.standard_normal(40).astype(np.float32),
    "rows wrap": RNG.standard_normal((3, 30)).astype(np.float32),
    "summary": np.arange(2000, dtype=np.float32),
    "summary of integers": np.arange(2000, dtype=np.int64),
    "summary of a matrix": RNG.standard_normal((50, 60)).astype(np.float32),
    "summary along one side": RNG.standard_normal((600, 4)).astype(np.float32),
    "summary of a short side": RNG.standard_normal((4, 600)).astype(np.float32),
    "summary of a cube": RNG.standard_normal((12, 11, 10)).astype(np.float32),
    "threshold": np.arange(1000, dtype=np.float32),
    "threshold passed": np.arange(1001, dtype=np.float32),
    "summary of complex": RNG.standard_normal(1500) + 1j * RNG.standard_normal(1500),
}


def said(array, **options):
    """Return the representation in lucid's and in PyTorch's words, the name of the library made equal."""
    ours = repr(lucid.tensor(array, **options))
    theirs = repr(torch.tensor(array, **options))
    return ours, theirs.replace("torch.", "lucid.")


@on_the_cpu
@pytest.mark.parametrize("name", ARRAYS)
def test_repr(name):
    """Numbers, widths, line breaks, summaries and suffixes are PyTorch's, character by character."""
    ours, theirs = said(ARRAYS[name])
    assert ours == theirs


@on_the_cpu
@pytest.mark.parametrize("name", ["fractions", "no dimension", "lines wrap", "summary", "doubles", "complex"])
def test_repr_of_what_requires_grad(name):
    """A leaf says that it requires grad; the suffix wraps where PyTorch's does."""
    ours, theirs = said(ARRAYS[name], requires_grad=True)
    assert ours == theirs


@on_the_cpu
def test_repr_of_a_result():
    """A result names the node that made it."""
    array = ARRAYS["fractions"]
    ours = repr(lucid.tensor(array, requires_grad=True) * 2)
    assert ours == repr(torch.tensor(array, requires_grad=True) * 2)


@on_the_cpu
def test_repr_of_bfloat16():
    """bfloat16, which NumPy does not know, is shown as its float32 values."""
    array = ARRAYS["fractions"]
    ours = repr(lucid.tensor(array).bfloat16())
    assert ours == repr(torch.tensor(array).bfloat16()).replace("torch.", "lucid.")


@on_the_cpu
@pytest.mark.parametrize(
    "options",
    [
        {"precision": 2},
        {"precision": 8},
        {"edgeitems": 1},
        {"threshold": 5},
        {"linewidth": 40},
        {"sci_mode": True},
        {"sci_mode": False},
        {"profile": "short"},
        {"profile": "full"},
        {"profile": "short", "precision": 6},
    ],
)
@pytest.mark.parametrize("name", ["fractions", "integers", "summary", "range of sizes", "cube", "complex"])
def test_printoptions(name, options):
    """Every option, and a profile with an option on top, does what it does in PyTorch."""
    try:
        lucid.set_printoptions(**options)
        torch.set_printoptions(**options)
        ours, theirs = said(ARRAYS[name])
    finally:
        lucid.set_printoptions(profile="default")
        torch.set_printoptions(profile="default")
    assert ours == theirs


@on_the_cpu
@given(
    st.lists(
        st.floats(width=32, allow_subnormal=False) | st.integers(-(10**6), 10**6).map(float), min_size=1, max_size=12
    )
)
@settings(max_examples=200, deadline=None)
def test_repr_of_any_floats(values):
    """Whatever the values, the choice between whole, fixed and scientific is PyTorch's."""
    ours, theirs = said(np.array(values, np.float32))
    assert ours == theirs


@pytest.mark.parametrize("specification", ["", ".2f", "8.3e", "d"])
def test_format(specification):
    """A tensor of no dimension is formatted as its number, one with dimensions takes no format."""
    for value in (2.5, 7):
        if specification == "d" and value == 2.5:
            continue
        assert format(lucid.tensor(value), specification) == format(torch.tensor(value), specification)
    if specification:
        with pytest.raises(TypeError):
            format(torch.ones(2), specification)
        with pytest.raises(TypeError):
            format(lucid.tensor([1.0, 1.0]), specification)
