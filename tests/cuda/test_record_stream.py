"""Memory that another stream reads is not used again before that stream is done, whoever held it last."""

from __future__ import annotations

import pytest

import lucid
from lucid.base import gpu
from lucid.errors import ArgumentError, DeviceError
from tests.pieces import in_threads

pytestmark = pytest.mark.gpu


class Events:
    """What the test says of the events that are recorded: their streams, in order, and whether they are reached."""

    def __init__(self):
        self.streams = []
        self.reached = False
        self.waited = 0
        self.before = lucid.cuda.memory_allocated()


@pytest.fixture
def events(monkeypatch):
    """Let events be reached when the test says so, or at its end: then all memory that it has taken is free."""
    lucid.cuda.empty_cache()
    told, kind, streams = Events(), gpu.cupy().cuda.Event, type(lucid.cuda.Stream().raw)
    record = streams.record

    def recording(self, event=None):
        told.streams.append(self.ptr)
        return record(self, event)

    def waiting(self):
        told.waited += 1
        told.reached = True

    monkeypatch.setattr(streams, "record", recording)
    monkeypatch.setattr(kind, "done", property(lambda self: told.reached))
    monkeypatch.setattr(kind, "synchronize", waiting)
    yield told
    told.reached = True
    assert taken() == told.before


def taken():
    """Return the bytes in use after a look at what can be let go of."""
    lucid.cuda.synchronize()
    return lucid.cuda.memory_allocated()


def test_memory_is_kept_until_the_stream_is_done(events):
    """What is freed while another stream reads it is in use until the end of what was queued there by then."""
    stream = lucid.cuda.Stream()
    x = lucid.ones(1000, device="cuda")
    address, held = x.data_ptr(), lucid.cuda.memory_allocated()
    assert x.record_stream(stream) is None
    assert (taken(), events.streams) == (held, [])
    del x
    y = lucid.ones(1000, device="cuda")
    assert y.data_ptr() != address
    del y
    for _ in range(2):
        # the event is recorded once, when nobody holds the memory any more
        assert (taken(), events.streams) == (held, [stream.cuda_stream])
    events.reached = True
    assert taken() == events.before
    assert events.waited == 0


@pytest.mark.parametrize(
    "share", [lambda x: x[3:], lambda x: x.view(10, 100).T, lambda x: x.detach(), lambda x: x.split(10)]
)
def test_whatever_shares_the_memory_holds_it(share, events):
    """It is free when the last array is gone that shows a part of it, not when the tensor is."""
    stream = lucid.cuda.Stream()
    x = lucid.ones(1000, device="cuda")
    view = share(x)
    x.record_stream(stream)
    del x
    taken()
    assert events.streams == []
    del view
    assert taken() > events.before
    assert events.streams == [stream.cuda_stream]


def test_a_graph_holds_what_it_has_saved(events):
    """A tensor that is saved for backward is in use until the graph is gone."""
    stream = lucid.cuda.Stream()
    weight = lucid.ones(1000, device="cuda", requires_grad=True)
    x = lucid.ones(1000, device="cuda")
    y = (weight * x).sum()
    x.record_stream(stream)
    del x
    taken()
    assert stream.cuda_stream not in events.streams
    y.backward()
    taken()
    assert events.streams.count(stream.cuda_stream) == 1


def test_several_streams(events):
    """Each stream is waited for, once, however often it was named; the next call of the method looks, too."""
    streams = [lucid.cuda.Stream() for _ in range(2)]
    x, y = lucid.ones(1000, device="cuda"), lucid.ones(1000, device="cuda")
    for stream in (*streams, *streams):
        x[5:].record_stream(stream)
    del x
    y.record_stream(streams[0])
    assert events.streams == [stream.cuda_stream for stream in streams]
    del y
    assert taken() > events.before


@pytest.mark.parametrize("late", [0, 1])
def test_one_of_several_streams_that_is_late(late, events, monkeypatch):
    """Memory that two streams read is kept until both are done, whichever is the last."""
    streams = [lucid.cuda.Stream() for _ in range(2)]
    x = lucid.ones(1000, device="cuda")
    for stream in streams:
        x.record_stream(stream)
    del x
    asked = []

    def is_done(event):
        if event.ptr not in asked:
            asked.append(event.ptr)
        return events.reached or asked.index(event.ptr) != late

    monkeypatch.setattr(gpu.cupy().cuda.Event, "done", property(is_done))
    assert taken() > events.before


def test_emptying_the_cache_waits(events):
    """`empty_cache` waits for the streams, so that all memory that nobody holds goes back to the driver."""
    before = lucid.cuda.memory_reserved()
    x = lucid.ones(1 << 18, device="cuda")
    x.record_stream(lucid.cuda.Stream())
    del x
    lucid.cuda.empty_cache()
    assert events.waited == 1
    assert lucid.cuda.memory_reserved() == before


def test_a_stream_of_another_device(events, two_devices):
    """A stream of any device may read a tensor; its event belongs to its own."""
    events.reached = True
    stream, before = lucid.cuda.Stream(1), lucid.cuda.memory_allocated(0)
    x = lucid.ones(1000, device="cuda:0")
    x.record_stream(stream)
    del x
    assert taken() == before
    assert events.streams == [stream.cuda_stream]
    assert lucid.cuda.current_device() == 0


def test_threads(events):
    """Tensors are named and freed by several threads at once, and all memory comes back."""
    stream = lucid.cuda.Stream()

    def work():
        for _ in range(50):
            lucid.ones(10, device="cuda").record_stream(stream)

    in_threads(*[work] * 4)
    assert lucid.cuda.memory_allocated() > events.before
    events.reached = True
    taken()


def test_what_is_no_stream_or_on_no_device():
    """A tensor on the CPU and anything but a stream are refused by name."""
    stream = lucid.cuda.Stream()
    with pytest.raises(DeviceError, match=r"record_stream: expected a tensor on a CUDA device, got shape \(2,\)"):
        lucid.ones(2, device="cpu").record_stream(stream)
    for wrong in (None, 0, stream.raw):
        with pytest.raises(ArgumentError, match=r"record_stream: stream: expected a lucid\.cuda\.Stream"):
            lucid.ones(2, device="cuda").record_stream(wrong)
