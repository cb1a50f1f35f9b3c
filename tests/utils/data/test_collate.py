"""Batches of samples of every form."""

from __future__ import annotations

import array
from collections import OrderedDict, UserDict, UserList
from typing import Any, NamedTuple

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, IndexOutOfRangeError, ShapeError
from lucid.utils.data import DataLoader, IterableDataset, default_collate, default_convert


class Point(NamedTuple):
    """A named tuple."""

    x: Any
    y: Any


@pytest.mark.parametrize(
    ("batch", "dtype", "expected"),
    [
        ([1, 2], lucid.int64, [1, 2]),
        ([True, False], lucid.bool, [True, False]),
        ([0.5, 1.5], lucid.float64, [0.5, 1.5]),
        ([np.float32(1), np.float32(2)], lucid.float32, [1, 2]),
        ([np.int16(1), np.int16(2)], lucid.int16, [1, 2]),
        ([np.float64(1), np.float64(2)], lucid.float64, [1, 2]),
        ([np.zeros(2, np.float16), np.ones(2, np.float16)], lucid.float16, [[0, 0], [1, 1]]),
        ([np.array(3), np.array(4)], lucid.int64, [3, 4]),
    ],
)
def test_numbers_and_arrays(batch, dtype, expected):
    """They become one tensor on the CPU, whatever the default device is."""
    got = default_collate(batch)
    assert (got.dtype, got.device.type) == (dtype, "cpu")
    assert got.tolist() == expected


def test_tensors(rng):
    """Tensors are stacked where they are; of several dtypes as `stack` promotes them."""
    parts = [lucid.tensor(rng.standard_normal((2, 3))) for _ in range(3)]
    got = default_collate(parts)
    assert lucid.equal(got, lucid.stack(parts))
    assert got.device == parts[0].device
    assert default_collate([lucid.zeros(1), lucid.ones(1, dtype=lucid.float64)]).dtype == lucid.float64
    assert default_collate([lucid.zeros(2, 0), lucid.zeros(2, 0)]).shape == (2, 2, 0)
    assert default_collate([np.zeros(1), lucid.ones(1, device="cpu")]).tolist() == [[0], [1]]


@pytest.mark.parametrize("recorded", [(True, False, True), (False, True, False), (True, True, True)])
def test_tensors_on_the_graph(recorded, rng):
    """A batch of which any tensor is recorded is recorded too, and each of these gets its own gradient."""
    parts = [lucid.tensor(rng.standard_normal(3), requires_grad=each) for each in recorded]
    got, upstream = default_collate(parts), lucid.tensor(rng.standard_normal((3, 3)))
    got.backward(upstream)
    for part, each, row in zip(parts, recorded, upstream, strict=True):
        assert part.grad.tolist() == row.tolist() if each else part.grad is None


def test_containers():
    """Dicts, named tuples and lists keep their type, a tuple becomes a list, text stays."""
    got = default_collate([{"p": Point(1, "a"), "l": [1.0, (2, 3)]}, {"p": Point(3, "b"), "l": [4.0, (5, 6)]}])
    assert isinstance(got["p"], Point)
    assert got["p"].x.tolist() == [1, 3]
    assert got["p"].y == ["a", "b"]
    assert [part.tolist() for part in (got["l"][0], *got["l"][1])] == [[1.0, 4.0], [2, 5], [3, 6]]
    assert type(got["l"][1]) is list
    ordered = default_collate([OrderedDict(b=1, a=2), OrderedDict(b=3, a=4)])
    assert isinstance(ordered, OrderedDict)
    assert list(ordered) == ["b", "a"]
    for kind in (UserDict, UserList):
        made = default_collate(
            [kind({0: 1}) if kind is UserDict else kind([1]), kind({0: 2}) if kind is UserDict else kind([2])]
        )
        assert isinstance(made, kind)
        assert made[0].tolist() == [1, 2]
    assert default_collate(("a", "b")) == ["a", "b"]
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("batch", "kind", "match"),
    [
        ([np.zeros(2), np.zeros(3)], ShapeError, r"sample 0 has shape \(2,\), sample 1 has \(3,\).*pad_sequence"),
        ([[1, 2], [1]], ShapeError, "equal size: sample 0 has 2 entries, sample 1 has 1"),
        ([None, None], ArgumentError, "found NoneType in sample 0"),
        ([{"a": object()}], ArgumentError, "found object in sample 0"),
        ([np.array(["a"])], ArgumentError, "found an array of <U1 in sample 0"),
        ([lucid.zeros(1, device="cpu"), 1], ArgumentError, "found int in sample 1"),
        ([np.zeros(1), 1], ArgumentError, "found int in sample 1"),
        ([], IndexOutOfRangeError, "at least one sample"),
        ([{"a": 1}, {"b": 1}], KeyError, "a"),
    ],
)
def test_what_cannot_be_stacked(batch, kind, match):
    """The error says which samples, and what is wrong with them."""
    with pytest.raises(kind, match=match):
        default_collate(batch)


def test_a_loader_names_indices():
    """In a loader it is the indices of the dataset that are named, also by a note for a missing key."""
    ragged = [np.zeros(n % 3) for n in range(6)]
    with pytest.raises(ShapeError, match=r"sample 5 has shape \(2,\), sample 4 has \(1,\)"):
        list(DataLoader(ragged, batch_size=2, sampler=[5, 4]))
    with pytest.raises(KeyError) as caught:
        list(DataLoader([{"a": 1}, {"b": 2}], batch_size=2, sampler=[1, 0]))
    assert "sample 0 has no entry 'b'" in caught.value.__notes__[0]


