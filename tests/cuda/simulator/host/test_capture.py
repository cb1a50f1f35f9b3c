"""Stream capture on simulated devices: what is recorded, what a graph does when it is launched, what CUDA refuses."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.cuda.simulator import counters
from lucid.cuda.simulator.wheels import installed
from tests.cuda.simulator.host.memory.test_order import SIZE, race, streams
from tests.pieces import in_threads

pytestmark = pytest.mark.skipif(not gpu.is_simulated(), reason="about simulated devices: needs LUCID_CUDA_SIMULATOR")
GLOBAL, THREAD_LOCAL, RELAXED = range(3)


@pytest.fixture
def stream(cupy):
    """Return a stream that does not wait for the default one, and captures nothing."""
    return cupy.cuda.Stream(non_blocking=True)


def zeros(cupy, size=SIZE):
    """Return zeros that every stream may use."""
    made = cupy.zeros(size, "f")
    cupy.cuda.Device().synchronize()
    return made


def captured(stream, act, mode=RELAXED):
    """Return the graph of what a function queues on a stream."""
    with stream:
        stream.begin_capture(mode)
        act()
        return stream.end_capture()


def launched(graph, stream, times=1):
    """Launch a graph on a stream, so many times, and wait for it."""
    for _ in range(times):
        graph.launch(stream)
    stream.synchronize()


def refused(act, name, *words):
    """Fail unless CUDA refuses a call by the error of this name."""
    with pytest.raises(Exception, match=name) as caught:
        act()
    assert all(word in str(caught.value) for word in words), caught.value


def test_work_is_recorded_and_a_launch_runs_it(cupy, increase, stream):
    """Kernels, copies and fills of a capture are done by each launch, with what memory holds then."""
    x, y = zeros(cupy), zeros(cupy)

    def act():
        increase(stream, x)
        y.data.copy_from_device_async(x.data, x.nbytes, stream)
        x[:10].data.memset_async(0, 40, stream)

    graph = captured(stream, act)
    stream.synchronize()
    assert not x.any()
    x[:] = 5
    cupy.cuda.Device().synchronize()
    launched(graph, stream, 2)
    assert x.tolist() == [0.0] * 10 + [7.0] * (SIZE - 10)
    assert y.tolist() == [1.0] * 10 + [7.0] * (SIZE - 10)


def test_parameters_are_those_of_the_capture(cupy, stream):
    """A scalar is part of the graph; its variable may change afterwards."""
    x = zeros(cupy, 3)
    scale = np.array(3, "f")
    kernel = cupy.ElementwiseKernel("float32 a", "float32 x", "x += a", "add_parameter")
    graph = captured(stream, lambda: kernel(scale[()], x))
    scale[()] = 100
    launched(graph, stream)
    assert x.tolist() == [3.0] * 3


def test_calls_of_the_host_are_made_by_the_launch(cupy, stream):
    """A function that is queued in a capture is called once for each launch, in its place."""
    seen = []
    x = zeros(cupy, 1)
    graph = captured(stream, lambda: stream.launch_host_func(lambda _: seen.append(len(seen)), None))
    assert seen == []
    for _ in range(3):
        graph.launch(stream)
    assert seen == [0, 1, 2]
    assert not x.any()


def test_branches(cupy, increase, stream):
    """A stream that waits for an event of a capture joins it; work of both is in the graph, in its order."""
    x, other = zeros(cupy), cupy.cuda.Stream(non_blocking=True)

    def act():
        increase(stream, x)
        other.wait_event(stream.record())
        assert other.is_capturing()
        increase(other, x)
        stream.wait_event(other.record())
        increase(stream, x)

    graph = captured(stream, act)
    assert not other.is_capturing()
    launched(graph, stream)
    assert x.tolist() == [3.0] * SIZE
    assert "increase" in graph.debug_dot_str()


def test_a_stream_that_waits_for_two_branches(cupy, increase, stream):
    """Both are joined: to wait for the second forgets nothing of the first."""
    x, y, others = zeros(cupy), zeros(cupy), streams(cupy)

    def act():
        start = stream.record()
        for other, array in zip(others, (x, y), strict=True):
            other.wait_event(start)
            increase(other, array)
        for event in [other.record() for other in others]:
            stream.wait_event(event)
        increase(stream, x)

    graph = captured(stream, act)
    launched(graph, stream)
    assert (x.tolist(), y.tolist()) == ([2.0] * SIZE, [1.0] * SIZE)


def test_an_event_that_is_recorded_again(cupy, increase, stream):
    """After the capture it is one like any other, and means what it was recorded behind last."""
    x, event, other = zeros(cupy), cupy.cuda.Event(), cupy.cuda.Stream(non_blocking=True)
    graph = captured(stream, lambda: [increase(stream, x), event.record(stream)])
    refused(event.synchronize, "cudaErrorCapturedEvent")
    graph.launch(stream)
    event.record(stream)
    other.wait_event(event)
    increase(other, x)
    event.synchronize()
    assert event.done
    other.synchronize()
    assert x.tolist() == [2.0] * SIZE


def test_a_branch_on_another_device(cupy, increase, stream, two_devices):
    """Its work is that device's, and a wait for the device covers it."""
    with cupy.cuda.Device(1) as device:
        y, (other, third) = zeros(cupy), streams(cupy)

    def act():
        start = stream.record()
        with device:
            other.wait_event(start)
            increase(other, y)
            end = other.record()
        stream.wait_event(end)

    graph = captured(stream, act)
    graph.launch(stream)
    with device:
        device.synchronize()
        increase(third, y)
        third.synchronize()
        assert y.get(stream=third).tolist() == [2.0] * SIZE
    stream.synchronize()


