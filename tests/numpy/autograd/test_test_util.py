"""Comparison of numbers in checks of derivatives."""

import pytest

from lucid.numpy.autograd.test_util import scalar_close


@pytest.mark.parametrize(
    ("a", "b", "close"),
    [(1.0, -1.0, False), (1.0, 1 + 1e-9, True), (1e9, 1e9 + 1, True), (1e9, -1e9, False), (0.0, 0.0, True),
     (1.0, 1.1, False), (float("nan"), 1.0, False)],
)  # fmt: skip
def test_scalar_close(a, b, close):
    """Numbers of opposite signs are compared, as a wrong sign is what a check is to find."""
    assert scalar_close(a, b) is close
