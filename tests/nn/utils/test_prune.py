"""Pruning: which elements are pruned, by all methods, again, together, and what stays after the removal."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.nn.utils import prune
from tests.gradients import numbers

VALUES = np.array([[0.5, -2.0, 1.0, 4.0], [-0.1, 0.2, -3.0, 0.7], [1.5, 0.3, 0.9, -0.4]])


def layer():
    """Return a linear layer of known weights."""
    made = nn.Linear(4, 3)
    made.weight.data = lucid.tensor(VALUES, dtype=lucid.float32)
    return made


def least(scores, count):
    """Return ones but for the least scores."""
    mask = np.ones(scores.size)
    mask[np.argsort(scores.reshape(-1))[:count]] = 0
    return mask.reshape(scores.shape)


def test_least_elements():
    """Those of the least magnitude, or scores, are zero, get no gradient, and are so before each call."""
    for amount, scores in ((3, None), (0.25, None), (5, np.arange(12.0).reshape(3, 4)[::-1].copy())):
        pruned = layer()
        given = None if scores is None else lucid.tensor(scores)
        assert prune.l1_unstructured(pruned, "weight", amount, given) is pruned
        mask = least(np.abs(VALUES) if scores is None else scores, 3 if scores is None else 5)
        np.testing.assert_array_equal(numbers(pruned.weight_mask), mask)
        np.testing.assert_allclose(numbers(pruned.weight), VALUES * mask, rtol=1e-6)
        assert list(pruned.state_dict()) == ["bias", "weight_orig", "weight_mask"]
        pruned.weight_orig.data = pruned.weight_orig.detach() * 2
        pruned(lucid.ones(1, 4)).sum().backward()
        np.testing.assert_allclose(numbers(pruned.weight), 2 * VALUES * mask, rtol=1e-6)
        np.testing.assert_array_equal(numbers(pruned.weight_orig.grad), mask)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("n", [1, 2, float("inf")])
def test_least_slices(dim, n):
    """Slices of the least norm are zero as a whole."""
    pruned = prune.ln_structured(layer(), "weight", 2, n, dim)
    lengths = np.linalg.norm(VALUES, n, 1 if dim == 0 else 0)
    mask = least(lengths, 2)
    np.testing.assert_allclose(numbers(pruned.weight), VALUES * (mask[:, None] if dim == 0 else mask), rtol=1e-6)


def test_drawn_ones():
    """As many elements, or slices, as asked for are zero; others are drawn the next time."""
    masks = [numbers(prune.random_unstructured(nn.Linear(8, 8), "weight", 0.25).weight_mask) for _ in range(2)]
    assert [int((mask == 0).sum()) for mask in masks] == [16, 16]
    assert (masks[0] != masks[1]).any()
    sums = numbers(prune.random_structured(nn.Linear(8, 5), "weight", 3, 1).weight_mask).sum(0)
    assert sorted(sums) == [0, 0, 0, 5, 5, 5, 5, 5]
    assert numbers(prune.identity(layer(), "bias").bias_mask).tolist() == [1, 1, 1]


def test_again():
    """A share is one of what was left, slices are counted among those that are left, and masks add up."""
    pruned = layer()
    prune.l1_unstructured(pruned, "weight", 4)
    prune.l1_unstructured(pruned, "weight", 0.5)
    np.testing.assert_array_equal(numbers(pruned.weight_mask), least(np.abs(VALUES), 8))
    assert len(pruned._forward_pre_hooks) == 1
    (container,) = pruned._forward_pre_hooks.values()
    assert isinstance(container, prune.PruningContainer)
    assert [type(method) for method in container] == [prune.L1Unstructured] * 2
    assert (len(container), type(container[0])) == (2, prune.L1Unstructured)
    mask = np.ones((3, 4))
    mask[1, 2] = 0
    prune.custom_from_mask(pruned, "weight", lucid.tensor(mask))
    np.testing.assert_array_equal(numbers(pruned.weight_mask), least(np.abs(VALUES), 8) * mask)
    rows = layer()
    prune.ln_structured(rows, "weight", 1, 2, 0)
    prune.ln_structured(rows, "weight", 1, 2, 0)
    assert numbers(rows.weight_mask).sum(1).tolist() == [4, 0, 0]


def test_together():
    """Of several parameters the least elements of all are pruned, those with other scores by these."""
    one, other = layer(), layer()
    other.weight.data = other.weight.detach() * 10
    prune.global_unstructured(((one, "weight"), (other, "weight")), prune.L1Unstructured, amount=12)
    both = least(np.stack([np.abs(VALUES), np.abs(VALUES) * 10]), 12)
    np.testing.assert_array_equal(np.stack([numbers(m.weight_mask) for m in (one, other)]), both)
    prune.global_unstructured(
        [(one, "weight"), (other, "weight")],
        prune.L1Unstructured,
        importance_scores={(one, "weight"): lucid.ones(3, 4) * 100},
        amount=0.5,
    )
    np.testing.assert_array_equal(numbers(one.weight_mask), both[0])
    assert numbers(other.weight_mask).sum() == both[1].sum() - 6
    with pytest.raises(ArgumentError, match="PRUNING_TYPE 'unstructured'"):
        prune.global_unstructured([(one, "weight")], prune.RandomStructured, amount=1)


def test_removal_and_copies():
    """The same parameter is an ordinary one again, with zeros; a module says whether it is pruned."""
    pruned = layer()
    original = pruned.weight
    net = nn.Sequential(pruned, nn.ReLU())
    assert not prune.is_pruned(net)
    prune.l1_unstructured(pruned, "weight", 3)
    assert prune.is_pruned(net)
    other = layer()
    prune.identity(other, "weight")
    other.load_state_dict(pruned.state_dict())
    np.testing.assert_array_equal(numbers(other(lucid.ones(4))), numbers(pruned(lucid.ones(4))))
    assert prune.remove(pruned, "weight") is pruned
    assert pruned.weight is original
    np.testing.assert_allclose(numbers(original), VALUES * least(np.abs(VALUES), 3), rtol=1e-6)
    assert list(pruned.state_dict()) == ["bias", "weight"]
    assert not prune.is_pruned(net)
    with pytest.raises(SettingError, match="has to be pruned before"):
        prune.remove(pruned, "weight")
    copy.deepcopy(net)


def test_without_a_module():
    """A method prunes a tensor too, and a method of a user's own any parameter."""
    t = lucid.tensor([3.0, -1.0, 2.0], requires_grad=True)
    out = prune.L1Unstructured(1).prune(t)
    assert out.tolist() == [3.0, 0.0, 2.0]
    assert prune.L1Unstructured(1).prune(t, importance_scores=lucid.tensor([0.0, 1.0, 2.0])).tolist() == [
        0.0,
        -1.0,
        2.0,
    ]
    mask = lucid.tensor([0.0, 1.0, 1.0])
    assert prune.L1Unstructured(1).prune(t, default_mask=mask).tolist() == [0.0, 0.0, 2.0]
    whole = lucid.ones(2, 3)
    for method in (prune.RandomUnstructured(3), prune.L1Unstructured(3), prune.LnStructured(1, 2, 0), prune.Identity(),
                   prune.RandomStructured(1, 1), prune.CustomFromMask(lucid.zeros(2, 3))):  # fmt: skip
        method.prune(lucid.rand(2, 3), default_mask=whole)
        assert whole.tolist() == [[1.0] * 3] * 2  # the caller's mask is as it was

    class EveryOther(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask[::2] = 0
            return mask

    pruned = layer()
    EveryOther.apply(pruned, "bias")
    EveryOther.apply(pruned, "bias")
    assert pruned.bias_mask.tolist() == [0.0, 0.0, 0.0]


def test_mistakes_change_nothing():
    """Wrong amounts, names, shapes and dimensions are refused, and the module is not pruned."""
    whole = layer()
    for amount in (-1, 1.5, -0.1):
        with pytest.raises(SettingError, match="should either be a float"):
            prune.l1_unstructured(whole, "weight", amount)
    with pytest.raises(SettingError, match="amount=13 should be smaller"):
        prune.random_unstructured(whole, "weight", 13)
    for amount in ("all", True, False):  # a bool is no number of units
        with pytest.raises(ArgumentError, match="amount: expected an int or a float"):
            prune.L1Unstructured(amount)
    with pytest.raises(SettingError, match="has no parameter with name 'other'"):
        prune.identity(whole, "other")
    with pytest.raises(SettingError, match="multidimensional"):
        prune.random_structured(whole, "bias", 1, 0)
    with pytest.raises(IndexOutOfRangeError, match="invalid index 2"):
        prune.ln_structured(whole, "weight", 1, 2, 2)
    with pytest.raises(ShapeError, match="importance_scores"):
        prune.l1_unstructured(whole, "weight", 1, lucid.ones(4))
    with pytest.raises(ShapeError, match="mask: expected the shape"):
        prune.custom_from_mask(whole, "weight", lucid.ones(4))
    with pytest.raises(ArgumentError, match="not a BasePruningMethod"):
        prune.PruningContainer().add_pruning_method(1)
    assert list(whole.state_dict()) == ["weight", "bias"]
    assert not prune.is_pruned(whole)
    prune.identity(whole, "weight")
    with pytest.raises(SettingError, match="can only add pruning methods"):
        prune.PruningContainer(prune.Identity()).add_pruning_method(*whole._forward_pre_hooks.values())
    with pytest.raises(SettingError, match="amount=13"):
        prune.l1_unstructured(whole, "weight", 13)
    assert len(whole._forward_pre_hooks) == 1


def test_a_share_is_rounded_to_the_nearest_count():
    """A share of 0.3 of 12 elements are 4 of them."""
    assert prune.l1_unstructured(layer(), "weight", 0.3).weight_mask.sum().item() == 8


def test_slices_are_weighed_without_what_is_pruned_already():
    """Of a row whose large elements are zero the small ones count: it is the least."""
    mask = np.ones((3, 4))
    mask[0, [1, 2, 3]] = 0
    again = prune.ln_structured(prune.custom_from_mask(layer(), "weight", lucid.tensor(mask)), "weight", 1, 2, 0)
    np.testing.assert_array_equal(numbers(again.weight_mask), [[0] * 4, [1] * 4, [1] * 4])