def test_a_race_between_branches_is_found_at_the_launch(cupy, increase, stream):
    """Two branches that write one place without order are a race, with the lines of the capture and of the launch."""
    x, other = zeros(cupy), cupy.cuda.Stream(non_blocking=True)

    def act():
        other.wait_event(stream.record())
        increase(stream, x)
        increase(other, x)
        stream.wait_event(other.record())

    graph = captured(stream, act)
    race(lambda: graph.launch(stream), "increase on stream", "in a graph launched (test_capture.py:")


def test_launches_have_their_place_in_the_order(cupy, increase, stream):
    """A graph is work of the stream that it is launched on: another stream has to wait for it."""
    x, other = zeros(cupy), cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    graph = captured(stream, lambda: increase(stream, x))
    graph.launch(other)
    race(lambda: increase(stream, x), "in a graph launched")
    stream.wait_event(other.record())
    increase(stream, x)
    # launches of one graph wait for each other, wherever they are
    graph.launch(stream)
    graph.launch(other)
    cupy.cuda.Device().synchronize()


def test_a_graph_in_a_graph(cupy, increase, stream):
    """A launch on a stream that captures is recorded like other work."""
    x = zeros(cupy)
    inner = [captured(stream, lambda: increase(stream, x))]
    outer = captured(stream, lambda: [inner[0].launch(stream), inner[0].launch(stream)])
    inner.clear()
    gc.collect()
    outer.launch(stream)
    stream.synchronize()
    assert x.tolist() == [2.0] * SIZE


def test_counts(cupy, increase, stream):
    """Recorded work is counted when it runs."""
    x = zeros(cupy)
    counters.reset()
    graph = captured(stream, lambda: [increase(stream, x), x.data.memset_async(0, 4, stream)])
    assert (counters.launches, counters.copies) == (0, 0)
    for _ in range(3):
        graph.launch(stream)
    assert (counters.launches, counters.copies, counters.kernels["increase"]) == (3, 3, 3)


def test_a_fault_of_a_kernel_is_one_of_the_launch(cupy, stream):
    """It names the kernel, the place in its source and the line of Python that was captured."""
    x = zeros(cupy, 4)
    kernel = cupy.RawKernel('extern "C" __global__ void beyond(float* x) { x[threadIdx.x] = 1; }', "beyond")
    graph = captured(stream, lambda: kernel((1,), (8,), (x,)))
    refused(lambda: graph.launch(stream), "cudaErrorIllegalAddress", "beyond: ", "out-of-range write",
            "captured (test_capture.py:")  # fmt: skip


