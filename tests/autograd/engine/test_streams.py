"""Streams: a pass runs each node where its forward ran, and goes from stream to stream by an event alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lucid
from lucid import nn, optim
from lucid.autograd import Function
from lucid.base import gpu
from lucid.cuda.launch import kernels
from tests.device import two_devices
from tests.pieces import in_threads, module_of

pytestmark = pytest.mark.gpu


@pytest.fixture
def acts(monkeypatch):
    """Return what streams record and wait for, in order: the act, the stream's address and the event."""
    made = []
    kind = type(lucid.cuda.Stream().raw)
    record, wait_event = kind.record, kind.wait_event

    def recording(self, event=None):
        event = record(self, event)
        made.append(("record", self.ptr, event))
        return event

    def waiting(self, event):
        made.append(("wait", self.ptr, event))
        return wait_event(self, event)

    monkeypatch.setattr(kind, "record", recording)
    monkeypatch.setattr(kind, "wait_event", waiting)
    return made


class Tripled(Function):
    """Three times the input; notes on which stream its backward runs."""

    streams = ()

    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, grad):
        Tripled.streams += (lucid.cuda.current_stream(),)
        return grad * 3


@pytest.fixture(autouse=True)
def nothing_noted(monkeypatch):
    monkeypatch.setattr(Tripled, "streams", ())


def begun():
    """Return a stream and a leaf, behind all that was queued before."""
    made = lucid.cuda.Stream(), lucid.ones(4, device="cuda", requires_grad=True)
    lucid.cuda.synchronize()
    return made


def changed_in_place(x):
    y = x.clone()
    y[:2] *= 3
    return y


