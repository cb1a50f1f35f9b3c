"""NCCL's engine on one simulated device: order, memory, ends and captures, whatever NCCL itself does."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.base import gpu
from lucid.collectives.engines import communicator, queued
from lucid.collectives.job.watchdog import Flight
from lucid.errors import CaptureError, DeviceError, DistributedError, DistributedTimeoutError, SettingError
from lucid.nn.parallel import DistributedDataParallel
from tests.collectives.engines.alone import Library, Marks, group_of_one
from tests.gradients import numbers
from tests.waiting import until

pytestmark = pytest.mark.gpu


@pytest.fixture
def library(monkeypatch):
    """Return what stands for `nccl.core`."""
    made = Library()
    monkeypatch.setattr(queued, "library", lambda: made)
    monkeypatch.setattr(communicator, "library", lambda: made)
    return made


@pytest.fixture
def marks(monkeypatch, library):
    """Return what stands for marks in streams."""
    made = Marks(library.log)
    monkeypatch.setattr(gpu, "mark", made)
    yield made
    made.held = False


def ones(*shape):
    return lucid.ones(*shape, device="cuda")


def stuck(library, marks, timeout=60.0):
    """Return a connected group of one and its engine, whose work is not done before a test says so."""
    group, engine = group_of_one(library, timeout)
    dist.all_reduce(ones(1), group=group)
    marks.engine, marks.held = engine, True
    return group, engine


def test_a_stream_of_its_own_in_order_with_the_current_one(library, marks, monkeypatch):
    """It waits for what was queued before, and `wait` lets the current stream wait for it, each by one event."""
    group, engine = group_of_one(library)
    dist.all_reduce(ones(1), group=group)
    marks.engine = engine
    kind, side = gpu.cupy().cuda.Stream, engine.stream.ptr
    plain = kind.wait_event

    def wait_event(stream, event):
        library.log.append(("wait", stream.ptr, event.ptr))
        plain(stream, event)

    monkeypatch.setattr(kind, "wait_event", wait_event)
    stream = lucid.cuda.Stream()
    with lucid.cuda.stream(stream):
        current = gpu.current_stream().ptr
        x = ones(3)
        library.log.clear()
        work = dist.all_reduce(x, group=group, async_op=True)
        work.wait()
        y = x + 1  # the simulated device refuses it where it is not in order
    assert current != side
    (_, _, start), (_, _, end) = [each for each in library.log if each[0] == "record"]
    assert library.log == [
        ("record", current, start),
        ("wait", side, start),
        ("allreduce", side, "float32", "SUM"),
        ("record", side, end),
        ("wait", current, end),
    ]
    stream.synchronize()
    assert y.tolist() == [2.0] * 3


def test_memory_is_kept_until_the_device_is_done(library, marks):
    """What nobody holds any more is given to nobody before the event; when its own stream waits, that comes behind."""
    group, engine = stuck(library, marks)
    columns = ones(4, 500)[:, ::2]  # a copy in one piece is sent, and comes back
    places = {columns.array.data.ptr}
    dist.all_reduce(columns, group=group, async_op=True)
    del columns
    others = [ones(4, 500) for _ in range(3)]
    assert not places & {each.array.data.ptr for each in others}
    assert engine.under_way[0].kept is not None
    marks.held = False
    engine.progress()
    assert engine.under_way == []
    marks.held = True
    work = dist.all_reduce(ones(7), group=group, async_op=True)
    work.wait()
    assert work.flight.kept is work.kept is None
    assert not work.is_completed()
    marks.held = False
    assert work.is_completed()
    other = dist.all_reduce(ones(7), group=group, async_op=True)
    marks.held = True
    other = dist.all_reduce(ones(7), group=group, async_op=True)
    with lucid.cuda.stream(lucid.cuda.Stream()):
        other.wait()  # of another stream than the one whose memory it is
    assert other.flight.kept is not None
    marks.held = False
    engine.progress()


def test_what_never_ends_is_aborted_and_said(library, marks, capsys):
    """The host need not wait: the thread that looks after it aborts, prints the rank, and the next call raises."""
    group, engine = stuck(library, marks, 0.2)
    work = dist.all_reduce(ones(3), group=group, async_op=True)
    assert work.wait()  # the stream waits, and not the host
    assert until(lambda: library.made[0].aborted)
    with pytest.raises(DistributedTimeoutError, match=r"rank 0 of 1 waits in collective 2, all_reduce of shape \(3,\)"):
        work.wait()
    assert work.is_completed()
    with pytest.raises(DistributedError, match="is of no use any more"):
        dist.all_reduce(ones(3), group=group)
    said = capsys.readouterr().err
    assert said.startswith("rank 0 of 1: ")
    assert "has waited 0.2 s" in said
    assert engine.watch.broken


def test_a_wait_of_the_host_has_an_end_too(library, marks):
    """With a time limit, or where values are read, the host waits, and aborts at the limit."""
    group, _ = stuck(library, marks)
    work = dist.all_reduce(ones(3), group=group, async_op=True)
    with pytest.raises(DistributedTimeoutError, match=r"has waited 0\.1 s"):
        work.wait(0.1)
    assert library.made[0].aborted
    for call in (dist.barrier, lambda group: dist.all_reduce(ones(1), group=group)):
        with pytest.raises(DistributedError, match="no use any more"):
            call(group=group)


def test_an_error_of_nccl_fails_what_is_under_way(library, marks):
    """`get_async_error` is asked meanwhile, and what it says is in the error."""
    group, _ = stuck(library, marks)
    work = dist.all_reduce(ones(3), group=group, async_op=True)
    library.made[0].state = 6
    assert until(work.is_completed)
    with pytest.raises(DistributedError, match="error 6: a cable"):
        work.wait()
    assert library.made[0].aborted


def test_connecting_and_each_call_have_an_end(library):
    """A communicator that stays in progress is aborted at the time limit, as is one that has failed at once."""
    library.state = 7
    group, _ = group_of_one(library, 0.1)
    with pytest.raises(
        DistributedTimeoutError, match=r"waits in collective 1|connecting through NCCL has taken more than 0\.1 s"
    ):
        dist.all_reduce(ones(3), group=group)
    library.state = 3
    group, _ = group_of_one(library)
    with pytest.raises(DistributedError, match="error 3: a cable"):
        dist.all_reduce(ones(3), group=group)
    library.state = 0
    group, _ = group_of_one(library, 0.1)
    dist.all_reduce(ones(3), group=group)
    library.made[-1].state = 7
    with pytest.raises(DistributedTimeoutError, match="rank 0 of 1 waits in collective 2, all_reduce"):
        dist.all_reduce(ones(3), group=group)
    assert all(made.aborted for made in library.made)


class Event:
    """One that is reached when a test says so."""

    done = False


def test_time_counts_from_when_the_device_comes_to_it():
    """What waits behind other work of the device is not late."""
    start = Event()
    flight = Flight("x", 10.0, start, Event())
    assert not flight.is_late(0.0)
    assert not flight.is_late(1000.0)
    start.done = True
    assert not flight.is_late(2000.0)
    assert not flight.is_late(2010.0)
    assert flight.is_late(2010.1)


def test_what_cannot_be_is_said(library):
    """Tags, a tensor of another device, and captures of what the host takes part in."""
    group, engine = group_of_one(library)
    graph = lucid.cuda.CUDAGraph()
    with pytest.raises(CaptureError, match="call one before the capture"), lucid.cuda.graph(graph):
        dist.all_reduce(ones(3), group=group)
    dist.all_reduce(ones(3), group=group)
    graph = lucid.cuda.CUDAGraph()
    with pytest.raises(CaptureError, match="a wait of the host for collective 2, barrier"), lucid.cuda.graph(graph):
        dist.barrier(group)
    with pytest.raises(SettingError, match="tag: NCCL tells messages apart by their order"):
        engine.send(ones(1).array, 0, 3)
    if lucid.cuda.device_count() > 1:
        with pytest.raises(DeviceError, match=r"expected tensors on cuda:0.*set_device\(1\)"):
            dist.all_reduce(lucid.ones(3, device="cuda:1"), group=group)


def test_a_captured_collective_is_done_by_each_replay(library):
    """With the step, on its side stream; each replay is looked after as a whole."""
    group, engine = group_of_one(library)

    def step(x):
        y = x * 2
        dist.all_reduce(y, group=group)
        work = dist.all_reduce(z := y + 1, group=group, async_op=True)
        assert work.is_completed() != lucid.cuda.is_current_stream_capturing()
        work.wait()
        assert work.is_completed()
        return z * 10

    graphed = lucid.cuda.graphed_step(step, ones(3), warmup=1)
    graphed(ones(3))
    engine.progress()
    calls = len(library.log)
    for value in (1.0, 2.0, 5.0):
        given = lucid.full((3,), value, device="cuda")
        result = graphed(given)
        (flight,) = engine.under_way
        assert str(flight.call) == "a replay of a captured step with collectives"
        assert result.tolist() == [(2 * value + 1) * 10] * 3
        engine.progress()
        assert engine.under_way == []
    assert len(library.log) == calls + 2
    engine.abort()
    with pytest.raises(DistributedError, match="cannot go on: it has failed"):
        graphed(ones(3))


@pytest.mark.parametrize("reduction", ["engine", "tree"])
def test_a_captured_step_trains_as_one_that_is_not(library, reduction, rng):
    """DistributedDataParallel's buckets are captured with forward, backward and optimizer, the same bits."""
    xs = [rng.standard_normal((4, 6)).astype(np.float32) for _ in range(6)]
    found = []
    for captured in (False, True):
        group, _ = group_of_one(library)
        lucid.manual_seed(3)
        model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2)).to("cuda")
        wrapped = DistributedDataParallel(model, process_group=group, bucket_cap_mb=1e-5, reduction=reduction)
        wrapped.reducer.attach()
        optimizer = lucid.optim.AdamW(wrapped.parameters(), lr=0.1, capturable=True)

        def step(x, wrapped=wrapped, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (wrapped(x) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        call = lucid.cuda.graphed_step(step, ones(4, 6), warmup=2) if captured else step
        losses = [call(lucid.tensor(x, device="cuda")).item() for x in xs]
        found.append((losses, [numbers(p).tolist() for p in model.parameters()]))
    assert found[0] == found[1]


def test_a_captured_step_needs_every_gradient(library):
    """Which parameters other processes have used cannot be read in a capture: the ones without are named."""
    group, _ = group_of_one(library)
    model = nn.ModuleDict({"used": nn.Linear(3, 1), "never": nn.Linear(3, 1)}).to("cuda")
    wrapped = DistributedDataParallel(model, process_group=group)
    wrapped.reducer.attach()  # which a process that is alone does not need

    def step(x):
        wrapped.zero_grad()
        loss = wrapped.module["used"](x).sum()
        loss.backward()
        return loss

    graphed = lucid.cuda.graphed_step(step, ones(2, 3), warmup=1)
    graphed(ones(2, 3))
    with pytest.raises(CaptureError, match=r"never\.weight, never\.bias got no gradient"):
        graphed(ones(2, 3))