def test_a_launch_that_fails_leaves_nothing_behind(cupy, increase, stream):
    """Later work is told with its own lines, and memory that the graph has used is nobody's again."""
    runtime, x, other, used = cupy.cuda.runtime, zeros(cupy), cupy.cuda.Stream(non_blocking=True), []
    kernel = cupy.RawKernel('extern "C" __global__ void beyond(float* x) { x[threadIdx.x] = 1; }', "beyond")

    def act():
        temporary = cupy.empty(SIZE, "f")
        used.append(temporary.data.ptr)
        increase(stream, temporary)
        kernel((1,), (SIZE + 1,), (x,))

    graph = captured(stream, act)
    refused(lambda: graph.launch(stream), "cudaErrorIllegalAddress", "beyond: ", "out-of-range write")
    refused(lambda: runtime.memset(used[0], 0, 4), "cudaErrorInvalidValue", "out-of-range write")
    cupy.cuda.Device().synchronize()
    increase(stream, x)
    with pytest.raises(RuntimeError, match="race on") as caught:
        increase(other, x)
    assert "captured" not in str(caught.value)
    assert "in a graph launched" not in str(caught.value)


# ---- memory ----


def test_what_a_capture_uses_in_between_is_there_at_each_launch(cupy, stream):
    """Temporaries were given back long ago; a launch uses their memory while nobody else has it, from garbage on."""
    x = cupy.arange(SIZE, dtype="f")
    out = cupy.zeros(SIZE, "f")
    cupy.cuda.Device().synchronize()

    def act():
        out[...] = (x + 1) * 2 - 2

    graph = captured(stream, act)
    launched(graph, stream, 2)
    assert out.tolist() == (2 * x).tolist()


def test_a_result_in_the_memory_of_a_temporary(cupy, stream):
    """What the capture put where a larger temporary had been makes room for it, and is there after the launch."""
    large, x = cupy.ones(32, "f"), cupy.ones(8, "f")
    cupy.cuda.Device().synchronize()
    results = []

    def act():
        results.clear()
        moved = large * 2
        total = moved.sum()
        del moved
        results.extend((x * 3, total))

    with stream:
        act()
        results.clear()
        stream.synchronize()
        stream.begin_capture(RELAXED)
        act()
        graph = stream.end_capture()
    for _ in range(2):
        for result in results:
            result.data.memset_async(0, result.nbytes, stream)
        graph.launch(stream)
    stream.synchronize()
    assert (results[0] == 3).all()
    assert results[1] == 64


def test_memory_that_somebody_else_has_by_now(cupy, stream):
    """On a GPU the launch would write into the array of another: CuPy gave the memory of a temporary out again."""
    x, out = cupy.ones(SIZE, "f"), cupy.zeros(SIZE, "f")
    cupy.cuda.Device().synchronize()

    def act():
        out[...] = (x + 1) * 2

    graph = captured(stream, act)
    with stream:
        taken = [cupy.empty(SIZE, "f") for _ in range(4)]
    refused(lambda: graph.launch(stream), "cudaErrorIllegalAddress", "given back and out again after the graph")
    del taken
    launched(graph, stream)
    assert out.tolist() == [4.0] * SIZE


@pytest.mark.parametrize("made", ["before", "meanwhile"])
def test_memory_that_was_given_back_by_the_time_of_the_launch(cupy, increase, stream, made):
    """What a graph was captured with has to be held for as long as it is launched."""
    arrays = [cupy.zeros(SIZE, "f")] if made == "before" else []
    cupy.cuda.Device().synchronize()

    def act():
        if made == "meanwhile":
            arrays.append(cupy.zeros(SIZE, "f"))
        increase(stream, arrays[0])

    graph = captured(stream, act)
    launched(graph, stream)
    arrays.clear()
    refused(lambda: graph.launch(stream), "cudaErrorIllegalAddress", "out-of-range")


