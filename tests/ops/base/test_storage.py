"""The memory under tensors: one storage for a base and its views."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.base import wrap
from lucid.base.arrays import namespace
from tests.device import DEVICE


def test_views_have_one_storage():
    """Base, views and detached tensors begin at one address; another tensor does not."""
    x = lucid.arange(6, dtype=lucid.float64).reshape(2, 3).clone()
    storages = {t.untyped_storage() for t in (x, x[1], x.t(), x[:, 1:])}
    assert len(storages) == 1
    (whole,) = storages
    assert whole.data_ptr() == x.data_ptr()
    assert whole != x.clone().untyped_storage()
    assert (whole.nbytes(), whole.size(), len(whole), whole.element_size()) == (48, 48, 48, 1)
    assert (whole.device, whole.is_cuda) == (x.device, x.is_cuda)
    assert repr(whole) == f"<UntypedStorage of 48 entries of 1 bytes on {x.device}>"


def test_elements():
    """A typed one counts elements, and shows them in the order of the memory."""
    x = lucid.tensor([[1, 2, 3], [4, 5, 6]], dtype=lucid.int16)
    typed = x.t()[1:].storage()
    assert (typed.size(), len(typed), typed.nbytes(), typed.element_size()) == (6, 6, 12, 2)
    assert typed.tolist() == [1, 2, 3, 4, 5, 6]
    assert (typed[1], typed[-2:], typed.dtype) == (2, [5, 6], lucid.int16)
    assert typed.untyped() == x.untyped_storage()
    assert typed != x.untyped_storage()
    assert lucid.empty(0, 3).storage().tolist() == []
    columns = lucid.tensor([[1, 2], [3, 4]]).t().contiguous().t()
    assert columns.clone().storage().size() == 4


def test_shared_memory():
    """Whether processes share the memory is known of a view, too."""
    x = lucid.zeros(2, device="cpu")
    assert not x.untyped_storage().is_shared()
    assert x.share_memory_()[1:].untyped_storage().is_shared()


@pytest.mark.cpu("arrays of NumPy's")
def test_bytes_between_elements_count():
    """They are counted from the first element to the end of the last, and those of several elements once."""
    memory = np.arange(6.0)
    for array, count in (
        (memory[::2], 5),
        (memory.reshape(2, 3)[:, :2], 5),
        (np.broadcast_to(memory[:3], (4, 3)), 3),
        (memory[:0], 0),
    ):
        x = lucid.as_tensor(array)
        assert (x.untyped_storage().nbytes(), x.storage().size()) == (8 * count, count)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_elements_of_arrays_with_gaps(dtype):
    """All that lies in memory, of other libraries' arrays too: what strides pass over, what overlaps once."""
    memory = lucid.arange(6, device=DEVICE).to(getattr(lucid, dtype)).array
    for array, expected in (
        (memory[::2], [0, 1, 2, 3, 4]),
        (memory[::-2], [1, 2, 3, 4, 5]),
        (memory.reshape(2, 3)[:, :2], [0, 1, 2, 3, 4]),
        (namespace(memory).broadcast_to(memory[1:4], (4, 3)), [1, 2, 3]),
    ):
        typed = wrap(array).storage()
        assert typed.tolist() == expected
        assert (typed[0], typed[-1], typed.size()) == (expected[0], expected[-1], len(expected))
