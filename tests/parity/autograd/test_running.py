"""What runs: the current pass and node, callbacks at its end, and passes inside of passes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from lucid.autograd import Variable
from lucid.autograd.graph import current_graph_task_id, current_node, queue_callback
from tests.parity.pieces import LIBRARIES, same
from tests.pieces import function_of, in_threads, raising


def leaf(lib, *values):
    """Return a tensor that requires grad."""
    return lib.tensor(list(values), dtype=lib.float64, requires_grad=True)


def task(lib):
    """Return the number of the current pass."""
    return lib._C._current_graph_task_id()


def node(lib):
    """Return the name of the current node."""
    found = lib._C._current_autograd_node()
    return None if found is None else found.name().removeprefix("torch::autograd::")


def later(lib, callback):
    """Queue a callback where ported code does."""
    lib.autograd.Variable._execution_engine.queue_callback(callback)


def test_callbacks_run_once_at_the_end_in_order():
    """After all gradients are there, in the order of queueing, those that callbacks queue last; in the pass's mode."""

    def program(lib, events):
        x, w = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)

        def first():
            events.append(("first", x.grad.tolist(), w.grad.tolist(), lib.is_grad_enabled(), task(lib) >= 0, node(lib)))
            later(lib, lambda: events.append("from a callback"))

        def hook(grad):
            events.append("hook")
            later(lib, first)
            later(lib, lambda: events.append("second"))

        y = w * x
        y.register_hook(hook)
        x.register_post_accumulate_grad_hook(lambda leaf: events.append("x"))
        w.register_post_accumulate_grad_hook(lambda leaf: events.append("w"))
        y.backward(lib.tensor([2.0, -1.0], dtype=lib.float64))
        events.append(task(lib))
        x.grad = None
        (x * 2).sum().backward()

    assert len(same(program)) == 8


def test_callbacks_belong_to_the_innermost_pass():
    """What a hook's own backward queues runs at the end of that, what the hook queues at the end of its pass."""

    def program(lib, events):
        x, w = leaf(lib, 1.0), leaf(lib, 3.0)
        inner = w * 2
        inner.register_hook(lambda grad: later(lib, lambda: events.append("inner")))

        def hook(grad):
            with lib.enable_grad():
                later(lib, lambda: events.append("outer"))
                inner.backward()
                events.append("inner is done")

        y = x * 2
        y.register_hook(hook)
        y.backward()

    assert same(program) == ["inner", "inner is done", "outer"]


def test_callbacks_under_grad_and_create_graph():
    """They run for autograd.grad as well, with grad mode on under create_graph."""

    def program(lib, events):
        x = leaf(lib, 1.0)
        y = x * 2
        y.register_hook(lambda grad: later(lib, lambda: events.append(lib.is_grad_enabled())))
        lib.autograd.grad(y, x, retain_graph=True)
        lib.autograd.grad(y, x, create_graph=True)

    assert same(program) == [False, True]


def test_a_callback_that_raises():
    """Its exception comes out with a note, gradients stay, and the next pass knows nothing of it."""
    x = leaf(lucid, 2.0)
    y = x * 3
    done = []

    def hook(grad):
        queue_callback(raising(KeyError("stop")))
        queue_callback(lambda: done.append(1))

    handle = y.register_hook(hook)
    with pytest.raises(KeyError) as caught:
        y.backward(retain_graph=True)
    assert "callback at the end of backward" in caught.value.__notes__[0]
    assert "fail" in caught.value.__notes__[0]
    assert (done, x.grad.tolist(), current_graph_task_id(), lucid.is_grad_enabled()) == ([], [3.0], -1, True)
    handle.remove()
    y.backward()
    assert (done, x.grad.tolist()) == ([], [6.0])


def test_no_callback_after_a_pass_that_raised():
    """A pass that a hook ends has no end to wait for."""
    x = leaf(lucid, 2.0)
    y = x * 3
    done = []

    def hook(grad):
        queue_callback(lambda: done.append(1))
        raise KeyError("stop")

    y.register_hook(hook)
    with pytest.raises(KeyError):
        y.backward()
    (x * 2).backward()
    assert done == []


