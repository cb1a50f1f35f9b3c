"""The real CuPy on simulated devices: what it asks of CUDA is done, and what a kernel may not touch is refused."""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.metadata
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.cuda.simulator import counters
from lucid.cuda.simulator.wheels import WHEELS
from lucid.errors import KernelError
from tests.cuda.simulator.launching import launcher, refused

pytestmark = pytest.mark.usefixtures("simulated")


@pytest.fixture
def cupy():
    """Give CuPy."""
    return gpu.cupy()


@pytest.fixture
def run():
    """Return a kernel that stores its number at a place of an array."""
    return launcher('extern "C" __global__ void f(int* x, long long i) { x[i] = 1; }', "Pq")


# ---- memory ----


def test_it_is_the_wheel(cupy):
    """CuPy is what is installed, with the devices that were asked for."""
    assert Path(cupy.__file__).parts[-2:] == ("cupy", "__init__.py")
    (wheel,) = importlib.metadata.packages_distributions()["cupy"]
    assert wheel in WHEELS
    assert importlib.metadata.version(wheel) == cupy.__version__
    assert cupy.cuda.runtime.getDeviceProperties(0)["name"] == b"lucid simulator 0"


def test_arrays_end_at_their_last_byte(cupy, run):
    """Arrays that CuPy cuts from one piece of memory end where they end, not where CuPy's 512 bytes do."""
    with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc):
        whole = cupy.empty(4096, np.uint8).data.ptr
        arrays = [cupy.zeros(size, np.int32) for size in (1, 100, 127, 129)]
    assert [x.data.ptr - whole for x in arrays] == [0, 512, 1024, 1536]
    check_bounds(run, arrays)


def test_arrays_without_a_pool_are_apart(cupy, run):
    """Without CuPy's pool there is something between any two arrays, which it may put side by side."""
    with cupy.cuda.using_allocator(None):
        check_bounds(run, [cupy.zeros(128, np.int32) for _ in range(3)])


def check_bounds(run, arrays):
    for x in arrays:
        run(1, 1, x.data.ptr, x.size - 1)
        refused(
            lambda x=x: run(1, 1, x.data.ptr, x.size), "write of 4 bytes", f"just behind an allocation of {x.nbytes}"
        )
        refused(lambda x=x: run(1, 1, x.data.ptr, -1), "write of 4 bytes", "an allocation of")
        assert x[-1] == 1


def test_freed_arrays_are_refused(cupy, run):
    """The address of an array that is gone is refused, though CuPy keeps its memory, until an array has it again."""
    x = cupy.zeros(1000, np.int32)
    address = x.data.ptr
    del x
    errors = KernelError, cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError
    for act in (
        lambda: run(1, 1, address, 0),
        lambda: cupy.ndarray(4, memptr=view(cupy, address, 32)).fill(1.0),
        lambda: cupy.cuda.runtime.memset(address, 0, 8),
    ):
        with pytest.raises(errors, match="out-of-range write"):
            act()
    again = cupy.empty(1000, np.int32)
    assert again.data.ptr == address
    run(1, 1, address, 0)


def view(cupy, address, size):
    """Return memory that CuPy takes for its own."""
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(address, size, None, 0), 0)


def test_memory_begins_as_nan(cupy):
    """Memory that nothing was stored to makes NaN of every floating-point number, fresh or used before."""
    for dtype in ("float16", "float32", "float64", lucid.bfloat16.numpy):
        for _ in range(2):
            x = cupy.empty(100, dtype)
            assert np.isnan(x.get().astype(np.float64)).all()
            x.fill(1)
            del x


def test_copies_stay_inside(cupy):
    """A copy or a fill that leaves an array is refused, in either direction, and moves nothing."""
    runtime, host = cupy.cuda.runtime, np.ones(100, np.uint8)
    x, y = cupy.zeros(99, np.uint8), cupy.zeros(100, np.uint8)
    for act, words in (
        (lambda: runtime.memcpy(x.data.ptr, host.ctypes.data, 100, 1), "out-of-range write of 100 bytes"),
        (lambda: runtime.memcpy(host.ctypes.data, x.data.ptr, 100, 2), "out-of-range read of 100 bytes"),
        (lambda: runtime.memcpy(y.data.ptr, x.data.ptr, 100, 3), "out-of-range read of 100 bytes"),
        (lambda: runtime.memset(x.data.ptr, 1, 100), "out-of-range write of 100 bytes"),
    ):
        with pytest.raises(runtime.CUDARuntimeError, match=f"{words}.*over the end of an allocation of 99 bytes"):
            act()
    # the host's memory is none of the device's, in whatever direction the call says
    with pytest.raises(runtime.CUDARuntimeError, match="invalid argument"):
        runtime.memcpy(x.data.ptr, y.data.ptr, 8, 2)
    assert not x.any()
    assert not y.any()
    assert host.all()