def test_a_loader_counts_the_samples_of_a_stream():
    """Of a stream it is the numbers of the samples from its beginning on that are named."""

    class Ragged(IterableDataset):
        def __iter__(self):
            return iter([np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(2)])

    batches = iter(DataLoader(Ragged(), batch_size=2))
    assert next(batches).shape == (2, 1)
    with pytest.raises(ShapeError, match=r"sample 2 has shape \(1,\), sample 3 has \(2,\)"):
        next(batches)


def test_conversion():
    """Arrays become tensors wherever they are; anything else stays; what is mutable is not changed."""
    data = {"x": np.arange(2), "p": Point(np.float32(1), "a"), "l": [np.zeros(1), 3], "t": (np.ones(1), None)}
    got = default_convert(data)
    assert got["x"].tolist() == [0, 1]
    assert isinstance(got["p"], Point)
    assert got["p"].x.dtype == lucid.float32
    assert type(got["t"]) is list
    assert got["t"][1] is None
    assert isinstance(data["x"], np.ndarray)
    assert isinstance(data["l"][0], np.ndarray)
    for text in (np.array(["a"]), np.array([b"a"]), np.array([None, "a"]), np.array([{}], object)):
        assert default_convert(text) is text
    assert default_convert("abc") == "abc"


class Named(UserDict):
    """A dict with an attribute."""

    def __init__(self, entries, name=""):
        super().__init__(entries)
        self.name = name


def test_containers_keep_their_attributes():
    """A container of a class of one's own is a copy of the first sample's, with other entries."""
    got = default_collate([Named({"x": 1}, "first"), Named({"x": 2}, "second")])
    assert got.name == "first"
    assert got["x"].tolist() == [1, 2]


@pytest.mark.parametrize("flip", [False, True])
def test_arrays_of_several_dtypes(flip):
    """They are promoted as tensors are, whichever comes first."""
    arrays = [np.ones(1, np.float32), np.full(1, 0.1)]
    got = default_collate(arrays[::-1] if flip else arrays)
    assert got.dtype == lucid.float64
    assert got[0 if flip else 1].item() == 0.1


@pytest.mark.parametrize(
    ("batch", "dtype"),
    [
        ([np.ones(2, np.float32), np.ones(2, np.int64)], lucid.float32),
        ([np.ones(2, np.float32), lucid.tensor([1, 2], device="cpu")], lucid.float32),
        ([np.float32(1.5), 2], lucid.float32),
        ([np.int8(3), 2.5], lucid.float32),
        ([np.bool_(True), 2.5], lucid.float32),
        ([np.float32(1.5), 1j], lucid.complex64),
        ([np.float16(1), np.float64(2)], lucid.float64),
        ([np.ones(2, ">f4"), np.ones(2, ">f4")], lucid.float32),
        ([np.ones(2, ">f4"), np.ones(2, "<f4")], lucid.float32),
        ([np.ones(2, ">f4"), np.ones(2, ">i2")], lucid.float32),
    ],
)
def test_samples_of_several_dtypes(batch, dtype):
    """They are promoted as tensors are, which are no wider for a number beside them."""
    got = default_collate(batch)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.numpy(), np.stack([np.asarray(value) for value in batch]))


def test_arrays_that_no_tensor_can_be():
    """Masks and records stay what they are where nothing is stacked, and are refused where it is."""
    masked, record = np.ma.masked_array([1, 2], [0, 1]), np.array([(1, 2.0)], "i4,f4")
    for value in (masked, record):
        assert default_convert(value) is value
    with pytest.raises(ArgumentError, match="a masked array of int64 in sample 0"):
        default_collate([masked, masked])


@pytest.mark.parametrize("record", [np.array([(1, 2.0)], "i4,f4")[0], np.void(b"ab"), np.array(["a"], object)])
def test_what_is_no_number_is_named(record):
    """A record, bytes without a meaning and an array of objects are refused as samples, by the first that is one."""
    for sample in (record, (record, 1)):
        with pytest.raises(
            ArgumentError, match=r"default_collate: batch must contain .* found an array of .* in sample 0"
        ):
            default_collate([sample, sample])


def test_sequences_that_take_no_tensors():
    """They become lists."""
    for sample in (array.array("i", [1, 2]), bytearray([1, 2])):
        assert [part.tolist() for part in default_collate([sample, sample])] == [[1, 1], [2, 2]]
        assert [part.tolist() for part in default_collate([sample])] == [[1], [2]]


@pytest.mark.parametrize("other", [(1,), (1, 2, 3)])
def test_samples_of_other_lengths(other):
    """A sample with fewer or more entries than the first is named."""
    with pytest.raises(ShapeError, match=f"sample 0 has 2 entries, sample 1 has {len(other)}"):
        default_collate([(1, 2), other])


class Tagged(dict):
    """A dict with an attribute."""


class Rows(list):
    """A list with an attribute."""


def test_samples_stay_as_they_are():
    """Whatever holds them, neither collating nor converting writes into a sample; attributes are the first one's."""
    kinds = (
        lambda v: Tagged(x=v),
        lambda v: Rows([v, 2]),
        lambda v: UserDict(x=v),
        lambda v: UserList([v]),
        lambda v: {"x": v},
    )
    for make in kinds:
        samples = [make(np.full(2, float(k))) for k in range(3)]
        if isinstance(samples[0], Tagged | Rows):
            samples[0].tag = "first"
        before = [list(each.values()) if hasattr(each, "values") else list(each) for each in samples]
        collated, converted = default_collate(samples), default_convert(samples[0])
        after = [list(each.values()) if hasattr(each, "values") else list(each) for each in samples]
        assert all(a is b for one, other in zip(before, after, strict=True) for a, b in zip(one, other, strict=True))
        for made in (collated, converted):
            assert type(made) is type(samples[0])
            assert made is not samples[0]
            assert getattr(made, "tag", None) == getattr(samples[0], "tag", None)
