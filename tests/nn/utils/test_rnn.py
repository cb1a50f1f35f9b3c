"""Sequences of several lengths in one tensor."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.gradcheck import gradcheck, gradgradcheck
from lucid.errors import SettingError, ShapeError
from lucid.nn.utils.rnn import pad_sequence


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("rest", [(), (3,), (2, 0)])
def test_padding(side, batch_first, rest, rng):
    """Each sequence stands at its side, the value beside it."""
    arrays = [rng.standard_normal((length, *rest)).astype(np.float32) for length in (2, 5, 0)]
    got = pad_sequence([lucid.tensor(array) for array in arrays], batch_first, -1.5, side)
    expected = np.full((3, 5, *rest), -1.5, np.float32)
    for row, array in zip(expected, arrays, strict=True):
        row[slice(5 - len(array), 5) if side == "left" else slice(0, len(array))] = array
    np.testing.assert_array_equal(got.cpu().numpy(), expected if batch_first else expected.swapaxes(0, 1))


def test_gradients(rng):
    """Gradients reach the elements that were there."""
    parts = [lucid.tensor(rng.standard_normal((n, 2)), requires_grad=True) for n in (1, 3)]
    assert gradcheck(lambda *given: pad_sequence(list(given)), parts)
    assert gradgradcheck(lambda *given: pad_sequence(list(given)) ** 2, parts)


def test_dtypes():
    """The result has the dtype of the sequences."""
    for dtype in (lucid.int64, lucid.bool, lucid.bfloat16):
        assert pad_sequence([lucid.zeros(1, dtype=dtype), lucid.zeros(2, dtype=dtype)]).dtype == dtype


@pytest.mark.parametrize("shapes", [[], [(2, 3), (2, 4)], [()], [(2,), (2, 1)]])
def test_sequences_that_do_not_fit(shapes):
    """Sizes differ in dimension 0 alone."""
    with pytest.raises(ShapeError, match="pad_sequence"):
        pad_sequence([lucid.zeros(*shape) for shape in shapes])
    with pytest.raises(SettingError, match="'right' or 'left'"):
        pad_sequence([lucid.zeros(1)], padding_side="top")