# ---- what is refused ----


@pytest.mark.parametrize("what", ["stream", "device", "query", "event", "callback", "prefetch"])
def test_what_no_capture_bears(cupy, increase, stream, what):
    """It is refused in every mode and makes the capture invalid, which its end says, with the call to blame."""
    x, event = zeros(cupy), cupy.cuda.Event()
    stream.begin_capture(RELAXED)
    increase(stream, x)
    event.record(stream)
    runtime = cupy.cuda.runtime
    acts = {
        "stream": stream.synchronize,
        "device": cupy.cuda.Device().synchronize,
        "query": lambda: stream.done,
        "event": event.synchronize,
        "callback": lambda: runtime.streamAddCallback(stream.ptr, lambda *_: None, 0),
        "prefetch": lambda: runtime.memPrefetchAsync(x.data.ptr, x.nbytes, 0, stream.ptr),
    }
    if what == "query":  # CuPy makes nothing of the error
        assert not stream.done
    else:
        refused(acts[what], "cudaErrorCapturedEvent" if what == "event" else "cudaErrorStreamCaptureUnsupported")
    refused(lambda: increase(stream, x), "STREAM_CAPTURE_INVALIDATED")
    with pytest.raises(RuntimeError, match="invalidated"):
        stream.is_capturing()
    refused(stream.end_capture, "cudaErrorStreamCaptureInvalidated", "due to a previous error during capture: cuda",
            "test_capture.py:")  # fmt: skip
    assert not stream.is_capturing()
    increase(stream, x)
    stream.synchronize()


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
@pytest.mark.parametrize("thread", ["own", "other"])
@pytest.mark.parametrize("call", ["malloc", "free", "hostAlloc", "memcpy", "eventQuery"])
def test_what_may_wait_for_the_device(cupy, stream, mode, thread, call):
    """CudaMalloc and its like are refused in a global capture everywhere, in a thread's own one there, else not."""
    runtime, event = cupy.cuda.runtime, cupy.cuda.Event()
    x, source = cupy.zeros(1, "f"), np.ones(1, "f")
    address = runtime.malloc(512)
    cupy.cuda.Device().synchronize()
    told = []

    def act():
        if call == "malloc":
            runtime.free(runtime.malloc(512))
        elif call == "free":
            runtime.free(address)
        elif call == "hostAlloc":
            runtime.freeHost(runtime.hostAlloc(512, 0))
        elif call == "memcpy":
            runtime.memcpy(x.data.ptr, source.ctypes.data, 4, runtime.memcpyHostToDevice)
        elif code := runtime.eventQuery(event.ptr):
            raise runtime.CUDARuntimeError(code)

    def run():
        try:
            act()
        except runtime.CUDARuntimeError as error:
            told.append(str(error))

    stream.begin_capture(mode)
    if thread == "own":
        run()
    else:
        in_threads(run)
    if mode == GLOBAL or (mode == THREAD_LOCAL and thread == "own"):
        assert ["cudaErrorStreamCaptureUnsupported" in words for words in told] == [True], told
        refused(stream.end_capture, "cudaErrorStreamCaptureInvalidated")
    else:
        assert told == []
        stream.end_capture()
    if told or call != "free":
        runtime.free(address)


def test_memory_that_the_pool_has_needs_no_cudamalloc(cupy, stream):
    """A block that lies free in CuPy's pool may be given out in a global capture; a new chunk may not."""
    with stream:
        warm = cupy.empty(SIZE, "f")
        del warm
    out = captured(stream, lambda: cupy.empty(SIZE, "f"), GLOBAL)
    assert out is not None
    cupy.get_default_memory_pool().free_all_blocks()
    stream.begin_capture(GLOBAL)
    with stream:
        refused(lambda: cupy.empty(1 << 20, "f"), "cudaErrorStreamCaptureUnsupported", "cudaMalloc")
    refused(stream.end_capture, "cudaErrorStreamCaptureInvalidated", "cudaMalloc")


