"""Simulated streams: work that touches one place and that no stream, event or wait orders is reported as a race."""

from __future__ import annotations

import re

import pytest

import lucid
from lucid.base import gpu

pytestmark = pytest.mark.skipif(not gpu.is_simulated(), reason="about simulated devices: needs LUCID_CUDA_SIMULATOR")
SIZE = 300


def streams(cupy, count=2):
    return [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]


def race(act, *words):
    """Fail unless a call is stopped for a race whose report has these words."""
    with pytest.raises((RuntimeError, lucid.errors.KernelError), match="race on") as caught:
        act()
    assert all(word in str(caught.value) for word in (*words, "no event or wait orders the two")), caught.value


def test_two_kernels_on_two_streams(cupy, increase):
    """Both kernels are named, with the lines of Python that queued them, and how many bytes they share."""
    x, (first, second) = cupy.zeros(SIZE, "f"), streams(cupy)
    cupy.cuda.Device().synchronize()
    increase(first, x[:100])
    race(lambda: increase(second, x[90:]), "race on 40 bytes", "increase on stream", "test_order.py:")


@pytest.mark.parametrize("how", ["event", "stream", "device", "event and host", "query", "blocking", "one stream"])
def test_what_orders(cupy, increase, how):
    """Events, waits of the host, the default stream and a stream itself order work; then nothing is reported."""
    first, second = streams(cupy)
    if how == "blocking":
        first, second = cupy.cuda.Stream(), cupy.cuda.Stream.null
    elif how == "one stream":
        second = first
    x = cupy.zeros(SIZE, "f")
    cupy.cuda.Device().synchronize()
    increase(first, x)
    if how == "event":
        second.wait_event(first.record())
    elif how == "stream":
        first.synchronize()
    elif how == "device":
        cupy.cuda.Device().synchronize()
    elif how == "event and host":
        first.record().synchronize()
    elif how == "query":
        assert first.done
    increase(second, x)
    second.synchronize()
    assert x.get(stream=second).tolist() == [2.0] * SIZE


def test_a_peer_copy_that_waits_comes_after_both_devices(cupy, increase):
    """`cudaMemcpyPeer` comes after all that is queued on the devices that it copies between, whichever is current."""
    with cupy.cuda.Device(1):
        there, first = cupy.zeros(SIZE, "f"), cupy.cuda.Stream()
        cupy.cuda.Device().synchronize()
        increase(first, there)
    here = cupy.full(SIZE, 5, "f")
    cupy.cuda.Device(0).synchronize()
    cupy.cuda.runtime.memcpyPeer(there.data.ptr, 1, here.data.ptr, 0, here.nbytes)
    with cupy.cuda.Device(1):
        increase(cupy.cuda.Stream(), there)
        cupy.cuda.Device().synchronize()
        assert there.get().tolist() == [6.0] * SIZE


@pytest.mark.parametrize("how", ["too early", "another stream", "not waited for"])
def test_events_order_what_came_before_them_alone(cupy, increase, how):
    """An event that was recorded before the work, or on another stream, or that nobody waits for, orders nothing."""
    x, (first, second, third) = cupy.zeros(SIZE, "f"), streams(cupy, 3)
    cupy.cuda.Device().synchronize()
    event = first.record() if how == "too early" else None
    increase(first, x)
    if how == "another stream":
        event = third.record()
    if how == "not waited for":
        first.record()
    else:
        second.wait_event(event)
    race(lambda: increase(second, x))


def test_order_goes_on_from_stream_to_stream(cupy, increase):
    """What a stream waited for is ordered before what waits for the stream."""
    x, (first, second, third) = cupy.zeros(SIZE, "f"), streams(cupy, 3)
    cupy.cuda.Device().synchronize()
    increase(first, x)
    second.wait_event(first.record())
    third.wait_event(second.record())
    increase(third, x)
    third.synchronize()


def test_readers_do_not_disturb_each_other(cupy, increase):
    """Two streams may read one array; who writes it waits for both."""
    x, (first, second, third) = cupy.ones(SIZE, "f"), streams(cupy, 3)
    cupy.cuda.Device().synchronize()
    sums = []
    for stream in (first, second):
        with stream:
            sums.append(x + 1)
    third.wait_event(first.record())
    race(lambda: increase(third, x), "read by")


