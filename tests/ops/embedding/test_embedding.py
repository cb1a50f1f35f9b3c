"""Embedding: padding, frequencies, shortened rows, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, IndexOutOfRangeError, InplaceError, SettingError, ShapeError
from lucid.ops.embedding.embedding import embedding
from tests.gradients import numbers


def gradient(index, table, upstream, **settings):
    """Return the gradient of the table."""
    weight = lucid.tensor(table, requires_grad=True)
    embedding(lucid.tensor(index), weight, **settings).backward(lucid.tensor(upstream))
    return numbers(weight.grad)


def test_repeated_rows_add_up(rng):
    """Each row gets the sum over its uses; the padding row none; by frequency it gets their mean."""
    index, table = rng.integers(0, 7, (40, 3)), rng.standard_normal((7, 5))
    index[0] = 0, 1, 2
    upstream = rng.standard_normal((40, 3, 5))
    expected = np.stack([upstream[index == row].sum(0) for row in range(7)])
    np.testing.assert_allclose(gradient(index, table, upstream), expected, rtol=1e-12, atol=1e-13)
    padded = expected.copy()
    padded[5] = 0
    np.testing.assert_allclose(gradient(index, table, upstream, padding_idx=-2), padded, rtol=1e-12, atol=1e-13)
    means = expected / np.maximum(np.bincount(index.reshape(-1), minlength=7), 1)[:, None]
    got = gradient(index, table, upstream, scale_grad_by_freq=True)
    np.testing.assert_allclose(got, means, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("settings", [{"padding_idx": 1}, {"scale_grad_by_freq": True}])
def test_second_derivative_of_what_backward_leaves_out(settings, rng):
    """The gradient is linear in the upstream one; its derivative is its transpose, padding and frequency included."""
    index, table = np.array([1, 1, 0, 2, 2, 2]), lucid.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    upstream = lucid.tensor(rng.standard_normal((6, 4)), requires_grad=True)
    out = embedding(lucid.tensor(index), table, **settings)
    (grad,) = lucid.autograd.grad(out, table, upstream, create_graph=True)
    other = lucid.tensor(rng.standard_normal((3, 4)))
    (back,) = lucid.autograd.grad(grad, upstream, other)
    assert (grad * other).sum().item() == pytest.approx((back * upstream).sum().item(), rel=1e-12)
    counts = np.array([1.0, 0.0, 1.0]) if "padding_idx" in settings else 1 / np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(numbers(back), (numbers(other) * counts[:, None])[index], rtol=1e-12)


@pytest.mark.parametrize("norm_type", [2.0, 1.0])
def test_long_rows_are_shortened(norm_type, rng):
    """Rows in use that are longer than max_norm get that length, in place; all others stay."""
    directions = rng.standard_normal((5, 4))
    lengths = np.array([[0.1], [3.0], [3.0], [0.1], [3.0]])
    table = directions / np.linalg.norm(directions, norm_type, 1, keepdims=True) * lengths
    weight = lucid.tensor(table)
    out = embedding(lucid.tensor([0, 1, 1, 4]), weight, max_norm=0.5, norm_type=norm_type)
    got = numbers(weight)
    np.testing.assert_allclose(np.linalg.norm(got, norm_type, 1)[[1, 4]], 0.5, rtol=1e-6)
    np.testing.assert_array_equal(got[[0, 2, 3]], table[[0, 2, 3]])
    np.testing.assert_array_equal(numbers(out), got[[0, 1, 1, 4]])
    assert weight._version == 1


def test_a_row_of_the_allowed_length_stays():
    """Only what is longer is shortened; a row that was is not shortened again."""
    weight = lucid.tensor([[3.0, 4.0], [0.0, 10.0]])
    embedding(lucid.tensor([0, 1]), weight, max_norm=5.0)
    assert weight[0].tolist() == [3.0, 4.0]
    shortened = weight.tolist()
    embedding(lucid.tensor([0, 1]), weight, max_norm=5.0)
    assert weight.tolist() == shortened


def test_shortening_is_seen_by_who_saved_the_table(rng):
    """A backward that needs the table as it was before refuses to run."""
    weight = lucid.tensor(rng.standard_normal((3, 2)) + 5, requires_grad=True)
    loss = (weight * weight).sum()
    embedding(lucid.tensor([0]), weight, max_norm=1.0)
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_add_up_in_float32(dtype):
    """A thousand uses of one row, whose running sum a half type cannot hold to one, are counted to the last."""
    weight = lucid.zeros(2, 1, dtype=getattr(lucid, dtype), requires_grad=True)
    upstream = lucid.full((4096, 1), 1.0, dtype=weight.dtype)
    embedding(lucid.zeros(4096, dtype=lucid.int64), weight).backward(upstream)
    assert weight.grad.tolist() == [[4096.0], [0.0]]


@pytest.mark.usefixtures("indices_are_read")
def test_mistakes():
    """Numbers that name no row, numbers that are no integers, and tables that are no matrix are refused."""
    table = lucid.ones(3, 2)
    for wrong in (3, -1):
        with pytest.raises(IndexOutOfRangeError, match=f"expected 0 to 2, got {wrong}"):
            embedding(lucid.tensor([0, wrong]), table)
    with pytest.raises(DtypeError, match=r"integers, got lucid\.float32"):
        embedding(lucid.tensor([0.0]), table)
    with pytest.raises(ShapeError, match="must be 2-D"):
        embedding(lucid.tensor([0]), lucid.ones(3))
    with pytest.raises(SettingError, match="padding_idx"):
        embedding(lucid.tensor([0]), table, padding_idx=3)


def test_given_rows_are_shortened_by_their_norm():
    """A layer of given rows keeps all settings: here rows have a sum of magnitudes of at most 1."""
    layer = lucid.nn.Embedding.from_pretrained(lucid.tensor([[3.0, -1.0], [0.5, 0.25]]), max_norm=1.0, norm_type=1.0)
    np.testing.assert_allclose(numbers(layer(lucid.tensor([0, 1]))), [[0.75, -0.25], [0.5, 0.25]], rtol=1e-5)


def test_rows_beyond_all_lengths_warn_of_nothing():
    """The length of a row may overflow, whatever the user made of NumPy's warnings."""
    table = lucid.tensor([[1e38, 1e38, 3e38]])
    with np.errstate(all="raise"):
        embedding(lucid.tensor([0]), table, max_norm=1.0)
    assert np.abs(numbers(table)).max() <= 1
