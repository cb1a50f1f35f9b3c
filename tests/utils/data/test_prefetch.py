"""Items of any iterator on a device, ahead of their use."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest

import lucid
from lucid.errors import CaptureError, DeviceError, SettingError
from lucid.utils.data import DataLoader, TensorDataset, prefetch
from tests.device import DEVICE
from tests.gradients import numbers
from tests.utils.data.datasets import Failing, Numbers, OfSize
from tests.utils.data.readers import lists, passes, some_readers


class Pair(NamedTuple):
    """A named tuple."""

    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class Record:
    """A frozen dataclass."""

    x: Any
    name: str


class Foreign:
    """An array of another library, known by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **settings):
        return self.array.__dlpack__(**settings)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_structures(rng):
    """Arrays become tensors wherever they are; containers keep their type, anything else stays."""
    array = rng.standard_normal(3).astype(np.float32)
    text = np.array(["a"])
    item = [{"x": array, "n": 3}, Pair(Foreign(array), None), (lucid.tensor(array),), Record(array, "r"), text]
    (got,) = prefetch([item], DEVICE)
    for tensor in (got[0]["x"], got[1].x, got[2][0], got[3].x):
        assert tensor.device.type == DEVICE
        np.testing.assert_array_equal(tensor.cpu().numpy(), array)
    assert (got[0]["n"], got[1].y, got[3].name, got[4]) == (3, None, "r", text)
    assert (type(got[1]), type(got[2]), type(got[3])) == (Pair, tuple, Record)
    assert item[3].x is array
    for kept in (np.array(["a", "b"]), np.array([b"a"]), np.array([None, "a"]), np.array([{}, 1], object)):
        (found,) = prefetch([kept], DEVICE)
        assert found is kept
    (ordered,) = prefetch([OrderedDict(b=array, a=1)], DEVICE)
    assert list(ordered) == ["b", "a"]
    assert isinstance(ordered, OrderedDict)
    by_default = defaultdict(list, x=array)
    (got,) = prefetch([by_default], DEVICE)
    assert (type(got), got.default_factory, got["more"], list(by_default)) == (defaultdict, list, [], ["x"])
    np.testing.assert_array_equal(numbers(got["x"]), array)


# these tests of the host run with other tests' tensors on a device only where they are marked
on_each = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


@on_each
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_order_and_depth(depth, device):
    """Items come in order; on a device `depth` more are read before one is given, on the CPU none."""
    read = []

    def items():
        for number in range(10):
            read.append(number)
            yield np.full(2, number)

    given = prefetch(items(), device, depth, convert=lambda array: array + 1)
    for number in range(10):
        assert next(given).tolist() == [number + 1] * 2
        assert len(read) == (min(number + depth + 1, 10) if device == "cuda" else number + 1)
    assert list(given) == []


@on_each
def test_an_iterator_that_fails(device):
    """What came before is given first."""

    def items():
        yield np.zeros(1)
        yield np.ones(1)
        raise ValueError("broken")

    given = prefetch(items(), device)
    assert [next(given).tolist(), next(given).tolist()] == [[0], [1]]
    with pytest.raises(ValueError, match="broken"):
        next(given)


def test_settings():
    """A depth is at least 1, and a device a device."""
    with pytest.raises(SettingError, match="depth of at least 1"):
        prefetch([], "cpu", 0)
    with pytest.raises(DeviceError):
        prefetch([], "tpu")


# ---- of a loader ----


@some_readers
def test_a_loaders_device(reader):
    """Batches, their order and random numbers are those without a device; states too."""
    expected = passes(Numbers(), **reader)
    assert passes(Numbers(), device=DEVICE, **reader) == expected
    lucid.manual_seed(11)
    loader = DataLoader(Numbers(), batch_size=4, shuffle=True, device=DEVICE, **reader)
    iterator = iter(loader)
    first = [next(iterator) for _ in range(3)]
    assert all(part.device.type == DEVICE for batch in first for part in batch)
    other = DataLoader(Numbers(), batch_size=4, shuffle=True, device=DEVICE)
    other.load_state_dict(loader.state_dict())
    assert lists(other) == lists(iterator) == expected[0][3:]


@pytest.mark.gpu
@some_readers
def test_a_batch_on_a_device_is_not_overwritten(reader):
    """Batches that are kept hold their values while later ones are read into the same pinned memory."""
    for persistent in {False, bool(reader)}:
        settings = {**reader, "persistent_workers": True} if persistent else reader
        loader = DataLoader(Failing(int), batch_size=10, pin_memory=True, device="cuda", **settings)
        kept = [batch for _ in range(2) for batch in loader]
        assert [batch[:, 1].tolist() for batch in kept] == np.arange(200.0).reshape(20, 10).tolist() * 2


@pytest.mark.gpu
@some_readers
def test_pinned_batches(reader):
    """With `pin_memory` batches are in page-locked memory on the CPU."""
    for batch in DataLoader(Failing(int), batch_size=64, pin_memory=True, **reader):
        assert batch.device.type == "cpu"
        assert batch.is_pinned()
    assert not next(iter(DataLoader(Failing(int), **reader))).is_pinned()


class Own:
    """A batch of a class that moves itself."""

    def __init__(self, samples):
        self.x = lucid.tensor(np.stack(samples), device="cpu")

    def to(self, device, *, non_blocking):
        moved = Own.__new__(Own)
        moved.x = self.x.to(device, non_blocking=non_blocking)
        return moved

    def pin_memory(self):
        pinned = Own.__new__(Own)
        pinned.x = self.x.pin_memory()
        return pinned


