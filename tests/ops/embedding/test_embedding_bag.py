"""Bags of rows: padding, equal elements, NaN, frequencies, half types, layers, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import DtypeError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.nn.functional import embedding_bag
from tests.gradients import numbers

NAN = float("nan")


def test_padding_counts_for_nothing(rng):
    """The padding row is in no sum, mean or maximum, gets no gradient, and its factors none either."""
    index, starts = np.array([2, 1, 1, 0, 2, 2]), np.array([0, 3, 4])
    table = rng.standard_normal((4, 3)) - 5
    table[2] = NAN
    kept = table[[1, 1]], table[[0]], np.zeros((1, 3))
    for mode, reduced in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        weight = lucid.tensor(table, requires_grad=True)
        shares = lucid.ones(6, dtype=lucid.float64, requires_grad=True) if mode == "sum" else None
        given = lucid.tensor(index), weight, lucid.tensor(starts)
        out = embedding_bag(*given, mode=mode, per_sample_weights=shares, padding_idx=2)
        np.testing.assert_allclose(numbers(out), np.stack([reduced(rows, 0) for rows in kept]), rtol=1e-12)
        out.sum().backward()
        count = {"sum": 2.0, "mean": 1.0, "max": 1.0}[mode]
        np.testing.assert_allclose(numbers(weight.grad), np.array([[1.0], [count], [0], [0]]) + np.zeros(3))
    shares = lucid.ones(6, dtype=lucid.float64, requires_grad=True)
    out = embedding_bag(*given, mode="sum", per_sample_weights=shares, padding_idx=2)
    (grad,) = lucid.autograd.grad(out.sum(), shares)
    np.testing.assert_allclose(numbers(grad), np.where(index == 2, 0, np.nansum(table, 1)[index]), rtol=1e-12)


def test_maxima():
    """Of equal elements the first gets the gradient; NaN is the greatest, and the first of those."""
    table = lucid.tensor([[1.0, 5.0], [1.0, 2.0], [0.0, NAN], [7.0, NAN]], requires_grad=True)
    out = embedding_bag(lucid.tensor([1, 0, 2, 3, 3]), table, lucid.tensor([0, 2]), mode="max")
    np.testing.assert_array_equal(numbers(out), [[1.0, 5.0], [7.0, NAN]])
    out.sum().backward()
    assert table.grad.tolist() == [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    np.testing.assert_array_equal(numbers(embedding_bag(lucid.tensor([[0, 2, 1]]), table, mode="max")), [[1.0, NAN]])


def test_gradients_by_frequency(rng):
    """The gradient of a row is divided by how often it is named in all bags."""
    index, table = np.array([1, 0, 1, 1]), lucid.tensor(rng.standard_normal((3, 2)), requires_grad=True)
    for mode, expected in (("sum", [1.0, 1.0, 0.0]), ("mean", [0.5, 0.5, 0.0])):
        out = embedding_bag(lucid.tensor(index), table, lucid.tensor([0, 2]), mode=mode, scale_grad_by_freq=True)
        (grad,) = lucid.autograd.grad(out.sum(), table)
        np.testing.assert_allclose(numbers(grad)[:, 0], expected, rtol=1e-12)


def test_long_rows_are_shortened_first():
    """With max_norm the table is changed in place, as by embedding."""
    table = lucid.tensor([[3.0, 4.0], [0.3, 0.4]])
    out = embedding_bag(lucid.tensor([[0, 1]]), table, max_norm=1.0, mode="sum")
    np.testing.assert_allclose(numbers(out), [[0.9, 1.2]], rtol=1e-6)
    np.testing.assert_allclose(numbers(table), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_add_up_in_float32(dtype):
    """Sums and gradients of a thousand uses, which a half type cannot count, are exact to the last rounding."""
    weight = lucid.ones(2, 1, dtype=getattr(lucid, dtype), requires_grad=True)
    for shares in (None, lucid.ones(4096, dtype=weight.dtype)):
        out = embedding_bag(
            lucid.zeros(4096, dtype=lucid.int64), weight, lucid.tensor([0]), mode="sum", per_sample_weights=shares
        )
        (grad,) = lucid.autograd.grad(out.sum(), weight)
        assert (out.tolist(), grad.tolist()) == ([[4096.0]], [[4096.0], [0.0]])
    mean = embedding_bag(lucid.zeros(1, 4095, dtype=lucid.int64), weight)
    assert mean.tolist() == [[1.0]]
    assert mean.dtype is weight.dtype


def test_means_of_half_types_are_rounded_once(rng):
    """The mean of three rows, whose shares no half type holds, is the exact one's nearest number."""
    rows = rng.uniform(0.5, 2, (60, 50)).astype(np.float16)
    out = numbers(embedding_bag(lucid.arange(60).reshape(20, 3), lucid.tensor(rows)))
    exact = rows.astype(np.float64).reshape(20, 3, 50).mean(1)
    assert (abs(out - exact) <= 0.501 * np.spacing(exact.astype(np.float16))).all()


def test_rows_of_integers_have_no_last_offset():
    """With an input of two dimensions each row is a bag, the last one too, whatever include_last_offset says."""
    table = lucid.tensor([[1.0], [2.0], [4.0]])
    for last in (False, True):
        out = embedding_bag(lucid.tensor([[0, 1], [2, 2]]), table, mode="sum", include_last_offset=last)
        assert out.tolist() == [[3.0], [8.0]]