def test_the_pool_keeps_what_is_freed(cupy):
    """CuPy's limit holds, and memory is kept until `free_all_blocks`, which gives it back to the device."""
    pool = cupy.cuda.MemoryPool()  # of its own: in the default one others may have left room
    gc.collect()
    free, total = cupy.cuda.runtime.memGetInfo()
    with cupy.cuda.using_allocator(pool.malloc):
        x = cupy.empty((1 << 20) - 1, np.uint8)
    assert pool.total_bytes() == 1 << 20
    del x
    assert cupy.cuda.runtime.memGetInfo() == (free - (1 << 20), total)
    pool.free_all_blocks()
    assert cupy.cuda.runtime.memGetInfo() == (free, total)
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
        cupy.empty(total + 1, np.uint8)


# ---- kernels of CuPy's user ----


def test_kernels_that_cupy_makes(cupy, rng):
    """Elementwise, reducing, fused and raw kernels, sorts and products of CuPy's give NumPy's values."""
    a, b = rng.standard_normal((2, 37, 41))
    x, y = cupy.asarray(a), cupy.asarray(b)
    hypotenuse = cupy.ElementwiseKernel("T x, T y", "T z", "z = sqrt(x * x + y * y)", "hypotenuse")
    squares = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "squares")
    fused = cupy.fuse(kernel_name="fused")(lambda x, y: cupy.exp(x) * y + 1)
    raw = cupy.RawKernel(
        'extern "C" __global__ void twice(const double* x, double* y, int n) {'
        " const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }",
        "twice",
    )
    doubled = cupy.empty_like(x)
    raw((12,), (128,), (x, doubled, np.int32(x.size)))
    module = cupy.RawModule(
        code="template <int N, class T> __global__ void plus(T* x) { x[threadIdx.x] += N; }",
        name_expressions=("plus<3, double>",),
    )
    third = x.copy()
    module.get_function("plus<3, double>")((1,), (41,), (third,))
    expected = a.copy()
    expected[0] += 3
    for got, wanted in (
        (hypotenuse(x, y), np.hypot(a, b)), (squares(x, axis=1), (a * a).sum(1)), (fused(x, y), np.exp(a) * b + 1),
        (doubled, 2 * a), (third, expected), (x @ y.T, a @ b.T), (cupy.sort(x, axis=0), np.sort(a, 0)),
        (cupy.argsort(x, axis=1), np.argsort(a, 1)), (x[y > 0], a[b > 0]), (x.T.sum(0), a.T.sum(0)),
        (cupy.lexsort(x[:2]), np.lexsort(a[:2])), (cupy.cumsum(x, 1), np.cumsum(a, 1)), (x.argmax(0), a.argmax(0)),
        (cupy.asarray([3, 1], np.int8).astype(np.float16), np.array([3, 1], np.float16)),
    ):  # fmt: skip
        np.testing.assert_allclose(got.get(), wanted, rtol=1e-12, atol=1e-12)


def test_faults_of_cupys_kernels(cupy):
    """A fault in a kernel of CuPy's user is told with kernel, thread, place and line; the next kernel runs."""
    source = 'extern "C" __global__ void f(int* x) {\n  __syncthreads();\n  x[threadIdx.x] = 1;\n}'
    kernel, x = cupy.RawKernel(source, "f"), cupy.zeros(5, np.int32)
    with pytest.raises(
        cupy.cuda.driver.CUDADriverError, match=r"f: block .*thread \(5, 0, 0\): out-of-range write.*:3"
    ):
        kernel((1,), (6,), (x,))
    kernel((1,), (5,), (x,))
    assert x.get().tolist() == [1] * 5
    with pytest.raises(cupy.cuda.compiler.CompileException, match="missing"):
        cupy.RawKernel('extern "C" __global__ void g(int* x) { x[0] = missing; }', "g").compile()


def test_what_is_not_simulated_is_named(cupy):
    """Libraries that are missing are told by their names, and functions of CUDA that are missing by an error."""
    with pytest.raises(ImportError, match="no cuTENSOR"):
        importlib.import_module("cupyx.cutensor")
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="no such function"):
        cupy.cuda.runtime.mallocArray(0, 4, 4)


# ---- streams, events, devices, threads ----


def test_streams_and_events(cupy):
    """Work on a stream is in order with its events; destroyed handles, and times between two devices, are refused."""
    runtime = cupy.cuda.runtime
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x = cupy.arange(10) * 2
        begin, end = (stream.record(cupy.cuda.Event()) for _ in range(2))
        end.synchronize()
    assert x.sum() == 90
    assert stream.done
    assert cupy.cuda.get_elapsed_time(begin, end) >= 0
    unrecorded = cupy.cuda.Event()
    with pytest.raises(runtime.CUDARuntimeError, match="invalid resource handle"):
        cupy.cuda.get_elapsed_time(begin, unrecorded)
    with cupy.cuda.Device(1):
        elsewhere = cupy.cuda.Stream.null.record()
    elsewhere.synchronize()
    with pytest.raises(runtime.CUDARuntimeError, match="invalid resource handle"):
        cupy.cuda.get_elapsed_time(begin, elsewhere)
    gone = runtime.streamCreate()
    runtime.streamDestroy(gone)
    event = runtime.eventCreate()
    runtime.eventDestroy(event)
    for act in (
        lambda: runtime.streamSynchronize(gone), lambda: runtime.streamDestroy(gone),
        lambda: runtime.eventRecord(event, 0), lambda: runtime.eventSynchronize(event),
        lambda: runtime.streamWaitEvent(0, event, 0), lambda: runtime.memcpyAsync(x.data.ptr, x.data.ptr, 8, 3, gone),
    ):  # fmt: skip
        with pytest.raises(runtime.CUDARuntimeError, match="invalid resource handle"):
            act()
    stranger = types.SimpleNamespace(__cuda_stream__=lambda: (0, gone))
    with (
        cupy.cuda.Stream.from_external(stranger),
        pytest.raises(cupy.cuda.driver.CUDADriverError, match="invalid resource"),
    ):
        x + 1
    assert (x + 1).sum() == 100


