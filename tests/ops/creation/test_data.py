"""Tensors on the memory of a buffer: which bytes they are of, and what is refused."""

from __future__ import annotations

import array

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, InplaceError, ShapeError

DTYPES = ("bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "complex64")


@pytest.mark.parametrize("name", DTYPES)
def test_elements(rng, name):
    """The bytes from the offset on are elements of the dtype, as NumPy sees them."""
    dtype = getattr(lucid, name)
    memory = bytearray(rng.integers(0, 2, 64).astype(np.uint8).tobytes())
    for settings in ({}, {"offset": 16}, {"count": 3, "offset": 1}, {"count": -5}):
        found = lucid.frombuffer(memory, dtype=dtype, **settings)
        count = max(settings.get("count", -1), -1)
        wanted = np.frombuffer(memory, dtype.numpy, count, settings.get("offset", 0))
        assert found.dtype is dtype
        assert found.array.tobytes() == wanted.tobytes()


def test_memory_is_shared():
    """Changes are seen on both sides; what is read-only stays so."""
    memory = array.array("f", [1.0, 2.0])
    x = lucid.frombuffer(memory, dtype=lucid.float32)
    memory[0] = 5.0
    x[1] = 7.0
    assert x.tolist() == list(memory) == [5.0, 7.0]
    with pytest.raises(InplaceError):
        lucid.frombuffer(b"ab", dtype=lucid.uint8).zero_()


def test_requires_grad():
    """The tensor is a leaf."""
    x = lucid.frombuffer(bytearray(8), dtype=lucid.float32, requires_grad=True)
    assert x.is_leaf
    assert x.requires_grad


def test_what_is_refused():
    """Sizes and offsets that do not fit, and what is no buffer."""
    memory = bytearray(16)
    for error, message, call in (
        (ShapeError, "expected whole elements of 4 bytes, got 13 from 3 on", {"offset": 3}),
        (ShapeError, "expected count=5 elements of 4 bytes, got 16", {"count": 5}),
        (ShapeError, "expected count=3 elements of 4 bytes, got 8 bytes from 8 on", {"count": 3, "offset": 8}),
        (ShapeError, "expected an offset of 0 to 15 bytes, got 16", {"offset": 16}),
        (ShapeError, "expected an offset of 0 to 15 bytes, got -1", {"offset": -1}),
        (ShapeError, "count other than 0", {"count": 0}),
    ):
        with pytest.raises(error, match=message):
            lucid.frombuffer(memory, dtype=lucid.float32, **call)
    with pytest.raises(ShapeError, match="expected bytes"):
        lucid.frombuffer(bytearray(), dtype=lucid.uint8)
    for wrong in (3, [1], np.zeros((4, 3))[:, ::2]):
        with pytest.raises(DtypeError, match="expected an object with contiguous memory"):
            lucid.frombuffer(wrong, dtype=lucid.uint8)


def test_a_tensor_that_requires_grad_stays_in_its_graph():
    """`asarray` makes a leaf of what is in no graph, and leaves what is in one where it is, copied or not."""
    x = lucid.ones(2, requires_grad=True)
    for copy in (None, True, False):
        y = lucid.asarray(x * 3, copy=copy, requires_grad=True)
        (grad,) = lucid.autograd.grad(y.sum(), x)
        assert grad.tolist() == [3.0, 3.0]
        if copy is not False:
            assert lucid.asarray([1.0], copy=copy, requires_grad=True).is_leaf


def test_tensors_in_a_sequence_are_numbers():
    """A tensor of one element, of any shape, stands for it in nested lists; any other is refused with the remedy."""
    for one in (lucid.tensor(3.0), lucid.tensor([3.0]), lucid.tensor([[3.0]], requires_grad=True)):
        assert lucid.tensor([[one, 1], [2, one]]).tolist() == [[3.0, 1.0], [2.0, 3.0]]
        assert lucid.tensor([one]).is_leaf
    for several in (lucid.ones(2), lucid.ones(1, 3), lucid.ones(0), lucid.ones(2, 0)):
        for data in ([several], [1.0, several], [[several], [1.0]]):
            with pytest.raises(ShapeError, match=r"stands for one number.*join tensors with lucid\.stack"):
                lucid.tensor(data)
            with pytest.raises(ValueError, match="stands for one number"):
                lucid.as_tensor(data)


def test_the_dtype_is_that_of_all_numbers():
    """Of tensors, arrays and NumPy's numbers of several dtypes in one list, at any depth, none decides alone."""
    whole, half, double = lucid.tensor(3), lucid.tensor(0.5), lucid.tensor(0.25, dtype=lucid.float64)
    for data, dtype, values in (
        ([whole, half], lucid.float32, [3.0, 0.5]),
        ([half, whole, double], lucid.float64, [0.5, 3.0, 0.25]),
        ([[whole], [double]], lucid.float64, [[3.0], [0.25]]),
        ([np.array(3), np.array(0.5)], lucid.float64, [3.0, 0.5]),
        ([np.int32(3), np.float32(0.5), True], lucid.float32, [3.0, 0.5, 1.0]),
    ):
        for order in (1, -1):
            made = lucid.tensor(data[::order])
            assert (made.dtype, made.tolist()) == (dtype, values[::order])
