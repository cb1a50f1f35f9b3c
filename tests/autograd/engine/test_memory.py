"""Nothing grows, and nothing waits for the garbage collector: graphs, hooks and handles die with their last user."""

from __future__ import annotations

import contextlib
import gc
import operator
import tracemalloc
import weakref

import numpy as np
import pytest

import lucid
from lucid import nn, optim
from lucid.autograd.function import Function
from tests.device import DEVICE
from tests.pieces import raising

# A simulated device takes twenty times as long for an op; a chain is long where recursion would fail.
STEPS, CHAIN = (1000, 1_000_000) if DEVICE == "cpu" else (60, 10_000)
HOOKS = 100_000
# What a run may leave behind: caches that fill once, and the measurement itself.
SPARE_OBJECTS = 20
SPARE_BYTES = 16_384


@pytest.fixture(autouse=True)
def without_collector():
    """Run each test with the garbage collector off, so that a reference cycle shows as growth."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def count_objects():
    """Return how many objects the collector knows, and how many of them are lucid's."""
    everything = gc.get_objects()
    return len(everything), sum(str(type(thing).__module__).startswith("lucid") for thing in everything)


def assert_nothing_grows(act):
    """Fail if act leaves more objects or bytes alive than there were, or cycles, each of up to three times.

    A leak grows each time. A table that lives on, with entries that come and go, moves to new memory now and then.
    """
    spare = (0, SPARE_OBJECTS, SPARE_OBJECTS, SPARE_BYTES)
    left = growth_of(act)
    for _ in range(2):
        if all(map(operator.le, left, spare)):
            return
        left = tuple(map(min, left, growth_of(act)))
    ours, objects, in_cycles, grown = left
    assert ours <= 0, f"{ours} more objects of lucid are alive"
    assert objects <= SPARE_OBJECTS, f"{objects} more objects are alive"
    assert in_cycles <= SPARE_OBJECTS, f"{in_cycles} objects were left in cycles"
    assert grown <= SPARE_BYTES, f"{grown} more bytes are held"


def growth_of(act):
    """Return how many objects of lucid, objects, objects in cycles and bytes act leaves behind."""
    gc.collect()
    tracemalloc.start()
    try:
        objects, ours = count_objects()
        held, _ = tracemalloc.get_traced_memory()
        act()
        objects_after, ours_after = count_objects()
        # also empties the interpreter's lists of tuples to use again, which count as held
        in_cycles = gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - held
    finally:
        tracemalloc.stop()
    return ours_after - ours, objects_after - objects, in_cycles, grown


def watch_everything(model):
    """Put a hook of every kind on a model's modules and parameters."""
    for module in model.modules():
        module.register_forward_pre_hook(lambda module, args: None)
        module.register_forward_hook(lambda module, args, output: None)
        module.register_full_backward_pre_hook(lambda module, grad_output: None)
        module.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    for parameter in model.parameters():
        parameter.register_hook(lambda grad: grad * 1.0)
        parameter.register_post_accumulate_grad_hook(lambda parameter: None)


def plain_step(model, x):
    """Run backward once."""
    (model(x) ** 2).mean().backward()


def step_with_graph_hooks(model, x):
    """Run backward through hooks on an intermediate tensor and its node, and keep its gradient."""
    out = model(x)
    out.register_hook(lambda grad: grad * 1.0)
    out.retain_grad()
    out.grad_fn.register_hook(lambda grad_inputs, grad_outputs: None)
    with lucid.autograd.graph.register_multi_grad_hook([out, *model.parameters()], lambda grads: None):
        (out**2).mean().backward()
    assert out.grad is not None


def step_twice_differentiated(model, x):
    """Differentiate the norm of the gradient, as a gradient penalty does."""
    x = x.detach().requires_grad_()
    (slope,) = lucid.autograd.grad(model(x).sum(), x, create_graph=True)
    (slope**2).mean().backward()


def step_that_fails(model, x):
    """Let a hook raise in the middle of backward, then run backward again."""
    out = model(x)
    out.register_hook(raising(KeyError))
    with contextlib.suppress(KeyError):
        (out**2).mean().backward()
    plain_step(model, x)