def ordered(acts):
    """Return the addresses of (the stream that waits, the stream for which it waits), in order."""
    recorded = {id(event): address for act, address, event in acts if act == "record"}
    return [(address, recorded[id(event)]) for act, address, event in acts if act == "wait"]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("op", [lambda x: x * 3, Tripled.apply, changed_in_place, lambda x: x.split(len(x) // 2)[1]])
def test_a_pass_goes_to_the_stream_of_the_forward_once(op, create_graph, acts):
    """The forward's stream waits for what was queued before the pass, and that of the pass for what is made of it."""
    stream, x = begun()
    with lucid.cuda.stream(stream):
        y = op(op(x))
    upstream, here, there = lucid.ones_like(y), gpu.current_stream().ptr, stream.cuda_stream
    acts.clear()
    lucid.autograd.grad(y, x, upstream, create_graph=create_graph)
    assert ordered(acts) == [(there, here), (here, there)]


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_step_on_one_stream_needs_no_event(create_graph, acts):
    """Where forward and backward run on the current stream, whichever it is, nothing waits, and it stays current."""
    stream, x = begun()
    for chosen in (None, stream):
        with lucid.cuda.stream(chosen):
            before = lucid.cuda.current_stream()
            (Tripled.apply(x) * 2).sum().backward(create_graph=create_graph)
            assert lucid.cuda.current_stream() == before
            assert Tripled.streams[-1] == before
        lucid.cuda.synchronize()
    assert acts == []


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_pass_on_another_stream_than_the_default_one(create_graph, acts):
    """A forward on the default stream is differentiated there, with no order between the two but that of the pass."""
    stream, x = begun()
    default = lucid.cuda.default_stream()
    y = Tripled.apply(x) * 2
    with lucid.cuda.stream(stream):
        upstream = lucid.ones_like(y)
        acts.clear()
        y.backward(upstream, create_graph=create_graph)
        assert lucid.cuda.current_stream() == stream
    assert Tripled.streams == (default,)
    here, there = stream.cuda_stream, default.cuda_stream
    assert ordered(acts) == [(there, here), (here, there)]
    assert x.grad.tolist() == [6.0] * 4


def test_a_hook_does_not_keep_a_node_from_its_stream():
    """A node with tensor hooks is differentiated on the stream of its forward, and they run there too."""
    stream, x = begun()
    default, seen = lucid.cuda.default_stream(), []
    y = Tripled.apply(x)
    y.register_hook(lambda grad: seen.append(lucid.cuda.current_stream()))
    with lucid.cuda.stream(stream):
        y.backward(lucid.ones_like(y))
        assert lucid.cuda.current_stream() == stream
    assert Tripled.streams == (default,)
    assert seen == [default]


@two_devices
@pytest.mark.parametrize("kind", ["leaf", "op"])
def test_a_hook_that_hangs_another_kind_beside_itself_on_another_device(kind):
    """What it hangs beside itself does not change the device on which the gradient is made, whichever is current."""
    x = lucid.tensor([1.0, 2.0], device="cuda:1", requires_grad=True)
    y, added = x if kind == "leaf" else x * 1, []
    if kind == "leaf":
        x.register_hook(lambda _: x.register_post_accumulate_grad_hook(lambda _: added.append("leaf")) and None)
    else:
        y.register_hook(lambda _: y.grad_fn.register_prehook(lambda _: added.append("op")) and None)
    with lucid.cuda.device(0):
        (y * y).sum().backward()
    assert added == [kind]
    assert str(x.grad.device) == "cuda:1"
    assert x.grad.tolist() == [2.0, 4.0]


def test_each_stream_that_took_part_waits_for_the_last(acts):
    """Memory that a pass has freed may be used again on the stream on which it was allocated."""
    second, (first, x) = lucid.cuda.Stream(), begun()
    with lucid.cuda.stream(first):
        y = x * 3
    second.wait_stream(first)
    with lucid.cuda.stream(second):
        z = y * 2
    acts.clear()
    upstream, default = lucid.ones_like(z), lucid.cuda.default_stream().cuda_stream
    z.backward(upstream)
    a, b = first.cuda_stream, second.cuda_stream
    waits = ordered(acts)
    assert waits[:2] == [(b, default), (a, b)]
    assert set(waits[2:]) == {(default, a), (b, a)}
    assert x.grad.tolist() == [6.0] * 4


def test_a_pass_that_comes_back_to_its_stream(acts):
    """Nothing waits for itself, also where a pass ends on a stream that it had left."""
    stream, x = begun()
    here = lucid.cuda.default_stream()
    y = x * 3
    stream.wait_stream(here)
    with lucid.cuda.stream(stream):
        z = y * 2
    here.wait_stream(stream)
    out = z * 5
    acts.clear()
    out.backward(lucid.ones_like(out))
    a, b = here.cuda_stream, stream.cuda_stream
    assert ordered(acts) == [(b, a), (a, b), (b, a)]
    assert x.grad.tolist() == [30.0] * 4


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_run_on_the_stream_of_their_node(create_graph):
    """As in PyTorch the stream of the forward is current in hooks of a node, and that of the pass after it."""
    outer, (stream, x) = lucid.cuda.Stream(), begun()
    with lucid.cuda.stream(stream):
        y = Tripled.apply(x)
    hooked = []

    def note(*_):
        hooked.append(lucid.cuda.current_stream())

    y.register_hook(note)
    y.grad_fn.register_prehook(note)
    y.grad_fn.register_hook(note)
    with lucid.cuda.stream(outer):
        (grad,) = lucid.autograd.grad(y, x, lucid.ones_like(y), create_graph=create_graph)
        assert lucid.cuda.current_stream() == outer
    assert hooked == [stream] * 3
    assert Tripled.streams == (stream,)
    outer.synchronize()
    assert grad.tolist() == [3.0] * 4


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_hooks_of_a_module_run_on_the_stream_of_its_call(several, create_graph, acts):
    """Both ends of a module are nodes of its forward: its backward hooks need no stream but that one."""
    stream, x = begun()
    module, hooked = module_of(lambda self, x, *others: (x * 3, *others) if others else x * 3), []

    def note(*_):
        hooked.append(lucid.cuda.current_stream())

    module.register_full_backward_hook(note)
    if several:
        module.register_full_backward_pre_hook(note)
    with lucid.cuda.stream(stream):
        y = module(x, x * 2)[0] if several else module(x)
        acts.clear()
        (grad,) = lucid.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert hooked == [stream] * (1 + several)
    assert acts == []
    stream.synchronize()
    assert grad.tolist() == [3.0] * 4


def test_callbacks_run_where_backward_was_called():
    """What is queued for the end of a pass comes after its streams were joined."""
    stream, x = begun()
    with lucid.cuda.stream(stream):
        y = x * 3
    seen = []
    engine = lucid.autograd.Variable._execution_engine
    y.register_hook(lambda _: engine.queue_callback(lambda: seen.append(lucid.cuda.current_stream())))
    stream.synchronize()
    y.sum().backward()
    assert seen == [lucid.cuda.default_stream()]


@pytest.mark.parametrize("act", ["nothing", "a block of CuPy", "use"])
def test_streams_chosen_through_cupy(act):
    """CuPy's own blocks and `use`, inside of lucid's block and of a backward, leave the stream that they found."""

    class Choosing(Tripled):
        @staticmethod
        def backward(ctx, grad):
            choose()
            return Tripled.backward(ctx, grad)

    other, (stream, x) = lucid.cuda.Stream(), begun()

    def choose():
        if act == "a block of CuPy":
            with other.raw:
                assert gpu.current_stream().ptr == other.cuda_stream

    outside = lucid.cuda.Stream()
    previous = gpu.current_stream()
    if act == "use":
        outside.raw.use()
    before = lucid.cuda.current_stream()
    try:
        with lucid.cuda.stream(stream):
            y = Choosing.apply(x)
            choose()
            assert lucid.cuda.current_stream() == stream
        assert lucid.cuda.current_stream() == before
        stream.synchronize()
        y.sum().backward()
        assert lucid.cuda.current_stream() == before
    finally:
        previous.use()
    assert Tripled.streams == (stream,)


def test_a_pass_that_fails_leaves_the_stream():
    """After an error inside of a backward the stream of the pass is current again."""

    class Failing(Tripled):
        @staticmethod
        def backward(ctx, grad):
            raise KeyError

    stream, outer = lucid.cuda.Stream(), lucid.cuda.Stream()
    with lucid.cuda.stream(stream):
        y = Failing.apply(lucid.ones(4, device="cuda", requires_grad=True))
    stream.synchronize()
    for chosen in (None, outer):
        with lucid.cuda.stream(chosen):
            before = lucid.cuda.current_stream()
            with pytest.raises(KeyError):
                y.sum().backward(retain_graph=True)
            assert lucid.cuda.current_stream() == before


def test_a_pass_on_another_thread():
    """A thread that runs a pass has its own current stream again after it; nodes run where their forward ran."""
    stream, x = begun()
    with lucid.cuda.stream(stream):
        y = Tripled.apply(x)
    seen = []

    def run():
        y.backward(lucid.ones_like(y))
        seen.append(lucid.cuda.current_stream())

    in_threads(run)
    assert Tripled.streams == (stream,)
    assert seen == [lucid.cuda.default_stream()]


@two_devices
def test_the_stream_is_that_of_the_device_of_the_output(acts):
    """With several devices an op runs on the current stream of its arrays' device, whichever device is current."""
    x = lucid.ones(4, device="cuda:1", requires_grad=True)
    with lucid.cuda.stream(lucid.cuda.Stream(0)):
        y = x * 3
        upstream = lucid.ones_like(y)
    acts.clear()
    y.backward(upstream)
    assert acts == []
    on_second = lucid.cuda.Stream(1)
    lucid.cuda.synchronize(1)
    with lucid.cuda.stream(on_second), lucid.cuda.device(0):
        y = Tripled.apply(x)
    y.backward(upstream)
    assert Tripled.streams == (on_second,)
    assert x.grad.tolist() == [6.0] * 4


PER_THREAD = """
import sys

sys.path[:0] = [{root!r}]
import lucid
from tests.autograd.engine.test_nesting import nested

waited = []
x = lucid.ones(4, device="cuda", requires_grad=True)
kind = type(lucid.cuda.Stream().raw)
acts = []
kind.record = kind.wait_event = lambda self, event=None: acts.append(self.ptr)
kind.synchronize = lambda self: waited.append(self.ptr)
assert lucid.cuda.current_stream() == lucid.cuda.default_stream()
y = (x * 3).sum()
assert y.grad_fn.extra is None
y.backward()
assert acts == []
assert x.grad.tolist() == [3.0] * 4
# a pass on another thread works on that thread's stream, so that each thread waits for its own
waited.clear()
lucid.set_default_device("cuda")
nested(100, lambda level: None)
assert len(waited) >= 2
assert set(waited) == {{2}}
print(lucid.cuda.default_stream().cuda_stream)
"""


def test_default_streams_of_threads_need_no_events():
    """With CUPY_CUDA_PER_THREAD_DEFAULT_STREAM=1 the stream of the thread is the default one, and nothing is noted."""
    root = str(Path(__file__).parents[3])
    ran = subprocess.run(
        [sys.executable, "-c", PER_THREAD.format(root=root)],
        env={**os.environ, "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "2"), ran.stderr


class Net(nn.Module):
    """A bit of everything that a training step launches: tables, norms, attention, dropout, products."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.norm = nn.LayerNorm(8)
        self.inside, self.out = nn.Linear(8, 24), nn.Linear(8, 11)

    def forward(self, tokens):
        x = nn.functional.dropout(self.table(tokens), 0.1)
        q, k, v = (part.view(2, 5, 2, 4).transpose(1, 2) for part in self.inside(self.norm(x)).split(8, -1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(nn.functional.gelu(x + mixed.transpose(1, 2).reshape(2, 5, 8)))


def test_a_whole_step_is_on_the_chosen_stream(acts, monkeypatch):
    """All kernels of forward, backward, clipping and optimizer are queued on the stream of the block, by no event."""
    net = Net().to("cuda")
    optimizer = optim.AdamW(net.parameters(), lr=1e-3)
    tokens = lucid.randint(0, 11, (2, 6), device="cuda")
    driver = kernels.driver()
    launch, seen = driver.launch, []

    def noted(*call):
        seen.append(gpu.current_stream().ptr)
        return launch(*call)

    monkeypatch.setattr(driver, "launch", noted)
    stream = lucid.cuda.Stream()
    lucid.cuda.synchronize()
    acts.clear()
    with lucid.cuda.stream(stream):
        for _ in range(2):
            optimizer.zero_grad()
            logits = net(tokens[:, :-1])
            nn.functional.cross_entropy(logits.reshape(10, 11), tokens[:, 1:].reshape(10)).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
    assert len(seen) > 50
    assert set(seen) == {stream.cuda_stream}
    assert acts == []
