"""Losses with margins where a row of the table cannot say it: targets that are no sign, and margins that are none."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.nn import functional as F
from lucid.ops.loss.regression import LossSettingError
from tests.gradients import numbers


def test_a_target_that_is_no_sign_counts_as_both(rng):
    """What is to be near adds its distance, what is to be far its lack of the margin, and what is neither adds both."""
    x = rng.uniform(0, 2, 8)
    y = np.array([1.0, -1.0, 0.0, 2.0] * 2)
    apart = np.maximum(1.5 - x, 0)
    expected = np.where(y == 1, x, np.where(y == -1, apart, x + apart))
    found = F.hinge_embedding_loss(lucid.tensor(x), lucid.tensor(y), 1.5, "none")
    np.testing.assert_allclose(numbers(found), expected, rtol=1e-12)


@pytest.mark.parametrize("margin", [0, 0.0, -1.0, float("nan")])
@pytest.mark.parametrize("loss", [F.triplet_margin_loss, F.triplet_margin_with_distance_loss])
def test_triplets_need_a_margin(loss, margin):
    """A margin of nothing, or less, is refused by its number."""
    x = lucid.ones(2, 3)
    with pytest.raises(LossSettingError, match=f"{loss.__name__}: expected margin to be greater than 0, got {margin}"):
        loss(x, x, x, margin=margin)
    assert loss(x, x, x, margin=0.5).item() == 0.5