def test_the_null_stream_beside_a_blocking_one(cupy, increase, stream):
    """Work on it would wait for the capture: refused in every mode; beside a non-blocking stream it goes on."""
    x, y = zeros(cupy), zeros(cupy)
    null, blocking = cupy.cuda.Stream.null, cupy.cuda.Stream()
    graph = captured(stream, lambda: [increase(stream, x), increase(null, y)])
    assert y.tolist() == [1.0] * SIZE
    graph.launch(null)
    blocking.begin_capture()
    refused(null.is_capturing, "cudaErrorStreamCaptureImplicit")
    assert blocking.is_capturing()
    refused(lambda: increase(null, y), "STREAM_CAPTURE_IMPLICIT")
    refused(blocking.end_capture, "cudaErrorStreamCaptureInvalidated")
    assert y.tolist() == [1.0] * SIZE


def test_the_null_stream_of_another_device(cupy, increase, two_devices):
    """Beside a blocking stream that captures it goes on: it waits for streams of its own device alone."""
    blocking = cupy.cuda.Stream()
    with cupy.cuda.Device(1) as device:
        x = zeros(cupy)
        blocking.begin_capture()
        increase(cupy.cuda.Stream.null, x)
        assert not cupy.cuda.Stream.null.is_capturing()
        device.synchronize()
        assert x.tolist() == [1.0] * SIZE
    assert blocking.is_capturing()
    blocking.end_capture()


def test_a_stream_that_ends_while_it_captures(cupy, increase, stream):
    """The capture ends with the stream on which it began, for all its branches."""
    runtime, x = cupy.cuda.runtime, zeros(cupy)
    origin = cupy.cuda.Stream(non_blocking=True)
    origin.begin_capture(GLOBAL)
    stream.wait_event(origin.record())
    increase(stream, x)
    del origin
    gc.collect()
    assert not stream.is_capturing()
    runtime.free(runtime.malloc(512))
    increase(stream, x)
    stream.synchronize()
    assert x.tolist() == [1.0] * SIZE


def test_begin_and_end(cupy, stream):
    """Capture begins on streams that do not capture, and ends on the one where it began, by whoever may."""
    runtime = cupy.cuda.runtime
    refused(lambda: runtime.streamBeginCapture(0, GLOBAL), "cudaErrorStreamCaptureUnsupported")
    refused(lambda: stream.begin_capture(3), "cudaErrorInvalidValue")
    refused(stream.end_capture, "cudaErrorIllegalState")
    stream.begin_capture()
    refused(stream.begin_capture, "cudaErrorIllegalState")
    stream.end_capture()
    for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
        stream.begin_capture(mode)
        told = []

        def end(told=told):
            try:
                stream.end_capture()
            except runtime.CUDARuntimeError as error:
                told.append(str(error))

        in_threads(end)
        if mode != RELAXED:
            assert "cudaErrorStreamCaptureWrongThread" in told[0]
            stream.end_capture()
        assert not stream.is_capturing()


@pytest.mark.parametrize("how", ["unjoined", "unmatched", "isolation", "merge", "late event", "elapsed"])
def test_branches_that_do_not_fit(cupy, increase, stream, how):
    """Branches end where they began; nothing crosses the border of a capture."""
    x, other, outside = zeros(cupy), *streams(cupy)
    event = outside.record()
    stream.begin_capture()
    inside = stream.record()
    if how in {"unjoined", "unmatched", "late event"}:
        other.wait_event(inside)
        increase(other, x)
    if how == "unjoined":
        refused(stream.end_capture, "cudaErrorStreamCaptureUnjoined")
    elif how == "unmatched":
        refused(other.end_capture, "cudaErrorStreamCaptureUnmatched")
        refused(stream.end_capture, "cudaErrorStreamCaptureInvalidated")
    elif how == "isolation":
        refused(lambda: stream.wait_event(event), "cudaErrorStreamCaptureIsolation")
        refused(stream.end_capture, "cudaErrorStreamCaptureInvalidated")
    elif how == "merge":
        other.begin_capture()
        refused(lambda: other.wait_event(inside), "cudaErrorStreamCaptureMerge")
        for each in (stream, other):
            refused(each.end_capture, "cudaErrorStreamCaptureInvalidated")
    elif how == "late event":
        stream.wait_event(other.record())
        stream.end_capture()
        refused(lambda: other.wait_event(inside), "cudaErrorCapturedEvent")
    else:
        refused(lambda: cupy.cuda.get_elapsed_time(event, inside), "cudaErrorCapturedEvent")
        stream.end_capture()
    assert not other.is_capturing()
    increase(other, x)
    other.synchronize()


