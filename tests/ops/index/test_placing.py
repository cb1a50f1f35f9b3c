"""Copies with another part: it lies where NumPy's view of the same settings lies, and gradients go where values do."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ShapeError
from tests.device import DEVICE

SHAPE = (3, 4, 5)
PLACED = {
    "select_scatter": [((0, -1), lambda x: x[-1]), ((-1, 2), lambda x: x[..., 2])],
    "slice_scatter": [((), lambda x: x), ((1, 1), lambda x: x[:, 1:]), ((2, -4, -1, 2), lambda x: x[..., -4:-1:2])],
    "diagonal_scatter": [
        (setting, lambda x, setting=setting: np.diagonal(x, *setting))
        for setting in ((), (1,), (-2,), (1, 0, 2), (1, 2, 0), (-1, 2, 1), (2, -1, -3))
    ],
    "as_strided_scatter": [
        (((2, 3), (7, 2)), lambda x: np.lib.stride_tricks.as_strided(x, (2, 3), (56, 16))),
        (((4,), (11,), 9), lambda x: x.reshape(-1)[9:43:11]),
    ],
}


@pytest.mark.parametrize(
    ("name", "settings", "part"),
    [(name, settings, part) for name, rows in PLACED.items() for settings, part in rows],
)
def test_the_part_lies_where_its_view_lies(name, settings, part, rng):
    """Elsewhere the copy is the input; the gradient of each element goes to where it came from."""
    places = part(np.arange(np.prod(SHAPE)).reshape(SHAPE))
    whole, new, upstream = (rng.standard_normal(shape) for shape in (SHAPE, places.shape, SHAPE))
    x, src = (lucid.tensor(values, requires_grad=True) for values in (whole, new))
    out = getattr(lucid, name)(x, src, *settings)
    expected = whole.copy()
    expected.reshape(-1)[places] = new
    np.testing.assert_array_equal(out.cpu().numpy(force=True), expected)
    out.backward(lucid.tensor(upstream))
    np.testing.assert_array_equal(src.grad.cpu().numpy(), upstream.reshape(-1)[places])
    kept = upstream.copy()
    kept.reshape(-1)[places] = 0
    np.testing.assert_array_equal(x.grad.cpu().numpy(), kept)
    np.testing.assert_array_equal(x.cpu().numpy(force=True), whole)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("changed", ["put", "put_"])
def test_put_replaces_or_adds_in_flat_order(accumulate, changed, rng):
    """Places count through the rows, from the end below zero; what is added at one place twice is added twice."""
    whole, index = rng.standard_normal((3, 4)), np.array([[1, -1], [6, 3]])
    if accumulate:
        index[1, 1] = 1
    new = rng.standard_normal((2, 2))
    expected = whole.reshape(-1).copy()
    if accumulate:
        np.add.at(expected, index.ravel(), new.ravel())
    else:
        expected[index.ravel()] = new.ravel()
    x = lucid.tensor(whole)
    out = getattr(x, changed)(lucid.tensor(index), lucid.tensor(new), accumulate)
    np.testing.assert_allclose(out.cpu().numpy().ravel(), expected, rtol=1e-15)
    assert (out is x) == (changed == "put_")


@pytest.mark.parametrize("changed", ["put", "put_"])
@pytest.mark.parametrize("accumulate", [False, True])
def test_put_takes_as_many_elements_of_one_dtype(changed, accumulate):
    """Another number of elements, elements of another dtype and places that are no integers are refused."""
    x, places = lucid.zeros(2, 3), lucid.tensor([0, 4])
    for index, source in (
        (places, lucid.ones(3)),
        (places, lucid.ones(2, dtype=lucid.float64)),
        (places, lucid.ones(2, dtype=lucid.int64)),
        (places.float(), lucid.ones(2)),
    ):
        with pytest.raises(ShapeError, match="put: expected index and source of as many elements, of integers and"):
            getattr(x, changed)(index, source, accumulate)
    assert x.tolist() == [[0.0] * 3] * 2


def test_an_index_for_each_of_the_most_dimensions():
    """Elements add up where all of 64 dimensions, as many as NumPy has, are indexed."""
    x = lucid.zeros((1,) * 64, device="cpu")
    places = (lucid.tensor([0, -1, 0], device="cpu"),) * 64
    assert x.index_put(places, lucid.tensor([1.0, 2.0, 4.0], device="cpu"), accumulate=True).item() == 7.0


@pytest.mark.parametrize("step", [0, -1, -2])
def test_slices_go_forwards(step):
    """A step of nothing, or backwards, is refused as a shape that does not fit."""
    with pytest.raises(ShapeError, match=f"slice_scatter: expected a step above zero, got {step}"):
        lucid.slice_scatter(lucid.zeros(4), lucid.ones(4), step=step)


X = lucid.tensor(np.arange(12.0).reshape(3, 4), device=DEVICE)
ROW = lucid.tensor([1, 0], device=DEVICE)
COPIES = {
    "clone": (),
    "masked_fill": (X.T > 3, 0.0),
    "masked_scatter": (X.T > 3, X),
    "index_add": (0, ROW, X.T[:2]),
    "index_copy": (0, ROW, X.T[:2]),
    "index_fill": (0, ROW, 7.0),
    "index_put": ((ROW,), X.T[:2]),
    "scatter": (0, ROW[None, :], 7.0),
    "scatter_add": (0, ROW[None, :], X.T),
    "select_scatter": (X[:, 0], 0, 1),
    "slice_scatter": (X.T[1:], 0, 1),
    "diagonal_scatter": (X[:, 0],),
    "as_strided_scatter": (X[0], (4,), (3,)),
    "put": (ROW, X[0, :2]),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_changed_copy_is_contiguous(name):
    """Whatever the strides of the input, a copy lies in the order of its dimensions."""
    out = getattr(X.T, name)(*COPIES[name])
    assert out.shape == X.T.shape
    assert out.stride() == (3, 1)


def test_strides_are_those_of_the_copy(rng):
    """as_strided_scatter counts through the contiguous copy, not through the memory of its input."""
    values = rng.standard_normal((3, 4))
    out = lucid.as_strided_scatter(lucid.tensor(values).T, lucid.zeros(3, dtype=lucid.float64), (3,), (2,), 1)
    expected = values.T.copy()
    expected.reshape(-1)[1:7:2] = 0
    np.testing.assert_array_equal(out.cpu().numpy(), expected)