@pytest.mark.parametrize("what", ["copy to the host", "fill", "product", "sort"])
def test_other_work_than_kernels(cupy, increase, what, capfd):
    """Copies, fills, products and sorts have their place in the order, too."""
    (first, second) = streams(cupy)
    x = cupy.ones((20, 20), "f")
    cupy.cuda.Device().synchronize()
    increase(first, x)

    def act():
        with second:
            if what == "copy to the host":
                x.get()
            elif what == "fill":
                x.data.memset_async(0, x.nbytes)
            elif what == "product":
                cupy.matmul(x, x)
            else:
                x.sort()

    if what in {"product", "sort"}:
        with pytest.raises(Exception, match=r"EXECUTION_FAILED|race on|CUDA error"):
            act()
        # cuBLAS has no words for it
        assert re.search(r"simulated CUDA: [\w:]+: race on .*test_order\.py:\d+", capfd.readouterr().err)
    else:
        race(act)


def test_memory_that_goes_from_stream_to_stream(cupy, increase):
    """An array of one stream that another still uses must not be freed: its memory would be given out again."""
    first, second = streams(cupy)
    with first:
        x = cupy.zeros(SIZE, "f")
        address = x.data.ptr
    second.wait_event(first.record())
    increase(second, x)
    del x
    with first:
        y = cupy.empty(SIZE, "f")
        assert y.data.ptr == address
    race(lambda: increase(first, y))


def test_memory_that_goes_back_to_the_system(cupy):
    """The system waits for what used the memory when it takes it: who is given it next has no race with that."""
    runtime, (first, second) = cupy.cuda.runtime, streams(cupy)
    size, given = 1 << 28, []  # so large that the system gives the same addresses again
    address = runtime.malloc(size)
    runtime.memsetAsync(address, 0, 4096, first.ptr)
    runtime.free(address)
    while address not in given:
        assert len(given) < 100, "the system does not give the memory out again"
        given.append(runtime.malloc(size))
    runtime.memsetAsync(address, 0, 4096, second.ptr)
    for each in given:
        runtime.free(each)


def test_a_pass_of_lucid_is_in_order(cupy):
    """Forward on one stream, backward from another: a step that waits for nothing by itself has no race."""
    x = lucid.ones(SIZE, device="cuda", requires_grad=True)
    lucid.cuda.synchronize()
    stream = lucid.cuda.Stream()
    with lucid.cuda.stream(stream):
        y = (x * 3).tanh().sum()
    lucid.cuda.current_stream().wait_stream(stream)
    y.backward()
    x.grad.mul_(2.0)
    assert x.grad.shape == (SIZE,)
    # without the wait the sum would be read too early
    with lucid.cuda.stream(stream):
        z = x * 3
    race(lambda: z + 1)
    lucid.cuda.current_stream().wait_stream(stream)
    assert (z + 1)[0].item() == 4


def test_copies_between_devices_are_in_order():
    """A copy waits for what has written its source, and what writes that next for the copy, whatever the streams."""
    giver, taker = (lucid.cuda.Stream(f"cuda:{index}") for index in range(2))
    with lucid.cuda.stream(giver), lucid.cuda.stream(taker):
        x = lucid.ones(SIZE, device="cuda:0") + 1
        y = x.to("cuda:1")
        x.mul_(5.0)
        assert y.tolist() == [2.0] * SIZE


def test_record_stream_keeps_memory_from_a_race():
    """What another stream still reads is given out again only when that is done."""
    first, second = lucid.cuda.Stream(), lucid.cuda.Stream()
    with lucid.cuda.stream(first):
        kept = lucid.ones(1, device="cuda")
        x = lucid.ones(SIZE, device="cuda")
        second.wait_stream(first)
        with lucid.cuda.stream(second):
            x * 2
        x.record_stream(second)
        del x
        kept.record_stream(second)  # looks at what can be let go of
        assert lucid.zeros(SIZE, device="cuda").sum().item() == 0


def test_a_backward_that_leaves_the_stream_is_found(cupy):
    """Were the default stream current after a pass in another's block, the optimizer would race with the pass."""
    net = lucid.nn.Linear(4, 3).to("cuda")
    optimizer = lucid.optim.Adam(net.parameters(), lr=0.1)
    x = lucid.ones(2, 4, device="cuda")
    lucid.cuda.synchronize()
    with lucid.cuda.stream(lucid.cuda.Stream()):
        net(x).sum().backward()
        optimizer.step()
        net(x).sum().backward()
        with cupy.cuda.Stream.null:
            race(optimizer.step, "on the default stream of device 0")