def test_graphs_that_are_no_longer_there(cupy, increase, stream):
    """The use of a graph after its end is an error."""
    runtime, x = cupy.cuda.runtime, zeros(cupy)
    stream.begin_capture()
    increase(stream, x)
    graph = runtime.streamEndCapture(stream.ptr)
    executable = runtime.graphInstantiate(graph)
    runtime.graphDestroy(graph)
    runtime.graphLaunch(executable, stream.ptr)
    runtime.graphExecDestroy(executable)
    for act in (
        lambda: runtime.graphDestroy(graph), lambda: runtime.graphInstantiate(graph),
        lambda: runtime.graphLaunch(executable, stream.ptr), lambda: runtime.graphUpload(executable, stream.ptr),
        lambda: runtime.graphExecDestroy(executable),
    ):  # fmt: skip
        refused(act, "cudaErrorInvalidValue")
    stream.synchronize()
    assert x.tolist() == [1.0] * SIZE


def test_cublas_is_captured_and_what_waits_is_refused(cupy, stream):
    """A product is recorded like a kernel; a result in memory of the host would need a wait."""
    x, y, out = cupy.full(3, 2, "f"), cupy.full(3, 5, "f"), cupy.zeros(1, "f")
    cupy.cuda.Device().synchronize()
    cublas, handle = ctypes.CDLL(installed()[1].soname("cublas")), ctypes.c_void_p()
    assert cublas.cublasCreate_v2(ctypes.byref(handle)) == 0
    cublas.cublasSetStream_v2(handle, ctypes.c_void_p(stream.ptr))
    on_device = 1
    cublas.cublasSetPointerMode_v2(handle, on_device)
    at = [ctypes.c_void_p(array.data.ptr) for array in (x, y, out)]

    def dot(result):
        return cublas.cublasSdot_v2(handle, 3, at[0], 1, at[1], 1, result)

    def act():
        assert dot(at[2]) == 0

    graph = captured(stream, act)
    x[:] = 4
    cupy.cuda.Device().synchronize()
    counters.reset()
    launched(graph, stream)
    assert counters.library == 1
    assert out.item() == 60
    cublas.cublasSetPointerMode_v2(handle, 0)
    stream.begin_capture()
    assert dot(ctypes.byref(ctypes.c_float())) != 0
    refused(stream.end_capture, "cudaErrorStreamCaptureInvalidated", "cudaStreamSynchronize")
    cublas.cublasDestroy_v2(handle)


