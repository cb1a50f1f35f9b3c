"""Losses with `size_average` and `reduce`, as scripts of PyTorch's first years have them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.nn import functional as F
from lucid.ops.loss.older_reduction import OLDER_PLACES
from tests.gradients import numbers
from tests.layers import LOSSES

WAYS = {
    (None, None): "mean", (True, None): "mean", (False, None): "sum", (None, True): "mean", (True, True): "mean",
    (False, True): "sum", (None, False): "none", (True, False): "none", (False, False): "none",
}  # fmt: skip
# layers whose name is not that of their function
NAMES = {
    "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "CrossEntropyLoss": "cross_entropy", "KLDivLoss": "kl_div",
}  # fmt: skip
CLASSES = {"cross_entropy", "multi_margin_loss", "nll_loss"}


def operands(name, rng):
    """Return what a loss takes first."""
    x = lucid.tensor(rng.uniform(0.1, 0.9, (4, 5)))
    if name in CLASSES:
        return x, lucid.tensor(rng.integers(0, 5, 4))
    if name == "multilabel_margin_loss":
        return x, lucid.tensor(rng.permuted(np.tile(np.arange(5), (4, 1)), axis=1))
    if name in {"cosine_embedding_loss", "triplet_margin_loss"}:
        return x, x.flip(0), lucid.ones(4) if name == "cosine_embedding_loss" else x.exp()
    if name == "margin_ranking_loss":
        return x[:, 0], x[:, 1], lucid.ones(4)
    return x, x.flip(0)


@pytest.mark.parametrize("name", OLDER_PLACES)
def test_both_forms_are_one(name, rng):
    """`size_average` and `reduce` mean a reduction: by name, and by position with those between left as they are."""
    loss, given = getattr(F, name), operands(name, rng)
    first, second = OLDER_PLACES[name]
    between = {"cross_entropy": [-100], "nll_loss": [-100], "poisson_nll_loss": [1e-8]}.get(name, [])
    before = {"margin_ranking_loss": [0.0], "cosine_embedding_loss": [0.0], "hinge_embedding_loss": [1.0]}.get(name)
    before = before or {
        "poisson_nll_loss": [True, False], "triplet_margin_loss": [1.0, 2.0, 1e-6, False],
        "multi_margin_loss": [1, 1.0, None],
    }.get(name, [None] * (first - len(given)))  # fmt: skip
    for (size_average, reduce), reduction in WAYS.items():
        wanted = numbers(loss(*given, reduction=reduction))
        np.testing.assert_array_equal(numbers(loss(*given, size_average=size_average, reduce=reduce)), wanted)
        older = [*before, size_average, *between, reduce]
        assert len(given) + len(older) == second + 1
        np.testing.assert_array_equal(numbers(loss(*given, *older)), wanted)
    np.testing.assert_array_equal(
        numbers(loss(*given, *older[:-1], None, "sum")), numbers(loss(*given, reduction="sum"))
    )


@pytest.mark.parametrize("name", OLDER_PLACES)
def test_layers_have_both_forms(name):
    """A layer has the reduction that its function would take of `size_average` and `reduce`."""
    (kind,) = (getattr(nn, each) for each in LOSSES if each.lower() == name.replace("_", "") or NAMES.get(each) == name)
    for (size_average, reduce), reduction in WAYS.items():
        assert kind(size_average=size_average, reduce=reduce).reduction == reduction


def test_what_a_function_has_at_the_place_itself_stays(rng):
    """A class that is left out, and a reduction, are taken at the places that they have here."""
    x, classes = operands("cross_entropy", rng)
    left_out = F.cross_entropy(x, classes, None, 2, "sum")
    assert left_out.item() == F.cross_entropy(x, classes, ignore_index=2, reduction="sum").item()
    assert F.mse_loss(x, x.flip(0), "sum").item() == F.mse_loss(x, x.flip(0), reduction="sum").item()


def test_losses_are_found_by_pickle():
    """They are of `lucid.nn.functional`, under their names."""
    for name in OLDER_PLACES:
        assert pickle.loads(pickle.dumps(getattr(F, name))) is getattr(F, name)
