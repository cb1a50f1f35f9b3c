"""`testing.assert_close`: passes where PyTorch's does, and says the same where it does not."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import lucid

NAN, INF = float("nan"), float("inf")
CASES = {
    "close": lambda m: (m.tensor([1.0, 2.0]), m.tensor([1.0, 2.000001])),
    "not close": lambda m: (m.tensor([1.0, 2.0]), m.tensor([1.0, 2.1])),
    "matrix": lambda m: (m.tensor([[1.0, 2.0], [3.0, 4.0]]), m.tensor([[1.0, 2.5], [9.0, 4.0]])),
    "whole numbers": lambda m: (m.tensor([1, 2]), m.tensor([1, 3])),
    "bools": lambda m: (m.tensor([True]), m.tensor([False])),
    "half": lambda m: (m.tensor([1.0], dtype=m.float16), m.tensor([1.001], dtype=m.float16)),
    "bfloat16": lambda m: (m.tensor([1.0], dtype=m.bfloat16), m.tensor([1.02], dtype=m.bfloat16)),
    "complex": lambda m: (m.tensor([1 + 1j]), m.tensor([1 + 2j])),
    "nan": lambda m: (m.tensor([NAN]), m.tensor([NAN])),
    "infinite": lambda m: (m.tensor([INF, -INF]), m.tensor([INF, INF])),
    "zero": lambda m: (m.tensor([1e-6]), m.tensor([0.0])),
    "empty": lambda m: (m.empty(0, 2), m.empty(0, 2)),
    "shape": lambda m: (m.ones(2), m.ones(2, 1)),
    "dtype": lambda m: (m.ones(2), m.ones(2, dtype=m.float64)),
    "scalar tensor": lambda m: (m.tensor(1.0), m.tensor(2.0)),
    "numbers": lambda m: (1.0, 1.00000001),
    "numbers apart": lambda m: (1, 3),
    "sequence": lambda m: ([m.ones(2), 1], [m.ones(2), 2]),
    "length": lambda m: ([1], [1, 2]),
    "mapping": lambda m: ({"a": m.ones(1)}, {"a": m.zeros(1)}),
    "keys": lambda m: ({"a": 1}, {"b": 1}),
    "none": lambda m: (None, None),
}


def message(m, name, **settings):
    """Return what the comparison says; None if it passes."""
    try:
        m.testing.assert_close(*CASES[name](m), **settings)
    except AssertionError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "settings", [{}, {"equal_nan": True, "check_dtype": False}, {"rtol": 0.2, "atol": 0.1}], ids=["", "loose", "given"]
)
def test_the_same_comparisons_pass(name, settings):
    """What is not close is told with the same number of elements and the same greatest differences."""
    ours, theirs = message(lucid, name, **settings), message(torch, name, **settings)
    assert (ours is None) == (theirs is None), (ours, theirs)
    if ours is not None and ("Mismatched" in theirs or "but got" in theirs):
        pattern = r"-?\d+\.?\d*(?:e-?\d+)?"
        found = [np.array([float(n) for n in re.findall(pattern, text)]) for text in (ours, theirs)]
        assert found[0].shape == found[1].shape, (ours, theirs)
        np.testing.assert_allclose(*found, rtol=1e-2 if name == "bfloat16" else 1e-5)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32", "bfloat16", "complex64"])
def test_numbers_to_begin_with(dtype):
    """They have PyTorch's bounds."""
    bounds = []
    for m in (lucid, torch):
        made = m.testing.make_tensor(2000, dtype=getattr(m, dtype), device="cpu")
        values = made.to(m.complex128).numpy().real
        bounds.append((round(values.min()), round(values.max())))
    assert bounds[0] == bounds[1]
