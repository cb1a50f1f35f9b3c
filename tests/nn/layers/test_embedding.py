"""Embedding and EmbeddingBag: rows that are given, and the row of padding."""

from __future__ import annotations

import inspect

import pytest

import lucid
from lucid import nn
from tests.device import shares_memory


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_given_rows(kind):
    """They are the table's memory, and get gradients where they do not freeze."""
    rows = lucid.arange(6.0).reshape(3, 2)
    for settings, trained in (({}, False), ({"freeze": True}, False), ({"freeze": False}, True)):
        layer = kind.from_pretrained(rows, **settings)
        assert (layer.num_embeddings, layer.embedding_dim, layer.weight.requires_grad) == (3, 2, trained)
        assert shares_memory(layer.weight, rows)
        assert layer(lucid.tensor([[1]])).flatten().tolist() == [2.0, 3.0]


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_the_row_of_padding(kind):
    """It may be counted from the end, is kept as counted from the beginning, and is zero when drawn."""
    for given, row in ((0, 0), (-1, 2), (-3, 0), (2, 2)):
        layer = kind(3, 2, padding_idx=given)
        for _ in range(2):
            zero = [not any(values) for values in layer.weight.tolist()]
            assert (layer.padding_idx, zero) == (row, [place == row for place in range(3)])
            layer.reset_parameters()


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_settings_beside_given_rows(kind):
    """Each is that of the layer that is made."""
    given = {
        "padding_idx": 1, "max_norm": 3.0, "norm_type": 1.0, "scale_grad_by_freq": True, "mode": "max",
        "include_last_offset": True,
    }  # fmt: skip
    own = inspect.signature(kind.from_pretrained).parameters
    assert own.keys() - given.keys() == {"embeddings", "freeze", "sparse"}
    for name in own.keys() & given.keys():
        layer = kind.from_pretrained(lucid.ones(3, 2), **{name: given[name]})
        assert getattr(layer, name) == given[name]
        assert getattr(kind.from_pretrained(lucid.ones(3, 2)), name) != given[name]
