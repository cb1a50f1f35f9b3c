"""A stand-in for CuPy with two devices, so that the logic around CuPy is tested where there is no GPU.

It holds arrays in NumPy and keeps CuPy's rules that lucid relies on: devices and streams are current per device, a
stream is accepted only on its own device, hooks hear of every allocation. What it does is written into ``log``.
"""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from lucid.base import device as places
from lucid.base import gpu
from lucid.cuda import memory
from lucid.cuda.simulator import runtime
from tests.cuda.simulator.libraries.queued import Library, handle_of


class FakeCupy(types.ModuleType):
    """Module ``cupy`` of two devices."""

    def __init__(self, devices=2):
        super().__init__("cupy")
        self.log = []
        self.devices = devices
        self.current = 0
        self.hooks = []
        self.used = dict.fromkeys(range(devices), 0)
        self.cached = dict.fromkeys(range(devices), 0)
        fake = self

        class OutOfMemoryError(MemoryError):
            pass

        class Device:
            def __init__(self, index):
                self.index = index

            def __enter__(self):
                self.before, fake.current = fake.current, self.index
                return self

            def __exit__(self, *_):
                fake.current = self.before

        class Event:
            def __init__(self, block=False, disable_timing=False, interprocess=False):
                self.options = (block, disable_timing, interprocess)
                self.device = fake.current
                self.done = False

            def record(self, stream=None):
                assert self.device == fake.current
                self.done = False
                fake.log.append(("record", stream.name))

            def synchronize(self):
                self.done = True

        class Stream:
            made = 0

            def __init__(self, non_blocking=False, priority=None, name=None, device=None):
                Stream.made += 1
                self.device_id = fake.current if device is None else device
                self.name = name or f"s{Stream.made}@{self.device_id}"
                self.ptr = 0 if name else 4096 * Stream.made
                self.priority, self.non_blocking, self.done = priority, non_blocking, True

            def use(self):
                if self.device_id not in (-1, fake.current):
                    raise RuntimeError("stream of another device")
                fake.streams[fake.current] = self
                return self

            def __enter__(self):
                fake.entered[fake.current].append(self.use())

            def __exit__(self, *_):
                fake.entered[fake.current].pop()
                fake.streams[fake.current] = fake.entered[fake.current][-1]

            def record(self, event=None):
                event.record(self)
                return event

            def wait_event(self, event):
                fake.log.append(("wait", self.name))

            def synchronize(self):
                fake.log.append(("synchronize", self.name))

        class MemoryHook:
            name = "MemoryHook"

            def __enter__(self):
                fake.hooks.append(self)

            def malloc_postprocess(self, **kwargs):
                raise NotImplementedError

            free_postprocess = malloc_postprocess

        Stream.null = Stream(name="null", device=-1)
        self.streams = dict.fromkeys(range(devices), Stream.null)
        self.entered = {index: [Stream.null] for index in range(devices)}
        self.cuda = types.SimpleNamespace(
            Device=Device,
            Event=Event,
            Stream=Stream,
            MemoryHook=MemoryHook,
            get_current_stream=lambda index=-1: fake.streams[fake.current if index == -1 else index],
            get_elapsed_time=lambda start, end: 2.5,
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            runtime=types.SimpleNamespace(
                getDeviceCount=lambda: fake.devices,
                getDevice=lambda: fake.current,
                setDevice=lambda index: setattr(fake, "current", index),
                getDeviceProperties=lambda index: {"name": f"Fake {index}".encode()},
                deviceSynchronize=lambda: fake.log.append(("deviceSynchronize", fake.current)),
            ),
        )

        class ndarray:
            def __init__(self, values, index=None):
                self.values = values
                self.data = types.SimpleNamespace(device_id=fake.current if index is None else index)

            dtype = property(lambda self: self.values.dtype)
            ndim = property(lambda self: self.values.ndim)
            shape = property(lambda self: self.values.shape)
            nbytes = property(lambda self: self.values.nbytes)
            real = property(lambda self: ndarray(self.values.real, self.data.device_id))

            def astype(self, dtype):
                return ndarray(self.values.astype(dtype), self.data.device_id)

            def reshape(self, shape):
                return ndarray(self.values.reshape(shape), self.data.device_id)

            def copy(self):
                fake.log.append(("copy", self.data.device_id, fake.current))
                return ndarray(self.values.copy())

            def get(self, order="C", blocking=True):
                assert self.data.device_id == fake.current
                fake.log.append(("get", blocking))
                return self.values.copy()

            def __array__(self, *_):
                raise TypeError("Implicit conversion to a NumPy array is not allowed.")

        self.ndarray = ndarray

    def asarray(self, data, blocking=False):
        if isinstance(data, list):
            if not all(isinstance(item, self.ndarray) for item in data):
                raise TypeError("Unsupported type <class 'numpy.ndarray'>")
            return self.ndarray(np.stack([item.values for item in data]))
        if not isinstance(data, np.ndarray):
            return data.lender.array
        self.malloc(data.nbytes)
        self.log.append(("asarray", self.current, blocking))
        return self.ndarray(data.copy())

    def ascontiguousarray(self, array):
        return array

    def malloc(self, size, device=None):
        index = self.current if device is None else device
        if size > 10_000:
            for hook in self.hooks:
                hook.malloc_postprocess(device_id=index, size=size, mem_size=size, mem_ptr=0, pmem_id=0)
            raise self.cuda.memory.OutOfMemoryError(f"Out of memory allocating {size:,} bytes.")
        self.used[index] += size
        self.cached[index] = max(self.cached[index], self.used[index])
        for hook in self.hooks:
            hook.malloc_postprocess(device_id=index, size=size, mem_size=size, mem_ptr=1, pmem_id=1)

    def free(self, size, device=0):
        self.used[device] -= size
        for hook in self.hooks:
            hook.free_postprocess(device_id=device, mem_size=size, mem_ptr=1, pmem_id=1)

    def get_default_memory_pool(self):
        return types.SimpleNamespace(
            used_bytes=lambda: self.used[self.current],
            total_bytes=lambda: self.cached[self.current],
            free_all_blocks=lambda: self.cached.__setitem__(self.current, self.used[self.current]),
        )


