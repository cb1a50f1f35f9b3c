"""What attention of several heads takes beside what the table of ops has."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, ShapeError
from tests.gradients import numbers
from tests.pieces.memory import traced


def test_without_the_last_product(rng):
    """Without its weight the product is left to the caller; its bias alone is refused."""
    x, w_in, w_out = (lucid.tensor(rng.standard_normal(shape)) for shape in ((3, 2, 4), (12, 4), (4, 4)))
    b_out = lucid.tensor(rng.standard_normal(4))
    attend = lucid.nn.functional.multi_head_attention_forward

    def run(weight, bias):
        return attend(x, x, x, 4, 2, w_in, None, None, None, False, 0.0, weight, bias)

    whole, weights = run(w_out, b_out)
    heads, same = run(None, None)
    np.testing.assert_allclose(numbers(heads) @ numbers(w_out).T + numbers(b_out), numbers(whole), rtol=1e-10)
    np.testing.assert_array_equal(numbers(weights), numbers(same))
    with pytest.raises(ArgumentError, match="out_proj_weight: expected a Tensor with out_proj_bias, got None"):
        run(None, b_out)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("added", ["nothing", "zeros", "biases", "both"])
def test_results_are_the_same_with_and_without_weights(added, causal, hidden, rng):
    """Whatever keys are added, hidden, or said to come later: asking for the weights changes no result."""
    x, w_in, w_out = (lucid.tensor(rng.standard_normal(shape)) for shape in ((3, 2, 4), (12, 4), (4, 4)))
    biases = [lucid.tensor(rng.standard_normal((1, 1, 4))) if added in {"biases", "both"} else None for _ in range(2)]
    later = lucid.ones(3, 3).triu(1).bool()
    padding = lucid.tensor([[False, False, True], [False, True, False]]) if hidden else None

    def run(need_weights):
        return lucid.nn.functional.multi_head_attention_forward(
            x, x, x, 4, 2, w_in, None, *biases, added in {"zeros", "both"}, 0.0, w_out, None,
            key_padding_mask=padding, need_weights=need_weights, attn_mask=later if causal else None, is_causal=causal,
        )  # fmt: skip

    (with_weights, weights), (without, nothing) = run(True), run(False)
    assert nothing is None
    np.testing.assert_allclose(numbers(weights).sum(-1), 1, rtol=1e-12)
    assert weights.shape[-1] == 3 + {"nothing": 0, "both": 2}.get(added, 1)
    np.testing.assert_allclose(numbers(without), numbers(with_weights), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("need_weights", [False, True])
def test_one_sequence_is_a_batch_of_one(need_weights, rng):
    """Without the dimension of a batch: its output and weights, with hidden keys and every form of a mask."""
    x, w_in, w_out = (lucid.tensor(rng.standard_normal(shape)) for shape in ((3, 4), (12, 4), (4, 4)))
    hidden = lucid.tensor([False, True, False])
    masks = [None, lucid.ones(3, 3).triu(1).bool(), lucid.tensor(rng.standard_normal((2, 3, 3)))]

    def run(x, hidden, mask, average):
        return lucid.nn.functional.multi_head_attention_forward(
            x, x, x, 4, 2, w_in, None, None, None, False, 0.0, w_out, None, key_padding_mask=hidden, attn_mask=mask,
            need_weights=need_weights, average_attn_weights=average,
        )  # fmt: skip

    for mask in masks:
        for average in (True, False):
            out, weights = run(x, hidden, mask, average)
            outs, whole = run(x.unsqueeze(1), hidden.unsqueeze(0), mask, average)
            assert out.shape == (3, 4)
            np.testing.assert_allclose(numbers(out), numbers(outs)[:, 0], rtol=1e-12)
            if need_weights:
                assert weights.shape == ((3, 3) if average else (2, 3, 3))
                np.testing.assert_allclose(numbers(weights), numbers(whole)[0], rtol=1e-12)
                assert (numbers(weights)[..., 1] == 0).all()


@pytest.mark.parametrize("given", [("static_k",), ("static_v",), ("static_k", "static_v")], ids=" ".join)
def test_keys_and_values_that_are_given(given, rng):
    """They stand in the place of those that are made of the inputs, head after head; other sizes are refused."""
    inputs = [rng.standard_normal((length, 2, 4)) for length in (5, 3, 3)]
    w_in, w_out = rng.standard_normal((12, 4)), rng.standard_normal((4, 4))
    q, k, v = ((x @ w.T).reshape(len(x), 4, 2).swapaxes(0, 1) for x, w in zip(inputs, np.split(w_in, 3), strict=True))
    own = {name: rng.standard_normal((4, 3, 2)) for name in given}
    k, v = own.get("static_k", k), own.get("static_v", v)
    scores = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(2))
    scores /= scores.sum(-1, keepdims=True)
    expected = (scores @ v).swapaxes(0, 1).reshape(5, 2, 4) @ w_out.T

    def run(own):
        tensors = [lucid.tensor(each) for each in (*inputs, w_in, w_out)]
        return lucid.nn.functional.multi_head_attention_forward(
            *tensors[:3], 4, 2, tensors[3], None, None, None, False, 0.0, tensors[4], None,
            **{name: lucid.tensor(each) for name, each in own.items()},
        )  # fmt: skip

    out, weights = run(own)
    np.testing.assert_allclose(numbers(out), expected, rtol=1e-10)
    np.testing.assert_allclose(numbers(weights), scores.reshape(2, 2, 5, 3).mean(1), rtol=1e-10)
    for shape in ((2, 3, 2), (4, 3, 1), (4, 3)):
        with pytest.raises(ShapeError, match=f"{given[0]}: expected|expected {given[0]}"):
            run({given[0]: np.ones(shape)})


@pytest.mark.parametrize("embed", [2, 6, 8])
def test_the_query_has_the_features_that_are_said(embed):
    """Another number of them is refused, also where the heads could share it."""
    x, w_in, w_out = lucid.ones(3, 2, 4), lucid.ones(12, 4), lucid.ones(4, 4)
    for query in (x, x[:, 0]):
        with pytest.raises(ShapeError, match=rf"expected query of shape \(queries\[, batch\], {embed}\), got shape"):
            lucid.nn.functional.multi_head_attention_forward(
                query, query, query, embed, 2, w_in, None, None, None, False, 0.0, w_out, None
            )


def test_memory_for_scores_ends_with_their_softmax(rng):
    """At no time is there memory for more than three times the weights: scores are gone when their mean is taken."""
    x, w_in, w_out = (
        lucid.tensor(rng.standard_normal(shape), dtype=lucid.float32, device="cpu")
        for shape in ((600, 2, 8), (24, 8), (8, 8))
    )
    attend = lucid.nn.functional.multi_head_attention_forward
    for _ in range(2):  # the first call makes what is kept
        with traced() as memory:
            _, weights = attend(x, x, x, 8, 1, w_in, None, None, None, False, 0.0, w_out, None)
    assert memory.most < 3.5 * weights.array.nbytes
