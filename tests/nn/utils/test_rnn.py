"""Sequences of several lengths in one tensor."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import lucid
from lucid.autograd.gradcheck import gradcheck, gradgradcheck
from lucid.errors import DeviceError, SettingError, ShapeError
from lucid.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)
from tests.device import without_default_device


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
    parts = [lucid.tensor(rng.standard_normal((n, 2)), requires_grad=True) for n in (1, 2)]
    assert gradcheck(lambda *given: pad_sequence(list(given)), parts)
    assert gradgradcheck(lambda *given: pad_sequence(list(given)) ** 2, parts)


def test_dtypes():
    """The result has the dtype of the first sequence, which the others are converted to."""
    for first, other in (("int64", "int64"), ("int64", "float32"), ("float32", "float64"), ("bool", "int64")):
        kinds = getattr(lucid, first), getattr(lucid, other)
        one, two = np.array([1, 0]).astype(first), np.array([1.75, 0.1, 2.5]).astype(other)
        got = pad_sequence([lucid.tensor(one, dtype=kinds[0]), lucid.tensor(two, dtype=kinds[1])], batch_first=True)
        assert got.dtype == kinds[0]
        expected = np.stack([np.append(one, 0).astype(first), two.astype(first)])
        np.testing.assert_array_equal(got.numpy(force=True), expected)
        packed = pack_sequence([lucid.tensor(two, dtype=kinds[1]), lucid.tensor(one, dtype=kinds[0])])
        assert packed.data.dtype == kinds[1]


@pytest.mark.parametrize("shapes", [[], [(2, 3), (2, 4)], [()], [(2,), (2, 1)]])
def test_sequences_that_do_not_fit(shapes):
    """Sizes differ in dimension 0 alone."""
    with pytest.raises(ShapeError, match="pad_sequence"):
        pad_sequence([lucid.zeros(*shape) for shape in shapes])
    with pytest.raises(SettingError, match="'right' or 'left'"):
        pad_sequence([lucid.zeros(1)], padding_side="top")


def packed_by_hand(arrays):
    """Return the elements of each step, from the longest sequence to the shortest, and how many there are."""
    ordered = sorted(arrays, key=len, reverse=True)
    steps = [[array[step] for array in ordered if len(array) > step] for step in range(len(ordered[0]))]
    return np.array([element for step in steps for element in step]), [len(step) for step in steps]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("rest", [(), (2, 3)])
def test_packing(batch_first, rest, rng):
    """Packed data go step after step, in the order of lengths, and come back padded, in the first order."""
    lengths = [2, 5, 1, 5, 3]
    arrays = [rng.standard_normal((length, *rest)).astype(np.float32) for length in lengths]
    sequences = [lucid.tensor(array) for array in arrays]
    padded = pad_sequence(sequences, batch_first)
    longer = lucid.cat([padded, padded], 1 if batch_first else 0)
    for given in (padded, longer):
        packed = pack_padded_sequence(given, lucid.tensor(lengths, device="cpu"), batch_first, enforce_sorted=False)
        data, sizes = packed_by_hand(arrays)
        np.testing.assert_array_equal(packed.data.cpu().numpy(), data)
        assert packed.batch_sizes.tolist() == sizes
        assert packed.batch_sizes.device.type == "cpu"
        assert packed.sorted_indices.tolist() == [1, 3, 4, 0, 2]
        assert packed.unsorted_indices.tolist() == [3, 0, 4, 1, 2]
    back, found = pad_packed_sequence(packed, batch_first, -2.0, 7)
    assert found.tolist() == lengths
    assert found.device.type == "cpu"
    expected = np.full((5, 7, *rest), -2.0, np.float32)
    for row, array in zip(expected, arrays, strict=True):
        row[: len(array)] = array
    np.testing.assert_array_equal(back.cpu().numpy(), expected if batch_first else expected.swapaxes(0, 1))
    for parts in (unpack_sequence(packed), unpad_sequence(padded, found, batch_first)):
        for part, array in zip(parts, arrays, strict=True):
            np.testing.assert_array_equal(part.cpu().numpy(), array)


def test_sequences_of_one_length():
    """They stay in their order, however many there are."""
    lengths = [1 + place % 3 for place in range(60)]
    packed = pack_padded_sequence(lucid.zeros(3, 60), lengths, enforce_sorted=False)
    assert packed.sorted_indices.tolist() == sorted(range(60), key=lambda place: -lengths[place])


def test_sequences_in_order():
    """From the longest to the shortest nothing is permuted; another order is refused unless it may be."""
    packed = pack_sequence([lucid.tensor([1, 2, 3]), lucid.tensor([4]), lucid.tensor([5])])
    assert packed.data.tolist() == [1, 4, 5, 2, 3]
    assert packed.batch_sizes.tolist() == [3, 1, 1]
    assert packed.sorted_indices is None
    assert packed.unsorted_indices is None
    back, lengths = pad_packed_sequence(packed)
    assert back.tolist() == [[1, 4, 5], [2, 0, 0], [3, 0, 0]]
    assert lengths.tolist() == [3, 1, 1]
    with pytest.raises(SettingError, match="enforce_sorted=False"):
        pack_sequence([lucid.tensor([1]), lucid.tensor([2, 3])])


def test_gradients_of_packing(rng):
    """Gradients go through packing and padding, to what is in the sequences alone."""
    x = lucid.tensor(rng.standard_normal((3, 2, 1)), requires_grad=True)

    def there_and_back(x):
        packed = pack_padded_sequence(x, [1, 3], enforce_sorted=False)
        return packed.data**2, pad_packed_sequence(packed)[0] ** 3

    assert gradcheck(there_and_back, (x,))
    assert gradgradcheck(there_and_back, (x,))


def test_packed_sequences():
    """A packed sequence is a tuple of four that can be made by hand, converted, copied and pickled."""
    data, sizes = lucid.tensor([1.0, 2.0, 3.0]), lucid.tensor([2, 1], device="cpu")
    order = lucid.tensor([1, 0])
    packed = PackedSequence(data, sizes, order)
    assert PackedSequence((data, sizes)).batch_sizes is sizes
    assert packed.unsorted_indices.tolist() == [1, 0]
    assert packed.to(lucid.float32) is packed
    assert packed.is_cuda is data.is_cuda
    assert not packed.is_pinned()
    for kind, dtype in (("double", lucid.float64), ("float", lucid.float32), ("half", lucid.float16),
                        ("long", lucid.int64), ("int", lucid.int32), ("short", lucid.int16), ("char", lucid.int8),
                        ("byte", lucid.uint8)):  # fmt: skip
        converted = getattr(packed, kind)()
        assert converted.data.dtype == dtype
        assert converted.batch_sizes is sizes
        assert converted.sorted_indices.dtype == lucid.int64
    assert packed.cpu().sorted_indices.device.type == "cpu"
    for other in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert isinstance(other, PackedSequence)
        assert [part.tolist() for part in other] == [part.tolist() for part in packed]


def test_inverse():
    """A permutation after its inverse changes nothing; None stays None."""
    assert invert_permutation(lucid.tensor([2, 0, 3, 1])).tolist() == [1, 3, 0, 2]
    assert invert_permutation(None) is None


def test_a_length_below_zero_is_an_empty_sequence(rng):
    """It takes nothing, and a length beyond the end takes all."""
    x = rng.standard_normal((2, 3, 4))
    short, whole = unpad_sequence(lucid.tensor(x), lucid.tensor([-1, 5]), batch_first=True)
    assert short.shape == (0, 4)
    np.testing.assert_array_equal(whole.numpy(force=True), x[1])


def test_lengths_that_do_not_fit():
    """Lengths are positive integers on the CPU, one for each sequence, and none is longer than the input."""
    x = lucid.zeros(3, 2)
    for lengths in ([3], [], lucid.tensor([[3, 2]], device="cpu"), [3, 2, 1]):
        with pytest.raises(ShapeError, match="pack_padded_sequence"):
            pack_padded_sequence(x, lengths)
    for lengths in ([4, 1], [2, 0], [1, -1]):
        with pytest.raises(SettingError, match="from 1 to 3"):
            pack_padded_sequence(x, lengths)
    with pytest.raises(TypeError, match="lengths"):
        pack_padded_sequence(x, [2.5, 1.0])
    with pytest.raises(ShapeError, match="unpad_sequence"):
        unpad_sequence(x, lucid.tensor([1]))
    with pytest.raises(SettingError, match="at least 2"):
        pad_packed_sequence(pack_padded_sequence(x, [2, 1]), total_length=1)
    if x.is_cuda:
        with pytest.raises(DeviceError, match="on the CPU"):
            pack_padded_sequence(x, lucid.tensor([2, 1]))
        with pytest.raises(DeviceError, match="on the CPU"):
            PackedSequence(x, lucid.tensor([2, 1]))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_lengths_in_an_array_of_numpy(dtype, rng):
    """They count as those in a list do."""
    x = lucid.tensor(rng.standard_normal((3, 2, 4)))
    lengths = np.array([1, 3], dtype)
    packed, expected = (pack_padded_sequence(x, given, enforce_sorted=False) for given in (lengths, [1, 3]))
    for one, other in zip(packed, expected, strict=True):
        np.testing.assert_array_equal(one.cpu().numpy(), other.cpu().numpy())


def test_the_longest_sequence_is_a_total_length():
    """As many steps as it has may be asked for, and are what comes anyway."""
    packed = pack_sequence([lucid.ones(3, 2), lucid.ones(1, 2)])
    assert lucid.equal(pad_packed_sequence(packed, total_length=3)[0], pad_packed_sequence(packed)[0])


def test_nothing_lies_on_the_default_device(rng):
    """Rows lie where the sequences do, and lengths on the CPU, whatever device is the default."""
    parts = [lucid.tensor(rng.standard_normal((length, 2))) for length in (1, 3, 2)]
    lengths = lucid.tensor([1, 3, 2], device="cpu")
    with without_default_device():
        padded = pad_sequence(parts)
        packed = pack_sequence(parts, enforce_sorted=False)
        for each in (packed, pack_padded_sequence(padded, lengths, enforce_sorted=False)):
            rows, found = pad_packed_sequence(each)
            assert lucid.equal(rows, padded)
            assert (found.tolist(), found.device.type) == ([1, 3, 2], "cpu")
        for back in (unpack_sequence(packed), unpad_sequence(padded, lengths)):
            assert [x.tolist() for x in back] == [x.tolist() for x in parts]
            assert {x.device for x in (*back, packed.data)} == {parts[0].device}
