"""Page-locked memory of simulated devices: copies that the host has not waited for are not done yet."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from tests.cuda.simulator.host.memory.test_order import race
from tests.cuda.simulator.host.test_capture import captured, zeros

pytestmark = pytest.mark.skipif(not gpu.is_simulated(), reason="about simulated devices: needs LUCID_CUDA_SIMULATOR")
SIZE = 300


@pytest.fixture
def pinned(cupy):
    """Return a function that makes a page-locked array of ones."""

    def make(size=SIZE):
        memory = cupy.cuda.alloc_pinned_memory(4 * size)
        array = np.frombuffer(memory, "f", size)
        array[:] = 1
        return array

    return make


@pytest.fixture(params=["null", "non-blocking"])
def stream(cupy, request):
    """Return a stream, with and without others beside the default one."""
    gc.collect()
    return cupy.cuda.Stream.null if request.param == "null" else cupy.cuda.Stream(non_blocking=True)


def changed(act, *words):
    """Fail unless a call tells that the host has changed memory too early."""
    with pytest.raises(RuntimeError, match="the host has changed") as caught:
        act()
    assert all(word in str(caught.value) for word in (*words, "test_host_memory.py:")), caught.value


@pytest.mark.parametrize("how", ["stream", "event", "device", "query", "event query", "synchronous copy"])
def test_what_is_copied_to_the_host_is_there_after_a_wait(cupy, stream, pinned, how):
    """Until then there is garbage, NaN; any wait of the host that covers the copy brings the data."""
    x, host, other = cupy.arange(SIZE, dtype="f"), pinned(), np.empty(1, "f")
    cupy.cuda.Device().synchronize()
    x.data.copy_to_host_async(host.ctypes.data, x.nbytes, stream)
    event = stream.record()
    assert np.isnan(host).all()
    if how == "stream":
        stream.synchronize()
    elif how == "event":
        event.synchronize()
    elif how == "device":
        cupy.cuda.Device().synchronize()
    elif how == "query":  # which may find it unfinished, and here does once
        assert not stream.done
        assert np.isnan(host).all()
        assert stream.done
    elif how == "event query":
        assert not event.done
        assert event.done
    else:
        x[:1].get(stream=stream, out=other)
    assert host.tolist() == list(range(SIZE))


def test_waits_that_do_not_cover_it(cupy, pinned):
    """An earlier event, and another stream, bring nothing."""
    x, host = cupy.ones(SIZE, "f"), pinned()
    first, second = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    cupy.cuda.Device().synchronize()
    early = first.record()
    x.data.copy_to_host_async(host.ctypes.data, x.nbytes, first)
    early.synchronize()
    second.synchronize()
    assert early.done
    assert second.done
    assert np.isnan(host).all()
    second.wait_event(first.record())
    second.synchronize()
    assert host.tolist() == [1.0] * SIZE


def test_a_source_that_changes_too_early(cupy, stream, pinned):
    """On a GPU the copy may read the old values or the new ones: the wait tells, with the line of the copy."""
    x, host = zeros(cupy), pinned()
    x.data.copy_from_host_async(host.ctypes.data, x.nbytes, stream)
    host[:2] = 7  # a float of 1 has two bytes in common with it
    changed(stream.synchronize, "4 bytes", "reads them: a copy on")
    stream.synchronize()
    x.data.copy_from_host_async(host.ctypes.data, x.nbytes, stream)
    stream.synchronize()
    host[:] = 0
    cupy.cuda.Device().synchronize()
    assert x[:3].get().tolist() == [7.0, 7.0, 1.0]


def test_a_target_that_changes_too_early(cupy, stream, pinned):
    """The host writes to where a copy is still to arrive."""
    x, host = zeros(cupy), pinned()
    x.data.copy_to_host_async(host.ctypes.data, x.nbytes, stream)
    host[5] = 7
    changed(stream.synchronize, "4 bytes", "writes them: a copy on")
    assert not host.any()


def test_a_query_leaves_the_error_to_the_next_call(cupy, stream, pinned):
    """CuPy makes "not done" of every answer of a query but success."""
    x, host = zeros(cupy), pinned()
    x.data.copy_from_host_async(host.ctypes.data, x.nbytes, stream)
    host[0] = 7
    assert not stream.done
    assert stream.done
    changed(lambda: x.fill(0), "reads them")


def test_memory_that_cupys_pool_gives_out_again(cupy, stream, pinned):
    """The array goes, its memory is another's while the copy still reads it: what that one writes is told."""
    x, host = zeros(cupy), pinned()
    address = host.ctypes.data
    x.data.copy_from_host_async(address, x.nbytes, stream)
    del host
    other = pinned()
    assert other.ctypes.data == address
    other[:] = 3
    changed(stream.synchronize, "reads them")


