"""lucid.cuda: devices, memory and streams, without a GPU and with a stand-in for CuPy."""

from __future__ import annotations

import gc

import pytest

import lucid
from lucid import cuda
from lucid.base import gpu
from lucid.base.device import device
from lucid.cuda.memory import PeakMemory
from lucid.errors import CudaUnavailableError, DeviceError
from tests.pieces import in_threads


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

    in_threads(*[work] * 4)
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


# ---- what a program asks of a device before it chooses its settings ----


@pytest.mark.parametrize("missing", ["no_cupy", "no_device"])
def test_without_a_device_properties_are_refused(missing, request):
    """Questions whose answer is no are answered, seeds are looked at, everything else says that there is none."""
    request.getfixturevalue(missing)
    assert not cuda.is_bf16_supported()
    assert not cuda.is_initialized()
    assert cuda.ipc_collect() is None
    cuda.manual_seed(1)
    cuda.manual_seed_all(1)
    assert cuda.get_rng_state_all() == []
    for seed in (cuda.manual_seed, cuda.manual_seed_all):
        with pytest.raises(ValueError, match="seed"):
            seed(2**64)
    for order in (
        cuda.get_device_properties,
        cuda.get_device_capability,
        cuda.mem_get_info,
        cuda.memory_summary,
        cuda.init,
        cuda.get_rng_state,
        cuda.initial_seed,
    ):
        with pytest.raises(CudaUnavailableError, match="CUDA device"):
            order()


@pytest.mark.gpu
def test_properties():
    """Each is what the driver says of that device."""
    raw = gpu.cupy().cuda.runtime.getDeviceProperties(0)
    found = cuda.get_device_properties("cuda:0")
    assert found == cuda.get_device_properties(0)
    assert found.name == cuda.get_device_name(0)
    assert (found.major, found.minor) == cuda.get_device_capability() == (raw["major"], raw["minor"])
    assert found.total_memory == raw["totalGlobalMem"]
    assert found.multi_processor_count == raw["multiProcessorCount"]
    assert (found.warp_size, found.L2_cache_size) == (32, raw["l2CacheSize"])
    assert found.shared_memory_per_block == raw["sharedMemPerBlock"]
    assert found.shared_memory_per_block_optin == raw["sharedMemPerBlockOptin"]
    assert found.max_threads_per_multi_processor == raw["maxThreadsPerMultiProcessor"]
    for order in (cuda.get_device_properties, cuda.get_device_capability, cuda.mem_get_info, cuda.get_rng_state):
        with pytest.raises(DeviceError):
            order("cpu")


@pytest.mark.gpu
def test_bfloat16(monkeypatch):
    """Kernels compute with it anywhere; the hardware from capability 8.0 on."""
    for capability, expected in (((7, 5), False), ((8, 0), True), ((9, 0), True)):
        monkeypatch.setattr("lucid.cuda.properties.get_device_capability", lambda c=capability: c)
        assert cuda.is_bf16_supported()
        assert cuda.is_bf16_supported(including_emulation=False) is expected


@pytest.mark.gpu
def test_memory():
    """Free is not more than all; the table holds what the functions say."""
    x = lucid.ones(2**18, device="cuda")
    free, total = cuda.mem_get_info()
    assert 0 < free <= total
    lines = cuda.memory_summary().splitlines()
    assert lines[0] == f"memory of cuda:{cuda.current_device()}"
    assert f"{cuda.memory_allocated() / 2**20:,.1f} MiB" in lines[1]
    assert len(lines) == 6
    assert len(cuda.memory_summary(abbreviated=True).splitlines()) == 4
    del x
    cuda.init()
    assert cuda.is_initialized()


@pytest.mark.gpu
def test_generators():
    """A seed restarts the current device's, or all; a state goes on where it was taken."""

    def drawn():
        return [lucid.rand(3, device=f"cuda:{index}").tolist() for index in range(cuda.device_count())]

    cuda.manual_seed_all(5)
    first = drawn()
    assert all(row == first[0] for row in first)
    state, states = cuda.get_rng_state(), cuda.get_rng_state_all()
    assert (state.dtype, state.device.type, state.shape) == (lucid.uint8, "cpu", (24,))
    second = drawn()
    cuda.set_rng_state_all(states)
    assert drawn() == second != first
    lucid.rand(1, device="cuda:0")
    places = [each.tolist() for each in cuda.get_rng_state_all()]
    cuda.set_rng_state_all(cuda.get_rng_state_all())
    assert [each.tolist() for each in cuda.get_rng_state_all()] == places
    cuda.set_rng_state(state, 0)
    assert lucid.rand(3, device="cuda:0").tolist() == second[0]
    assert cuda.initial_seed() == 5
    with cuda.device(cuda.device_count() - 1):
        cuda.manual_seed(6)
        assert cuda.initial_seed() == 6
    cuda.manual_seed_all(5)
    assert drawn() == first
    cuda.seed_all()
    assert drawn() != first
    before = cuda.initial_seed()
    cuda.seed()
    assert cuda.initial_seed() != before


@pytest.mark.gpu
def test_the_cpus_generator_is_left_alone():
    """Seeds of devices are not the CPU's."""
    before = lucid.get_rng_state().tolist()
    cuda.manual_seed_all(9)
    cuda.seed_all()
    assert lucid.get_rng_state().tolist() == before