two_devices = pytest.mark.skipif(
    not gpu.is_simulated() or lucid.cuda.device_count() < 2, reason="needs two devices: LUCID_CUDA_SIMULATOR=2"
)


@two_devices
def test_two_devices(cupy, run, request):
    """Each device has its own arrays, streams and events; memory of another is reached after peer access only."""
    x = cupy.zeros(4, np.int32)
    with cupy.cuda.Device(1):
        y = cupy.ones(4, np.int32)
        stream, event = cupy.cuda.Stream(), cupy.cuda.Event()
        run(1, 1, y.data.ptr, 0)
    assert (x.device.id, y.device.id) == (0, 1)
    assert cupy.cuda.runtime.pointerGetAttributes(y.data.ptr).device == 1
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="invalid resource handle"):
        event.record()
    with pytest.raises(RuntimeError, match="does not match with the current device"):
        stream.use()
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="invalid device ordinal"):
        cupy.cuda.Device(64).use()
    # CuPy has switched it on if an earlier test used arrays of both
    with contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError):
        cupy.cuda.runtime.deviceDisablePeerAccess(1)
        request.addfinalizer(lambda: cupy.cuda.runtime.deviceEnablePeerAccess(1))
    refused(lambda: run(1, 1, y.data.ptr, 0), "in memory of device 1, to which there is no peer access")
    cupy.cuda.runtime.deviceEnablePeerAccess(1)
    try:
        # no stream orders the work of two devices
        cupy.cuda.Device(1).synchronize()
        run(1, 1, y.data.ptr, 1)
        x[:] = y
        cupy.cuda.Device(0).synchronize()
        with cupy.cuda.Device(1):
            assert y.get().tolist() == [1, 1, 1, 1]
        with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="already enabled"):
            cupy.cuda.runtime.deviceEnablePeerAccess(1)
    finally:
        cupy.cuda.runtime.deviceDisablePeerAccess(1)
    assert x.get().tolist() == [1, 1, 1, 1]


def test_threads(cupy, run):
    """Arrays of every thread are told apart to the byte, and each thread has its own current device."""

    def work(k):
        with cupy.cuda.Device(k % lucid.cuda.device_count()):
            for _ in range(20):
                x = cupy.full(50 + k, k, np.int32)
                assert (x + 1).sum() == (k + 1) * (50 + k)
                refused(lambda x=x: run(1, 1, x.data.ptr, x.size), f"behind an allocation of {x.nbytes} bytes")

    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(work, range(8)))) == 8


# ---- counts ----


def test_what_waits_is_counted(cupy):
    """Reading a value, or a size that depends on values, waits for the device; work does not."""
    x = cupy.asarray([3.0, 1.0, 2.0])
    for act in (
        x.get, x[0].item, lambda: float(x[0]), x.tolist, lambda: x[x > 1], lambda: cupy.nonzero(x),
        cupy.cuda.Stream().synchronize, cupy.cuda.Device().synchronize,
    ):  # fmt: skip
        counters.reset()
        act()
        assert counters.synchronisations >= 1
    counters.reset()
    cupy.where(x > 1, x, 0).sum()
    x.sort()
    assert (counters.synchronisations, counters.to_host) == (0, 0)


def test_work_is_counted(cupy):
    """Kernels, calls of libraries, copies, allocations and bytes are counted."""
    host = np.arange(8.0)
    counters.reset()
    x = cupy.asarray(host)
    assert (counters.to_device, counters.allocations, counters.copies, counters.launches) == (64, 1, 1, 0)
    y = x + x
    y += 1
    assert (counters.launches, counters.allocations) == (2, 2)
    assert counters.kernels == {"cupy_add__float64_float64_float64": 1, "cupy_add__float64_float_float64": 1}
    assert (counters.bytes_loaded, counters.bytes_stored) == (3 * 64, 3 * 64)
    y[:2].get()
    assert counters.to_host == 16
    counters.reset()
    x.sort()
    x.reshape(2, 4) @ y.reshape(4, 2)
    assert counters.library == 2


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_shared_variables_with_a_constructor(name, cupy):
    """CuPy's half type has one: the byte that says whether it has run is read, and is no memory out of range."""
    values = np.array([0.5, 2.0, 1.5, -1.0, 3.0] * 3, np.float16)
    made = getattr(cupy, name)(cupy.asarray(values)).get()
    np.testing.assert_allclose(made, getattr(np, name)(values), rtol=1e-2)