@pytest.mark.parametrize(
    ("step", "watched", "optimizer", "steps"),
    [
        pytest.param(plain_step, False, optim.SGD, STEPS, id="plain"),
        pytest.param(plain_step, True, optim.AdamW, STEPS // 2, id="module and parameter hooks"),
        pytest.param(step_with_graph_hooks, False, optim.Adam, STEPS // 2, id="hooks on the graph"),
        pytest.param(step_twice_differentiated, False, optim.SGD, STEPS // 2, id="twice differentiated"),
        pytest.param(step_that_fails, False, optim.SGD, STEPS // 2, id="a hook that raises"),
    ],
)
def test_training_does_not_grow(rng, step, watched, optimizer, steps):
    """Training steps leave no objects and no bytes behind, without the garbage collector ever running."""
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    if watched:
        watch_everything(model)
    optimiser = optimizer(model.parameters(), lr=1e-3)
    # a module's backward hook warns unless an input requires grad
    x = lucid.tensor(rng.standard_normal((4, 8)), dtype=lucid.float32, requires_grad=watched)

    def train(times):
        for _ in range(times):
            optimiser.zero_grad()
            step(model, x)
            optimiser.step()

    train(20)
    assert_nothing_grows(lambda: train(steps))


def test_hooks_that_come_and_go_do_not_grow(rng):
    """A hundred thousand hooks, registered and removed, leave tensor, node and module as they were."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    y = x * 2.0
    module = nn.Linear(2, 2)

    def hook(*args):
        return None

    def come_and_go(times):
        for _ in range(times):
            x.register_hook(hook).remove()
            y.register_hook(hook).remove()
            with x.register_post_accumulate_grad_hook(hook), y.grad_fn.register_prehook(hook):
                pass
            module.register_forward_hook(hook).remove()
            module.register_full_backward_hook(hook)()

    come_and_go(10)
    assert_nothing_grows(lambda: come_and_go(HOOKS // 18))
    module(lucid.ones(1, 2))
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.slow
@pytest.mark.parametrize("through", ["backward", "no backward"])
def test_a_million_nodes(through):
    """A chain of a million nodes runs backward and is freed, or is freed unused, without recursion."""
    x = lucid.tensor([1.0, 2.0], dtype=lucid.float64, requires_grad=True)
    y = x * 1.0
    first = weakref.ref(y.grad_fn)
    for _ in range(CHAIN - 1):
        y = y + 1.0
    if through == "backward":
        upstream = lucid.tensor([3.0, -5.0], dtype=lucid.float64)
        y.backward(upstream)
        assert x.grad.tolist() == [3.0, -5.0]
    assert first() is not None
    del y
    assert first() is None


def square_of(x):
    """Return x * x of an intermediate."""
    y = x * 3.0
    return y * y


def in_place_on_a_view(x):
    """Return a tensor of which a view was changed in place."""
    y = x * 3.0
    y[0].mul_(2.0)
    return y * y


def with_hooks(x):
    """Return a tensor whose graph carries hooks of every kind."""
    y = x * 3.0
    y.register_hook(lambda grad: grad * 2.0)
    y.retain_grad()
    out = y * y
    out.grad_fn.register_hook(lambda grad_inputs, grad_outputs: None)
    out.grad_fn.register_prehook(lambda grad_outputs: None)
    out.grad_fn.metadata["note"] = "kept with the node"
    lucid.autograd.graph.register_multi_grad_hook([y, out], lambda grads: None)
    return out


class Square(Function):
    """x * x, with its own backward."""

    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, _ = ctx.saved_tensors
        return grad * 2.0 * x


def own_function(x):
    """Return what a Function that saves its input and its output gives."""
    return Square.apply(x * 3.0)


def saved_elsewhere(x):
    """Return a tensor whose saved tensors went through a pack hook."""
    with lucid.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        return square_of(x)


def several_outputs(x):
    """Return a sum of parts of a split."""
    first, *_ = (x * 3.0).split(1)
    return first * first


GRAPHS = [square_of, in_place_on_a_view, with_hooks, own_function, saved_elsewhere, several_outputs]
graphs = pytest.mark.parametrize("build", GRAPHS, ids=lambda build: build.__name__)


def nodes_below(tensor):
    """Return weak references to all nodes of a tensor's graph, the leaves' own ones apart."""
    found, stack = {}, [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found[node] = weakref.ref(node)
            stack += [below for below, _ in node.next_functions if below is not None and below.next_functions]
    return list(found.values())


@graphs
def test_dropping_the_result_frees_the_graph(rng, build):
    """With the last reference to a result all nodes die at once, and so do the arrays that they saved."""
    x = lucid.tensor(rng.standard_normal(4), requires_grad=True)
    out = build(x)
    nodes = nodes_below(out)
    array = weakref.ref(out.detach().array)
    assert len(nodes) >= 2
    assert all(node() is not None for node in nodes)
    del out
    assert [node() for node in nodes if node() is not None] == []
    assert array() is None


@graphs
def test_backward_leaves_nothing_alive(rng, build):
    """After backward, its graph and the gradients inside of it die with the result; the leaf's gradient stays."""
    x = lucid.tensor(rng.standard_normal(4), requires_grad=True)
    out = build(x)
    upstream = lucid.tensor(rng.standard_normal(out.shape))
    seed = weakref.ref(upstream)
    nodes = nodes_below(out)
    out.backward(upstream)
    del out, upstream
    assert [node() for node in nodes if node() is not None] == []
    assert seed() is None
    assert x.grad is not None


@graphs
def test_a_recorded_backward_is_freed_with_its_gradients(rng, build):
    """Gradients made under create_graph hold their graph, and free it and the first one when they go."""
    x = lucid.tensor(rng.standard_normal(4), requires_grad=True)
    out = build(x)
    upstream = lucid.tensor(rng.standard_normal(out.shape), requires_grad=True)
    (slope,) = lucid.autograd.grad(out, x, upstream, create_graph=True)
    nodes = nodes_below(out) + nodes_below(slope)
    del out
    assert any(node() is not None for node in nodes)
    del slope
    assert [node() for node in nodes if node() is not None] == []


def test_saved_arrays_are_freed_as_soon_as_their_node_has_run(rng):
    """During backward, what later nodes saved is gone when an earlier one runs."""
    x = lucid.tensor(rng.standard_normal(4), requires_grad=True)
    y = x * 2.0
    seen = []
    z = y.exp()
    array = weakref.ref(z.array)
    out = z * z
    del z
    y.register_hook(lambda grad: seen.append(array()))
    assert array() is not None
    out.backward(lucid.tensor(rng.standard_normal(4)))
    assert seen == [None]


@pytest.mark.parametrize(
    "watch",
    [
        lambda out: out.register_hook(lambda grad: None),
        lambda out: out.retain_grad(),
        lambda out: out.grad_fn.register_prehook(lambda grads: None),
        lambda out: out.grad_fn.register_hook(lambda grad_inputs, grad_outputs: None),
    ],
    ids=["tensor hook", "retained gradient", "node prehook", "node posthook"],
)
def test_a_node_with_hooks_frees_what_it_saved(watch, rng):
    """A pass that does not keep the graph frees it whatever hangs on the node, and a second one is refused."""
    x = lucid.tensor(rng.standard_normal(4), requires_grad=True)
    upstream = lucid.tensor(rng.standard_normal(4))
    y = x * 2.0
    array = weakref.ref(y.array)
    out = y * y
    del y
    watch(out)
    out.backward(upstream, retain_graph=True)
    assert array() is not None
    out.backward(upstream)
    assert array() is None
    with pytest.raises(RuntimeError, match="second time"):
        out.backward(upstream)


def test_a_failed_backward_frees_its_graph(rng):
    """After a hook has raised, and its error is gone, dropping the result frees everything."""
    x = lucid.tensor(rng.standard_normal(4), requires_grad=True)
    y = x * 2.0
    y.register_hook(raising(KeyError))
    out = y * y
    nodes = nodes_below(out)
    with pytest.raises(KeyError) as caught:
        out.backward(lucid.tensor(rng.standard_normal(4)))
    del caught
    del y, out
    assert [node() for node in nodes if node() is not None] == []


def test_a_handle_keeps_neither_tensor_nor_graph(rng):
    """A handle that outlives its tensor keeps neither the tensor nor its memory."""
    x = lucid.tensor(rng.standard_normal(4), requires_grad=True)
    y = x * 2.0
    handles = [y.register_hook(lambda grad: None), y.grad_fn.register_hook(lambda *grads: None)]
    handles.append(lucid.autograd.graph.register_multi_grad_hook([y], lambda grads: None))
    array, tensor = weakref.ref(y.array), weakref.ref(y)
    del y
    assert array() is None
    assert tensor() is None
    for handle in handles:
        handle.remove()


def test_a_leaf_and_its_hooks_die_together(rng):
    """A leaf that has been through backward, with hooks and a gradient, dies with its last reference."""
    x = lucid.tensor(rng.standard_normal(4), requires_grad=True)
    x.register_hook(lambda grad: grad * 2.0)
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    (x * x).sum().backward()
    leaf, array, grad = weakref.ref(x), weakref.ref(x.array), weakref.ref(x.grad)
    del x
    assert [thing() for thing in (leaf, array, grad)] == [None, None, None]


def test_a_view_keeps_its_base_and_no_more(rng):
    """A view keeps the memory it looks at; when it goes, base and graph go."""
    x = lucid.tensor(rng.standard_normal((4, 4)), requires_grad=True)
    base = x * 2.0
    view = base[1:].transpose(0, 1)
    node, array = weakref.ref(base.grad_fn), weakref.ref(base.array)
    del base
    assert array() is not None
    np.testing.assert_array_equal(view.detach().cpu().numpy(), x.detach().cpu().numpy()[1:].T * 2.0)
    del view
    assert node() is None
    assert array() is None
