"""Tensors from nothing and from data: PyTorch's values, dtypes, sharing and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from lucid.errors import DtypeError, ShapeError


def same(ours, theirs):
    """Fail unless values and dtypes agree."""
    assert str(ours.dtype).removeprefix("lucid.") == str(theirs.dtype).removeprefix("torch.")
    assert ours.shape == tuple(theirs.shape)
    got, expected = ours.to(lucid.float64).numpy(force=True), theirs.to(torch.float64).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-7)


CALLS = {
    "zeros": lambda m: m.zeros(2, 3),
    "zeros tuple": lambda m: m.zeros((2, 0), dtype=m.int32),
    "scalar zeros": lambda m: m.zeros(()),
    "ones": lambda m: m.ones([2], dtype=m.bfloat16),
    "full float": lambda m: m.full((2,), 1.5),
    "full int": lambda m: m.full((2,), 3),
    "full bool": lambda m: m.full((2,), True),
    "full cast": lambda m: m.full((2,), 3, dtype=m.float16),
    "full size": lambda m: m.full([], 2.5, dtype=m.float64),
    "full infinite": lambda m: m.full((2,), float("-inf")),
    "zeros_like": lambda m: m.zeros_like(m.tensor([1, 2])),
    "ones_like": lambda m: m.ones_like(m.tensor([1, 2]), dtype=m.float64),
    "full_like": lambda m: m.full_like(m.tensor([1.0, 2.0]), 3),
    "arange": lambda m: m.arange(5),
    "arange float": lambda m: m.arange(5.0),
    "arange three": lambda m: m.arange(1, 8, 3),
    "arange down": lambda m: m.arange(5, -2, -2),
    "arange tenths": lambda m: m.arange(0, 1, 0.1),
    "arange empty": lambda m: m.arange(3, 3),
    "arange dtype": lambda m: m.arange(3, dtype=m.float16),
    "arange int dtype": lambda m: m.arange(0, 5, 2, dtype=m.int8),
    "linspace": lambda m: m.linspace(-1, 2, 7),
    "linspace one": lambda m: m.linspace(3, 9, 1),
    "linspace none": lambda m: m.linspace(3, 9, 0),
    "linspace long": lambda m: m.linspace(0.1, 0.7, 101, dtype=m.float64),
    "logspace": lambda m: m.logspace(-1, 1, 5),
    "logspace base": lambda m: m.logspace(0, 4, 5, base=2),
    "eye": lambda m: m.eye(3),
    "eye wide": lambda m: m.eye(2, 4, dtype=m.int64),
    "tril_indices": lambda m: m.tril_indices(3, 4, 1),
    "triu_indices": lambda m: m.triu_indices(3, 4, -1),
    "tensor": lambda m: m.tensor([[1, 2.5], [3, 4]]),
    "tensor bools": lambda m: m.tensor([True, False]),
    "tensor mixed": lambda m: m.tensor([True, 2]),
    "tensor none": lambda m: m.tensor([]),
    "tensor float64": lambda m: m.tensor(np.array([1.5])),
    "tensor scalar": lambda m: m.tensor(np.float64(1.5)),
    "tensor cast": lambda m: m.tensor([1.7, -1.7], dtype=m.int32),
    "tensor of tensors": lambda m: m.tensor([m.tensor(2.0, requires_grad=True), m.tensor(3)]),
    "tensor of nested tensors": lambda m: m.tensor([[m.tensor([2.0], requires_grad=True)], (1,)]),
    "tensor of bfloat16 tensors": lambda m: m.tensor([m.tensor(1.5, dtype=m.bfloat16)] * 2),
    "tensor of matrices of one": lambda m: m.tensor([m.tensor([[7.0]]), m.tensor([[8.0]])]),
    "tensor of tensors cast": lambda m: m.tensor([m.tensor(2, dtype=m.uint8)], dtype=m.float64),
    "as_tensor of tensors": lambda m: m.as_tensor([m.tensor(2.0, requires_grad=True), 1.0]),
    "asarray of tensors": lambda m: m.asarray([m.tensor(2.0, requires_grad=True), m.tensor(True)]),
    "new_tensor of tensors": lambda m: m.ones(1).new_tensor([m.tensor(2.0, requires_grad=True)]),
    "as_tensor": lambda m: m.as_tensor([1, 2]),
    "as_tensor cast": lambda m: m.as_tensor(m.tensor([1, 2]), dtype=m.float64),
    "asarray": lambda m: m.asarray([1.0, 2.0]),
    "scalar_tensor": lambda m: m.scalar_tensor(3),
    "from_numpy": lambda m: m.from_numpy(np.arange(3, dtype=np.int16)),
}


# PyTorch warns, once, that the number has no gradient
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize("name", CALLS)
def test_like_pytorch(name):
    """Each function that makes a tensor gives PyTorch's values, shape and dtype."""
    ours, theirs = CALLS[name](lucid), CALLS[name](torch)
    same(ours, theirs)
    assert not ours.requires_grad
    assert ours.is_leaf


