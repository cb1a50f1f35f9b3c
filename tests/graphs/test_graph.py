"""CUDA graphs: a replay does what was recorded, with the values and random numbers of now, or says why it cannot."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid.base import gpu
from lucid.base.capture import captures
from lucid.cuda import memory
from lucid.cuda.launch import kernels
from lucid.errors import ArgumentError, CaptureError, DeviceError
from lucid.graphs.capture import noting
from tests.device import two_devices
from tests.gradients import numbers
from tests.graphs.drawing import drawn
from tests.pieces import in_threads

pytestmark = pytest.mark.gpu


def captured(function, g=None, **settings):
    """Return the graph of what a function does, a new one or the given one, and what it returned."""
    g = g or lucid.cuda.CUDAGraph()
    with lucid.cuda.graph(g, **settings):
        out = function()
    return g, out


def is_replayed(g, out, expected):
    """Fail unless a replay leaves these numbers in an output."""
    g.replay()
    np.testing.assert_array_equal(numbers(out), expected)


@pytest.fixture(autouse=True)
def nothing_changed():
    """Fail a test that leaves another stream, device or allocator, or a capture."""
    before = lucid.cuda.current_stream(), lucid.cuda.current_device(), gpu.cupy().cuda.get_allocator()
    yield
    assert not lucid.cuda.is_current_stream_capturing()
    assert before == (lucid.cuda.current_stream(), lucid.cuda.current_device(), gpu.cupy().cuda.get_allocator())


def test_a_replay_does_the_work_and_a_capture_does_not(rng):
    """Inputs are read where they were, with the values of now; outputs are written where they are."""
    x = drawn(rng, 5, 7)
    total = lucid.zeros(7, device="cuda")

    def work():
        total.add_((x * 2).sum(0))
        return x.exp()

    g, out = captured(work)
    assert not total.any()
    expected = np.zeros(7, "f")
    for _ in range(3):
        x.copy_(drawn(rng, 5, 7))
        g.replay()
        np.testing.assert_array_equal(numbers(out), numbers(x.exp()))
        expected += numbers((x * 2).sum(0))
    np.testing.assert_allclose(numbers(total), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    "shapes", [((4, 5), (5, 3)), ((2, 4, 5), (2, 5, 3)), ((5,), (5, 3)), ((3, 1, 4, 5), (2, 5, 3))]
)
def test_matrix_products(rng, dtype, shapes):
    """Products and their gradients are captured, bit for bit those without a graph; one by a plan made before, too."""
    kind = getattr(lucid, dtype)
    a, b = [drawn(rng, *shape).to(kind).requires_grad_() for shape in shapes]

    def work():
        out = a @ b
        return out, *lucid.autograd.grad(out.sum(), (a, b))

    graphs = [captured(work)]
    for _ in range(2):
        work()
    graphs.append(captured(work))
    with lucid.no_grad():
        a.copy_(drawn(rng, *shapes[0]))
        b.copy_(drawn(rng, *shapes[1]))
    expected = [numbers(t) for t in work()]
    for g, out in graphs:
        g.replay()
        for ours, theirs in zip(out, expected, strict=True):
            np.testing.assert_array_equal(numbers(ours), theirs)


DRAWS = {
    "rand": lambda: lucid.rand(5, device="cuda"),
    "randn": lambda: lucid.randn(3, 3, device="cuda"),
    "randn of float64": lambda: lucid.randn(5, dtype=lucid.float64, device="cuda"),
    "randint": lambda: lucid.randint(0, 100, (7,), device="cuda"),
    "randperm": lambda: lucid.randperm(9, device="cuda"),
    "bernoulli": lambda: lucid.bernoulli(lucid.full((9,), 0.5, device="cuda")),
    "exponential": lambda: lucid.empty(5, device="cuda").exponential_(),
    "dropout": lambda: F.dropout(lucid.ones(9, device="cuda"), 0.5),
    "several": lambda: lucid.rand(3, device="cuda") + lucid.randn(3, device="cuda"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_go_on(rng, name):
    """Each replay draws what the same code would have drawn then, also between draws outside; as do later ones."""
    draw, seed = DRAWS[name], int(rng.integers(2**62))
    draw()
    lucid.manual_seed(seed)
    expected = [numbers(f()) for _ in range(3) for f in (draw, lambda: lucid.rand(2, device="cuda"))]
    g, out = captured(draw)
    lucid.manual_seed(seed)
    for k in range(3):
        is_replayed(g, out, expected[2 * k])
        np.testing.assert_array_equal(numbers(lucid.rand(2, device="cuda")), expected[2 * k + 1])


def test_random_numbers_that_are_drawn_again(rng):
    """Where the work puts the generator's state back, later draws go on from there, as without a graph."""

    def work():
        state = lucid.cuda.get_rng_state()
        first = lucid.rand(300, device="cuda")
        lucid.cuda.set_rng_state(state)
        return first, lucid.rand(5, device="cuda")

    seed = int(rng.integers(2**62))
    g, out = captured(work)
    lucid.manual_seed(seed)
    expected = [[numbers(t) for t in (*work(), lucid.rand(2, device="cuda"))] for _ in range(3)]
    lucid.manual_seed(seed)
    for values in expected:
        g.replay()
        for ours, theirs in zip((*out, lucid.rand(2, device="cuda")), values, strict=True):
            np.testing.assert_array_equal(numbers(ours), theirs)