def test_no_bags_and_no_rows():
    """No bags give no rows, bags without places zeros, integers of 32 bits what others do."""
    table, none = lucid.ones(3, 2), lucid.zeros(0, dtype=lucid.int64)
    for mode in ("sum", "mean", "max"):
        assert embedding_bag(lucid.tensor([1]), table, none, mode=mode).shape == (0, 2)
        assert embedding_bag(none, table, lucid.tensor([0, 0]), mode=mode).tolist() == [[0.0, 0.0]] * 2
        assert embedding_bag(none, table, lucid.tensor([0]), mode=mode, include_last_offset=True).shape == (0, 2)
        assert embedding_bag(none.reshape(2, 0), table, mode=mode).tolist() == [[0.0, 0.0]] * 2
    small = lucid.tensor([1, 2], dtype=lucid.int32), table, lucid.tensor([0, 1], dtype=lucid.int32)
    assert embedding_bag(*small).tolist() == [[1.0, 1.0]] * 2


def test_layer():
    """The rows may be given and frozen, the padding row is zero at first, settings are shown."""
    rows = lucid.tensor([[1.0, 2.0], [3.0, 4.0]])
    frozen = nn.EmbeddingBag.from_pretrained(rows, mode="sum", include_last_offset=True)
    assert not frozen.weight.requires_grad
    assert frozen(lucid.tensor([0, 1, 1]), lucid.tensor([0, 2, 3])).tolist() == [[4.0, 6.0], [3.0, 4.0]]
    assert nn.EmbeddingBag.from_pretrained(rows, freeze=False).weight.requires_grad
    shares = lucid.tensor([2.0, 0.5])
    assert frozen(lucid.tensor([0, 1]), lucid.tensor([0, 2]), shares).tolist() == [[3.5, 6.0]]
    layer = nn.EmbeddingBag(4, 2, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, padding_idx=-1)
    assert layer.weight[3].tolist() == [0.0, 0.0]
    text = "4, 2, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, mode='mean', padding_idx=3"
    assert repr(layer) == f"EmbeddingBag({text})"
    with pytest.raises(SettingError, match="mode: expected one of 'sum', 'mean', 'max', got str 'least'"):
        nn.EmbeddingBag(4, 2, mode="least")
    with pytest.raises(SettingError, match="padding_idx"):
        nn.EmbeddingBag(4, 2, padding_idx=4)
    with pytest.raises(ShapeError, match="2-dimensional"):
        nn.EmbeddingBag.from_pretrained(lucid.ones(3))
    with pytest.raises(ShapeError, match="expected weights of shape"):
        nn.EmbeddingBag(3, 2, _weight=rows)


@pytest.mark.usefixtures("indices_are_read")
@pytest.mark.parametrize(
    ("error", "text", "index", "settings"),
    [
        (ShapeError, "expected offsets, where bags begin", [0], {}),
        (ShapeError, "expected no offsets", [[0]], {"offsets": lucid.tensor([0])}),
        (ShapeError, "input of 1 or 2 dimensions", [[[0]]], {}),
        (ShapeError, "offsets of 1 dimension", [0], {"offsets": lucid.tensor([[0]])}),
        (ShapeError, "one at least", [0], {"offsets": lucid.arange(0), "include_last_offset": True}),
        (ShapeError, "begin at 0", [0], {"offsets": lucid.tensor([1])}),
        (ShapeError, "end at 1", [0], {"offsets": lucid.tensor([0, 2])}),
        (ShapeError, "do not fall", [0, 0, 0], {"offsets": lucid.tensor([0, 2, 1])}),
        (DtypeError, "offsets to hold integers", [0], {"offsets": lucid.tensor([0.0])}),
        (DtypeError, "input to hold integers", [[0.0]], {}),
        (SettingError, "mode has to be one of", [[0]], {"mode": "least"}),
        (SettingError, "scale_grad_by_freq", [[0]], {"mode": "max", "scale_grad_by_freq": True}),
        (SettingError, "nor sparse", [[0]], {"mode": "max", "sparse": True}),
        (SettingError, "only supported for mode='sum'", [[0]], {"per_sample_weights": lucid.ones(1, 1)}),
        (ShapeError, "per_sample_weights of the shape", [[0]], {"per_sample_weights": lucid.ones(1), "mode": "sum"}),
        (DtypeError, "of the dtype of weight", [[0]],
         {"per_sample_weights": lucid.ones(1, 1, dtype=lucid.float64), "mode": "sum"}),
        (IndexOutOfRangeError, "expected 0 to 1, got 2", [[2]], {}),
        (SettingError, "padding_idx", [[0]], {"padding_idx": 2}),
    ],
)  # fmt: skip
def test_mistakes(error, text, index, settings):
    """What does not fit is refused, and the table stays as it is."""
    table = lucid.ones(2, 3)
    settings = {name: v.to(table.device) if isinstance(v, lucid.Tensor) else v for name, v in settings.items()}
    with pytest.raises(error, match=text):
        embedding_bag(lucid.tensor(index), table, max_norm=0.1, **settings)
    assert table.tolist() == [[1.0] * 3] * 2


def test_tables_of_integers_are_refused():
    """Rows are of a floating-point dtype, and a table is a matrix."""
    with pytest.raises(DtypeError, match="floating-point"):
        embedding_bag(lucid.tensor([[0]]), lucid.ones(2, 3, dtype=lucid.int64))
    with pytest.raises(ShapeError, match="must be 2-D"):
        embedding_bag(lucid.tensor([[0]]), lucid.ones(2))