def test_callbacks_outside_of_a_pass_and_bad_ones():
    """There is no pass to end, or nothing to call."""
    for lib in LIBRARIES.values():
        with pytest.raises(RuntimeError, match="during"):
            later(lib, print)
    with pytest.raises(TypeError, match="callable"):
        queue_callback(3)


@pytest.mark.parametrize("inputs", ["all", "x", "y", "w and y"])
def test_the_order_of_execution(inputs):
    """Asked for at the root, as PyTorch needs it, it is the order in which the nodes then run."""

    def program(lib, events):
        x, w = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
        y = (x * w).exp()
        z = y.sum() + (x * 3).sum() + w.sum()
        # the root is left out: PyTorch knows it only under inputs=
        below = [y.grad_fn, *(fn for fn, _ in y.grad_fn.next_functions), (x * 5).grad_fn]
        ran = []

        def watch(fn):
            fn.register_prehook(lambda grads: ran.append(name(fn)))
            for target, _ in fn.next_functions:
                if target is not None:
                    watch(target)

        def look(grad):
            order = lib._C._current_graph_task_execution_order()
            events.append([name(fn) for fn in order])
            events.append([lib._C._will_engine_execute_node(fn) for fn in below])

        with lib.autograd.set_multithreading_enabled(False):
            z.register_hook(look)
            watch(z.grad_fn)
            if inputs == "all":
                z.backward()
            elif inputs == "w and y":
                lib.autograd.grad(z, [w, y])
            else:
                z.backward(inputs=[{"x": x, "y": y}[inputs]])
        if inputs == "all":
            events.append(list(dict.fromkeys(ran)))

    def name(fn):
        return fn.name().removeprefix("torch::autograd::")

    assert len(same(program)[0]) > 2


def test_the_order_of_execution_needs_a_pass():
    """Outside of a pass both libraries refuse with the same type."""
    x = {lib: leaf(lib, 1.0) * 2 for lib in LIBRARIES.values()}
    for lib in LIBRARIES.values():
        with pytest.raises(RuntimeError, match="during"):
            lib._C._current_graph_task_execution_order()
        with pytest.raises(RuntimeError, match="during"):
            lib._C._will_engine_execute_node(x[lib].grad_fn)


def test_the_current_node():
    """In hooks of tensors, nodes and leaves, in a Function's backward and in unpack hooks it is the node that runs."""

    def program(lib, events):
        def backward(ctx, grad):
            events.append(("Function", node(lib)))
            return grad * 2

        Double = function_of(lambda ctx, x: x * 2, backward, library=lib, name="Double")

        x = leaf(lib, 1.0)

        def unpack(t):
            events.append(("unpack", node(lib)))
            return t

        with lib.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            y = x.exp()
        z = Double.apply(y)
        x.register_hook(lambda grad: events.append(("leaf", node(lib))))
        x.register_post_accumulate_grad_hook(lambda leaf: events.append(("accumulated", node(lib))))
        y.register_hook(lambda grad: events.append(("tensor", node(lib))))
        z.grad_fn.register_prehook(lambda grads: events.append(("prehook", node(lib))))
        z.grad_fn.register_hook(lambda into, out: events.append(("posthook", node(lib))))
        events.append(node(lib))
        z.backward()
        events.append(node(lib))

    assert len(same(program)) == 9


def test_the_current_node_of_a_pass_inside():
    """The innermost pass's node, and the outer one's again after it."""
    x, w = leaf(lucid, 1.0), leaf(lucid, 3.0)
    inner, seen = w.exp(), []
    inner.register_hook(lambda grad: seen.append((current_node().name(), current_graph_task_id())))

    def hook(grad):
        seen.append((current_node().name(), current_graph_task_id()))
        inner.backward()
        seen.append((current_node().name(), current_graph_task_id()))

    y = x * 2
    y.register_hook(hook)
    y.backward()
    names = [name for name, _ in seen]
    assert names == ["MulBackward0", "ExpBackward0", "MulBackward0"]
    assert seen[0][1] == seen[2][1] != seen[1][1]


