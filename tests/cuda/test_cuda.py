"""lucid.cuda: devices, memory and streams, without a GPU and with a stand-in for CuPy."""

from __future__ import annotations

import gc
import threading

import pytest

from lucid import cuda
from lucid.backend.device import device
from lucid.cuda.memory import PeakMemory
from lucid.errors import CudaUnavailableError, DeviceError


@pytest.mark.parametrize("missing", ["no_cupy", "no_device"])
def test_without_cuda_questions_are_answered_and_orders_refused(missing, request):
    """Figures are 0, cleaning up does nothing, as in PyTorch; whatever needs a device says that there is none."""
    request.getfixturevalue(missing)
    assert cuda.is_available() is False
    assert cuda.device_count() == 0
    assert cuda.memory_allocated() == cuda.max_memory_allocated() == cuda.memory_reserved() == 0
    assert cuda.memory_allocated("cuda:3") == 0
    cuda.empty_cache()
    with cuda.stream(None), cuda.device(None), cuda.device(-1):
        pass
    cuda.set_device(-1)
    for order in (
        cuda.synchronize,
        cuda.current_device,
        cuda.get_device_name,
        cuda.current_stream,
        cuda.default_stream,
        cuda.reset_peak_memory_stats,
        cuda.Stream,
        cuda.Event,
        lambda: cuda.set_device(0),
        lambda: cuda.device("cuda:0").__enter__(),
    ):
        with pytest.raises(CudaUnavailableError, match="CUDA device"):
            order()


def test_the_current_device_is_set_and_restored(fake_cupy):
    """Indices, names and devices are taken; the context gives the previous device back, after an exception too."""
    assert cuda.is_available()
    assert cuda.device_count() == 2
    cuda.set_device("cuda:1")
    assert cuda.current_device() == 1
    with pytest.raises(KeyError), cuda.device(0):
        assert cuda.current_device() == 0
        with cuda.device(device("cuda:1")):
            assert cuda.current_device() == 1
            cuda.set_device(0)
        assert cuda.current_device() == 0
        raise KeyError
    assert cuda.current_device() == 1
    cuda.set_device(None)
    with cuda.device(None):
        assert cuda.current_device() == 1


@pytest.mark.parametrize(
    "order",
    [
        cuda.set_device,
        cuda.get_device_name,
        cuda.synchronize,
        cuda.memory_allocated,
        cuda.memory_reserved,
        cuda.max_memory_allocated,
        cuda.reset_peak_memory_stats,
        cuda.current_stream,
        cuda.default_stream,
        cuda.Stream,
        lambda d: cuda.device(d).__enter__(),
    ],
)
def test_other_devices_are_refused(order, fake_cupy):
    """The CPU is no CUDA device and a missing index is none either; the current device stays."""
    with pytest.raises(DeviceError, match="expected a CUDA device such as 'cuda:0' or 0, got 'cpu'"):
        order("cpu")
    with pytest.raises(DeviceError, match="the devices here are cpu, cuda:0, cuda:1"):
        order(5)
    assert cuda.current_device() == 0


def test_devices_have_names_and_can_be_waited_for(fake_cupy):
    """The name is text, and synchronize waits for the device that was asked for."""
    assert cuda.get_device_name(1) == "Fake 1"
    assert cuda.get_device_name() == "Fake 0"
    cuda.synchronize("cuda:1")
    cuda.synchronize()
    assert fake_cupy.log == [("deviceSynchronize", 1), ("deviceSynchronize", 0)]


def test_memory_is_counted_per_device(fake_cupy):
    """Allocated is what arrays hold, reserved what the pool holds; empty_cache gives back the rest on every device."""
    fake_cupy.malloc(1024)
    fake_cupy.malloc(512, device=1)
    fake_cupy.free(512)
    assert (cuda.memory_allocated(0), cuda.memory_reserved(0)) == (512, 1024)
    assert (cuda.memory_allocated(1), cuda.memory_reserved(1)) == (512, 512)
    fake_cupy.free(512, device=1)
    cuda.empty_cache()
    assert (cuda.memory_reserved(0), cuda.memory_reserved(1)) == (512, 0)
    assert fake_cupy.current == 0


def test_the_peak_is_the_most_at_one_time(fake_cupy):
    """The peak counts what was there before, rises with the sum in use, ignores failures and what was freed."""
    fake_cupy.malloc(1000)
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == 1000
    fake_cupy.malloc(500)
    fake_cupy.free(1000)
    fake_cupy.malloc(700)
    assert cuda.memory_allocated() == 1200
    assert cuda.max_memory_allocated() == 1500
    with pytest.raises(MemoryError):
        fake_cupy.malloc(20_000)
    assert cuda.max_memory_allocated() == 1500
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == 1200
    fake_cupy.malloc(300)
    assert cuda.max_memory_allocated("cuda:0") == 1500


def test_each_device_has_its_own_peak(fake_cupy):
    """Resetting one device leaves the other's peak, and allocations count where they happen."""
    cuda.reset_peak_memory_stats(0)
    cuda.reset_peak_memory_stats(1)
    fake_cupy.malloc(800, device=1)
    fake_cupy.free(800, device=1)
    fake_cupy.malloc(100, device=0)
    assert cuda.max_memory_allocated(1) == 800
    cuda.reset_peak_memory_stats(0)
    assert cuda.max_memory_allocated(0) == 100
    assert cuda.max_memory_allocated(1) == 800


