"""What covariances and differences refuse, and differences taken no time."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import SettingError


@pytest.fixture
def _debug():
    lucid.cuda.set_debug(True)
    yield
    lucid.cuda.set_debug(False)


@pytest.mark.usefixtures("_debug")
@pytest.mark.parametrize("name", ["fweights", "aweights"])
def test_weights_below_zero(name, rng):
    """Frequencies and weights of 0 count nothing, and those below are refused."""
    x, dtype = rng.standard_normal((2, 5)), np.int64 if name == "fweights" else np.float64
    weights = np.array([2, 0, 1, 3, 1], dtype)
    got = lucid.cov(lucid.tensor(x), **{name: lucid.tensor(weights)})
    np.testing.assert_allclose(got.numpy(force=True), np.cov(x, **{name: weights}))
    weights[3] = -1
    with pytest.raises(SettingError, match=f"cov: {name} cannot be negative"):
        lucid.cov(lucid.tensor(x), **{name: lucid.tensor(weights)})


@pytest.mark.parametrize("times", range(6))
def test_differences_of_what_is_joined(times, rng):
    """Differences are NumPy's, of what is joined before and behind, which counts from the first difference on."""
    x, before, behind = rng.standard_normal((3, 4)), rng.standard_normal((3, 2)), rng.standard_normal((3, 1))
    for dim, joined in ((1, {"prepend": before}), (-1, {"append": behind}), (1, {"prepend": before, "append": behind})):
        given = {name: lucid.tensor(values) for name, values in joined.items()}
        got = lucid.diff(lucid.tensor(x), times, dim, **given)
        np.testing.assert_allclose(got.numpy(force=True), np.diff(x, times, dim, **joined), atol=1e-12)