def test_memory_that_goes_back_to_the_system(cupy, stream):
    """CudaFreeHost waits for the copies; what comes after has nothing to do with them."""
    runtime, x = cupy.cuda.runtime, zeros(cupy)
    for _ in range(2):
        address = runtime.hostAlloc(x.nbytes, 0)
        x.data.copy_from_host_async(address, x.nbytes, stream)
        x.data.copy_to_host_async(address, x.nbytes, stream)
        runtime.freeHost(address)
    stream.synchronize()


def test_copies_that_follow_each_other(cupy, increase, stream, pinned):
    """To the host and back, in the order of a stream: each sees what the one before brought, the host the end."""
    x, y, host = cupy.full(SIZE, 2, "f"), cupy.zeros(SIZE, "f"), pinned()
    cupy.cuda.Device().synchronize()
    y.data.copy_from_host_async(host.ctypes.data, y.nbytes, stream)
    x.data.copy_to_host_async(host.ctypes.data, x.nbytes, stream)
    x.data.copy_from_host_async(host.ctypes.data, x.nbytes, stream)
    increase(stream, x)
    x[:100].data.copy_to_host_async(host.ctypes.data, 400, stream)
    assert np.isnan(host).all()
    stream.synchronize()
    assert host.tolist() == [3.0] * 100 + [2.0] * 200
    assert (x.get(stream=stream) == 3).all()
    assert (y.get(stream=stream) == 1).all()


def test_copies_that_overlap(cupy, stream, pinned):
    """Where two copies overlap the later one is there in the end, whatever is queued behind them."""
    x, y, host = cupy.arange(SIZE, dtype="f"), zeros(cupy), pinned()
    x[:200].data.copy_to_host_async(host.ctypes.data, 800, stream)
    early = stream.record()
    x[150:].data.copy_to_host_async(host[100:].ctypes.data, 600, stream)
    for _ in range(2):
        y.data.memset_async(0, y.nbytes, stream)
    early.synchronize()
    assert host[:100].tolist() == list(range(100))
    assert np.isnan(host[100:250]).all()
    stream.synchronize()
    assert host.tolist() == [*range(100), *range(150, 300), *[1.0] * 50]


def test_two_streams_at_one_place_of_the_host(cupy, pinned):
    """Page-locked memory is part of the order: two copies to one place that nothing orders are a race."""
    x, host = zeros(cupy), pinned()
    first, second = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    x.data.copy_to_host_async(host.ctypes.data, x.nbytes, first)
    race(lambda: x.data.copy_from_host_async(host.ctypes.data, 40, second), "race on 40 bytes", "a copy on")
    first.synchronize()


def test_calls_of_the_host_see_what_came_before_them(cupy, stream, pinned):
    """A function that the stream calls after a copy reads its data; the host beside it does not yet."""
    x, host, seen = cupy.full(SIZE, 5, "f"), pinned(), []
    cupy.cuda.Device().synchronize()
    x.data.copy_to_host_async(host.ctypes.data, x.nbytes, stream)
    stream.launch_host_func(lambda _: seen.append(host[0]), None)
    stream.add_callback(lambda *_: seen.append(host[1]), None)
    assert seen == [5.0, 5.0]
    assert np.isnan(host).all()
    stream.synchronize()
    assert host[0] == 5