def test_watching_the_peak_costs_one_hook_per_thread(fake_cupy):
    """However often it is asked, one hook listens; before anyone asks, none does."""
    fake_cupy.malloc(100)
    assert fake_cupy.hooks == []
    for _ in range(3):
        cuda.reset_peak_memory_stats()
        cuda.max_memory_allocated(1)
    assert len(fake_cupy.hooks) == 1


def test_peaks_survive_threads_and_garbage_collection():
    """Counting from many threads loses nothing, and a collection that frees memory inside the count does not block."""
    peak = PeakMemory()
    peak.restart(0, 0)

    class Frees:
        def __init__(self):
            self.me = self

        def __del__(self):
            peak.free_postprocess(device_id=0, mem_size=1, mem_ptr=1, pmem_id=1)

    def work():
        for _ in range(2000):
            peak.malloc_postprocess(device_id=0, size=1, mem_size=2, mem_ptr=1, pmem_id=1)
            peak.free_postprocess(device_id=0, mem_size=1, mem_ptr=1, pmem_id=1)
            Frees()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    highest = peak.peak(0, 0)
    assert highest >= 2
    peak.malloc_postprocess(device_id=0, size=1, mem_size=highest + 1, mem_ptr=1, pmem_id=1)
    # Everything was freed, so the next allocation alone sets the new peak.
    assert peak.peak(0, 0) == highest + 1


def test_streams_are_current_inside_the_context_only(fake_cupy):
    """Inside, the stream and its device are current; outside, both are what they were, after exceptions too."""
    outer = cuda.Stream(1, priority=-1)
    inner = cuda.Stream("cuda:0")
    assert (outer.device, inner.device) == (device("cuda:1"), device("cuda:0"))
    assert outer.priority == -1
    assert outer.raw.non_blocking
    with cuda.stream(outer):
        assert cuda.current_device() == 1
        assert cuda.current_stream() == outer
        with pytest.raises(KeyError), cuda.stream(inner):
            assert cuda.current_device() == 0
            assert cuda.current_stream() == inner
            assert cuda.current_stream(1) == outer
            cuda.set_device(1)
            raise KeyError
        assert cuda.current_device() == 1
        assert cuda.current_stream() == outer
        assert cuda.current_stream(0) == cuda.default_stream(0)
    assert cuda.current_device() == 0
    for index in (0, 1):
        assert cuda.current_stream(index) == cuda.default_stream(index)


def test_streams_are_values(fake_cupy):
    """Two objects for one CUDA stream are equal; the default streams of two devices are not, though both are 0."""
    made = cuda.Stream()
    again = cuda.Stream.of(made.raw, 0)
    assert made == again
    assert hash(made) == hash(again)
    assert made != cuda.Stream()
    assert made != "stream"
    assert cuda.default_stream(0) != cuda.default_stream(1)
    assert made.__cuda_stream__() == (0, made.cuda_stream)
    assert repr(made) == f"lucid.cuda.Stream(device=cuda:0, cuda_stream={made.cuda_stream:#x})"


def test_streams_wait_without_the_host(fake_cupy):
    """wait_stream is a mark in one stream and a wait in the other; only synchronize makes the host wait."""
    producer, consumer = cuda.Stream(), cuda.Stream(1)
    consumer.wait_stream(producer)
    assert fake_cupy.log == [("record", producer.raw.name), ("wait", consumer.raw.name)]
    fake_cupy.log.clear()
    mark = producer.record_event()
    assert producer.record_event(mark) is mark
    with cuda.stream(consumer):
        mark.wait()
    producer.synchronize()
    assert fake_cupy.log == [
        ("record", producer.raw.name),
        ("record", producer.raw.name),
        ("wait", consumer.raw.name),
        ("synchronize", producer.raw.name),
    ]
    assert producer.query()


def test_events_belong_to_the_device_of_their_first_stream(fake_cupy):
    """An event is made when it is first recorded, there; later recordings must be on that device."""
    event = cuda.Event(blocking=True)
    assert event.query()
    event.synchronize()
    event.wait()
    assert event.raw is None
    event.record(cuda.Stream(1))
    assert event.device == device("cuda:1")
    assert event.raw.options == (True, True, False)
    assert not event.query()
    event.synchronize()
    assert event.query()
    with pytest.raises(DeviceError, match="recorded on cuda:1 before, so not on cuda:0"):
        event.record(cuda.Stream(0))
    assert fake_cupy.current == 0


def test_times_need_two_timed_reached_events(fake_cupy):
    """elapsed_time says which event is at fault, and why."""
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with pytest.raises(RuntimeError, match="this event was never recorded"):
        start.elapsed_time(end)
    start.record()
    start.synchronize()
    with pytest.raises(RuntimeError, match="end_event takes no times"):
        start.elapsed_time(cuda.Event())
    end.record()
    with pytest.raises(RuntimeError, match="end_event is not reached yet"):
        start.elapsed_time(end)
    end.synchronize()
    assert start.elapsed_time(end) == 2.5
    elsewhere = cuda.Event(enable_timing=True)
    elsewhere.record(cuda.Stream(1))
    elsewhere.raw.done = True
    with pytest.raises(DeviceError, match="cuda:0, end_event of cuda:1"):
        start.elapsed_time(elsewhere)
    with pytest.raises(ValueError, match="leave out enable_timing or interprocess"):
        cuda.Event(enable_timing=True, interprocess=True)


def test_public_names_exist():
    """Everything in ``lucid.cuda.__all__`` is there and documented."""
    for name in cuda.__all__:
        assert getattr(cuda, name).__doc__