def _install(monkeypatch, module):
    monkeypatch.setattr(gpu, "_module", None)
    monkeypatch.setattr(gpu, "_simulated", False)
    monkeypatch.setattr(places, "_cuda_devices", {})
    monkeypatch.setattr(places, "_default", places.CPU)
    monkeypatch.setattr(memory, "_watch", memory.PeakMemory())
    monkeypatch.setattr(memory, "_watched", set())
    monkeypatch.setattr(memory, "_watching", types.SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


@pytest.fixture
def fake_cupy(monkeypatch):
    """CuPy with two devices."""
    return _install(monkeypatch, FakeCupy())


@pytest.fixture
def no_device(monkeypatch):
    """CuPy without a device."""
    return _install(monkeypatch, FakeCupy(devices=0))


@pytest.fixture
def no_cupy(monkeypatch):
    """No CuPy at all: None in ``sys.modules`` makes the import fail."""
    return _install(monkeypatch, None)


@pytest.fixture
def simulated(monkeypatch):
    """Run kernels in the order of their threads, and without the sanitizer for undefined behaviour."""
    if not gpu.is_simulated():
        pytest.skip("about simulated devices: needs LUCID_CUDA_SIMULATOR")
    runtime.set_seed(0)
    monkeypatch.delenv("LUCID_SIMULATOR_SANITIZE", raising=False)
    yield
    runtime.set_seed(0)


@pytest.fixture
def device(simulated):
    """Return a function that copies an array to the device, and one that copies it back."""
    held = {}

    def put(values):
        array = gpu.cupy().asarray(np.ascontiguousarray(values))
        held[array.data.ptr] = array
        return array.data.ptr

    return put, lambda address: held[address].get()


@pytest.fixture(scope="session")
def cublas():
    """Return the simulated cuBLAS by itself."""
    return Library("calls.cpp", "cublas.cpp", "cublas_vectors.cpp", "cublas_solving.cpp")


@pytest.fixture
def handle(cublas):
    """Make a handle of it with pointers of the host, on a stream of its own."""
    yield from handle_of(cublas, "cublas", "_v2")


@pytest.fixture
def random():
    """Return a source of the same numbers each time."""
    return np.random.default_rng(7)


@pytest.fixture
def gpp_alone(monkeypatch):
    """Ask NVIDIA's compiler about no source: g++ takes more, some of it on purpose."""
    monkeypatch.setenv("LUCID_SIMULATOR_NVRTC", "0")