@pytest.mark.cpu("about the memory of NumPy arrays")
def test_sharing():
    """`tensor` copies; as_tensor, asarray and from_numpy share memory where nothing has to be converted."""
    array = np.arange(3.0)
    for make in (lucid.as_tensor, lucid.asarray, lucid.from_numpy):
        assert make(array).array is array
    assert not np.shares_memory(lucid.tensor(array).array, array)
    assert not np.shares_memory(lucid.as_tensor(array, dtype=lucid.float32).array, array)
    assert not np.shares_memory(lucid.asarray(array, copy=True).array, array)
    known = lucid.tensor([1.0], requires_grad=True) * 2
    assert lucid.as_tensor(known) is known
    assert lucid.as_tensor(known, dtype=lucid.float64).requires_grad
    assert not lucid.tensor(known).requires_grad
    with pytest.raises(ValueError, match="without a copy"):
        lucid.asarray([1, 2], copy=False)


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: lucid.tensor([1, 2], **k),
        lambda **k: lucid.arange(3, **k),
        lambda **k: lucid.zeros(2, dtype=lucid.int32, **k),
        lambda **k: lucid.full((1,), 2, **k),
        lambda **k: lucid.ones_like(lucid.tensor([True]), **k),
    ],
)
def test_only_floating_point_requires_grad(make):
    """A tensor of integers or bools cannot be made to require grad."""
    with pytest.raises(DtypeError, match="only Tensors of floating point and complex dtype can require gradients"):
        make(requires_grad=True)
    make(requires_grad=False)


def test_leaves_take_gradients():
    """What is made with requires_grad is a leaf that backward fills."""
    made = [lucid.tensor([1.0, 2.0], requires_grad=True), lucid.zeros(2, requires_grad=True)]
    made += [lucid.linspace(0, 1, 2, requires_grad=True), lucid.asarray(np.zeros(2), requires_grad=True)]
    for leaf in made:
        (leaf * 3.0).backward(lucid.tensor([2.0, 5.0], dtype=leaf.dtype))
        assert leaf.is_leaf
        assert leaf.grad.tolist() == [6.0, 15.0]


def test_default_dtype_is_followed():
    """Without a dtype, floating-point tensors take the default."""
    lucid.set_default_dtype(lucid.float64)
    try:
        made = [lucid.zeros(1), lucid.ones(1), lucid.full((1,), 0.5), lucid.arange(1.0), lucid.linspace(0, 1, 2),
                lucid.eye(1), lucid.tensor(1.0), lucid.scalar_tensor(1), lucid.empty(1)]  # fmt: skip
        assert {tensor.dtype for tensor in made} == {lucid.float64}
    finally:
        lucid.set_default_dtype(lucid.float32)


MISTAKES = {
    "negative size": (lambda: lucid.zeros(2, -1), ShapeError, r"negative dimension: \[2, -1\]"),
    "uneven": (lambda: lucid.tensor([[1, 2], [3]]), ShapeError, "nest evenly"),
    "text": (lambda: lucid.tensor("a"), DtypeError, "'a'|number|str"),
    "overflow": (lambda: lucid.full((1,), 300, dtype=lucid.uint8), DtypeError, "300"),
    "list": (lambda: lucid.from_numpy([1]), DtypeError, "expected a numpy.ndarray, got list"),
    "strings": (lambda: lucid.from_numpy(np.array(["a"])), DtypeError, "<U1"),
    "no step": (lambda: lucid.arange(0, 1, 0), ShapeError, "nonzero"),
    "wrong step": (lambda: lucid.arange(0, 1, -1), ShapeError, "inconsistent with step sign"),
    "steps": (lambda: lucid.linspace(0, 1, -1), ShapeError, "non-negative"),
    "eye": (lambda: lucid.eye(-1), ShapeError, "-1 rows"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(name):
    """What cannot be made raises and says why."""
    call, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        call()
