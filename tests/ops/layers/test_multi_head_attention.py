"""What attention of several heads takes beside what the table of ops has."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError
from tests.gradients import numbers


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