def test_where_random_numbers_begin_is_no_temporarys(rng):
    """What the graph does first may not write where it is told the seed, free memory when it first drew."""
    x = drawn(rng, 2)

    def work():
        for _ in range(4):
            (x + 1).exp()
        return lucid.rand(5, device="cuda")

    seed = int(rng.integers(2**62))
    lucid.manual_seed(seed)
    expected = [numbers(lucid.rand(5, device="cuda")) for _ in range(3)]
    g, out = captured(work)
    lucid.manual_seed(seed)
    for values in expected:
        is_replayed(g, out, values)


def test_a_backward_pass_drops_what_its_forward_dropped(rng):
    """Dropout draws its mask again in backward, from where the replay's forward drew it."""
    x = drawn(rng, 200, requires_grad=True)

    def work():
        out = F.dropout(x, 0.5)
        return out, *lucid.autograd.grad(out.sum(), x)

    g, (out, grad) = captured(work)
    masks = []
    for _ in range(3):
        g.replay()
        np.testing.assert_array_equal(numbers(out) != 0, numbers(grad) != 0)
        masks.append(numbers(grad).tolist())
    assert masks[0] != masks[1] != masks[2]


REFUSED = {
    "seed": lambda x: lucid.manual_seed(3),
    "seed of a generator": lambda x: lucid.base.random.generator.default_generator_for("cuda").manual_seed(3),
    "item": lambda x: x.sum().item(),
    "allclose": lambda x: lucid.allclose(x, x),
    "bool": lambda x: bool((x > 0).all()),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "numpy": lambda x: x.numpy(force=True),
    "print": repr,
    "tensor of numbers": lambda x: lucid.tensor([1.0, 2.0], device="cuda"),
    "from the CPU": lambda x: lucid.ones(3, device="cpu").to("cuda"),
    "indices in a list": lambda x: x[[0, 1]],
    "nonzero": lucid.nonzero,
    "mask": lambda x: x[x > 0],
    "masked_select": lambda x: lucid.masked_select(x, x > 0),
    "unique": lucid.unique,
    "synchronize": lambda x: lucid.cuda.synchronize(),
    "event": lambda x: lucid.cuda.current_stream().record_event().synchronize(),
    "a graph in a graph": lambda x: captured(lambda: x + 1),
    "a replay": lambda x: lucid.cuda.graphed_step(lambda y: y, x)(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_captured_raises_where_it_stands(rng, name):
    """The error says what to do; graph, device, stream and memory are as before, and the same graph can be used."""
    x = drawn(rng, 4, 3)
    if name == "synchronize":
        lucid.cuda.synchronize()
    reached = []
    g = lucid.cuda.CUDAGraph()
    with pytest.raises((CaptureError, gpu.cupy().cuda.runtime.CUDARuntimeError), match=r"(?i)captur"):  # noqa: SIM117
        with lucid.cuda.graph(g):
            y = x + 1
            REFUSED[name](y)
            reached.append(name)
    assert not reached
    assert not lucid.cuda.is_current_stream_capturing()
    with pytest.raises(CaptureError, match="expected a graph that was captured"):
        g.replay()
    _, y = captured(lambda: x + 1, g)
    is_replayed(g, y, numbers(x) + 1)


def test_numbers_of_the_host_that_are_no_copies(rng):
    """A Python number reaches the device in a launch's parameters: an assigned one, a new tensor of no dimension."""
    x = drawn(rng, 4, 3)

    def work():
        x[1:3] = 5.0
        x[0, 0] = -0.0
        return lucid.tensor(2.5, device="cuda") * x, lucid.full((2,), 3, device="cuda")

    g, (out, three) = captured(work)
    expected = numbers(x).copy()
    expected[1:3], expected[0, 0] = 5, -0.0
    is_replayed(g, x, expected)
    assert np.signbit(numbers(x)[0, 0])
    np.testing.assert_array_equal(numbers(out), 2.5 * expected)
    assert three.tolist() == [3, 3]


def test_a_capture_that_cannot_end(rng):
    """Where only the end tells that something cannot be recorded, the graph is empty, and can be used again."""
    x, g, side = drawn(rng, 3), lucid.cuda.CUDAGraph(), lucid.cuda.Stream()
    with pytest.raises(CaptureError, match="cannot be captured"), lucid.cuda.graph(g):
        side.wait_stream(lucid.cuda.current_stream())
        with lucid.cuda.stream(side):
            x * 2
    with pytest.raises(CaptureError, match="it has no memory before"):
        g.pool()
    _, y = captured(lambda: x + 1, g)
    is_replayed(g, y, numbers(x) + 1)


def test_an_error_of_the_users_ends_the_capture(rng):
    """It goes on as it is; what was recorded is forgotten."""
    x, g = drawn(rng, 3), lucid.cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError), lucid.cuda.graph(g):
        x.add_(1 / 0)
    captured(lambda: x.add_(1), g)
    before = numbers(x)
    is_replayed(g, x, before + 1)


# ---- memory ----


def test_memory_of_a_graph_is_its_own(rng):
    """What the capture let go of is nobody else's, nor are outputs that are gone; all goes with the graph."""
    x = drawn(rng, 1000)
    captured(lambda: x @ x)
    gc.collect()
    before = lucid.cuda.memory_allocated(), lucid.cuda.memory_reserved()

    def work():
        return ((x + 1) * 2).exp(), x.sum()

    g, (out, total) = captured(work)
    del total
    assert lucid.cuda.memory_reserved() > before[1]
    held = [lucid.empty(1000, device="cuda").fill_(7) for _ in range(8)]
    for _ in range(2):
        g.replay()
    assert all((t == 7).all() for t in held)
    np.testing.assert_array_equal(numbers(out), numbers(((x + 1) * 2).exp()))
    del held, out
    g.replay()
    g.reset()
    gc.collect()
    lucid.cuda.empty_cache()
    assert lucid.cuda.memory_allocated() == before[0]
    assert lucid.cuda.memory_reserved() <= before[1]
    with pytest.raises(CaptureError, match="expected a graph that was captured"):
        g.replay()


def test_graphs_that_share_memory(rng):
    """Replayed in the order of their captures they take turns in the same memory."""
    x, y = drawn(rng, 100_000), drawn(rng, 100_000)
    first, a = captured(lambda: ((x + 1) * 2).sum())
    alone = lucid.cuda.memory_reserved()
    second, b = captured(lambda: ((y + 3) * 4).sum(), pool=first.pool())
    third, c = captured(lambda: (y + a).sum(), pool=first)
    # three arrays more, if each had memory of its own
    assert lucid.cuda.memory_reserved() < alone + 2 * y.array.nbytes
    for _ in range(2):
        x.copy_(drawn(rng, 100_000))
        for g in (first, second, third):
            g.replay()
        for got, expected in ((a, ((x + 1) * 2).sum()), (b, ((y + 3) * 4).sum()), (c, (y + a).sum())):
            np.testing.assert_array_equal(numbers(got), numbers(expected))


def test_a_pool_that_is_made_before(rng):
    """`graph_pool_handle` gives memory that graphs share."""
    pool, x = lucid.cuda.graph_pool_handle(), drawn(rng, 10)
    g, out = captured(lambda: x + 1, pool=pool)
    assert g.pool() is pool
    assert "bytes" in repr(pool)
    is_replayed(g, out, numbers(x) + 1)


@two_devices
def test_memory_of_a_second_device(rng):
    """Each device's figures are of its own graphs, and memory says what it holds whichever device is current."""
    # a multiple of 512 bytes
    x = drawn(rng, 102_400)
    before = [(lucid.cuda.memory_allocated(k), lucid.cuda.memory_reserved(k)) for k in range(2)]
    g, y = captured(lambda: x + 1)
    words = repr(g.pool())
    assert f"{y.array.nbytes:,} bytes" in words
    for current in range(2):
        with lucid.cuda.device(current):
            assert repr(g.pool()) == words
            assert lucid.cuda.memory_allocated(0) - before[0][0] == y.array.nbytes
            assert lucid.cuda.memory_reserved(0) - before[0][1] == y.array.nbytes
            assert (lucid.cuda.memory_allocated(1), lucid.cuda.memory_reserved(1)) == before[1]


def test_memory_recorded_for_a_stream_is_held(rng):
    """`record_stream` in a capture keeps memory for the graph, where no event could be asked for."""
    x = drawn(rng, 10)

    def work():
        y = x + 1
        y.record_stream(lucid.cuda.current_stream())
        return y * 2

    g, out = captured(work)
    is_replayed(g, out, (numbers(x) + 1) * 2)


# ---- what is refused ----


def test_bad_calls(rng):
    """Each says what was expected, and changes nothing."""
    x, g, empty = drawn(rng, 3), lucid.cuda.CUDAGraph(), lucid.cuda.CUDAGraph()
    for call in (empty.replay, empty.pool, empty.capture_end, lambda: empty.debug_dump("graph.dot")):
        with pytest.raises(CaptureError, match=r"expected a graph that was captured|call capture_begin"):
            call()
    empty.reset()
    _, y = captured(lambda: x + 1, g)
    for again in (lambda: captured(lambda: x + 1, g), g.capture_begin):
        with pytest.raises(CaptureError, match=r"call reset\(\) first"):
            again()
    with pytest.raises(CaptureError, match="the default stream cannot capture"):
        empty.capture_begin()
    with pytest.raises(ArgumentError, match="expected cuda_graph as a CUDAGraph, got str"), lucid.cuda.graph("g"):
        pass
    with pytest.raises(ArgumentError, match="graph_pool_handle"), lucid.cuda.graph(empty, pool="memory"):
        pass
    with pytest.raises(CaptureError, match="it has no memory before"), lucid.cuda.graph(empty, pool=empty):
        pass
    is_replayed(g, y, numbers(x) + 1)


def test_calls_in_a_capture(rng):
    """A graph is not reset, ended twice or begun again while it records; the capture goes on."""
    x, g, other = drawn(rng, 3), lucid.cuda.CUDAGraph(), lucid.cuda.CUDAGraph()
    done, _ = captured(lambda: x + 1)
    with lucid.cuda.graph(g):
        assert lucid.cuda.is_current_stream_capturing()
        y = x * 2
        for call, words in (
            (g.reset, "in progress"),
            (other.capture_begin, "do not nest"),
            (done.replay, "cannot be part of another"),
        ):
            with pytest.raises(CaptureError, match=words):
                call()
    is_replayed(g, y, numbers(x) * 2)


def test_begin_and_end(rng, tmp_path):
    """The context in parts, on a stream of the user's; what was recorded can be looked at."""
    x, g = drawn(rng, 3), lucid.cuda.CUDAGraph()
    side = lucid.cuda.Stream()
    with lucid.cuda.stream(side):
        x + 1
        side.synchronize()
        g.capture_begin()
        y = x + 1
        g.capture_end()
    is_replayed(g, y, numbers(x) + 1)
    g.debug_dump(str(tmp_path / "graph.dot"))
    assert "digraph" in (tmp_path / "graph.dot").read_text(encoding="utf-8")


def test_graphs_that_are_kept(rng, tmp_path):
    """What was recorded has an address, from which replays are made at the first one, or anew; others have none."""
    x = drawn(rng, 3)
    runtime = gpu.cupy().cuda.runtime
    kept, g = lucid.cuda.CUDAGraph(keep_graph=True), lucid.cuda.CUDAGraph()
    for call in (kept.raw_cuda_graph, kept.instantiate):
        with pytest.raises(CaptureError, match="expected a graph that was captured"):
            call()
    draw = partial(captured, lambda: x + lucid.rand(3, device="cuda"), capture_error_mode="relaxed")
    (_, made), _ = draw(kept), draw(g)
    for call in (g.raw_cuda_graph, g.instantiate):
        with pytest.raises(CaptureError, match=r"CUDAGraph\(keep_graph=True\)"):
            call()
    assert kept.raw_cuda_graph() == kept.raw_cuda_graph() != 0
    lucid.manual_seed(5)
    expected = [numbers(x + lucid.rand(3, device="cuda")) for _ in range(3)]
    lucid.manual_seed(5)
    for k in range(3):
        if k == 1:
            kept.instantiate()
        is_replayed(kept, made, expected[k])
    ran = runtime.graphInstantiate(kept.raw_cuda_graph())
    runtime.graphLaunch(ran, gpu.current_stream().ptr)
    runtime.graphExecDestroy(ran)
    plain, full = tmp_path / "plain.dot", tmp_path / "full.dot"
    kept.debug_dump(str(plain))
    kept.enable_debug_mode()
    kept.debug_dump(str(full))
    assert len(full.read_text(encoding="utf-8")) > len(plain.read_text(encoding="utf-8"))
    kept.reset()
    with pytest.raises(CaptureError, match="expected a graph that was captured"):
        kept.raw_cuda_graph()
    with pytest.raises(ArgumentError, match="keep_graph: expected a bool"):
        lucid.cuda.CUDAGraph(keep_graph="yes")


def test_graphs_that_are_kept_are_instantiated_once(rng, monkeypatch):
    """The first replay does it, and later ones launch the same until `instantiate`; what is forgotten is destroyed."""
    runtime, made, destroyed = gpu.cupy().cuda.runtime, [], []
    instantiate, destroy = runtime.graphInstantiate, runtime.graphExecDestroy
    monkeypatch.setattr(runtime, "graphInstantiate", lambda graph: (made.append(instantiate(graph)), made[-1])[1])
    monkeypatch.setattr(runtime, "graphExecDestroy", lambda pointer: (destroyed.append(pointer), destroy(pointer))[1])
    x, g = drawn(rng, 3), lucid.cuda.CUDAGraph(keep_graph=True)
    _, y = captured(lambda: x + 1, g)
    made.clear()
    for k in range(4):
        if k == 2:
            g.instantiate()
        g.replay()
        assert len(made) == 1 + (k >= 2)
    np.testing.assert_array_equal(numbers(y), numbers(x + 1))
    g.reset()
    gc.collect()
    assert destroyed == made


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_error_modes(mode, rng):
    """Each of PyTorch's is taken, and lets what cannot be captured raise; anything else is refused."""
    x = drawn(rng, 3)
    g, y = captured(lambda: x + 1, capture_error_mode=mode)
    is_replayed(g, y, numbers(x) + 1)
    with pytest.raises(CaptureError, match="item"), lucid.cuda.graph(lucid.cuda.CUDAGraph(), capture_error_mode=mode):
        x.sum().item()
    for wrong in ("loose", ["global"]):
        for call in (
            lambda m=wrong: lucid.cuda.graph(g, capture_error_mode=m),
            lambda m=wrong: lucid.cuda.CUDAGraph().capture_begin(None, m),
        ):
            with pytest.raises(ArgumentError, match="expected 'global', 'thread_local' or 'relaxed'"):
                call()


def test_a_capture_that_nobody_can_end_is_left(rng):
    """A graph that is dropped between capture_begin and capture_end, as by an error, lets its thread go on."""
    x = drawn(rng, 3)

    def fail():
        g = lucid.cuda.CUDAGraph()
        with lucid.cuda.stream(lucid.cuda.Stream()):
            g.capture_begin()
            raise KeyError(len(x))

    with pytest.raises(KeyError):
        fail()
    assert not lucid.cuda.is_current_stream_capturing()
    lucid.cuda.synchronize()
    g, y = captured(lambda: x * 2)
    is_replayed(g, y, numbers(x) * 2)


def test_copies_of_what_is_of_a_process(rng):
    """Copies of streams and events are they themselves; graphs cannot be copied, and none is pickled."""
    x, s = drawn(rng, 3), lucid.cuda.Stream()
    g, _ = captured(lambda: x + 1)
    for each in (s, s.record_event()):
        assert copy.deepcopy([each])[0] is copy.copy(each) is each
        with pytest.raises(pickle.PicklingError, match="of this process"):
            pickle.dumps(each)
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(pickle.PicklingError, match="of this process"):
            act(g)
    g.replay()
    with lucid.cuda.stream(s):
        assert numbers(x + 1).shape == (3,)


def test_graphs_of_one_pool_share_the_memory_of_products(rng):
    """What cuBLAS works in is there once for all of them, and goes with the last."""
    a, pool = drawn(rng, 4, 4), lucid.cuda.graph_pool_handle()
    before = lucid.cuda.memory_allocated()
    graphs = []
    for _ in range(3):
        g, out = captured(lambda: a @ a, pool=pool)
        graphs.append((g, out))
        if len(graphs) == 1:
            first = lucid.cuda.memory_allocated() - before
    assert lucid.cuda.memory_allocated() - before < first + 100_000
    graphs.pop(0)
    for g, out in graphs:
        g.replay()
        np.testing.assert_allclose(numbers(out), numbers(a) @ numbers(a), rtol=1e-5)
    graphs.clear()
    del g, out
    gc.collect()
    assert lucid.cuda.memory_allocated() == before


def on_device_1(call):
    """Return what a call gives with that device as the current one."""
    with lucid.cuda.device(1):
        return call()


@two_devices
def test_two_devices(rng):
    """A graph is of one device: memory, streams, random numbers and replays of another are refused."""
    x = drawn(rng, 3)
    g, y = captured(lambda: x + 1)
    with lucid.cuda.device(1):
        with pytest.raises(DeviceError, match=r"lucid.cuda.device\(0\)"):
            g.replay()
        with pytest.raises(DeviceError, match="expected memory of cuda:1"):
            captured(lambda: None, pool=g)
        z = drawn(rng, 3).to("cuda:1")
        h, w = captured(lambda: z * 2)
        is_replayed(h, w, numbers(z) * 2)
        a, b = drawn(rng, 3, 4).to("cuda:1"), drawn(rng, 4, 2).to("cuda:1")
        # a thread that has captured on no other device
        with ThreadPoolExecutor(1) as pool:
            products, p = pool.submit(on_device_1, lambda: captured(lambda: a @ b)).result()
        a.neg_()
        products.replay()
        np.testing.assert_allclose(numbers(p), numbers(a) @ numbers(b), rtol=1e-5)
        with pytest.raises(DeviceError, match="expected a stream of cuda:1"):
            captured(lambda: None, stream=lucid.cuda.Stream(0))
    with pytest.raises(CaptureError, match="drawing on cuda:1"):
        captured(lambda: lucid.rand(3, device="cuda:1"))
    is_replayed(g, y, numbers(x) + 1)


def test_captures_of_threads(rng):
    """Each thread records its own work, while others compute."""
    xs = [drawn(rng, 50, 50) for _ in range(3)]
    for x in xs:
        (x @ x).sum()
    graphs, errors, stop = {}, [], threading.Event()

    def capture(number):
        try:
            x = xs[number]
            for _ in range(3):
                graphs[number] = captured_on_stream(lambda: (x @ x + number).sum())
        except Exception as error:  # noqa: BLE001  the test says which
            errors.append(error)

    def compute():
        x = lucid.ones(8, device="cuda")
        while not stop.is_set():
            x.add_(1)

    other = threading.Thread(target=compute)
    other.start()
    in_threads(*(partial(capture, number) for number in range(3)))
    stop.set()
    other.join()
    assert not errors
    for number, (g, out) in graphs.items():
        is_replayed(g, out, numbers((xs[number] @ xs[number] + number).sum()))


def captured_on_stream(function):
    """Return a graph and what the function returned, without waiting for the device, which another thread uses."""
    g = lucid.cuda.CUDAGraph()
    with lucid.cuda.stream(lucid.cuda.Stream()):
        g.capture_begin()
        out = function()
        g.capture_end()
    return g, out


def test_nothing_is_noted_after_the_last_capture(rng):
    """Captures of threads end in any order; then launches are CuPy's own again."""
    driver, open_ = kernels.driver(), {}
    for order in ((0, 1), (1, 0)):
        for number in range(2):
            open_[number] = noting()
            open_[number].__enter__()
            assert kernels.driver() is not driver
        for number in order:
            assert kernels.driver() is not driver
            open_[number].__exit__(None, None, None)
        assert kernels.driver() is driver


def test_each_thread_captures_on_a_stream_of_its_own(rng):
    """While its graph lives: what another does there, such as backward, would be recorded too."""
    found = []

    def capture():
        found.append(captured(lucid.cuda.current_stream))

    for _ in range(2):
        capture()
    in_threads(capture)
    (_, first), (_, again), (_, other) = found
    assert first == again != other


def test_a_capture_waits_for_the_device(rng):
    """What was queued on whatever stream is done before it begins, and so before the graph is replayed."""
    x, before = drawn(rng, 300), lucid.cuda.Stream()
    values = numbers(x)
    with lucid.cuda.stream(before):
        x.mul_(2)
    g, y = captured(lambda: x + 1)
    is_replayed(g, y, values * 2 + 1)


def test_looks_at_memory_take_turns(rng, monkeypatch):
    """While a thread looks it holds the arrays of all: another would take them for some that live."""
    looking, most = [], []

    def objects():
        looking.append(1)
        most.append(len(looking))
        time.sleep(0.02)
        yield from ()
        looking.pop()

    pools = [lucid.cuda.graph_pool_handle() for _ in range(4)]
    monkeypatch.setattr(memory, "gc", SimpleNamespace(get_objects=objects))
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda pool: pool.live(), pools)) == [[]] * 4
    assert most == [1] * 4