@some_readers
def test_batches_of_ones_own_class(reader):
    """They are moved by their own methods."""
    for index, batch in enumerate(DataLoader(Failing(int), 10, collate_fn=Own, device=DEVICE, **reader)):
        assert batch.x.device.type == DEVICE
        assert batch.x[:, 0].tolist() == list(range(10 * index, 10 * index + 10))


@pytest.mark.gpu
def test_pinned_dicts_keep_their_type():
    """A dict with a default for what it lacks has it afterwards."""

    def collate(samples):
        return defaultdict(list, x=lucid.tensor(np.stack(samples), device="cpu"))

    for batch in DataLoader(Failing(int), 10, collate_fn=collate, pin_memory=True):
        assert (type(batch), batch["more"]) == (defaultdict, [])
        assert batch["x"].is_pinned()


@pytest.mark.gpu
def test_pinning_batches_of_ones_own_class():
    """They are page-locked by their own method."""
    assert all(batch.x.is_pinned() for batch in DataLoader(Failing(int), 10, collate_fn=Own, pin_memory=True))


@pytest.mark.gpu
def test_the_current_stream_waits():
    """What is queued behind a batch sees its values, on whichever stream the loop works."""
    side = lucid.cuda.Stream()
    with lucid.cuda.stream(side):
        for index, batch in enumerate(prefetch((np.full(1000, k, np.float32) for k in range(20)), "cuda")):
            assert (batch * 2).sum().item() == 2000 * index


def test_tensors_of_the_device():
    """A dataset of tensors on the device is indexed there, and gives its batches as they are."""
    x = lucid.arange(10)
    batches = list(DataLoader(TensorDataset(x), batch_size=4, device=DEVICE))
    assert [batch[0].tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_no_device_to_pin_for():
    """Without a CUDA device `pin_memory` warns, and batches are as without it."""
    if lucid.cuda.is_available():
        pytest.skip("there is a device")
    with pytest.warns(UserWarning, match="no CUDA device"):
        loader = DataLoader(Numbers(), pin_memory=True)
    assert len(list(loader)) == 77


class Closed:
    """An iterator that is closed."""

    closed = False

    def __iter__(self):
        return self

    def __next__(self):
        return np.zeros(2)

    def close(self):
        self.closed = True


@pytest.mark.gpu
def test_closing():
    """What is closed closes the iterator below it."""
    items = Closed()
    given = prefetch(items, "cuda")
    next(given)
    assert not items.closed
    given.close()
    assert items.closed


@pytest.mark.gpu
def test_memory_is_the_current_streams_too(monkeypatch):
    """Each tensor is recorded on the stream that uses it, so that its memory is not given away before that is done."""
    recorded = []
    record = lucid.Tensor.record_stream

    def note(tensor, stream):
        recorded.append((tensor, stream))
        return record(tensor, stream)

    monkeypatch.setattr(lucid.Tensor, "record_stream", note)
    side = lucid.cuda.Stream()
    with lucid.cuda.stream(side):
        batch = next(prefetch([{"x": np.zeros(2), "y": [np.ones(3)]}], "cuda"))
    assert [stream for _, stream in recorded] == [side, side]
    assert {id(tensor.array) for tensor, _ in recorded} == {id(batch["x"].array), id(batch["y"][0].array)}


@pytest.mark.gpu
@pytest.mark.parametrize("settings", [{}, {"num_workers": 1, "pin_memory": True}])
def test_a_device_that_is_not_the_current_one(settings, two_devices):
    """Its own stream waits for the copies, whichever device is current when a batch is asked for."""
    for current, where in ((0, "cuda:1"), (1, "cuda:0")):
        with lucid.cuda.device(current):
            batches = [batch[0] * 2 for batch in DataLoader(Numbers(), batch_size=40, device=where, **settings)]
        assert [batch.cpu().tolist() for batch in batches] == [list(range(0, 80, 2)), list(range(80, 154, 2))]
        assert {str(batch.device) for batch in batches} == {where}


@pytest.mark.gpu
def test_reading_ahead_is_in_no_mode():
    """A batch that is copied under inference mode, and used after it, is an ordinary tensor."""
    batches = prefetch([np.ones(2, np.float32)] * 6, "cuda")
    weight = lucid.ones(2, device="cuda", requires_grad=True)
    with lucid.inference_mode():
        next(batches)
    for batch in batches:
        (batch * weight).sum().backward()
    assert weight.grad.tolist() == [5.0, 5.0]


@pytest.mark.gpu
def test_no_batch_in_a_capture():
    """A copy that comes from outside cannot be part of a CUDA graph: the error says so, and the pass goes on."""
    batches = prefetch([np.ones(2, np.float32)] * 6, "cuda")
    next(batches)
    graph = lucid.cuda.CUDAGraph()
    with pytest.raises(CaptureError, match="copied ahead"), lucid.cuda.graph(graph):
        next(batches)


class Recording(OfSize):
    """Computes with a tensor that requires grad."""

    size = 4

    def __init__(self):
        self.weight = lucid.ones(2, device="cpu", requires_grad=True)

    def __getitem__(self, index):
        return self.weight * index


@pytest.mark.gpu
def test_reading_ahead_records_what_the_loop_records():
    """A dataset is read in the grad mode of the loop, on the way to a device, too."""
    loader = DataLoader(Recording(), batch_size=2, device="cuda")
    assert [batch.requires_grad for batch in loader] == [True, True]
    with lucid.no_grad():
        assert [batch.requires_grad for batch in loader] == [False, False]
    with lucid.inference_mode():
        assert [batch.requires_grad for batch in loader] == [False, False]
