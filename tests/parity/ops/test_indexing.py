"""Indexing and assignment against PyTorch, over random keys."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from lucid.errors import ShapeError
from tests.parity.pieces import agree, differentiated


def random_key(rng, shape):
    """Return a random index as plain values, arrays standing for tensors; arrays that index together broadcast."""
    common = [(), (2,), (3, 1), (3, 2)][rng.integers(0, 4)]
    key, dim = [], 0
    ellipsis = rng.random() < 0.3
    while dim < len(shape):
        kind = rng.choice(["int", "slice", "none", "tensor", "mask", "all", "stop", "0-d", "bool"])
        size = shape[dim]
        if kind == "int":
            key.append(int(rng.integers(-size, size)))
        elif kind == "slice":
            ends = [None if rng.random() < 0.3 else int(rng.integers(-size - 1, size + 2)) for _ in range(2)]
            key.append(slice(*ends, int(rng.integers(1, 3)) if rng.random() < 0.5 else None))
        elif kind == "none":
            key.append(None)
            continue
        elif kind == "bool":
            if rng.random() < 0.2:
                key.append(bool(rng.random() < 0.7))
            continue
        elif kind == "tensor":
            at = [n if rng.random() < 0.7 else 1 for n in common]
            key.append(rng.integers(-size, size, at))
        elif kind == "0-d":
            key.append(np.array(rng.integers(0, size)))
        elif kind == "mask":
            # as many true ones as the index tensors have in their last dimension
            rank = 2 if dim + 2 <= len(shape) and rng.random() < 0.3 else 1
            mask = np.zeros(shape[dim : dim + rank], bool)
            mask.reshape(-1)[rng.permutation(mask.size)[: common[-1] if common else 1]] = True
            key.append(mask)
            dim += rank
            continue
        elif kind == "all":
            key.append(slice(None))
        elif ellipsis:
            key.append(...)
            ellipsis = False
            dim += int(rng.integers(0, len(shape) - dim + 1))
            continue
        else:
            break
        dim += 1
    return key[0] if len(key) == 1 and rng.random() < 0.5 else tuple(key)


def made(module, key):
    """Return a key whose arrays are tensors of a module."""
    if isinstance(key, tuple):
        return tuple(made(module, part) for part in key)
    return module.tensor(key) if isinstance(key, np.ndarray) else key


def outcome(function):
    """Return the result of a function, or the kind of error that it raised."""
    try:
        return function()
    except (IndexError, RuntimeError) as error:
        return "raises" if isinstance(error, IndexError | RuntimeError | ShapeError) else None


@pytest.mark.usefixtures("indices_are_read")
@pytest.mark.parametrize("part", range(8))
def test_getitem_like_pytorch(part, rng):
    """Any mixture of integers, slices, None, Ellipsis, tensors and masks gives PyTorch's value and gradient."""
    raised = 0
    for _ in range(150):
        shape = tuple(rng.integers(2, 5, rng.integers(1, 5)).tolist())
        array = rng.standard_normal(shape)
        key = random_key(rng, shape)
        ours, theirs = lucid.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
        got = outcome(lambda ours=ours, key=key: ours[made(lucid, key)])
        expected = outcome(lambda theirs=theirs, key=key: theirs[made(torch, key)])
        if isinstance(got, str) and not isinstance(expected, str) and not expected.numel():
            continue  # a place that does not exist is an error here, also where nothing is read from it
        if isinstance(expected, str) or isinstance(got, str):
            assert got is expected, (shape, key, got, expected)
            raised += 1
            continue
        np.testing.assert_array_equal(got.numpy(force=True), expected.numpy(force=True), err_msg=f"{shape} {key}")
        upstream = rng.standard_normal(got.shape)
        got.backward(lucid.tensor(upstream))
        expected.backward(torch.tensor(upstream))
        np.testing.assert_allclose(
            ours.grad.numpy(force=True), theirs.grad.numpy(), rtol=1e-12, atol=1e-14, err_msg=f"{shape} {key}"
        )
    assert raised < 100