def test_each_pass_has_its_number():
    """Passes differ, on all threads; outside it is -1, also on a thread while another is inside."""
    x = leaf(lucid, 1.0)
    seen, elsewhere = [], []
    x.register_hook(lambda grad: seen.append(current_graph_task_id()))

    def outside(grad):
        in_threads(lambda: elsewhere.append((current_graph_task_id(), current_node())))

    y = x * 2
    y.register_hook(outside)
    for _ in range(3):
        y.backward(retain_graph=True)
    assert len(set(seen)) == 3
    assert min(seen) >= 0
    assert elsewhere == [(-1, None)] * 3
    assert current_graph_task_id() == -1


def test_backward_from_a_hook_and_from_a_function():
    """Passes inside of a pass accumulate where PyTorch's do, over their own graph and over the one that runs."""

    def program(lib, events):
        def forward(ctx, x):
            ctx.x = x.detach().requires_grad_()
            with lib.enable_grad():
                ctx.y = ctx.x.exp() * ctx.x
            return ctx.y.detach()

        def backward(ctx, grad):
            ctx.y.backward(grad)
            return ctx.x.grad * 0.5

        Inner = function_of(forward, backward, library=lib, name="Inner")

        x, w = leaf(lib, 1.0, -2.0), leaf(lib, 3.0, 0.5)
        shared = w * x
        shared.register_hook(events.append)

        def hook(grad):
            shared.backward(grad * 10, retain_graph=True)
            with lib.enable_grad():
                (w * w).backward(grad)

        y = shared.sin()
        y.register_hook(hook)
        Inner.apply(y).backward(lib.tensor([0.5, 2.0], dtype=lib.float64))
        events.extend([x.grad, w.grad])

    assert len(same(program)) == 4


@pytest.mark.parametrize("depth", [1, 60])
def test_deep_passes_inside_of_passes(depth):
    """Each level of a Function that calls backward on the next runs once, and the gradient is that of the chain."""
    levels = []

    def forward(ctx, x, left):
        ctx.left = left
        ctx.x = x.detach().requires_grad_()
        with lucid.enable_grad():
            ctx.y = ctx.x * 1.01 if left == 0 else Level.apply(ctx.x, left - 1) * 1.01
        return ctx.y.detach()

    def backward(ctx, grad):
        levels.append(ctx.left)
        ctx.y.backward(grad)
        return ctx.x.grad, None

    Level = function_of(forward, backward, name="Level")

    x = leaf(lucid, 2.0)
    Level.apply(x, depth).backward()
    assert levels == list(range(depth, -1, -1))
    np.testing.assert_allclose(x.grad.cpu().numpy(), 1.01 ** (depth + 1), rtol=1e-12)
    assert current_graph_task_id() == -1


def test_multithreading_is_noted():
    """As a function at once, as a context manager with the old setting back; each thread has its own."""
    for lib in LIBRARIES.values():
        enabled = lib.autograd.is_multithreading_enabled if lib is lucid else torch._C._is_multithreading_enabled
        assert enabled()
        with lib.autograd.set_multithreading_enabled(False):
            assert not enabled()
            with lib.autograd.set_multithreading_enabled(True):
                assert enabled()
            assert not enabled()
        assert enabled()
        lib.autograd.set_multithreading_enabled(False)
        assert not enabled()
        lib.autograd.set_multithreading_enabled(True)
    seen = []
    with lucid.autograd.set_multithreading_enabled(False):
        in_threads(lambda: seen.append(lucid.autograd.is_multithreading_enabled()))
    assert seen == [True]


def test_variable():
    """Every tensor is one; making one shares memory and leaves the graph behind, as in PyTorch."""
    for lib in LIBRARIES.values():
        x = leaf(lib, 1.0, 2.0)
        kind = lib.autograd.Variable
        made = kind(x * 2, requires_grad=True)
        assert isinstance(x, kind)
        assert isinstance(made, lib.Tensor)
        assert not isinstance(3, kind)
        assert made.is_leaf
        assert made.requires_grad
        assert not kind(x).requires_grad
    data = lucid.zeros(2)
    made = Variable(data)
    data[0] = 5.0
    assert made.tolist() == [5.0, 0.0]
    with pytest.raises(TypeError):
        Variable([1.0])
