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