def test_a_stream_of_the_users_goes_on_behind_the_capture(rng):
    """What is queued there afterwards comes after all that was queued where the capture was begun."""
    x, outer, side = drawn(rng, 300), lucid.cuda.Stream(), lucid.cuda.Stream()
    before = numbers(x)
    with lucid.cuda.stream(outer):
        with lucid.cuda.graph(lucid.cuda.CUDAGraph(), stream=side):
            x.exp()
            with lucid.cuda.stream(outer):
                x.mul_(2)
        with lucid.cuda.stream(side):
            np.testing.assert_array_equal(numbers(x + 1), before * 2 + 1)


def test_products_on_two_streams(rng):
    """In a capture each stream has memory of its own to multiply in: in one memory the two would race."""
    a, b, second = drawn(rng, 5, 7), drawn(rng, 7, 3), lucid.cuda.Stream()

    def work():
        first = lucid.cuda.current_stream()
        second.wait_stream(first)
        with lucid.cuda.stream(second):
            there = a @ b
        here = a @ b
        first.wait_stream(second)
        return here, there

    work()
    g, outs = captured(work)
    g.replay()
    for out in outs:
        np.testing.assert_array_equal(numbers(out), numbers(a @ b))


@pytest.mark.parametrize("moment", ["use_stream(side)", "capture_begin", "_leaving = "])
def test_an_interrupt_as_a_capture_begins(rng, moment):
    """Ctrl-C at any line of it leaves nothing that captures, and is what is raised."""
    x = drawn(rng, 3)
    lines, first = inspect.getsourcelines(lucid.cuda.graph.__enter__)
    at = first + next(index for index, line in enumerate(lines) if moment in line)

    def trace(frame, event, arg):
        if frame.f_code is not lucid.cuda.graph.__enter__.__code__:
            return None

        def local(frame, event, arg):
            if event == "line" and frame.f_lineno == at:
                sys.settrace(None)
                raise KeyboardInterrupt
            return local

        return local

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt), lucid.cuda.graph(lucid.cuda.CUDAGraph()):
            x.add_(1)
    finally:
        sys.settrace(before)
    assert not captures
    g, y = captured(lambda: x * 2)
    is_replayed(g, y, numbers(x) * 2)


def test_a_product_in_a_capture_of_somebody_elses(rng):
    """CuPy's own captures take lucid's kernels; a matrix product names what captures it."""
    x = drawn(rng, 4, 4)
    x @ x
    stream = gpu.cupy().cuda.Stream(non_blocking=True)
    lucid.cuda.synchronize()
    with stream:
        stream.begin_capture()
        assert lucid.cuda.is_current_stream_capturing()
        y = x + 1
        with pytest.raises(CaptureError, match=r"lucid.cuda.graph\(\)"):
            x @ x
        graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(numbers(y), numbers(x) + 1)


def test_a_hook_of_each_step_needs_a_graphed_step(rng):
    """A graph of one part cannot stop for it."""
    x = drawn(rng, 3, requires_grad=True)
    with x.register_hook(lambda grad: None, every_step=True):
        with pytest.raises(CaptureError, match="graphed_step"):
            captured(lambda: (x * 2).sum().backward())
        (x * 2).sum().backward()
    np.testing.assert_array_equal(numbers(x.grad), 2)