def test_kernels_see_what_came_before_them(cupy, stream, pinned):
    """A kernel may read page-locked memory itself."""
    x, y, host = cupy.full(4, 5, "f"), cupy.zeros(4, "f"), pinned(4)
    kernel = cupy.RawKernel(
        'extern "C" __global__ void read(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x]; }', "read"
    )
    cupy.cuda.Device().synchronize()
    x.data.copy_to_host_async(host.ctypes.data, x.nbytes, stream)
    with stream:
        kernel((1,), (4,), (y, host.ctypes.data))
    assert np.isnan(host).all()
    stream.synchronize()
    assert y.get(stream=stream).tolist() == [5.0] * 4


def test_copies_of_a_graph(cupy, pinned):
    """A launch reads page-locked memory as it is then, and what it writes there is awaited like any copy."""
    stream = cupy.cuda.Stream(non_blocking=True)
    x, source, target = zeros(cupy), pinned(), pinned()
    runtime = cupy.cuda.runtime

    def act():
        runtime.memcpyAsync(x.data.ptr, source.ctypes.data, x.nbytes, runtime.memcpyHostToDevice, stream.ptr)
        runtime.memcpyAsync(target.ctypes.data, x.data.ptr, x.nbytes, runtime.memcpyDeviceToHost, stream.ptr)

    graph = captured(stream, act)
    source[:] = 9
    assert target[0] == 1
    graph.launch(stream)
    assert np.isnan(target).all()
    stream.synchronize()
    assert (target == 9).all()
    graph.launch(stream)
    source[0] = 0
    changed(stream.synchronize)


def test_ends_of_page_locked_memory(cupy, stream, pinned):
    """A copy beyond the end of it is refused, on the host's side as on the device's."""
    memory = cupy.cuda.runtime.hostAlloc(40, 0)
    x = zeros(cupy)
    with pytest.raises(RuntimeError, match=r"cudaErrorInvalidValue.*just behind|over the end of memory of the host"):
        x.data.copy_to_host_async(memory, x.nbytes, stream)
    cupy.cuda.runtime.freeHost(memory)


def test_pageable_memory(cupy, stream):
    """It is read before the call returns, and written before the call returns."""
    x, host = zeros(cupy), np.full(SIZE, 4, "f")
    x.data.copy_from_host_async(host.ctypes.data, x.nbytes, stream)
    host[:] = 0
    x.data.copy_to_host_async(host.ctypes.data, x.nbytes, stream)
    assert (host == 4).all()
    if stream.ptr:
        stream.begin_capture()
        runtime = cupy.cuda.runtime
        with pytest.raises(RuntimeError, match=r"CaptureUnsupported.*host memory that is not page-locked"):
            runtime.memcpyAsync(x.data.ptr, host.ctypes.data, 4, runtime.memcpyHostToDevice, stream.ptr)
        with pytest.raises(RuntimeError, match="CaptureInvalidated"):
            stream.end_capture()


def test_copies_that_return_when_they_are_done(cupy, pinned):
    """After a synchronous copy the host may change what it read, and sees what it wrote."""
    x, host = zeros(cupy), pinned()
    x.data.copy_from_host(host.ctypes.data, x.nbytes)
    host[:] = 7
    cupy.cuda.Device().synchronize()
    runtime = cupy.cuda.runtime
    runtime.memcpy(host.ctypes.data, x.data.ptr, x.nbytes, runtime.memcpyDeviceToHost)
    assert host.tolist() == [1.0] * SIZE


def test_a_pinned_copy_is_there(cupy):
    """What lucid copies to page-locked memory without being told otherwise is there at once."""
    assert (gpu.pinned_copy(cupy.ones(SIZE, "f")) == 1).all()


def test_tensors():
    """A batch in pinned memory that is changed while its copy is under way is told; after a wait it may change."""
    host = lucid.zeros(SIZE).pin_memory()
    x = host.to("cuda")
    host.fill_(1.0)
    lucid.cuda.synchronize()
    assert not x.any().item()
    x = host.to("cuda", non_blocking=True)
    lucid.cuda.current_stream().synchronize()
    host.fill_(2.0)
    assert (x.cpu() == 1).all()
    x = host.to("cuda", non_blocking=True)
    host.fill_(3.0)
    changed(lucid.cuda.synchronize, "reads them")