def test_the_workspace_of_a_handle(cupy, stream):
    """A product writes to it, so that two streams need two; to set the stream goes back to cuBLAS's own."""
    ones, out = cupy.ones((3, 3), "f"), [cupy.zeros((3, 3), "f") for _ in range(2)]
    memory, other = cupy.zeros(1024, "u1"), cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    cublas, handle = ctypes.CDLL(installed()[1].soname("cublas")), ctypes.c_void_p()
    assert cublas.cublasCreate_v2(ctypes.byref(handle)) == 0
    one, zero = ctypes.c_float(1), ctypes.c_float(0)

    def set_workspace(address):
        return cublas.cublasSetWorkspace_v2(handle, ctypes.c_void_p(address), ctypes.c_size_t(memory.nbytes))

    def product(to):
        a, c = ctypes.c_void_p(ones.data.ptr), ctypes.c_void_p(to.data.ptr)
        return cublas.cublasSgemm_v2(handle, 0, 0, 3, 3, 3, ctypes.byref(one), a, 3, a, 3, ctypes.byref(zero), c, 3)

    assert set_workspace(memory.data.ptr + 8) == 7
    cublas.cublasSetStream_v2(handle, ctypes.c_void_p(stream.ptr))
    assert product(out[0]) == 0
    stream.synchronize()
    assert not memory.any()
    assert set_workspace(memory.data.ptr) == 0
    assert product(out[0]) == 0
    stream.synchronize()
    assert (memory[:256] == 255).all()
    assert not memory[256:].any()
    cupy.cuda.Device().synchronize()
    assert product(out[0]) == 0
    cublas.cublasSetStream_v2(handle, ctypes.c_void_p(other.ptr))
    assert product(out[1]) == 0
    cublas.cublasSetStream_v2(handle, ctypes.c_void_p(stream.ptr))
    assert set_workspace(memory.data.ptr) == 0
    assert product(out[0]) == 0
    cublas.cublasSetStream_v2(handle, ctypes.c_void_p(other.ptr))
    assert set_workspace(memory.data.ptr) == 0
    assert product(out[1]) != 0
    cupy.cuda.Device().synchronize()
    assert all((array == 3).all() for array in out)
    cublas.cublasDestroy_v2(handle)


def test_captures_that_share_a_pool(cupy, stream):
    """What a later capture keeps may lie where an earlier one had temporaries: they are launched in turn."""
    pool, x, kept = cupy.cuda.MemoryPool(), cupy.ones(SIZE, "f"), []
    out = cupy.zeros(SIZE, "f")
    cupy.cuda.Device().synchronize()

    def first():
        out[...] = (x + 1) * 2

    def second():
        kept.append(out + 1)

    with cupy.cuda.using_allocator(pool.malloc):
        graphs = [captured(stream, act) for act in (first, second)]
    for _ in range(2):
        for graph in graphs:
            graph.launch(stream)
        stream.synchronize()
        assert kept[0].tolist() == [5.0] * SIZE


def test_what_another_thread_lets_go_of(cupy, stream):
    """Memory of a capture is given back in it, whichever thread held it last."""
    x, out, held = cupy.ones(SIZE, "f"), cupy.zeros(SIZE, "f"), []
    cupy.cuda.Device().synchronize()

    def act():
        held.append(x + 1)
        out[...] = held[0] * 2
        in_threads(held.clear)

    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        graph = captured(stream, act)
    launched(graph, stream, 2)
    assert out.tolist() == [4.0] * SIZE


# ---- lucid ----


def test_a_step_of_lucid_is_captured(cupy):
    """Forward, backward and update of a model whose gradients stay in place: a launch is a step of training."""
    net = lucid.nn.LayerNorm(8).to("cuda")
    x = lucid.randn(4, 8, device="cuda", generator=lucid.Generator("cuda").manual_seed(0))
    target = lucid.ones(4, 8, device="cuda")
    side = lucid.cuda.Stream()
    lucid.cuda.synchronize()

    def step():
        for p in net.parameters():
            if p.grad is not None:
                p.grad.zero_()
        loss = ((net(x) - target) ** 2).mean()
        loss.backward()
        with lucid.no_grad():
            for p in net.parameters():
                p.sub_(p.grad * 0.1)

    start = [p.detach().cpu().clone() for p in net.parameters()]
    with lucid.cuda.stream(side):
        for _ in range(5):
            step()
        side.synchronize()
        wanted = [p.detach().cpu() for p in net.parameters()]
        step()
        with lucid.no_grad():
            for p, before in zip(net.parameters(), start, strict=True):
                p.copy_(before)
        side.synchronize()
        side.raw.begin_capture(THREAD_LOCAL)
        step()
        graph = side.raw.end_capture()
        for _ in range(5):
            graph.launch(side.raw)
        side.synchronize()
        for p, want in zip(net.parameters(), wanted, strict=True):
            assert p.detach().cpu().tolist() == want.tolist()