def names_a_place_twice(shape, key):
    """Tell whether a key names an element more than once."""
    count = torch.zeros(shape, dtype=torch.int64)
    index = torch.arange(count.numel()).reshape(shape)[made(torch, key)]
    return len(torch.unique(index)) < index.numel()


@pytest.mark.parametrize("part", range(8))
def test_setitem_like_pytorch(part, rng):
    """Assignment through any index gives PyTorch's values, and its gradients of the old and the new values."""
    done = 0
    for _ in range(150):
        shape = tuple(rng.integers(2, 5, rng.integers(1, 4)).tolist())
        array = rng.standard_normal(shape)
        key = random_key(rng, shape)
        picked = outcome(lambda array=array, key=key: torch.tensor(array)[made(torch, key)])
        # a place that does not exist is an error here, also where nothing is written to it
        if isinstance(picked, str) or names_a_place_twice(shape, key) or not picked.numel():
            continue
        # values that broadcast: the full shape, without leading dimensions, or one number
        wanted = tuple(picked.shape)
        value = rng.standard_normal(wanted[int(rng.integers(0, len(wanted) + 1)) :])
        results = []
        for module, make in ((lucid, lucid.tensor), (torch, torch.tensor)):
            leaf, new = make(array, requires_grad=True), make(value, requires_grad=True)
            target = leaf * 2
            target[made(module, key)] = new
            results.append((leaf, new, target))
        (leaf, new, target), (their_leaf, their_new, their_target) = results
        where = f"{shape} {key}"
        np.testing.assert_array_equal(target.numpy(force=True), their_target.numpy(force=True), err_msg=where)
        upstream = rng.standard_normal(shape)
        target.backward(lucid.tensor(upstream))
        their_target.backward(torch.tensor(upstream))
        for ours, theirs in ((leaf, their_leaf), (new, their_new)):
            # PyTorch gives no gradient at all to values of which none was used
            expected = np.zeros(theirs.shape) if theirs.grad is None else theirs.grad.numpy()
            np.testing.assert_allclose(ours.grad.numpy(force=True), expected, rtol=1e-12, atol=1e-13, err_msg=where)
        done += 1
    assert done > 40


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("value", [1, 2.5, True, np.float64(3.5)])
def test_assigned_numbers_take_the_dtype_of_the_target(kind, value):
    """A number or value of another dtype is cast to the dtype of what it is written into."""
    ours, theirs = lucid.zeros(3, dtype=getattr(lucid, kind)), torch.zeros(3, dtype=getattr(torch, kind))
    ours[1] = value
    theirs[1] = value.item() if isinstance(value, np.generic) else value
    assert str(ours.dtype).removeprefix("lucid.") == str(theirs.dtype).removeprefix("torch.")
    assert ours.tolist() == theirs.tolist()


PLACES = {
    "lists": ([1, 2], [0, 3]),
    "one number before a list": (1, [0, 3]),
    "one number behind a list": ([0, 2], -1),
    "one number": (2,),
    "only numbers": (1, 2, 0),
    "mask": ([[True, False, False, True], [False] * 4, [False, True, False, False]],),
    "list and mask": ([0, 1], [False, True, True, False]),
}


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("name", PLACES)
def test_index_put_like_pytorch(name, accumulate, rng):
    """Values are written or added where tensors of any number of dimensions name places, with PyTorch's gradients."""
    places = tuple(map(np.array, PLACES[name]))
    array, upstream = rng.standard_normal((2, 3, 4, 2))
    value = rng.standard_normal(torch.tensor(array)[made(torch, places)].shape)

    def program(lib):
        put = lambda x, new: lib.index_put(x, made(lib, places), new, accumulate)
        return differentiated(lib, put, (array, value), upstream)

    agree(program, 1e-12, 1e-13)


@pytest.mark.parametrize("index", [slice(0, 1), None, ...])
def test_index_put_takes_tensors_only(index):
    """Slices, None and Ellipsis are refused by both."""
    for module in (lucid, torch):
        with pytest.raises(TypeError):
            module.index_put(module.zeros(2), (index,), module.tensor(1.0))
